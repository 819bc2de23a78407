"""Rows of HITs that were answered elsewhere by several criteria: one row per HIT and criterion."""

from collections.abc import Sequence
from dataclasses import replace

from app.annotation.platforms.result_format import ResultRow
from app.errors import join_names, shorten_echo
from app.uploads import refuse_line


def split_rows_by_criterion(result_rows: Sequence[ResultRow], criterion_names: Sequence[str]) -> list[list[ResultRow]]:
    """Return for each criterion the rows of all HITs, in the order of their first rows, items in the same order.

    Raises `Invalid` (`criteria_missing`, `criteria_differ`).
    """
    hits: dict[tuple[str, str], dict[str, ResultRow]] = {}
    for row in result_rows:
        hits.setdefault((row.worker_id, row.assignment_id), {})[row.criterion] = row
    aligned_hits = [
        [align_row_items(next(iter(hit.values())), row) for row in require_row_per_criterion(hit, criterion_names)]
        for hit in hits.values()
    ]
    return [[hit[number] for hit in aligned_hits] for number in range(len(criterion_names))]


def require_row_per_criterion(
    row_by_criterion: dict[str, ResultRow], criterion_names: Sequence[str]
) -> list[ResultRow]:
    """Return the rows in the order of the criteria. Raises `Invalid` (`criteria_missing`)."""
    if missing := [name for name in criterion_names if name not in row_by_criterion]:
        first = next(iter(row_by_criterion.values()))
        refuse_line("criteria_missing", first.line, f"this HIT has no answer by {join_names(missing)}.")
    return [row_by_criterion[name] for name in criterion_names]


def align_row_items(first_row: ResultRow, row: ResultRow) -> ResultRow:
    """Return a row with its items in the order of another row of its HIT. Raises `Invalid` (`criteria_differ`)."""
    if set(row.items) != set(first_row.items) or row.segment != first_row.segment:
        message = (
            f"by “{shorten_echo(row.criterion)}” this HIT has other items than by "
            f"“{shorten_echo(first_row.criterion)}”."
        )
        refuse_line("criteria_differ", row.line, message)
    order = [row.items.index(item) for item in first_row.items]
    scores, lines = tuple(row.scores[k] for k in order), tuple(row.lines[k] for k in order)
    reasons = tuple(row.reasons[k] for k in order)
    if [score is None for score in scores] != [score is None for score in first_row.scores]:
        refuse_line(
            "criteria_differ", row.line, "an item of this HIT is marked N/A by one criterion and not by another."
        )
    if reasons != first_row.reasons:
        refuse_line(
            "criteria_differ", row.line, "an item of this HIT is marked N/A by each criterion for another reason."
        )
    return replace(row, items=first_row.items, scores=scores, lines=lines, reasons=reasons)
