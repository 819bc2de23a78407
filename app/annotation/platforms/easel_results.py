"""Result files in Easel's own format: a row for each item of a HIT, or in JSONL an object for each HIT.

Required columns are `hit`, `annotator`, `item` and `value`; optional ones `position`, `issued_at`, `submitted_at`,
`not_applicable`, `reason`, `segment` and `criterion`. Exports of responses are read, too, with the places of criteria
and of conditions, comments, flags and telemetry. Pure: from a table to answered HITs.
"""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeAlias

from app.annotation.platforms.answer_details import (
    ANSWER_DETAIL_COLUMNS,
    FLAG_COLUMNS,
    HIT_DETAIL_COLUMNS,
    NO_DETAILS,
    AnswerDetails,
    read_answer_details_or_refuse,
)
from app.annotation.platforms.cell_reading import MISSING_VALUE_WORDS, CellKind, CellReader, is_missing_value
from app.annotation.platforms.file_scale import campaign_value_of_file_scale_text_or_refuse
from app.annotation.platforms.platform import MAX_PLATFORM_ID_CHARACTERS, Platform
from app.annotation.platforms.result_format import REQUIRED_RESULT_COLUMNS, ResultFileFormat, ResultRow, ValueReader
from app.designs.criteria_settings import MAX_CRITERIA
from app.errors import Invalid, join_names, shorten_echo, shortened_names_that_message_shows
from app.selection.condition_squares import MAX_CONDITIONS
from app.text.spreadsheets import unprotect_spreadsheet_cell
from app.uploads import UploadedRow, UploadedTable, format_cell, raise_upload_refusal_at_line

OPTIONAL_RESULT_COLUMNS = ("position", "issued_at", "submitted_at", "not_applicable", "reason", "segment", "criterion")
# Read from exports only: places, with the largest one that an export of Easel can have.
LARGEST_PLACE_BY_COLUMN = {
    "criterion_position": MAX_CRITERIA,
    "block": MAX_CONDITIONS,
    "condition_list": MAX_CONDITIONS,
}
# A file with the first of these columns is an export. The others are not read: they say how its campaign chose.
UNREAD_EXPORT_COLUMNS = (
    *("seq", "name", "source", "iteration", "leader", "label", "rank", "counts", "replaces"),
    *("drawn_because", "leader_probability", "left_out", "left_out_reason", "left_out_at", "barred", "revision"),
    *("shown_as", "item_version", "condition"),
)
ENTRY_ANSWER_PREFIX = "asked_"  # of export columns with answers to entry questions
JSONL_LIST_COLUMNS = {"items": "item", "values": "value"}  # in JSONL, where a row is a whole HIT
RESULT_COLUMN_ALIASES = {"score": "value", "received_at": "submitted_at"} | JSONL_LIST_COLUMNS  # in exports and JSONL
RESULT_POSITION_PATTERN = re.compile("[1-9][0-9]{0,8}")
# Truth values in the notation of programs and spreadsheets.
RESULT_TRUTH_VALUES = dict.fromkeys(
    ("true", "wahr", "vrai", "verdadero", "verdadeiro", "vero", "waar", "1", "yes"), True
)
RESULT_TRUTH_VALUES |= dict.fromkeys(
    ("false", "falsch", "faux", "falso", "onwaar", "0", "no", *MISSING_VALUE_WORDS), False
)

MAX_IMPORTED_REASON_CHARACTERS = 200
JudgmentTuple: TypeAlias = tuple[
    *tuple[int | None, int, str, float | None, str, datetime | None, datetime | None, str],
    *tuple[int | None, int | None, int | None, AnswerDetails],
]
"""Position, line, item, value, reason for no value, issue time, submission time, segment, the cells of
`LARGEST_PLACE_BY_COLUMN`, and the details of a row. A tuple of plain values, because the garbage collector does not
track those.
"""


def has_any_easel_column(columns: Sequence[str]) -> bool:
    """Return whether a file may be in this format, complete or not."""
    return bool({"hit", "annotator"} & set(columns))


def has_required_easel_columns(columns: Sequence[str]) -> bool:
    return set(REQUIRED_RESULT_COLUMNS) <= {RESULT_COLUMN_ALIASES.get(name, name) for name in columns}


def iterate_number_and_time_cells_of_easel_results(upload: UploadedTable) -> Iterator[tuple[int, CellKind, str]]:
    """Yield the cells with values and times."""
    for record in upload.rows:
        for line, cells in iterate_lines_and_cells_of_record(record):
            yield line, "number", cells.get("value", "")
            yield line, "number", cells.get("seconds_heard", "")
            for column in ("issued_at", "submitted_at"):
                yield line, "time", cells.get(column, "")


def read_easel_results(
    upload: UploadedTable, _digest: str, value_reader: ValueReader, reader: CellReader
) -> list[ResultRow]:
    """Return the HITs of a file, one per criterion, in the order of their first rows.

    The rows of a HIT need not be adjacent. If an annotator replaced an answer, an export has both; only the newer one
    is read. Rows without a value are left out.

    Raises:
        Invalid: `column_unknown`, `column_twice`, `lists_unequal`, `hit_missing`, `annotator_missing`, `id_too_long`,
            `item_missing`, `item_repeated`, `scores_missing`, `score_not_a_number`, `score_out_of_range`,
            `class_unknown`, `na_unknown`, `reason_unusable`, `position_unusable`, `segment_differs`, `place_differs`,
            `time_unreadable`, `time_in_future`, `criterion_unknown`, `detail_unusable`, `file_empty`.

    """
    hits: dict[tuple[str, str, str, str], list[JudgmentTuple]] = {}
    replaced_answers: set[tuple[str, str]] = set()  # annotators, and numbers of their answers
    exported_by_columns: dict[tuple[str, ...], bool] = {}
    first_line_without_value = 0
    for record in upload.rows:
        columns = tuple(record.values)
        if columns not in exported_by_columns:
            exported_by_columns[columns] = is_export_refusing_unread_columns(
                record.line if upload.format == "jsonl" else 1, columns
            )
        exported = exported_by_columns[columns]
        flags_without_reason = (
            [name for name in FLAG_COLUMNS if record.values.get(name) == ""]
            if exported and upload.format == "jsonl"  # in other formats, a cell without a flag is empty, too
            else ()
        )
        for line, texts in iterate_lines_and_cells_of_record(record):
            cells = (
                {name: cell_without_export_apostrophe(name, cell) for name, cell in texts.items()}
                if exported
                else texts
            )
            annotator, hit = (
                read_required_id_or_refuse(cells, "annotator", line),
                read_required_id_or_refuse(cells, "hit", line),
            )
            replaced_answers.add((annotator, cells.get("replaces", "")))
            criterion_reader = value_reader_of_row_criterion_or_refuse(value_reader, line, cells.get("criterion"))
            if not exported and has_neither_value_nor_na_mark(cells, criterion_reader):
                first_line_without_value = first_line_without_value or line
                reader.notes.missing += 1
                continue
            rows = hits.setdefault((annotator, hit, cells.get("criterion", ""), cells.get("seq", "")), [])
            details = (
                read_answer_details_or_refuse(line, cells, reader, flags_without_reason) if exported else NO_DETAILS
            )
            rows.append(parse_judgment_tuple(line, cells, criterion_reader, reader, details, is_export=exported))
    if first_line_without_value and not hits:
        raise_upload_refusal_at_line("scores_missing", first_line_without_value, "no row of this file has a value.")
    if not hits:
        raise Invalid("This file has a header and no responses. Nothing was imported.", code="file_empty")
    # Popping frees rows one HIT at a time. Freeing all at once would block this process for a moment.
    return [
        build_result_row_or_refuse(annotator, hit, criterion, hits.pop((annotator, hit, criterion, seq)))
        for annotator, hit, criterion, seq in list(hits)
        if not seq or (annotator, seq) not in replaced_answers
    ]


def cell_without_export_apostrophe(column: str, cell: str) -> str:
    """Return a cell of an export without the apostrophe that protects it in spreadsheets.

    Item ids keep it: an id may begin with one, so the lookup tries both.
    """
    return cell if column == "item" else unprotect_spreadsheet_cell(cell)


def is_export_refusing_unread_columns(line: int, columns: Sequence[str]) -> bool:
    """Return whether the columns are those of an export, after refusing columns that are not read.

    Raises:
        Invalid: `column_unknown`, `column_twice`.

    """
    exported = UNREAD_EXPORT_COLUMNS[0] in columns
    export_columns = (*UNREAD_EXPORT_COLUMNS, *LARGEST_PLACE_BY_COLUMN, *ANSWER_DETAIL_COLUMNS) if exported else ()
    known_columns = (*REQUIRED_RESULT_COLUMNS, *OPTIONAL_RESULT_COLUMNS, *export_columns)
    unread = [name for name in columns if RESULT_COLUMN_ALIASES.get(name, name) not in known_columns]
    if unknown := [name for name in unread if not (exported and name.startswith(ENTRY_ANSWER_PREFIX))]:
        raise_upload_refusal_at_line(
            "column_unknown",
            line,
            f"Easel does not know the column {join_names(unknown)}: it reads "
            f"{', '.join((*REQUIRED_RESULT_COLUMNS, *OPTIONAL_RESULT_COLUMNS))}. "
            "Remove the columns that should not count.",
            columns=shortened_names_that_message_shows(unknown),
        )
    names = [RESULT_COLUMN_ALIASES.get(name, name) for name in columns]
    for name, column in zip(names, columns, strict=True):
        if names.count(name) > 1:
            raise_upload_refusal_at_line(
                "column_twice", line, f"two columns hold the {name}. Remove one.", column=column
            )
    return exported


def iterate_lines_and_cells_of_record(record: UploadedRow) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the cells of each row: one per record, or one for each item of its lists.

    Raises:
        Invalid: `lists_unequal`.

    """
    if JSONL_LIST_COLUMNS.keys().isdisjoint(record.values):
        yield record.line, cells_by_standard_column(record.values)
        return
    lists = [record.values.get(name) for name in JSONL_LIST_COLUMNS]
    items, values = (column if isinstance(column, list) else [] for column in lists)
    if not items or len(items) != len(values):
        raise_upload_refusal_at_line(
            "lists_unequal", record.line, "items and values must be two lists of the same length, in JSONL."
        )
    for item, value in zip(items, values, strict=True):
        yield record.line, cells_by_standard_column(record.values | {"items": item, "values": value})


def cells_by_standard_column(values: dict[str, Any]) -> dict[str, str]:
    return {RESULT_COLUMN_ALIASES.get(name, name): format_cell(value).strip() for name, value in values.items()}


def read_required_id_or_refuse(cells: dict[str, str], column: str, line: int) -> str:
    cell = cells.get(column, "")
    if not cell:
        raise_upload_refusal_at_line(f"{column}_missing", line, f"{column} is empty.")
    if len(cell) > MAX_PLATFORM_ID_CHARACTERS:
        raise_upload_refusal_at_line(
            "id_too_long", line, f"{column} has more than {MAX_PLATFORM_ID_CHARACTERS} characters."
        )
    return cell


def value_reader_of_row_criterion_or_refuse(value_reader: ValueReader, line: int, criterion: str | None) -> ValueReader:
    """Return the reader of values by a row's criterion, which is None if there is no such column.

    Raises:
        Invalid: `criterion_unknown`.

    """
    criterion_reader = value_reader.find_reader_of_criterion_or_none(criterion or "")
    if criterion_reader is None:
        missing_message = "there is no column criterion" if criterion is None else "criterion is empty"
        message = f"the campaign does not ask about “{shorten_echo(criterion)}”" if criterion else missing_message
        raise_upload_refusal_at_line("criterion_unknown", line, f"{message}. Name one of its criteria in this column.")
    return criterion_reader


def has_neither_value_nor_na_mark(cells: dict[str, str], value_reader: ValueReader) -> bool:
    """Return whether a row has neither a value nor an N/A mark."""
    return is_missing_value(cells.get("value", ""), value_reader.classes) and not RESULT_TRUTH_VALUES.get(
        cells.get("not_applicable", "").lower()
    )


def parse_judgment_tuple(
    line: int,
    cells: dict[str, str],
    value_reader: ValueReader,
    reader: CellReader,
    details: AnswerDetails,
    *,
    is_export: bool,
) -> JudgmentTuple:
    item = cells.get("item", "")
    if not item:
        raise_upload_refusal_at_line("item_missing", line, "item is empty.")
    reader.notes.remember_first_cell(line, item, cells.get("value", ""))
    criterion_position, block, condition_list = (
        positive_number_or_none(line, name, cells.get(name, ""), largest=largest) if is_export else None
        for name, largest in LARGEST_PLACE_BY_COLUMN.items()
    )
    return (
        positive_number_or_none(line, "position", cells.get("position", "")),
        line,
        item,
        judged_value_or_none_or_nan(line, cells, value_reader, reader, is_export=is_export),
        parse_unjudged_reason(line, cells),
        parse_time_cell_or_none(line, "issued_at", cells, reader),
        parse_time_cell_or_none(line, "submitted_at", cells, reader),
        cells.get("segment", ""),
        criterion_position,
        block,
        condition_list,
        details,
    )


def judged_value_or_none_or_nan(
    line: int, cells: dict[str, str], value_reader: ValueReader, reader: CellReader, *, is_export: bool
) -> float | None:
    """Return the value; None if the item was marked N/A, NaN if an export has none because another item was."""
    cell, not_applicable = cells.get("value", ""), cells.get("not_applicable", "").lower()
    if not_applicable not in RESULT_TRUTH_VALUES or (
        RESULT_TRUTH_VALUES[not_applicable] and not is_missing_value(cell, ())
    ):
        raise_upload_refusal_at_line(
            "na_unknown", line, "not_applicable must be true if the item was marked N/A and has no value, else false."
        )
    if RESULT_TRUTH_VALUES[not_applicable]:
        return None
    if is_export and is_missing_value(cell, value_reader.classes):
        return math.nan
    value = parse_value_cell_or_refuse(line, cell, value_reader, reader, is_export=is_export)
    refuse_different_class_label(line, value, cells.get("label", ""), value_reader.classes)
    return value


def parse_unjudged_reason(line: int, cells: dict[str, str]) -> str:
    """Return the reason why an item was marked N/A. Raises `Invalid` (`reason_unusable`)."""
    reason = cells.get("reason", "")
    if len(reason) > MAX_IMPORTED_REASON_CHARACTERS or (
        reason and not RESULT_TRUTH_VALUES.get(cells.get("not_applicable", "").lower())
    ):
        limit = f"at most {MAX_IMPORTED_REASON_CHARACTERS} characters"
        message = f"reason must have {limit}, and needs not_applicable to be true."
        raise_upload_refusal_at_line("reason_unusable", line, message)
    return reason


def parse_value_cell_or_refuse(
    line: int, cell: str, value_reader: ValueReader, reader: CellReader, *, is_export: bool
) -> float:
    if (scale := reader.options.scale) is not None:
        if is_export:
            message = "the values of an export are on the campaign’s scale, so scale_from and scale_to do not apply."
            raise_upload_refusal_at_line("scale_not_possible", line, message)
        number = reader.normalise_number_notation(cell, accept_percent=value_reader.is_points_scale)
        return campaign_value_of_file_scale_text_or_refuse(line, number, scale, value_reader)
    text = (
        cell
        if cell in value_reader.classes
        else reader.normalise_number_notation(cell, accept_percent=value_reader.is_points_scale)
    )
    try:
        value = value_reader.parse_number(text) if is_export else value_reader.parse_value_or_none(text)
    except ValueError:
        if value_reader.classes:
            message = f"“{shorten_echo(cell)}” is not one of the classes {join_names(value_reader.classes)}."
            raise_upload_refusal_at_line(
                "class_unknown", line, message, classes=shortened_names_that_message_shows(value_reader.classes)
            )
        raise_upload_refusal_at_line("score_not_a_number", line, f"the value “{shorten_echo(cell)}” is not a number.")
    if value is None:
        raise_upload_refusal_at_line(
            "score_out_of_range",
            line,
            f"the value {shorten_echo(cell)} is not {value_reader.allowed_numbers_text}.",
        )
    return value


def refuse_different_class_label(line: int, value: float, label: str, classes: Sequence[str]) -> None:
    """Check the label that an export has next to a class number, which may mean another class in another campaign.

    Raises:
        Invalid: `class_unknown`.

    """
    own_label = classes[int(value)] if classes else ""
    if label not in ("", own_label):
        label_text = f"called “{shorten_echo(own_label)}” here" if own_label else "not a label in this campaign"
        raise_upload_refusal_at_line(
            "class_unknown",
            line,
            f"the value {value:g} is called “{shorten_echo(label)}” in this file, but is {label_text}.",
        )


def positive_number_or_none(line: int, column: str, cell: str, *, largest: int | None = None) -> int | None:
    """Return the position, or another place, in a cell; None if it is empty. Raises `Invalid` (`position_unusable`)."""
    if not cell:
        return None
    if not RESULT_POSITION_PATTERN.fullmatch(cell):
        raise_upload_refusal_at_line(
            "position_unusable", line, f"the {column} “{shorten_echo(cell)}” is not one of 1, 2, ..."
        )
    if largest is not None and int(cell) > largest:
        raise_upload_refusal_at_line(
            "position_unusable", line, f"the {column} {cell} is not one of 1 to {largest}: no campaign has so many."
        )
    return int(cell)


def parse_time_cell_or_none(line: int, column: str, cells: dict[str, str], reader: CellReader) -> datetime | None:
    """Return the time in a column, None if there is none. Raises `Invalid` (`time_unreadable`, `time_in_future`)."""
    cell = cells.get(column, "")
    moment = reader.parse_time_cell_or_none(line, column, cell) if cell else None
    return moment.time if moment else None


def build_result_row_or_refuse(annotator: str, hit: str, criterion: str, rows: list[JudgmentTuple]) -> ResultRow:
    """Return the HIT of these rows.

    Raises:
        Invalid: `position_unusable`, `item_repeated`, `segment_differs`, `place_differs`.

    """
    first_line = rows[0][1]
    sort_rows_by_position_or_refuse(rows)
    _, lines, items, values, reasons, issued, submitted, segments, places, blocks, lists, details = zip(
        *rows, strict=True
    )
    refuse_item_twice_in_hit(items, lines)
    if len({*segments}) > 1:
        raise_upload_refusal_at_line(
            "segment_differs", first_line, "the rows of this HIT have several segments, but a HIT has one."
        )
    has_details = any(row is not NO_DETAILS for row in details)
    hit_details = {name: [row[ANSWER_DETAIL_COLUMNS.index(name)] for row in details] for name in HIT_DETAIL_COLUMNS}
    for name, cells in {
        "criterion_position": places, "condition_list": lists, **(hit_details if has_details else {}),
    }.items():  # fmt: skip
        if len({*cells}) > 1:
            raise_upload_refusal_at_line(
                "place_differs", first_line, f"the rows of this HIT differ in {name}, but a HIT has one."
            )
    return ResultRow(
        line=first_line,
        worker_id=annotator,
        assignment_id=hit,
        items=items,
        scores=values,
        accepted_at=min(filter(None, issued), default=None),
        submitted_at=max(filter(None, submitted), default=None),
        details={},
        lines=lines,
        reasons=reasons,
        segment=segments[0],
        criterion=criterion,
        criterion_position=places[0],
        blocks=blocks if any(blocks) else (),
        condition_list=lists[0],
        answer_details=details if has_details else (),
    )


def sort_rows_by_position_or_refuse(rows: list[JudgmentTuple]) -> None:
    """Sort the rows of a HIT by their positions, if they have any."""
    positions = {position for position, *_ in rows}
    if positions == {None}:
        return
    if None in positions or len(positions) < len(rows):
        raise_upload_refusal_at_line("position_unusable", rows[0][1], "each row of this HIT needs its own position.")
    rows.sort(key=itemgetter(0))


def refuse_item_twice_in_hit(items: Sequence[str], lines: Sequence[int]) -> None:
    """Raise `Invalid` (`item_repeated`) if an item is in the HIT twice."""
    seen: set[str] = set()
    for item, line in zip(items, lines, strict=True):
        if item in seen:
            raise_upload_refusal_at_line(
                "item_repeated",
                line,
                f"the item “{shorten_echo(item)}” appears twice in this HIT by this annotator.",
            )
        seen.add(item)


RESULTS = ResultFileFormat(
    has_any_easel_column,
    has_required_easel_columns,
    read_easel_results,
    iterate_number_and_time_cells_of_easel_results,
    has_criteria=True,
)
PLATFORM = Platform("elsewhere", "Elsewhere", has_page=False, result_files=RESULTS, shares_assignment_ids=True)
