"""What a campaign holds: how many items, a page of them at a time, and how many answers that are made up."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.crowd.registry import simulated_platform_names
from app.database.campaign import item_count
from app.database.session import driver_of
from app.database.tables import items
from app.designs.content import DrawnItems
from app.media.shown import drawn
from app.record.stream import COUNTING

LONGEST_LISTED = 2_000  # characters of an item

REPORTS = text("""
    SELECT item, count(*) AS annotators FROM media_reports
    WHERE campaign_id = :campaign AND item = ANY(CAST(:numbers AS int[])) GROUP BY item
""")

OUTPUTS = text("""
    SELECT i.external_id AS system, s.external_id AS segment, o.shown AS output, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign ORDER BY o.item, o.segment LIMIT :limit
""")

# By way of the annotators: there are few of them, and none in a campaign that nobody rehearsed.
MADE_UP_HITS = text(f"""
    SELECT count(*) FROM annotators a JOIN responses r ON r.campaign_id = a.campaign_id AND r.annotator_id = a.id
    WHERE a.campaign_id = :campaign AND a.platform = ANY(:made_up) AND {COUNTING}
""")  # noqa: S608  (made of constants)


async def items_of(
    connection: AsyncConnection, campaign_id: int, *, offset: int, limit: int
) -> tuple[int, Sequence[Row[Any]]]:
    """How many items there are, and those of one page in the order of their numbers."""
    total = (await connection.execute(select(item_count(campaign_id)))).scalar_one()
    # Without gaps a page is a range of the primary key, however far down it lies.
    here = items.c.number.between(offset, offset + limit - 1)
    statement = select(items).where(items.c.campaign_id == campaign_id, here).order_by(items.c.number)
    return total, (await connection.execute(statement)).all()


async def as_shown(
    connection: AsyncConnection, campaign: Row[Any], rows: Sequence[Row[Any]]
) -> tuple[DrawnItems, dict[int, int]]:
    """Items as annotators see them, of long ones the beginning; and how many annotators could not open an item, by the
    numbers of such items.
    """
    numbers, texts = [row.number for row in rows], [beginning(row.shown) for row in rows]
    shown = await drawn(await driver_of(connection), campaign, numbers, texts)
    if not shown.loads:
        return shown, {}
    reported = await connection.execute(REPORTS, {"campaign": campaign.id, "numbers": numbers})
    return shown, {row.item: row.annotators for row in reported}


def beginning(text: str) -> str:
    """Return a text as a list has it, where many stand below each other."""
    return text if len(text) <= LONGEST_LISTED else text[:LONGEST_LISTED] + " …"


async def outputs_of(connection: AsyncConnection, campaign_id: int, *, limit: int) -> Sequence[Row[Any]]:
    """The first outputs of a campaign of systems, as they are uploaded."""
    return (await connection.execute(OUTPUTS, {"campaign": campaign_id, "limit": limit})).all()


async def made_up_hits(connection: AsyncConnection, campaign_id: int) -> int:
    """How many HITs were answered by `easel simulate`."""
    return int(
        (
            await connection.execute(MADE_UP_HITS, {"campaign": campaign_id, "made_up": simulated_platform_names()})
        ).scalar_one()
    )
