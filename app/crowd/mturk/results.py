"""Result files of Mechanical Turk, read. Pure: from a table to HITs that were answered.

Columns `Input.id1..n` and `Answer.range1..n` (0 to 100), perhaps `Answer.na1..n` (ticked where an item could not be
judged), and those that MTurk adds: `AssignmentId`, `WorkerId`, `AcceptTime`, `SubmitTime` and others. Like the released
EASL program it counts every row, whatever its `AssignmentStatus`: remove rows that should not count before the import.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

from app.crowd.answered import ReadsValues, ResultFiles, ResultRow
from app.crowd.platform import LONGEST_ID
from app.errors import Invalid, listed, shortened, some_of
from app.upload import Upload, UploadedRow, as_text, refuse

NOBODY = "file-"  # with a digest of the file, for those whom it does not name
KEPT = ("HITId", "HITTypeId", "AssignmentStatus", "AcceptTime", "SubmitTime", "WorkTimeInSeconds")
ZONES = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}
TICKED = {"on": True, "true": True, "": False, "off": False, "false": False}
OF_AN_ITEM = re.compile(r"Answer\..*\d", re.DOTALL)  # the name of an answer about the whole HIT has no number in it


def recognises(columns: Sequence[str]) -> bool:
    """Whether a file may be one of Mechanical Turk's, whole or not."""
    return any(name.startswith(("Input.", "Answer.")) for name in columns)


def judged_in(upload: Upload, digest: str, values: ReadsValues) -> list[ResultRow]:
    """The rows of a result file. Without MTurk's ids, `digest` names the worker and, with the line, the assignment.

    Raises `Invalid`: `values_are_no_points`, `result_columns`, `answer_column_unknown`, `id_too_long`, `item_missing`,
    `item_repeated`, `na_unknown`, `score_not_a_number`, `score_out_of_range`, `assignment_twice`, `file_empty`.
    """
    if not values.in_points:
        raise Invalid(
            "A result file of Mechanical Turk holds points from 0 to 100. Annotators of this campaign give "
            f"{values.possible}. Import a file with the columns hit, annotator, item and value. Nothing was imported.",
            code="values_are_no_points",
        )
    count = hit_size(upload.columns)
    known: set[str] = set()
    lines: dict[str, int] = {}
    rows = []
    for record in upload.records:
        if others := record.values.keys() - known:
            check_answers(record.line if upload.format == "jsonl" else 1, others, count)
            known |= others
        row = judged(record, count, digest, values)
        if row.assignment_id in lines:
            refuse(
                "assignment_twice",
                row.line,
                f"the assignment {shortened(row.assignment_id)} was already on line {lines[row.assignment_id]}.",
            )
        lines[row.assignment_id] = row.line
        rows.append(row)
    if not rows:
        raise Invalid("This file has a header and no results. Nothing was imported.", code="file_empty")
    return rows


def hit_size(columns: Sequence[str]) -> int:
    """n, if there are `Input.id1..n` and `Answer.range1..n`. Raises `Invalid` (`result_columns`)."""
    inputs, answers = (numbers_after(prefix, columns) for prefix in ("Input.id", "Answer.range"))
    if not inputs or inputs != answers or inputs != set(range(1, len(inputs) + 1)):
        raise Invalid(
            "A result file has the columns Input.id1, Input.id2, ... and as many Answer.range1, Answer.range2, ...; "
            f"this one has {listed(columns)}. Nothing was imported.",
            code="result_columns",
            columns=some_of(columns),
        )
    return len(inputs)


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


def judged(record: UploadedRow, count: int, digest: str, values: ReadsValues) -> ResultRow:
    cells = {name: as_text(value).strip() for name, value in record.values.items()}
    worker_id = id_in(cells, "WorkerId", record.line)
    return ResultRow(
        line=record.line,
        worker_id=worker_id or f"{NOBODY}{digest}",
        assignment_id=id_in(cells, "AssignmentId", record.line) or f"{NOBODY}{digest}-{record.line}",
        items=items_of(record.line, [cells.get(f"Input.id{k}", "") for k in range(1, count + 1)]),
        scores=tuple(
            None
            if ticked(record.line, k, cells)
            else score_of(record.line, k, cells.get(f"Answer.range{k}", ""), values)
            for k in range(1, count + 1)
        ),
        accepted_at=time_of(cells.get("AcceptTime", "")),
        submitted_at=time_of(cells.get("SubmitTime", "")),
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


def score_of(line: int, place: int, cell: str, values: ReadsValues) -> float:
    try:
        score = values.number(cell)
    except ValueError:
        refuse("score_not_a_number", line, f"Answer.range{place} is “{shortened(cell)}”, not a number.")
    if score is None:
        refuse("score_out_of_range", line, f"Answer.range{place} is {shortened(cell)}, not {values.possible}.")
    return score


FIRST_YEAR = 2005  # of Mechanical Turk


def time_of(cell: str) -> datetime | None:
    """MTurk's `Tue Apr 10 12:04:05 PDT 2018`; None for anything else, since a time is no reason to refuse an answer."""
    words = cell.split()
    if len(words) != 6 or words[4] not in ZONES:
        return None
    zone = timezone(timedelta(hours=ZONES[words.pop(4)]))
    try:
        moment = datetime.strptime(" ".join(words), "%a %b %d %H:%M:%S %Y").replace(tzinfo=zone)
    except ValueError:
        return None
    return moment if moment.year >= FIRST_YEAR else None


FILES = ResultFiles(recognises, judged_in)
