"""Files of answers from anywhere: recognised, brought into one of the shapes that a platform reads, and read. Pure."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import BinaryIO

from app.crowd import files as own_files
from app.crowd.answered import NEEDED, ReadsValues, ResultFiles, ResultRow
from app.crowd.columns import MAPPED, REJECTED, STATUS, map_columns
from app.crowd.platform import Platform
from app.crowd.reading import CellReader, FormatsUnknownError, ReadingNotes, ReadingOptions, find_formats, find_zone
from app.crowd.registry import of_results
from app.crowd.tools import plain_table, with_header
from app.errors import Invalid, listed
from app.upload import Upload, UploadedRow, check_size, read

# The columns that are known in capitals of any kind, by their small letters.
KNOWN = {name.lower(): name for name in (*NEEDED, *MAPPED, STATUS, "WorkerId", "AssignmentId", "HITId")}
KNOWN |= {name.lower(): name for name in ("AcceptTime", "SubmitTime", "HITTypeId", "WorkTimeInSeconds")}
FAMILIES = {name.lower(): name for name in ("Input.id", "Answer.range", "Answer.na")}
NUMBERED = re.compile(rf"({'|'.join(map(re.escape, FAMILIES))})([1-9]\d{{0,3}})")


def read_answers(
    file: BinaryIO, name: str, values: ReadsValues, *, now: datetime, max_mb: int, options: ReadingOptions
) -> tuple[Platform, list[ResultRow], ReadingNotes]:
    """Return the platform that a file's annotators come from, their HITs, and what there is to tell of the reading.

    Numbers and times that programs write are read in one go. Where the file has others, a first go finds out how they
    are written.

    Raises:
        Invalid: What `upload.read`, `map_columns`, `find_formats` and the platform's reader raise; `time_zone_unknown`,
            `criteria_not_imported`, `all_rejected`.

    """
    find_zone(options.time_zone)
    check_size(file, max_mb)
    digest = hashlib.sha256(file.read()).hexdigest()[:12]
    file.seek(0)
    reader = CellReader(now, options)
    try:
        return (*rows_in(file, name, values, digest, max_mb=max_mb, reader=reader), reader.notes)
    except FormatsUnknownError:
        file.seek(0)
    seen = CellReader(now, options)
    _, shape, upload = shape_answers(file, name, max_mb=max_mb, reader=seen)
    reader = CellReader(now, options, find_formats(shape.written_cells(upload), options))
    file.seek(0)
    return (*rows_in(file, name, values, digest, max_mb=max_mb, reader=reader), reader.notes)


def rows_in(
    file: BinaryIO, name: str, values: ReadsValues, digest: str, *, max_mb: int, reader: CellReader
) -> tuple[Platform, list[ResultRow]]:
    platform, shape, upload = shape_answers(file, name, max_mb=max_mb, reader=reader)
    if values.criteria and not shape.by_criterion:
        raise Invalid(
            f"This campaign asks by {listed(values.criteria)}, and a result file of {platform.title} cannot say by "
            "which a value is. Nothing was imported.",
            code="criteria_not_imported",
        )
    try:
        return platform, shape.read(upload, digest, values, reader)
    except Invalid as refused:
        if refused.code == "file_empty" and reader.notes.rejected:
            raise Invalid(
                f"All {reader.notes.rejected:,} results of this file were rejected, cancelled or ignored, so they were "
                "left out. Nothing was imported.",
                code="all_rejected",
            ) from None
        raise


def shape_answers(
    file: BinaryIO, name: str, *, max_mb: int, reader: CellReader
) -> tuple[Platform, ResultFiles, Upload]:
    """Return whose file it is, how it is read, and its table in that shape."""
    upload = read(with_header(file), name, max_mb=max_mb, read_as=reader.options.read_as)
    notes = reader.notes
    notes.rows, notes.lines, notes.file = upload.row_count, upload.line_count, " ".join(upload.notes)
    upload = with_known_names(plain_table(upload, notes))
    if STATUS in upload.columns and not reader.options.count_rejected:
        upload = replace(upload, records=without_rejected(upload.records, notes))
    platform, shape = of_results(upload.columns)
    if any(reader.options.columns.values()) or not shape.reads(upload.columns):
        return platform, own_files.RESULTS, map_columns(upload, reader.options, notes)
    return platform, shape, upload


def with_known_names(upload: Upload) -> Upload:
    """Return a table whose columns are written as Easel and Mechanical Turk write them, where only capitals differ."""
    names = {name: known_name(name, upload.columns) for name in upload.columns}
    if all(name == known for name, known in names.items()):
        return upload
    columns = tuple(names[name] for name in upload.columns)
    records = (
        UploadedRow(record.line, {names.get(name, name): value for name, value in record.values.items()})
        for record in upload.records
    )
    return replace(upload, columns=columns, records=records)


def known_name(name: str, columns: Sequence[str]) -> str:
    bare = name.strip().lower()
    known = KNOWN.get(bare, name)
    if match := NUMBERED.fullmatch(bare):
        known = FAMILIES[match[1]] + match[2]
    alike = [other for other in columns if other.strip().lower() == bare]
    return known if len(alike) == 1 else name


def without_rejected(records: Iterator[UploadedRow], notes: ReadingNotes) -> Iterator[UploadedRow]:
    """Yield the results that the requester has not rejected."""
    for record in records:
        if str(record.values.get(STATUS, "")).strip().lower() == REJECTED:
            notes.rejected += 1
        else:
            yield record
