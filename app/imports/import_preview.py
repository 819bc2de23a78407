"""Preview of a file of items before anything is stored: its first rows, the use of its columns, and its errors.

The rows are read as an import reads them, so the preview shows the refusals that an import would raise.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO, TypeVar

from app.designs.content import MEDIA_FILE_NAMES, Content
from app.errors import Invalid
from app.imports import outputs
from app.imports.checks_import import NewCheck, kind_of_check_in_row_or_default, parse_check_of_row
from app.imports.column_guesses import (
    guess_id_column_or_none,
    guess_shown_column_or_first,
    is_common_id_name,
    notes_on_rejected_ids,
)
from app.imports.columns import (
    CHECKS_MEANING,
    ColumnMapping,
    ColumnMeaning,
    id_column_or_none,
    is_outputs_table,
    possible_meanings_of_item_columns,
    possible_meanings_of_output_columns,
)
from app.imports.id_lines import IdLines
from app.imports.item_files import read_item_table_of_any_length
from app.imports.item_storage import ImportedItem
from app.imports.items import ItemReader, no_items_error
from app.imports.named_media import NamedMedia
from app.imports.segment_checks import CollectedChecks
from app.imports.wide_table import (
    SystemChoice,
    notes_on_columns_of_systems,
    standard_table_of_upload,
    system_choice_or_none,
)
from app.inference.online.law import Law
from app.quality.check_expectations import CriterionDesigns
from app.uploads import (
    MAX_UPLOAD_ROWS,
    UNICODE_OPTIONS,
    ReadOptions,
    UploadedRow,
    UploadedTable,
    iterate_rows_up_to_limit,
)
from app.uploads.rows import ROW_NUMBERS_AS_IDS

PREVIEW_ROWS = 5
MAX_LINES_PER_PROBLEM = 10
MAX_SHARE_WITHOUT_ID = 0.1  # of the rows; a few are mistakes, which the uploader should see
ID_PROBLEM_CODES = ("id_missing", "id_twice")
MAX_REJECTED_ID_COLUMNS = 3  # each is found out by reading the whole file
ROW_PROBLEM_BY_CODE = {
    "id_missing": "without an id",
    "id_too_long": "with an id that is too long",
    "id_twice": "with a duplicate id",
    "id_taken": "with an id that the campaign already has",
    "shown_empty": "with nothing to show",
    "shown_too_long": "with a text that is too long",
    "check_unknown": "with a value other than gold or attention in the column “check”",
    "expected_missing": "with a check but no answer in the column “expected”",
    "expected_unreadable": "with an unreadable expected answer or tolerance",
    "expected_impossible": "with an impossible expected answer",
    "expected_without_check": "with an expected answer but no check",
    "prior_invalid": "with an impossible prior",
    "media_link_refused": "with a file that is on another server",
    "system_missing": "without a system",
    "segment_missing": "without a segment",
    "output_empty": "without an output",
    "output_twice": "with a duplicate output for a segment",
    "source_differs": "with a source or reference that differs from an earlier row",
}

T = TypeVar("T")


@dataclass
class InvalidRows:
    """Rows with the same error: the message, their number, and the lines of the first ones."""

    problem: str
    code: str
    count: int = 0
    lines: list[int] = field(default_factory=list)

    def add_invalid_line(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < MAX_LINES_PER_PROBLEM:
            self.lines.append(line)


@dataclass(frozen=True)
class PreviewRow:
    """One of the first rows, and the text that annotators would see; empty if the row is wrong."""

    line: int
    values: Mapping[str, Any]
    text: str


@dataclass(frozen=True)
class UploadPreview:
    """Preview of a file under one use of its columns.

    Attributes:
        checks: Number of rows that are checks.
        systems: Number of systems in a table of outputs.
        segments: Number of its segments.
        files: Names of files that rows name.
        looks_like: Kind of media whose file names the texts seem to be, in a campaign of texts.
        system_choice: Choice of the columns that are systems; None for a table with a row for each output.

    """

    format: str
    columns: tuple[str, ...]
    mapping: ColumnMapping
    row_count: int
    first_rows: list[PreviewRow]
    problems: list[InvalidRows]
    checks: int = 0
    is_outputs_table: bool = False
    systems: int = 0
    segments: int = 0
    line_count: int = 0
    notes: tuple[str, ...] = ()
    meanings: tuple[ColumnMeaning, ...] = ()
    read_as: ReadOptions = UNICODE_OPTIONS
    quotes: str | None = None
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    looks_like: str | None = None
    system_choice: SystemChoice | None = None

    def has_doubtful_ids(self) -> bool:
        """Return whether the column of ids, which may have been guessed, seems to name something else than the rows."""
        if self.mapping.identifier is None or is_common_id_name(self.mapping.identifier):
            return False
        rows_without_id = sum(problem.count for problem in self.problems if problem.code in ID_PROBLEM_CODES)
        return rows_without_id > MAX_SHARE_WITHOUT_ID * self.row_count


@dataclass(frozen=True)
class ChosenColumns:
    """Columns that an uploader chose, None where they chose none; `identifier` can be `ROW_NUMBERS_AS_IDS`.

    `rejected_id_columns` were guessed, but do not name the rows.
    """

    identifier: str | None = None
    shown: str | None = None
    template: str | None = None
    priors: bool = False
    ignored: frozenset[str] = frozenset()
    rejected_id_columns: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()


def read_upload_preview_or_refuse(
    file: BinaryIO,
    name: str,
    chosen_columns: ChosenColumns,
    law: Law,
    *,
    id_lines: IdLines | None = None,
    **options: Any,
) -> UploadPreview:
    """Read a whole file without importing it, again if a guessed column of ids names something else than the rows.

    After `MAX_REJECTED_ID_COLUMNS` such guesses the rows are numbered.

    Raises what `read_preview_of_columns_or_refuse` raises.
    """
    while True:
        file.seek(0)
        lines_to_fill = id_lines if chosen_columns.identifier else deepcopy(id_lines)
        preview = read_preview_of_columns_or_refuse(file, name, chosen_columns, law, id_lines=lines_to_fill, **options)
        if chosen_columns.identifier or not preview.has_doubtful_ids():
            notes = notes_on_rejected_ids(chosen_columns.rejected_id_columns, preview.mapping.identifier)
            return replace(preview, notes=(*preview.notes, *notes))
        rejected_id_columns = (*chosen_columns.rejected_id_columns, preview.mapping.identifier or "")
        is_last_guess = len(rejected_id_columns) == MAX_REJECTED_ID_COLUMNS
        chosen_columns = replace(
            chosen_columns,
            rejected_id_columns=rejected_id_columns,
            identifier=ROW_NUMBERS_AS_IDS if is_last_guess else None,
        )


def read_preview_of_columns_or_refuse(
    file: BinaryIO,
    name: str,
    chosen_columns: ChosenColumns,
    law: Law,
    *,
    content: Content,
    designs: CriterionDesigns,
    id_lines: IdLines | None = None,
    max_mb: int,
    read_options: ReadOptions = UNICODE_OPTIONS,
) -> UploadPreview:
    """Read a whole file without importing it, under one use of its columns.

    Raises what `read_item_table_of_any_length` and `ItemReader` raise, and `file_empty`.
    """
    requested_mapping = ColumnMapping(
        ColumnMapping.identifier if chosen_columns.identifier is None else id_column_or_none(chosen_columns.identifier),
        chosen_columns.shown,
        chosen_columns.template,
        priors=chosen_columns.priors,
        ignored=chosen_columns.ignored,
        systems=chosen_columns.systems,
    )
    uploaded_table = read_item_table_of_any_length(
        file, name, max_mb=max_mb, mapping=requested_mapping, read_options=read_options
    )
    upload = standard_table_of_upload(uploaded_table, content, law, requested_mapping)
    first_records = list(islice(upload.rows, PREVIEW_ROWS))
    if not first_records:
        raise no_items_error()
    whole_upload = replace(upload, rows=chain(first_records, upload.rows))
    if is_outputs_table(upload.columns, requested_mapping):
        upload_preview = build_preview_of_outputs_table(
            whole_upload, len(first_records), content, requested_mapping, designs
        )
    else:
        mapping = replace(
            fill_chosen_columns_with_guesses(upload.columns, first_records, chosen_columns),
            priors=requested_mapping.priors,
            ignored=requested_mapping.ignored,
        )
        upload_preview = build_preview_of_items_table(
            whole_upload,
            len(first_records),
            ItemReader(upload.columns, mapping, law, NamedMedia(content), id_lines),
            mapping,
            designs,
        )
    wide_notes = () if upload_preview.is_outputs_table else notes_on_columns_of_systems(upload.columns)
    has_row_for_each_output = upload_preview.is_outputs_table and not requested_mapping.systems
    return replace(
        upload_preview,
        line_count=upload.line_count,
        notes=(*upload.notes, *wide_notes),
        system_choice=None
        if has_row_for_each_output
        else system_choice_or_none(uploaded_table.columns, requested_mapping, is_likely=bool(wide_notes)),
        read_as=read_options,
        quotes=upload.quotes,
        sheet=upload.sheet,
        sheets=upload.sheets,
    )


def build_preview_of_items_table(
    upload: UploadedTable, preview_row_count: int, reader: ItemReader, mapping: ColumnMapping, designs: CriterionDesigns
) -> UploadPreview:
    problems: dict[str, InvalidRows] = {}
    preview_rows: list[PreviewRow] = []
    check_count = 0
    takes_checks = CHECKS_MEANING not in mapping.ignored
    for record in upload.rows:
        check_count += bool(kind_of_check_in_row_or_default(record))
        read_row = partial(read_item_or_check, reader, designs) if takes_checks else reader.read_item
        item_or_check = read_row_or_none_collecting_problem(read_row, record, problems)
        if len(preview_rows) < preview_row_count:
            preview_rows.append(PreviewRow(record.line, record.values, item_or_check.shown if item_or_check else ""))
    reader.make_text.refuse_paths_never_found()
    meanings = possible_meanings_of_item_columns(
        upload.columns, reader.named_media.content, reader.law, mapping, check_count
    )
    return UploadPreview(
        format=upload.format,
        columns=upload.columns,
        mapping=mapping,
        row_count=reader.row_count,
        first_rows=preview_rows,
        problems=list(problems.values()),
        checks=check_count if takes_checks else 0,
        meanings=tuple(meanings),
        files=distinct_names_of_collected_media(reader.named_media),
        looks_like=media_kind_of_file_names_or_none(reader.named_media.content, [row.text for row in preview_rows]),
    )


def media_kind_of_file_names_or_none(content: Content, texts: Sequence[str]) -> str | None:
    """Return the kind of media whose file names all of these texts are, None if there is none or items are no text."""
    if content.kind != "text":
        return None
    return next(
        (
            kind
            for kind, pattern in MEDIA_FILE_NAMES.items()
            if all(" " not in text.strip() and pattern.fullmatch(text.strip()) for text in texts)
        ),
        None,
    )


def distinct_names_of_collected_media(named: NamedMedia) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file.name for file in named.first_line_by_file))


def read_item_or_check(reader: ItemReader, designs: CriterionDesigns, row: UploadedRow) -> ImportedItem | NewCheck:
    kind = kind_of_check_in_row_or_default(row)
    return (
        parse_check_of_row(row, kind, *reader.read_check_id_with_text(row), designs) if kind else reader.read_item(row)
    )


def build_preview_of_outputs_table(
    upload: UploadedTable,
    preview_row_count: int,
    content: Content,
    mapping: ColumnMapping,
    designs: CriterionDesigns,
) -> UploadPreview:
    """Return the preview of a table of systems' outputs, whose column names are fixed."""
    collected_outputs = outputs.CollectedOutputs(NamedMedia(content), CollectedChecks(designs))
    problems, row_count = dict[str, InvalidRows](), 0
    preview_rows: list[PreviewRow] = []
    for record in iterate_rows_up_to_limit(upload.rows, MAX_UPLOAD_ROWS):
        row_count += 1
        read_row_or_none_collecting_problem(collected_outputs.add_row_and_return_output_or_none, record, problems)
        if len(preview_rows) < preview_row_count:
            preview_rows.append(PreviewRow(record.line, record.values, ""))
    check_count = len(collected_outputs.checks.rows)
    return UploadPreview(
        format=upload.format,
        columns=upload.columns,
        mapping=ColumnMapping(None, systems=mapping.systems),
        row_count=row_count,
        first_rows=preview_rows,
        problems=list(problems.values()),
        checks=check_count,
        is_outputs_table=True,
        systems=len(collected_outputs.number_by_system),
        segments=len(collected_outputs.segment_by_id),
        meanings=tuple(possible_meanings_of_output_columns(upload.columns, mapping, check_count)),
        files=distinct_names_of_collected_media(collected_outputs.named_media),
    )


def read_row_or_none_collecting_problem(
    read_row: Callable[[UploadedRow], T], row: UploadedRow, problems: dict[str, InvalidRows]
) -> T | None:
    try:
        return read_row(row)
    except Invalid as refusal:
        problem = ROW_PROBLEM_BY_CODE.get(refusal.code, refusal.message)
        problems.setdefault(refusal.code, InvalidRows(problem, refusal.code)).add_invalid_line(row.line)
        return None


def fill_chosen_columns_with_guesses(
    columns: Sequence[str], first_records: Sequence[UploadedRow], chosen_columns: ChosenColumns
) -> ColumnMapping:
    """Return the columns as an uploader chose them, and the likeliest ones for the rest."""
    if chosen_columns.identifier:
        identifier = id_column_or_none(chosen_columns.identifier)
    else:
        identifier = guess_id_column_or_none(columns, chosen_columns.rejected_id_columns)
    if chosen_columns.template:
        return ColumnMapping(identifier, template=chosen_columns.template)
    return ColumnMapping(
        identifier, chosen_columns.shown or guess_shown_column_or_first(columns, first_records, identifier)
    )
