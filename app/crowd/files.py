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

from app.crowd.answered import NEEDED, ReadsValues, ResultFiles, ResultRow
from app.crowd.platform import LONGEST_ID, Platform
from app.crowd.reading import MISSING, CellReader, Kind, is_missing
from app.errors import Invalid, listed, shortened, some_of
from app.spreadsheets import unprotect
from app.upload import Upload, UploadedRow, as_text, refuse

OTHERS = ("position", "issued_at", "submitted_at", "not_applicable", "reason", "segment", "criterion")
# A file with the first of these is an export, whose others follow from the rest or tell how an answer came about.
EXPORTED = (
    *("seq", "name", "source", "iteration", "leader", "label", "rank", "counts", "replaces"),
    *("drawn_because", "leader_probability", "left_out", "left_out_reason", "left_out_at", "barred", "revision"),
    *("first_touch_ms", "changes", "input_kind", "viewport", "shown_as", "criterion_position"),
    *("flag", "comment", "hit_flag", "hit_comment"),
)
ASKED = "asked_"  # begins the columns of an export that say what its annotator answered to a question asked once
OF_LISTS = {"items": "item", "values": "value"}  # in JSONL, where a row is a whole HIT
SAID = {"score": "value", "received_at": "submitted_at"} | OF_LISTS  # what exports and lists call a column
PLACE = re.compile("[1-9][0-9]{0,8}")
# As programs and spreadsheets write truth values.
MARKED = dict.fromkeys(("true", "wahr", "vrai", "verdadero", "verdadeiro", "vero", "waar", "1", "yes"), True)
MARKED |= dict.fromkeys(("false", "falsch", "faux", "falso", "onwaar", "0", "no", *MISSING), False)

LONGEST_REASON = 200
JudgedItem: TypeAlias = tuple[int | None, int, str, float | None, str, datetime | None, datetime | None, str]
"""Of a row its position, line, item, value, why it has none, when it was issued and submitted, and its segment: a
tuple, which the garbage collector leaves out.
"""


def recognises(columns: Sequence[str]) -> bool:
    """Whether a file may be one of these, whole or not."""
    return bool({"hit", "annotator"} & set(columns))


def reads(columns: Sequence[str]) -> bool:
    """Whether a file has all columns that are needed."""
    return set(NEEDED) <= {SAID.get(name, name) for name in columns}


def written_cells(upload: Upload) -> Iterator[tuple[int, Kind, str]]:
    """Yield the cells with values and times."""
    for record in upload.records:
        for line, cells in rows_of(record):
            yield line, "number", cells.get("value", "")
            for column in ("issued_at", "submitted_at"):
                yield line, "time", cells.get(column, "")


def judged_in(upload: Upload, _digest: str, values: ReadsValues, reader: CellReader) -> list[ResultRow]:
    """The HITs of a file, in the order of their first rows, by each criterion apart. The rows of a HIT need not stand
    together. Of an answer that its annotator replaced, an export has both; the newer one is read. Rows without a value
    are left out.

    Raises `Invalid`: `column_unknown`, `column_twice`, `lists_unequal`, `hit_missing`,
    `annotator_missing`, `id_too_long`, `item_missing`, `item_repeated`, `scores_missing`, `score_not_a_number`,
    `score_out_of_range`, `class_unknown`, `na_unknown`, `reason_unusable`, `position_unusable`, `segment_differs`,
    `time_unreadable`, `time_in_future`, `criterion_unknown`, `file_empty`.
    """
    hits: dict[tuple[str, str, str, str], list[JudgedItem]] = {}
    replaced: set[tuple[str, str]] = set()  # annotators, and numbers of their answers
    known: dict[tuple[str, ...], bool] = {}
    line_without = 0
    for record in upload.records:
        columns = tuple(record.values)
        if columns not in known:
            known[columns] = check_known(record.line if upload.format == "jsonl" else 1, columns)
        exported = known[columns]
        for line, given in rows_of(record):
            cells = {name: without_apostrophe(name, cell) for name, cell in given.items()} if exported else given
            annotator, hit = id_in(cells, "annotator", line), id_in(cells, "hit", line)
            replaced.add((annotator, cells.get("replaces", "")))
            its_values = by(values, line, cells.get("criterion"))
            if not exported and lacks_value(cells, its_values):
                line_without = line_without or line
                reader.notes.missing += 1
                continue
            rows = hits.setdefault((annotator, hit, cells.get("criterion", ""), cells.get("seq", "")), [])
            rows.append(judged(line, cells, its_values, reader, exported=exported))
    if line_without and not hits:
        refuse("scores_missing", line_without, "no row of this file has a value.")
    if not hits:
        raise Invalid("This file has a header and no responses. Nothing was imported.", code="file_empty")
    # To let go of all rows at once would take a moment in which nothing else is done.
    return [
        hit_of(annotator, hit, criterion, hits.pop((annotator, hit, criterion, seq)))
        for annotator, hit, criterion, seq in list(hits)
        if not seq or (annotator, seq) not in replaced
    ]


def without_apostrophe(column: str, cell: str) -> str:
    """Return a cell of an export without the apostrophe for spreadsheet programs; ids of items are looked up with it,
    too, since an id may begin with one.
    """
    return cell if column == "item" else unprotect(cell)


def check_known(line: int, columns: Sequence[str]) -> bool:
    """Whether these are an export's; else whatever is not read is refused.

    Raises `Invalid` (`column_unknown`, `column_twice`).
    """
    exported = EXPORTED[0] in columns
    read = (*NEEDED, *OTHERS, *(EXPORTED if exported else ()))
    unread = [name for name in columns if SAID.get(name, name) not in read]
    if unknown := [name for name in unread if not (exported and name.startswith(ASKED))]:
        refuse(
            "column_unknown",
            line,
            f"Easel does not know the column {listed(unknown)}: it reads {', '.join((*NEEDED, *OTHERS))}. Remove "
            "what should not count.",
            columns=some_of(unknown),
        )
    names = [SAID.get(name, name) for name in columns]
    for name, column in zip(names, columns, strict=True):
        if names.count(name) > 1:
            refuse("column_twice", line, f"two columns say the {name}. Remove one.", column=column)
    return exported


def rows_of(record: UploadedRow) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines and cells of a record: one row, or one for each item of its lists.

    Raises `Invalid` (`lists_unequal`).
    """
    if OF_LISTS.keys().isdisjoint(record.values):
        yield record.line, in_words(record.values)
        return
    lists = [record.values.get(name) for name in OF_LISTS]
    items, given = (it if isinstance(it, list) else [] for it in lists)
    if not items or len(items) != len(given):
        refuse("lists_unequal", record.line, "items and values are two lists of the same length, in JSONL.")
    for item, value in zip(items, given, strict=True):
        yield record.line, in_words(record.values | {"items": item, "values": value})


def in_words(values: dict[str, Any]) -> dict[str, str]:
    return {SAID.get(name, name): as_text(value).strip() for name, value in values.items()}


def id_in(cells: dict[str, str], column: str, line: int) -> str:
    given = cells.get(column, "")
    if not given:
        refuse(f"{column}_missing", line, f"{column} is empty.")
    if len(given) > LONGEST_ID:
        refuse("id_too_long", line, f"{column} has more than {LONGEST_ID} characters.")
    return given


def by(values: ReadsValues, line: int, criterion: str | None) -> ReadsValues:
    """criterion: as the row says, None where it has no such column. Raises `Invalid` (`criterion_unknown`)."""
    found = values.by(criterion or "")
    if found is None:
        unsaid = "there is no column criterion" if criterion is None else "criterion is empty"
        said = f"the campaign does not ask by “{shortened(criterion)}”" if criterion else unsaid
        refuse("criterion_unknown", line, f"{said}. In this column stands the name of one of its criteria.")
    return found


def lacks_value(cells: dict[str, str], values: ReadsValues) -> bool:
    """Whether a row says nothing of its item: its value is missing, and it was not marked N/A."""
    return is_missing(cells.get("value", ""), values.classes) and not MARKED.get(
        cells.get("not_applicable", "").lower()
    )


def judged(line: int, cells: dict[str, str], values: ReadsValues, reader: CellReader, *, exported: bool) -> JudgedItem:
    item = cells.get("item", "")
    if not item:
        refuse("item_missing", line, "item is empty.")
    return (
        position_of(line, cells.get("position", "")),
        line,
        item,
        mark_of(line, cells, values, reader, exported=exported),
        reason_of(line, cells),
        time_of(line, "issued_at", cells, reader),
        time_of(line, "submitted_at", cells, reader),
        cells.get("segment", ""),
    )


def mark_of(
    line: int, cells: dict[str, str], values: ReadsValues, reader: CellReader, *, exported: bool
) -> float | None:
    """The value, None where the item was marked N/A; NaN where an export has none beside an item that was."""
    cell, marked = cells.get("value", ""), cells.get("not_applicable", "").lower()
    if marked not in MARKED or (MARKED[marked] and not is_missing(cell, ())):
        refuse("na_unknown", line, "not_applicable is true where the item was marked N/A and has no value, else false.")
    if MARKED[marked]:
        return None
    if exported and is_missing(cell, values.classes):
        return math.nan
    value = value_of(line, cell, values, reader, exported=exported)
    check_label(line, value, cells.get("label", ""), values.classes)
    return value


def reason_of(line: int, cells: dict[str, str]) -> str:
    """Why an item was marked. Raises `Invalid` (`reason_unusable`)."""
    reason = cells.get("reason", "")
    if len(reason) > LONGEST_REASON or (reason and not MARKED.get(cells.get("not_applicable", "").lower())):
        said = f"reason is one of at most {LONGEST_REASON} characters, where not_applicable is true."
        refuse("reason_unusable", line, said)
    return reason


def value_of(line: int, cell: str, values: ReadsValues, reader: CellReader, *, exported: bool) -> float:
    text = cell if cell in values.classes else reader.number(cell, percent=values.in_points)
    try:
        value = values.number(text) if exported else values.value(text)
    except ValueError:
        if values.classes:
            told = f"“{shortened(cell)}” is none of the classes {listed(values.classes)}."
            refuse("class_unknown", line, told, classes=some_of(values.classes))
        refuse("score_not_a_number", line, f"the value “{shortened(cell)}” is not a number.")
    if value is None:
        refuse("score_out_of_range", line, f"the value {shortened(cell)} is not {values.possible}.")
    return value


def check_label(line: int, value: float, label: str, classes: Sequence[str]) -> None:
    """An export has the label of a class beside its number, which may be that of another class in another campaign.

    Raises `Invalid` (`class_unknown`).
    """
    here = classes[int(value)] if classes else ""
    if label not in ("", here):
        told = f"called “{shortened(here)}” here" if here else "no class here"
        refuse(
            "class_unknown", line, f"the value {value:g} is called “{shortened(label)}” in this file, and is {told}."
        )


def position_of(line: int, cell: str) -> int | None:
    """Raises `Invalid` (`position_unusable`)."""
    if not cell:
        return None
    if not PLACE.fullmatch(cell):
        refuse("position_unusable", line, f"the position “{shortened(cell)}” is none of 1, 2, ...")
    return int(cell)


def time_of(line: int, column: str, cells: dict[str, str], reader: CellReader) -> datetime | None:
    """Raises `Invalid` (`time_unreadable`, `time_in_future`)."""
    cell = cells.get(column, "")
    moment = reader.moment(line, column, cell) if cell else None
    return moment.at if moment else None


def hit_of(annotator: str, hit: str, criterion: str, rows: list[JudgedItem]) -> ResultRow:
    """Raises `Invalid` (`position_unusable`, `item_repeated`, `segment_differs`)."""
    first = rows[0][1]
    in_order(rows)
    _, lines, items, values, reasons, issued, submitted, segments = zip(*rows, strict=True)
    check_once(items, lines)
    if len({*segments}) > 1:
        refuse("segment_differs", first, "the rows of this HIT are of several segments, and a HIT is of one.")
    return ResultRow(
        line=first,
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


def in_order(rows: list[JudgedItem]) -> None:
    """Sort the rows of a HIT by their positions, if they have any."""
    positions = {position for position, *_ in rows}
    if positions == {None}:
        return
    if None in positions or len(positions) < len(rows):
        refuse("position_unusable", rows[0][1], "the rows of this HIT need a position each, and no two the same.")
    rows.sort(key=itemgetter(0))


def check_once(items: Sequence[str], lines: Sequence[int]) -> None:
    """Raises `Invalid` (`item_repeated`)."""
    seen: set[str] = set()
    for item, line in zip(items, lines, strict=True):
        if item in seen:
            refuse("item_repeated", line, f"the item “{shortened(item)}” is twice in this HIT of this annotator.")
        seen.add(item)


RESULTS = ResultFiles(recognises, reads, judged_in, written_cells, by_criterion=True)
PLATFORM = Platform(
    "elsewhere",
    "Elsewhere",
    has_page=False,
    results=RESULTS,
    shares_assignment_ids=True,
)
