"""HITs that were answered elsewhere by several criteria: of each HIT a row by each of them, which belong together."""

from collections.abc import Sequence
from dataclasses import replace

from app.crowd.answered import ResultRow
from app.errors import listed, shortened
from app.upload import refuse


def apart(rows: Sequence[ResultRow], names: Sequence[str]) -> list[list[ResultRow]]:
    """By each criterion the rows of all HITs, in the order of their first rows, the items of a HIT in one order.

    Raises `Invalid` (`criteria_missing`, `criteria_differ`).
    """
    hits: dict[tuple[str, str], dict[str, ResultRow]] = {}
    for row in rows:
        hits.setdefault((row.worker_id, row.assignment_id), {})[row.criterion] = row
    alike = [[in_order_of(next(iter(hit.values())), row) for row in whole(hit, names)] for hit in hits.values()]
    return [[hit[number] for hit in alike] for number in range(len(names))]


def whole(hit: dict[str, ResultRow], names: Sequence[str]) -> list[ResultRow]:
    """Raises `Invalid` (`criteria_missing`)."""
    if missing := [name for name in names if name not in hit]:
        first = next(iter(hit.values()))
        refuse("criteria_missing", first.line, f"this HIT has nothing by {listed(missing)}.")
    return [hit[name] for name in names]


def in_order_of(first: ResultRow, row: ResultRow) -> ResultRow:
    """A row with its items as another of its HIT has them. Raises `Invalid` (`criteria_differ`)."""
    if set(row.items) != set(first.items) or row.segment != first.segment:
        what = f"by “{shortened(row.criterion)}” this HIT has other items than by “{shortened(first.criterion)}”."
        refuse("criteria_differ", row.line, what)
    place = [row.items.index(item) for item in first.items]
    scores, lines = tuple(row.scores[k] for k in place), tuple(row.lines[k] for k in place)
    reasons = tuple(row.reasons[k] for k in place)
    if [score is None for score in scores] != [score is None for score in first.scores]:
        refuse("criteria_differ", row.line, "an item of this HIT is marked N/A by one criterion and not by another.")
    if reasons != first.reasons:
        refuse("criteria_differ", row.line, "an item of this HIT is marked N/A by each criterion for another reason.")
    return replace(row, items=first.items, scores=scores, lines=lines, reasons=reasons)
