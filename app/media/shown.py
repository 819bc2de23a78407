"""The items of a HIT as they stand in a page, with the files that they name."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import text

from app.database.session import Driver, Record, fetch
from app.designs.content import Above, Cells, Content, DrawnItems, plain
from app.media.store import addresses

T = TypeVar("T")

BESIDE = text("""
    SELECT number, fields ->> CAST(:source AS text) AS source, fields ->> CAST(:reference AS text) AS reference
    FROM items WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[]))
""")


class CellsBeside(Record):
    """What stands in an item's columns of source and reference."""

    number: int
    source: str | None
    reference: str | None


async def drawn(
    connection: Driver,
    campaign: Any,
    numbers: Sequence[int],
    texts: Sequence[str],
    above: Above | None = None,
) -> DrawnItems:
    """Items of a campaign (`id`, `segment_count` and its settings) by their numbers and texts; of mere texts nothing is
    looked up.

    above: source and reference of the segment, where the texts are outputs of systems; without it they are the systems'
    names.
    """
    if campaign.segment_count and above is None:
        return plain(texts)
    content = Content.of(campaign)
    if content.plain and not (above and any(above)):
        return plain(texts)
    beside: dict[int, CellsBeside] = {}
    if content.columns:
        asked = {"campaign": campaign.id, "numbers": [*numbers]}
        asked |= {"source": content.source, "reference": content.reference}
        beside = {row.number: row for row in await fetch(connection, BESIDE, asked, CellsBeside)}
    rows = [
        Cells(shown, *above) if above else cells(shown, beside.get(number))
        for number, shown in zip(numbers, texts, strict=True)
    ]
    names = await apart_if_long(content, rows, partial(names_of_files, content, rows))
    found = await addresses(connection, campaign.id, names) if names else {}
    return await apart_if_long(content, rows, partial(content.draw, rows, found))


async def apart_if_long(content: Content, rows: Sequence[Cells], work: Callable[[], T]) -> T:
    """Return the result of a function of these items; in a thread if it takes long, so that others do not wait."""
    return await asyncio.to_thread(work) if content.takes_long(rows) else work()


def names_of_files(content: Content, rows: Sequence[Cells]) -> set[str]:
    """Return the names of the files of a campaign that items show."""
    return {file.name for row in rows for file in content.files(row) if not file.is_link}


def cells(shown: str, beside: CellsBeside | None) -> Cells:
    return Cells(shown, beside.source, beside.reference) if beside else Cells(shown)
