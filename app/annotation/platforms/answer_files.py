"""Answer files of any tool: detect the format, convert it to one that a platform reads, and read it. Pure."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import BinaryIO

from app.annotation.platforms import easel_results
from app.annotation.platforms.cell_reading import (
    CellReader,
    FormatsUnknownError,
    ReadingNotes,
    ReadingOptions,
    detect_number_and_date_formats,
    find_time_zone_or_refuse,
)
from app.annotation.platforms.column_mapping import (
    COLUMN_ROLES,
    MTURK_STATUS_COLUMN,
    REJECTED_STATUS,
    table_with_easel_columns_or_refuse,
)
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import detect_platform_and_result_format
from app.annotation.platforms.result_format import REQUIRED_RESULT_COLUMNS, ResultFileFormat, ResultRow, ValueReader
from app.annotation.platforms.tool_formats import file_with_appraise_header_if_missing, table_with_row_per_annotation
from app.errors import Invalid, join_names
from app.uploads import UploadedRow, UploadedTable, read_table, refuse_too_large_upload

# Columns that are recognised regardless of capitals, by their lowercase names.
CANONICAL_COLUMNS = {
    name.lower(): name
    for name in (*REQUIRED_RESULT_COLUMNS, *COLUMN_ROLES, MTURK_STATUS_COLUMN, "WorkerId", "AssignmentId", "HITId")
}
CANONICAL_COLUMNS |= {name.lower(): name for name in ("AcceptTime", "SubmitTime", "HITTypeId", "WorkTimeInSeconds")}
NUMBERED_COLUMNS = {name.lower(): name for name in ("Input.id", "Answer.range", "Answer.na")}
NUMBERED_COLUMN_PATTERN = re.compile(rf"({'|'.join(map(re.escape, NUMBERED_COLUMNS))})([1-9]\d{{0,3}})")


def read_platform_rows_and_notes(
    file: BinaryIO, file_name: str, value_reader: ValueReader, *, now: datetime, max_mb: int, options: ReadingOptions
) -> tuple[Platform, list[ResultRow], ReadingNotes]:
    """Return the platform of a file's annotators, their HITs, and notes on the reading.

    Numbers and times in the usual notation of programs are read in one pass. If the file has others, a first pass
    detects their notation.

    Args:
        file: The file.
        file_name: Its name, whose ending tells the format.
        value_reader: Reader of the campaign's values.
        now: Time of the import.
        max_mb: Largest accepted size.
        options: The uploader's choices.

    Raises:
        Invalid: `time_zone_unknown`, `criteria_not_imported`, `choices_not_imported`, `all_rejected`, and the
            refusals of `read_table`,
            `table_with_easel_columns_or_refuse`, `detect_number_and_date_formats` and the platform's reader.

    """
    find_time_zone_or_refuse(options.time_zone)
    refuse_too_large_upload(file, max_mb)
    digest = hashlib.sha256(file.read()).hexdigest()[:12]
    file.seek(0)
    reader = CellReader(now, options)
    try:
        return (
            *read_platform_and_rows(file, file_name, value_reader, digest, max_mb=max_mb, reader=reader),
            reader.notes,
        )
    except FormatsUnknownError:
        file.seek(0)
    first_reader = CellReader(now, options)
    _, file_format, upload = read_table_detecting_platform_and_format(
        file, file_name, max_mb=max_mb, reader=first_reader
    )
    reader = CellReader(now, options, detect_number_and_date_formats(file_format.iter_formatted_cells(upload), options))
    file.seek(0)
    return (*read_platform_and_rows(file, file_name, value_reader, digest, max_mb=max_mb, reader=reader), reader.notes)


def read_platform_and_rows(
    file: BinaryIO, file_name: str, value_reader: ValueReader, digest: str, *, max_mb: int, reader: CellReader
) -> tuple[Platform, list[ResultRow]]:
    platform, file_format, upload = read_table_detecting_platform_and_format(
        file, file_name, max_mb=max_mb, reader=reader
    )
    if value_reader.criterion_names and not file_format.has_criteria:
        raise Invalid(
            f"This campaign asks about {join_names(value_reader.criterion_names)}, but a result file of "
            f"{platform.title} cannot say which criterion a value is for. Nothing was imported.",
            code="criteria_not_imported",
        )
    if reader.notes.has_choices and not value_reader.is_order:
        raise Invalid(
            "This file has choices between two items, but annotators in this campaign do not compare items. Nothing "
            "was imported.",
            code="choices_not_imported",
        )
    try:
        return platform, file_format.read_results(upload, digest, value_reader, reader)
    except Invalid as refused:
        if refused.code == "file_empty" and reader.notes.rejected:
            raise Invalid(
                f"All {reader.notes.rejected:,} results in this file are marked as rejected, cancelled or ignored, "
                "so they were left out. Nothing was imported.",
                code="all_rejected",
            ) from None
        raise


def read_table_detecting_platform_and_format(
    file: BinaryIO, file_name: str, *, max_mb: int, reader: CellReader
) -> tuple[Platform, ResultFileFormat, UploadedTable]:
    """Return the platform of a file, the format to read it with, and its table converted to that format."""
    upload = read_table(
        file_with_appraise_header_if_missing(file), file_name, max_mb=max_mb, read_options=reader.options.read_as
    )
    notes = reader.notes
    notes.rows, notes.lines, notes.file = upload.row_count, upload.line_count, " ".join(upload.notes)
    upload = table_with_canonical_column_names(table_with_row_per_annotation(upload, notes))
    if MTURK_STATUS_COLUMN in upload.columns and not reader.options.count_rejected:
        upload = replace(upload, rows=iterate_results_not_rejected(upload.rows, notes))
    platform, file_format = detect_platform_and_result_format(upload.columns)
    if any(reader.options.columns.values()) or not file_format.has_required_columns(upload.columns):
        return platform, easel_results.RESULTS, table_with_easel_columns_or_refuse(upload, reader.options, notes)
    return platform, file_format, upload


def table_with_canonical_column_names(upload: UploadedTable) -> UploadedTable:
    """Return the table with known columns in the capitals that Easel and Mechanical Turk use."""
    names = {name: canonical_name_if_unique(name, upload.columns) for name in upload.columns}
    if all(name == canonical_name for name, canonical_name in names.items()):
        return upload
    columns = tuple(names[name] for name in upload.columns)
    records = (
        UploadedRow(record.line, {names.get(name, name): value for name, value in record.values.items()})
        for record in upload.rows
    )
    return replace(upload, columns=columns, rows=records)


def canonical_name_if_unique(name: str, columns: Sequence[str]) -> str:
    lowercase_name = name.strip().lower()
    canonical_name = CANONICAL_COLUMNS.get(lowercase_name, name)
    if match := NUMBERED_COLUMN_PATTERN.fullmatch(lowercase_name):
        canonical_name = NUMBERED_COLUMNS[match[1]] + match[2]
    same_names = [other for other in columns if other.strip().lower() == lowercase_name]
    return canonical_name if len(same_names) == 1 else name


def iterate_results_not_rejected(records: Iterator[UploadedRow], notes: ReadingNotes) -> Iterator[UploadedRow]:
    """Yield the results that the requester has not rejected."""
    for record in records:
        if str(record.values.get(MTURK_STATUS_COLUMN, "")).strip().lower() == REJECTED_STATUS:
            notes.rejected += 1
        else:
            yield record
