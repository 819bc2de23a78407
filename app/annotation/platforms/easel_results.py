"""Answers from anywhere, in files of Easel's own: a row for each item of a HIT, or in JSONL an object for each HIT.

Columns `hit`, `annotator`, `item` and `value`, perhaps `position`, `issued_at`, `submitted_at`, `not_applicable`,
`reason`, `segment` and `criterion`; or those of an export of responses. Pure: from a table to HITs that were answered.
"""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeAlias

from app.annotation.platforms.cell_reading import MISSING_VALUE_WORDS, CellKind, CellReader, is_missing_value
from app.annotation.platforms.platform import MAX_PLATFORM_ID_CHARACTERS, Platform
from app.annotation.platforms.result_format import REQUIRED_RESULT_COLUMNS, ResultFileFormat, ResultRow, ValueReader
from app.errors import Invalid, join_names, shorten_echo, shorten_names
from app.text.spreadsheets import unprotect_cell
from app.uploads import UploadedRow, UploadedTable, format_cell, refuse_line

OPTIONAL_RESULT_COLUMNS = ("position", "issued_at", "submitted_at", "not_applicable", "reason", "segment", "criterion")
# A file with the first of these is an export, whose others follow from the rest or tell how an answer came about.
UNREAD_EXPORT_COLUMNS = (
    *("seq", "name", "source", "iteration", "leader", "label", "rank", "counts", "replaces"),
    *("drawn_because", "leader_probability", "left_out", "left_out_reason", "left_out_at", "barred", "revision"),
    *("first_touch_ms", "changes", "input_kind", "viewport", "shown_as", "criterion_position"),
    *("flag", "comment", "hit_flag", "hit_comment"),
)
ENTRY_ANSWER_PREFIX = (
    "asked_"  # begins the columns of an export that say what its annotator answered to a question asked once
)
JSONL_LIST_COLUMNS = {"items": "item", "values": "value"}  # in JSONL, where a row is a whole HIT
RESULT_COLUMN_ALIASES = {
    "score": "value",
    "received_at": "submitted_at",
} | JSONL_LIST_COLUMNS  # what exports and lists call a column
RESULT_POSITION_PATTERN = re.compile("[1-9][0-9]{0,8}")
# As programs and spreadsheets write truth values.
RESULT_TRUTH_VALUES = dict.fromkeys(
    ("true", "wahr", "vrai", "verdadero", "verdadeiro", "vero", "waar", "1", "yes"), True
)
RESULT_TRUTH_VALUES |= dict.fromkeys(
    ("false", "falsch", "faux", "falso", "onwaar", "0", "no", *MISSING_VALUE_WORDS), False
)

MAX_IMPORTED_REASON_CHARACTERS = 200
JudgmentTuple: TypeAlias = tuple[int | None, int, str, float | None, str, datetime | None, datetime | None, str]
"""Of a row its position, line, item, value, why it has none, when it was issued and submitted, and its segment: a
tuple, which the garbage collector leaves out.
"""


def has_easel_column(columns: Sequence[str]) -> bool:
    """Whether a file may be one of these, whole or not."""
    return bool({"hit", "annotator"} & set(columns))


def has_required_easel_columns(columns: Sequence[str]) -> bool:
    """Whether a file has all columns that are needed."""
    return set(REQUIRED_RESULT_COLUMNS) <= {RESULT_COLUMN_ALIASES.get(name, name) for name in columns}


def iter_easel_cells(upload: UploadedTable) -> Iterator[tuple[int, CellKind, str]]:
    """Yield the cells with values and times."""
    for record in upload.rows:
        for line, cells in iter_row_texts(record):
            yield line, "number", cells.get("value", "")
            for column in ("issued_at", "submitted_at"):
                yield line, "time", cells.get(column, "")


def read_easel_results(
    upload: UploadedTable, _digest: str, value_reader: ValueReader, reader: CellReader
) -> list[ResultRow]:
    """The HITs of a file, in the order of their first rows, by each criterion apart. The rows of a HIT need not stand
    together. Of an answer that its annotator replaced, an export has both; the newer one is read. Rows without a value
    are left out.

    Raises `Invalid`: `column_unknown`, `column_twice`, `lists_unequal`, `hit_missing`,
    `annotator_missing`, `id_too_long`, `item_missing`, `item_repeated`, `scores_missing`, `score_not_a_number`,
    `score_out_of_range`, `class_unknown`, `na_unknown`, `reason_unusable`, `position_unusable`, `segment_differs`,
    `time_unreadable`, `time_in_future`, `criterion_unknown`, `file_empty`.
    """
    hits: dict[tuple[str, str, str, str], list[JudgmentTuple]] = {}
    replaced_answers: set[tuple[str, str]] = set()  # annotators, and numbers of their answers
    exported_by_columns: dict[tuple[str, ...], bool] = {}
    first_line_without_value = 0
    for record in upload.rows:
        columns = tuple(record.values)
        if columns not in exported_by_columns:
            exported_by_columns[columns] = check_easel_columns(record.line if upload.format == "jsonl" else 1, columns)
        exported = exported_by_columns[columns]
        for line, texts in iter_row_texts(record):
            cells = {name: strip_apostrophe(name, cell) for name, cell in texts.items()} if exported else texts
            annotator, hit = read_required_id(cells, "annotator", line), read_required_id(cells, "hit", line)
            replaced_answers.add((annotator, cells.get("replaces", "")))
            criterion_reader = value_reader_for_criterion(value_reader, line, cells.get("criterion"))
            if not exported and lacks_value(cells, criterion_reader):
                first_line_without_value = first_line_without_value or line
                reader.notes.missing += 1
                continue
            rows = hits.setdefault((annotator, hit, cells.get("criterion", ""), cells.get("seq", "")), [])
            rows.append(parse_judgment(line, cells, criterion_reader, reader, exported=exported))
    if first_line_without_value and not hits:
        refuse_line("scores_missing", first_line_without_value, "no row of this file has a value.")
    if not hits:
        raise Invalid("This file has a header and no responses. Nothing was imported.", code="file_empty")
    # To let go of all rows at once would take a moment in which nothing else is done.
    return [
        build_result_row(annotator, hit, criterion, hits.pop((annotator, hit, criterion, seq)))
        for annotator, hit, criterion, seq in list(hits)
        if not seq or (annotator, seq) not in replaced_answers
    ]


def strip_apostrophe(column: str, cell: str) -> str:
    """Return a cell of an export without the apostrophe for spreadsheet programs; ids of items are looked up with it,
    too, since an id may begin with one.
    """
    return cell if column == "item" else unprotect_cell(cell)


def check_easel_columns(line: int, columns: Sequence[str]) -> bool:
    """Whether these are an export's; else whatever is not read is refused.

    Raises `Invalid` (`column_unknown`, `column_twice`).
    """
    exported = UNREAD_EXPORT_COLUMNS[0] in columns
    known_columns = (*REQUIRED_RESULT_COLUMNS, *OPTIONAL_RESULT_COLUMNS, *(UNREAD_EXPORT_COLUMNS if exported else ()))
    unread = [name for name in columns if RESULT_COLUMN_ALIASES.get(name, name) not in known_columns]
    if unknown := [name for name in unread if not (exported and name.startswith(ENTRY_ANSWER_PREFIX))]:
        refuse_line(
            "column_unknown",
            line,
            f"Easel does not know the column {join_names(unknown)}: it reads {', '.join((*REQUIRED_RESULT_COLUMNS, *OPTIONAL_RESULT_COLUMNS))}. Remove what should not count.",
            columns=shorten_names(unknown),
        )
    names = [RESULT_COLUMN_ALIASES.get(name, name) for name in columns]
    for name, column in zip(names, columns, strict=True):
        if names.count(name) > 1:
            refuse_line("column_twice", line, f"two columns say the {name}. Remove one.", column=column)
    return exported


def iter_row_texts(record: UploadedRow) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines and cells of a record: one row, or one for each item of its lists.

    Raises `Invalid` (`lists_unequal`).
    """
    if JSONL_LIST_COLUMNS.keys().isdisjoint(record.values):
        yield record.line, result_cell_texts(record.values)
        return
    lists = [record.values.get(name) for name in JSONL_LIST_COLUMNS]
    items, values = (it if isinstance(it, list) else [] for it in lists)
    if not items or len(items) != len(values):
        refuse_line("lists_unequal", record.line, "items and values are two lists of the same length, in JSONL.")
    for item, value in zip(items, values, strict=True):
        yield record.line, result_cell_texts(record.values | {"items": item, "values": value})


def result_cell_texts(values: dict[str, Any]) -> dict[str, str]:
    return {RESULT_COLUMN_ALIASES.get(name, name): format_cell(value).strip() for name, value in values.items()}


def read_required_id(cells: dict[str, str], column: str, line: int) -> str:
    cell = cells.get(column, "")
    if not cell:
        refuse_line(f"{column}_missing", line, f"{column} is empty.")
    if len(cell) > MAX_PLATFORM_ID_CHARACTERS:
        refuse_line("id_too_long", line, f"{column} has more than {MAX_PLATFORM_ID_CHARACTERS} characters.")
    return cell


def value_reader_for_criterion(value_reader: ValueReader, line: int, criterion: str | None) -> ValueReader:
    """criterion: as the row says, None where it has no such column. Raises `Invalid` (`criterion_unknown`)."""
    criterion_reader = value_reader.criterion_format(criterion or "")
    if criterion_reader is None:
        missing_message = "there is no column criterion" if criterion is None else "criterion is empty"
        message = f"the campaign does not ask by “{shorten_echo(criterion)}”" if criterion else missing_message
        refuse_line("criterion_unknown", line, f"{message}. In this column stands the name of one of its criteria.")
    return criterion_reader


def lacks_value(cells: dict[str, str], value_reader: ValueReader) -> bool:
    """Whether a row says nothing of its item: its value is missing, and it was not marked N/A."""
    return is_missing_value(cells.get("value", ""), value_reader.classes) and not RESULT_TRUTH_VALUES.get(
        cells.get("not_applicable", "").lower()
    )


def parse_judgment(
    line: int, cells: dict[str, str], value_reader: ValueReader, reader: CellReader, *, exported: bool
) -> JudgmentTuple:
    item = cells.get("item", "")
    if not item:
        refuse_line("item_missing", line, "item is empty.")
    return (
        parse_item_position(line, cells.get("position", "")),
        line,
        item,
        parse_judged_value(line, cells, value_reader, reader, exported=exported),
        parse_unjudged_reason(line, cells),
        parse_time_cell(line, "issued_at", cells, reader),
        parse_time_cell(line, "submitted_at", cells, reader),
        cells.get("segment", ""),
    )


def parse_judged_value(
    line: int, cells: dict[str, str], value_reader: ValueReader, reader: CellReader, *, exported: bool
) -> float | None:
    """The value, None where the item was marked N/A; NaN where an export has none beside an item that was."""
    cell, not_applicable = cells.get("value", ""), cells.get("not_applicable", "").lower()
    if not_applicable not in RESULT_TRUTH_VALUES or (
        RESULT_TRUTH_VALUES[not_applicable] and not is_missing_value(cell, ())
    ):
        refuse_line(
            "na_unknown", line, "not_applicable is true where the item was marked N/A and has no value, else false."
        )
    if RESULT_TRUTH_VALUES[not_applicable]:
        return None
    if exported and is_missing_value(cell, value_reader.classes):
        return math.nan
    value = parse_cell_value(line, cell, value_reader, reader, exported=exported)
    check_class_label(line, value, cells.get("label", ""), value_reader.classes)
    return value


def parse_unjudged_reason(line: int, cells: dict[str, str]) -> str:
    """Why an item was marked. Raises `Invalid` (`reason_unusable`)."""
    reason = cells.get("reason", "")
    if len(reason) > MAX_IMPORTED_REASON_CHARACTERS or (
        reason and not RESULT_TRUTH_VALUES.get(cells.get("not_applicable", "").lower())
    ):
        message = f"reason is one of at most {MAX_IMPORTED_REASON_CHARACTERS} characters, where not_applicable is true."
        refuse_line("reason_unusable", line, message)
    return reason


def parse_cell_value(line: int, cell: str, value_reader: ValueReader, reader: CellReader, *, exported: bool) -> float:
    text = (
        cell
        if cell in value_reader.classes
        else reader.normalise_number(cell, accept_percent=value_reader.has_point_values)
    )
    try:
        value = value_reader.parse_number(text) if exported else value_reader.parse_value(text)
    except ValueError:
        if value_reader.classes:
            message = f"“{shorten_echo(cell)}” is none of the classes {join_names(value_reader.classes)}."
            refuse_line("class_unknown", line, message, classes=shorten_names(value_reader.classes))
        refuse_line("score_not_a_number", line, f"the value “{shorten_echo(cell)}” is not a number.")
    if value is None:
        refuse_line(
            "score_out_of_range", line, f"the value {shorten_echo(cell)} is not {value_reader.allowed_numbers_text}."
        )
    return value


def check_class_label(line: int, value: float, label: str, classes: Sequence[str]) -> None:
    """An export has the label of a class beside its number, which may be that of another class in another campaign.

    Raises `Invalid` (`class_unknown`).
    """
    own_label = classes[int(value)] if classes else ""
    if label not in ("", own_label):
        label_text = f"called “{shorten_echo(own_label)}” here" if own_label else "no class here"
        refuse_line(
            "class_unknown",
            line,
            f"the value {value:g} is called “{shorten_echo(label)}” in this file, and is {label_text}.",
        )


def parse_item_position(line: int, cell: str) -> int | None:
    """Raises `Invalid` (`position_unusable`)."""
    if not cell:
        return None
    if not RESULT_POSITION_PATTERN.fullmatch(cell):
        refuse_line("position_unusable", line, f"the position “{shorten_echo(cell)}” is none of 1, 2, ...")
    return int(cell)


def parse_time_cell(line: int, column: str, cells: dict[str, str], reader: CellReader) -> datetime | None:
    """Raises `Invalid` (`time_unreadable`, `time_in_future`)."""
    cell = cells.get(column, "")
    moment = reader.parse_time_cell(line, column, cell) if cell else None
    return moment.time if moment else None


def build_result_row(annotator: str, hit: str, criterion: str, rows: list[JudgmentTuple]) -> ResultRow:
    """Raises `Invalid` (`position_unusable`, `item_repeated`, `segment_differs`)."""
    first_line = rows[0][1]
    sort_by_position(rows)
    _, lines, items, values, reasons, issued, submitted, segments = zip(*rows, strict=True)
    check_items_unique(items, lines)
    if len({*segments}) > 1:
        refuse_line("segment_differs", first_line, "the rows of this HIT are of several segments, and a HIT is of one.")
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
    )


def sort_by_position(rows: list[JudgmentTuple]) -> None:
    """Sort the rows of a HIT by their positions, if they have any."""
    positions = {position for position, *_ in rows}
    if positions == {None}:
        return
    if None in positions or len(positions) < len(rows):
        refuse_line("position_unusable", rows[0][1], "the rows of this HIT need a position each, and no two the same.")
    rows.sort(key=itemgetter(0))


def check_items_unique(items: Sequence[str], lines: Sequence[int]) -> None:
    """Raises `Invalid` (`item_repeated`)."""
    seen: set[str] = set()
    for item, line in zip(items, lines, strict=True):
        if item in seen:
            refuse_line(
                "item_repeated", line, f"the item “{shorten_echo(item)}” is twice in this HIT of this annotator."
            )
        seen.add(item)


RESULTS = ResultFileFormat(
    has_easel_column, has_required_easel_columns, read_easel_results, iter_easel_cells, has_criteria=True
)
PLATFORM = Platform("elsewhere", "Elsewhere", has_page=False, result_files=RESULTS, shares_assignment_ids=True)
