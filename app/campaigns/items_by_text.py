"""Items that a file of answers names by their text are found, and named by their ids."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.crowd.answered import ResultRow
from app.errors import shortened
from app.upload import refuse

TEXTS_AT_ONCE = 2_000

FIND_IDS = text("""
    SELECT external_id FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:names AS text[]))
""")
FIND_TEXTS = text("""
    SELECT btrim(shown, E' \\t\\r\\n') AS shown, min(external_id) AS external_id, count(*) AS items FROM items
    WHERE campaign_id = :campaign AND btrim(shown, E' \\t\\r\\n') = ANY(CAST(:names AS text[])) GROUP BY 1
""")


async def name_items_by_text(connection: AsyncConnection, campaign_id: int, rows: list[ResultRow]) -> int:
    """Replace names that are the text of an item, and no id, by that item's id. Return how many items were found so.

    Raises:
        Invalid: `item_ambiguous`: several items have this text.

    """
    names = list({name for row in rows for name in row.items})
    found: dict[str, Row[Any]] = {}
    for some in (names[start : start + TEXTS_AT_ONCE] for start in range(0, len(names), TEXTS_AT_ONCE)):
        given = {"campaign": campaign_id, "names": some}
        known = set(await connection.scalars(FIND_IDS, given))
        unknown = [name for name in some if name not in known]
        if unknown:
            given = {"campaign": campaign_id, "names": unknown}
            found |= {row.shown: row for row in await connection.execute(FIND_TEXTS, given)}
    if found:
        put_ids(rows, found)
    return len(found)


def put_ids(rows: list[ResultRow], found: dict[str, Row[Any]]) -> None:
    """Raises `Invalid` (`item_ambiguous`)."""
    for place, row in enumerate(rows):
        if not found.keys().isdisjoint(row.items):
            rows[place] = replace(row, items=tuple(item_id_at(row, k, found) for k in range(len(row.items))))


def item_id_at(row: ResultRow, place: int, found: dict[str, Row[Any]]) -> str:
    name = row.items[place]
    item = found.get(name)
    if item is None:
        return name
    if item.items > 1:
        words = f"{item.items} items have the text “{shortened(name)}”. Name the item by its id."
        refuse("item_ambiguous", row.line_of_item(place), words)
    return str(item.external_id)
