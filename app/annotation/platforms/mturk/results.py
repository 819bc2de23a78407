"""Reader of Mechanical Turk's result files. Pure: from a table to answered HITs.

Columns are `Input.id1..n` and `Answer.range1..n` (0 to 100), optionally `Answer.na1..n` (ticked if an item could not be
judged), and those that MTurk adds: `AssignmentId`, `WorkerId`, `AcceptTime`, `SubmitTime` and others. `column_mapping`
reads files of other templates.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from app.annotation.platforms.cell_reading import CellKind, CellReader, is_missing_value
from app.annotation.platforms.file_scale import campaign_value_of_file_scale_text_or_refuse
from app.annotation.platforms.platform import MAX_PLATFORM_ID_CHARACTERS
from app.annotation.platforms.result_format import ANONYMOUS_ID_PREFIX, ResultFileFormat, ResultRow, ValueReader
from app.annotation.platforms.time_parsing import parse_mturk_date_or_none
from app.errors import Invalid, join_names, shorten_echo, shortened_names_that_message_shows
from app.uploads import UploadedRow, UploadedTable, format_cell, raise_upload_refusal_at_line

STORED_MTURK_COLUMNS = ("HITId", "HITTypeId", "AssignmentStatus", "AcceptTime", "SubmitTime", "WorkTimeInSeconds")
CHECKBOX_STATES = {"on": True, "true": True, "": False, "off": False, "false": False}
ITEM_ANSWER_PATTERN = re.compile(r"Answer\..*\d", re.DOTALL)  # answers on the whole HIT have no number in their name


def has_any_mturk_column(columns: Sequence[str]) -> bool:
    """Return whether a file may be from Mechanical Turk, complete or not."""
    return any(name.startswith(("Input.", "Answer.")) for name in columns)


def has_required_mturk_columns(columns: Sequence[str]) -> bool:
    """Return whether a file has numbered item ids and as many numbered ranges."""
    inputs, answers = (numbers_in_column_names_with_prefix(prefix, columns) for prefix in ("Input.id", "Answer.range"))
    return bool(inputs) and inputs == answers == set(range(1, len(inputs) + 1))


def iterate_mturk_score_cells(upload: UploadedTable) -> Iterator[tuple[int, CellKind, str]]:
    """Yield the cells with scores. Times always have MTurk's own format, so they are not needed."""
    for record in upload.rows:
        for name, value in record.values.items():
            if name.startswith("Answer.range"):
                yield record.line, "number", format_cell(value).strip()


def read_mturk_results(
    upload: UploadedTable, digest: str, value_reader: ValueReader, reader: CellReader
) -> list[ResultRow]:
    """Return the HITs of a result file, without items that have no score.

    Args:
        upload: The table.
        digest: Digest of the file. If MTurk's ids are missing, it names the worker, and with the line the assignment.
        value_reader: Reader of the campaign's values.
        reader: Reader of numbers and times.

    Raises:
        Invalid: `values_are_no_points`, `answer_column_unknown`, `id_too_long`, `item_missing`, `item_repeated`,
            `na_unknown`, `scores_missing`, `score_not_a_number`, `score_out_of_range`, `assignment_twice`,
            `file_empty`.

    """
    if not value_reader.is_points_scale:
        raise Invalid(
            "A result file of Mechanical Turk holds points from 0 to 100. Annotators of this campaign give "
            f"{value_reader.allowed_numbers_text}. Import a file with the columns hit, annotator, item and value. "
            "Nothing was imported.",
            code="values_are_no_points",
        )
    item_count = len(numbers_in_column_names_with_prefix("Input.id", upload.columns))
    item_columns = [
        ItemColumns(k, f"Input.id{k}", f"Answer.range{k}", f"Answer.na{k}") for k in range(1, item_count + 1)
    ]
    anonymous_worker = f"{ANONYMOUS_ID_PREFIX}{digest}"
    score_by_digits: dict[str, float] = {}
    known_columns: set[str] = set()
    # A returned assignment may go to another worker.
    first_line_by_assignment: dict[str, int] = {}
    line_by_assignment_and_worker: dict[tuple[str, str], int] = {}
    rows = []
    for record in upload.rows:
        if new_columns := record.values.keys() - known_columns:
            refuse_unknown_answer_columns(record.line if upload.format == "jsonl" else 1, new_columns, item_count)
            known_columns |= new_columns
        row = parse_mturk_row(record, item_columns, digest, value_reader, reader, score_by_digits=score_by_digits)
        first_line = first_line_by_assignment.setdefault(row.assignment_id, row.line)
        key = row.assignment_id, row.worker_id
        if first_line != row.line and (
            row.anonymous
            or key in line_by_assignment_and_worker
            or (row.assignment_id, anonymous_worker) in line_by_assignment_and_worker
        ):
            earlier_line = line_by_assignment_and_worker.get(key, first_line)
            raise_upload_refusal_at_line(
                "assignment_twice",
                row.line,
                f"the assignment {shorten_echo(row.assignment_id)} was already on line {earlier_line}.",
            )
        line_by_assignment_and_worker[key] = row.line
        rows.append(row)
    if not rows:
        raise Invalid("This file has a header and no results. Nothing was imported.", code="file_empty")
    return rows


def refuse_unknown_answer_columns(line: int, columns: Iterable[str], item_count: int) -> None:
    """Refuse columns that may hold answers about an item but cannot be read."""
    read = {f"Answer.{name}{k}" for name in ("range", "na") for k in range(1, item_count + 1)}
    unknown = sorted(name for name in columns if ITEM_ANSWER_PATTERN.match(name) and name not in read)
    if unknown:
        raise_upload_refusal_at_line(
            "answer_column_unknown",
            line,
            f"Easel does not know the column {join_names(unknown)}. It reads Answer.range1 to "
            f"Answer.range{item_count} and Answer.na1 to Answer.na{item_count}. "
            "Remove the columns that should not count.",
            columns=shortened_names_that_message_shows(unknown),
        )


def numbers_in_column_names_with_prefix(prefix: str, columns: Sequence[str]) -> set[int]:
    matches = (re.fullmatch(re.escape(prefix) + r"([1-9]\d{0,3})", name) for name in columns)
    return {int(match[1]) for match in matches if match}


class ItemColumns(NamedTuple):
    """Names of the columns about the item at a position, 1 to n: its id, its score, and its mark N/A."""

    position: int
    item: str
    score: str
    mark: str


def parse_mturk_row(
    record: UploadedRow,
    item_columns: Sequence[ItemColumns],
    digest: str,
    value_reader: ValueReader,
    reader: CellReader,
    *,
    score_by_digits: dict[str, float],
) -> ResultRow:
    """Return the HIT of a row.

    Args:
        record: The row.
        item_columns: Columns of its items.
        digest: Digest of the file.
        value_reader: Reader of the campaign's values.
        reader: Reader of numbers and times.
        score_by_digits: Scores of cells of digits that were read before; gets those of this row.

    """
    cells = {  # a call for each cell takes as long as the rest of the row
        name: value.strip() if type(value) is str else format_cell(value).strip()
        for name, value in record.values.items()
    }
    worker_id = mturk_id_or_empty_refusing_long(cells, "WorkerId", record.line)
    items = mturk_item_ids_or_refuse(record.line, [cells.get(columns.item, "") for columns in item_columns])
    score_cells = [cells.get(columns.score, "") for columns in item_columns]
    if reader.notes.lacks_first_cells:
        for item, cell in zip(items, score_cells, strict=True):
            reader.notes.remember_first_cell(record.line, item, cell)
    scores: list[float | None] = [score_by_digits.get(cell) for cell in score_cells]
    if None in scores or any(cells.get(columns.mark) for columns in item_columns):
        items, scores = mturk_items_and_scores_or_refuse(
            record.line,
            cells,
            items,
            item_columns,
            value_reader=value_reader,
            reader=reader,
            score_by_digits=score_by_digits,
        )
    return ResultRow(
        line=record.line,
        worker_id=worker_id or f"{ANONYMOUS_ID_PREFIX}{digest}",
        assignment_id=mturk_id_or_empty_refusing_long(cells, "AssignmentId", record.line)
        or f"{ANONYMOUS_ID_PREFIX}{digest}-{record.line}",
        items=items,
        scores=tuple(scores),
        accepted_at=parse_past_mturk_time_or_none(record.line, "AcceptTime", cells, reader),
        submitted_at=parse_past_mturk_time_or_none(record.line, "SubmitTime", cells, reader),
        details={name: text for name in STORED_MTURK_COLUMNS if (text := cells.get(name))},
        anonymous=not worker_id,
    )


def mturk_items_and_scores_or_refuse(
    line: int,
    cells: Mapping[str, str],
    items: Sequence[str],
    item_columns: Sequence[ItemColumns],
    *,
    value_reader: ValueReader,
    reader: CellReader,
    score_by_digits: dict[str, float],
) -> tuple[tuple[str, ...], list[float | None]]:
    """Return the items that have a score or are marked N/A, and their scores, None for those marked.

    Parameters as in `parse_mturk_row`. Raises `Invalid` (`na_unknown`, `scores_missing`, `score_not_a_number`,
    `score_out_of_range`).
    """
    scores: dict[str, float | None] = {}
    for item, columns in zip(items, item_columns, strict=True):
        if cells.get(columns.mark) and is_marked_not_applicable_or_refuse(line, columns, cells):
            scores[item] = None
            continue
        cell = cells.get(columns.score, "")
        score = score_by_digits.get(cell)
        if score is None:
            score = parse_mturk_score_or_nan(line, columns.position, cell, value_reader, reader)
            if cell.isascii() and cell.isdecimal():
                score_by_digits[cell] = score
        scores[item] = score
    scores_by_item = {item: score for item, score in scores.items() if score is None or not math.isnan(score)}
    if not scores_by_item:
        raise_upload_refusal_at_line("scores_missing", line, "no item of this HIT has a score.")
    reader.notes.missing += len(scores) - len(scores_by_item)
    return tuple(scores_by_item), [*scores_by_item.values()]


def mturk_id_or_empty_refusing_long(cells: Mapping[str, str], column: str, line: int) -> str:
    external_id = cells.get(column, "")
    if len(external_id) > MAX_PLATFORM_ID_CHARACTERS:
        raise_upload_refusal_at_line(
            "id_too_long", line, f"{column} has more than {MAX_PLATFORM_ID_CHARACTERS} characters."
        )
    return external_id


def mturk_item_ids_or_refuse(line: int, ids: list[str]) -> tuple[str, ...]:
    if all(ids) and len(set(ids)) == len(ids):
        return tuple(ids)
    for place, external_id in enumerate(ids, start=1):
        if not external_id:
            raise_upload_refusal_at_line("item_missing", line, f"Input.id{place} is empty.")
        if external_id in ids[: place - 1]:
            raise_upload_refusal_at_line(
                "item_repeated", line, f"the item “{shorten_echo(external_id)}” appears twice in this HIT."
            )
    return tuple(ids)


def is_marked_not_applicable_or_refuse(line: int, columns: ItemColumns, cells: Mapping[str, str]) -> bool:
    """Return whether the item with these columns was marked N/A."""
    cell = cells.get(columns.mark, "")
    if cell.lower() not in CHECKBOX_STATES:
        cell_text = shorten_echo(cell)
        raise_upload_refusal_at_line(
            "na_unknown",
            line,
            f"Answer.na{columns.position} is “{cell_text}”: it must be on if the item was marked N/A, else empty.",
        )
    return CHECKBOX_STATES[cell.lower()]


def parse_mturk_score_or_nan(
    line: int, position: int, cell: str, value_reader: ValueReader, reader: CellReader
) -> float:
    """Return the score of an item, NaN if it is missing."""
    if is_missing_value(cell, ()):
        return math.nan
    if (scale := reader.options.scale) is not None:
        number = reader.normalise_number_notation(cell, accept_percent=True)
        return campaign_value_of_file_scale_text_or_refuse(line, number, scale, value_reader)
    try:
        score = value_reader.parse_number(reader.normalise_number_notation(cell, accept_percent=True))
    except ValueError:
        raise_upload_refusal_at_line(
            "score_not_a_number", line, f"Answer.range{position} is “{shorten_echo(cell)}”, not a number."
        )
    if score is None:
        raise_upload_refusal_at_line(
            "score_out_of_range",
            line,
            f"Answer.range{position} is {shorten_echo(cell)}, not {value_reader.allowed_numbers_text}.",
        )
    return score


FIRST_MTURK_YEAR = 2005  # when Mechanical Turk opened; earlier times are not real


def parse_mturk_time_or_none(cell: str) -> datetime | None:
    """Return a time in MTurk's format `Tue Apr 10 12:04:05 PDT 2018`; None for any other text.

    An unreadable time is no reason to refuse an answer.
    """
    try:
        moment = parse_mturk_date_or_none(cell)
    except ValueError:
        return None
    return moment if moment and moment.year >= FIRST_MTURK_YEAR else None


def parse_past_mturk_time_or_none(
    line: int, column: str, cells: Mapping[str, str], reader: CellReader
) -> datetime | None:
    """Return the time in a column. Raises `Invalid` (`time_in_future`)."""
    cell = cells.get(column, "")
    moment = parse_mturk_time_or_none(cell) if cell else None
    if moment is not None:
        reader.refuse_future_time(line, column, cell, moment)
    return moment


MTURK_RESULT_FILES = ResultFileFormat(
    has_any_mturk_column, has_required_mturk_columns, read_mturk_results, iterate_mturk_score_cells
)
