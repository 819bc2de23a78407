"""Rows of answers given elsewhere: items that are named by their text, and HITs with a row for each criterion."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.result_format import ResultRow
from app.errors import join_names, shorten_echo
from app.uploads import raise_upload_refusal_at_line

TEXTS_PER_LOOKUP = 2_000

FIND_ITEM_IDS = text("""
    SELECT external_id FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:names AS text[]))
""")
FIND_ITEM_IDS_BY_TEXT = text("""
    SELECT btrim(shown, E' \\t\\r\\n') AS shown, min(external_id) AS external_id, count(*) AS items FROM items
    WHERE campaign_id = :campaign AND btrim(shown, E' \\t\\r\\n') = ANY(CAST(:names AS text[])) GROUP BY 1
""")


async def replace_item_texts_by_ids_and_count_items(
    connection: AsyncConnection, campaign_id: int, result_rows: list[ResultRow]
) -> int:
    """Replace names that are the text of an item, and no id, by that item's id. Return how many items were found so.

    Raises `Invalid` (`item_ambiguous`) if several items have this text.
    """
    names = list({name for row in result_rows for name in row.items})
    item_by_text: dict[str, Row[Any]] = {}
    for batch in (names[start : start + TEXTS_PER_LOOKUP] for start in range(0, len(names), TEXTS_PER_LOOKUP)):
        parameters = {"campaign": campaign_id, "names": batch}
        existing_ids = set(await connection.scalars(FIND_ITEM_IDS, parameters))
        unknown = [name for name in batch if name not in existing_ids]
        if unknown:
            parameters = {"campaign": campaign_id, "names": unknown}
            item_by_text |= {row.shown: row for row in await connection.execute(FIND_ITEM_IDS_BY_TEXT, parameters)}
    if item_by_text:
        replace_texts_in_rows_by_item_ids_or_refuse(result_rows, item_by_text)
    return len(item_by_text)


def replace_texts_in_rows_by_item_ids_or_refuse(
    result_rows: list[ResultRow], item_by_text: dict[str, Row[Any]]
) -> None:
    """Replace the items' texts in the rows by their ids. Raises `Invalid` (`item_ambiguous`)."""
    for position, row in enumerate(result_rows):
        if not item_by_text.keys().isdisjoint(row.items):
            result_rows[position] = row._replace(
                items=tuple(
                    item_id_of_text_or_unchanged_refusing_ambiguous(row, k, item_by_text) for k in range(len(row.items))
                )
            )


def item_id_of_text_or_unchanged_refusing_ambiguous(
    result_row: ResultRow, position: int, item_by_text: dict[str, Row[Any]]
) -> str:
    name = result_row.items[position]
    item = item_by_text.get(name)
    if item is None:
        return name
    if item.items > 1:
        message = f"{item.items} items have the text “{shorten_echo(name)}”. Name the item by its id."
        raise_upload_refusal_at_line("item_ambiguous", result_row.line_number_of_item_at(position), message)
    return str(item.external_id)


def align_rows_per_criterion_or_refuse(
    result_rows: Sequence[ResultRow], criterion_names: Sequence[str]
) -> list[list[ResultRow]]:
    """Return for each criterion the rows of all HITs, in the order of their first rows, items in the same order.

    Raises `Invalid` (`criteria_missing`, `criteria_differ`).
    """
    hits: dict[tuple[str, str], dict[str, ResultRow]] = {}
    for row in result_rows:
        hits.setdefault((row.worker_id, row.assignment_id), {})[row.criterion] = row
    aligned_hits = [
        [
            row_reordered_like_first_row_or_refuse(next(iter(hit.values())), row)
            for row in rows_of_each_criterion_or_refuse(hit, criterion_names)
        ]
        for hit in hits.values()
    ]
    return [[hit[number] for hit in aligned_hits] for number in range(len(criterion_names))]


def rows_of_each_criterion_or_refuse(
    row_by_criterion: dict[str, ResultRow], criterion_names: Sequence[str]
) -> list[ResultRow]:
    """Return the rows in the order of the criteria. Raises `Invalid` (`criteria_missing`)."""
    if missing := [name for name in criterion_names if name not in row_by_criterion]:
        first = next(iter(row_by_criterion.values()))
        raise_upload_refusal_at_line(
            "criteria_missing", first.line, f"this task has no answer for {join_names(missing)}."
        )
    return [row_by_criterion[name] for name in criterion_names]


def row_reordered_like_first_row_or_refuse(first_row: ResultRow, row: ResultRow) -> ResultRow:
    """Return a row with its items in the order of another row of its HIT. Raises `Invalid` (`criteria_differ`)."""
    if set(row.items) != set(first_row.items) or row.segment != first_row.segment:
        message = (
            f"for “{shorten_echo(row.criterion)}” this task has different items than for "
            f"“{shorten_echo(first_row.criterion)}”."
        )
        raise_upload_refusal_at_line("criteria_differ", row.line, message)
    order = [row.items.index(item) for item in first_row.items]
    scores, lines = tuple(row.scores[k] for k in order), tuple(row.lines[k] for k in order)
    reasons = tuple(row.reasons[k] for k in order)
    if [score is None for score in scores] != [score is None for score in first_row.scores]:
        raise_upload_refusal_at_line(
            "criteria_differ", row.line, "an item of this task is marked N/A for one criterion but not for another."
        )
    if reasons != first_row.reasons:
        raise_upload_refusal_at_line(
            "criteria_differ",
            row.line,
            "an item of this task is marked N/A for different reasons by different criteria.",
        )
    blocks = tuple(row.blocks[k] for k in order) if row.blocks else ()
    details = tuple(row.answer_details[k] for k in order) if row.answer_details else ()
    return row._replace(
        items=first_row.items,
        scores=scores,
        lines=lines,
        reasons=reasons,
        blocks=blocks,
        answer_details=details,
    )
