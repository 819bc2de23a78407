"""Result files of Mechanical Turk, read. Pure: from a table to HITs that were answered.

Columns `Input.id1..n` and `Answer.range1..n` (0 to 100), perhaps `Answer.na1..n` (ticked where an item could not be
judged), and those that MTurk adds: `AssignmentId`, `WorkerId`, `AcceptTime`, `SubmitTime` and others. Files of other
templates are read by `crowd.columns`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from app.crowd.answered import NAMELESS, ReadsValues, ResultFiles, ResultRow
from app.crowd.moments import read_unix_time
from app.crowd.platform import LONGEST_ID
from app.crowd.reading import CellReader, Kind, is_missing
from app.errors import Invalid, listed, shortened, some_of
from app.upload import Upload, UploadedRow, as_text, refuse

KEPT = ("HITId", "HITTypeId", "AssignmentStatus", "AcceptTime", "SubmitTime", "WorkTimeInSeconds")
TICKED = {"on": True, "true": True, "": False, "off": False, "false": False}
OF_AN_ITEM = re.compile(r"Answer\..*\d", re.DOTALL)  # the name of an answer about the whole HIT has no number in it


def recognises(columns: Sequence[str]) -> bool:
    """Whether a file may be one of Mechanical Turk's, whole or not."""
    return any(name.startswith(("Input.", "Answer.")) for name in columns)


def reads(columns: Sequence[str]) -> bool:
    """Whether a file has numbered ids of items and as many numbered ranges."""
    inputs, answers = (numbers_after(prefix, columns) for prefix in ("Input.id", "Answer.range"))
    return bool(inputs) and inputs == answers == set(range(1, len(inputs) + 1))


def written_cells(upload: Upload) -> Iterator[tuple[int, Kind, str]]:
    """Yield the cells with scores; times are always written as MTurk does."""
    for record in upload.records:
        for name, value in record.values.items():
            if name.startswith("Answer.range"):
                yield record.line, "number", as_text(value).strip()


def judged_in(upload: Upload, digest: str, values: ReadsValues, reader: CellReader) -> list[ResultRow]:
    """The rows of a result file, without the items that have no score. Without MTurk's ids, `digest` names the worker
    and, with the line, the assignment.

    Raises `Invalid`: `values_are_no_points`, `answer_column_unknown`, `id_too_long`, `item_missing`, `item_repeated`,
    `na_unknown`, `scores_missing`, `score_not_a_number`, `score_out_of_range`, `assignment_twice`, `file_empty`.
    """
    if not values.in_points:
        raise Invalid(
            "A result file of Mechanical Turk holds points from 0 to 100. Annotators of this campaign give "
            f"{values.possible}. Import a file with the columns hit, annotator, item and value. Nothing was imported.",
            code="values_are_no_points",
        )
    count = len(numbers_after("Input.id", upload.columns))
    known: set[str] = set()
    lines: dict[str, dict[str, int]] = {}  # by assignment and worker: who returns one may be followed by another
    rows = []
    for record in upload.records:
        if others := record.values.keys() - known:
            check_answers(record.line if upload.format == "jsonl" else 1, others, count)
            known |= others
        row = judged(record, count, digest, values, reader)
        workers = lines.setdefault(row.assignment_id, {})
        if workers and (row.nameless or row.worker_id in workers or f"{NAMELESS}{digest}" in workers):
            before = workers.get(row.worker_id, min(workers.values()))
            refuse(
                "assignment_twice",
                row.line,
                f"the assignment {shortened(row.assignment_id)} was already on line {before}.",
            )
        workers[row.worker_id] = row.line
        rows.append(row)
    if not rows:
        raise Invalid("This file has a header and no results. Nothing was imported.", code="file_empty")
    return rows


def check_answers(line: int, columns: Iterable[str], count: int) -> None:
    """Refuse what may have been answered about an item and nobody here can read."""
    read = {f"Answer.{name}{k}" for name in ("range", "na") for k in range(1, count + 1)}
    unknown = sorted(name for name in columns if OF_AN_ITEM.match(name) and name not in read)
    if unknown:
        refuse(
            "answer_column_unknown",
            line,
            f"Easel does not know what {listed(unknown)} says about an item: it reads Answer.range1 to "
            f"Answer.range{count} and Answer.na1 to Answer.na{count}. Remove what should not count.",
            columns=some_of(unknown),
        )


def numbers_after(prefix: str, columns: Sequence[str]) -> set[int]:
    found = (re.fullmatch(re.escape(prefix) + r"([1-9]\d{0,3})", name) for name in columns)
    return {int(match[1]) for match in found if match}


def judged(record: UploadedRow, count: int, digest: str, values: ReadsValues, reader: CellReader) -> ResultRow:
    cells = {name: as_text(value).strip() for name, value in record.values.items()}
    worker_id = id_in(cells, "WorkerId", record.line)
    items = items_of(record.line, [cells.get(f"Input.id{k}", "") for k in range(1, count + 1)])
    scores = {
        item: None
        if ticked(record.line, k, cells)
        else score_of(record.line, k, cells.get(f"Answer.range{k}", ""), values, reader)
        for k, item in enumerate(items, start=1)
    }
    given = {item: score for item, score in scores.items() if score is None or not math.isnan(score)}
    if not given:
        refuse("scores_missing", record.line, "no item of this HIT has a score.")
    reader.notes.missing += len(scores) - len(given)
    return ResultRow(
        line=record.line,
        worker_id=worker_id or f"{NAMELESS}{digest}",
        assignment_id=id_in(cells, "AssignmentId", record.line) or f"{NAMELESS}{digest}-{record.line}",
        items=tuple(given),
        scores=tuple(given.values()),
        accepted_at=passed_time(record.line, "AcceptTime", cells, reader),
        submitted_at=passed_time(record.line, "SubmitTime", cells, reader),
        details={name: cells[name] for name in KEPT if cells.get(name)},
        nameless=not worker_id,
    )


def id_in(values: Mapping[str, str], column: str, line: int) -> str:
    external_id = values.get(column, "")
    if len(external_id) > LONGEST_ID:
        refuse("id_too_long", line, f"{column} has more than {LONGEST_ID} characters.")
    return external_id


def items_of(line: int, ids: list[str]) -> tuple[str, ...]:
    for place, external_id in enumerate(ids, start=1):
        if not external_id:
            refuse("item_missing", line, f"Input.id{place} is empty.")
        if external_id in ids[: place - 1]:
            refuse("item_repeated", line, f"the item “{shortened(external_id)}” is twice in this HIT.")
    return tuple(ids)


def ticked(line: int, place: int, values: Mapping[str, str]) -> bool:
    """Whether the item at this place was marked N/A."""
    cell = values.get(f"Answer.na{place}", "")
    if cell.lower() not in TICKED:
        said = shortened(cell)
        refuse("na_unknown", line, f"Answer.na{place} is “{said}”: it is on where the item was marked N/A, else empty.")
    return TICKED[cell.lower()]


def score_of(line: int, place: int, cell: str, values: ReadsValues, reader: CellReader) -> float:
    """A score, NaN where it is missing."""
    if is_missing(cell, ()):
        return math.nan
    try:
        score = values.number(reader.number(cell, percent=True))
    except ValueError:
        refuse("score_not_a_number", line, f"Answer.range{place} is “{shortened(cell)}”, not a number.")
    if score is None:
        refuse("score_out_of_range", line, f"Answer.range{place} is {shortened(cell)}, not {values.possible}.")
    return score


FIRST_YEAR = 2005  # of Mechanical Turk


def time_of(cell: str) -> datetime | None:
    """MTurk's `Tue Apr 10 12:04:05 PDT 2018`; None for anything else, since such a cell is no reason to refuse an
    answer.
    """
    try:
        moment = read_unix_time(cell)
    except ValueError:
        return None
    return moment if moment and moment.year >= FIRST_YEAR else None


def passed_time(line: int, column: str, cells: Mapping[str, str], reader: CellReader) -> datetime | None:
    """Return the time in a column. Raises `Invalid` (`time_in_future`)."""
    cell = cells.get(column, "")
    moment = time_of(cell)
    if moment is not None:
        reader.check_passed(line, column, cell, moment)
    return moment


FILES = ResultFiles(recognises, reads, judged_in, written_cells)
