"""Content of a campaign: the number of items, a page of them, and the number of simulated answers."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.registry import simulated_platform_names
from app.database.campaign import item_count_sql
from app.database.session import driver_of
from app.database.tables import items
from app.designs.campaign import Campaign
from app.designs.content import RenderedItems
from app.media.render_items import render_campaign_items
from app.record.responses import COUNTING_RESPONSES_CONDITION

MAX_LISTED_ITEM_CHARACTERS = 2_000

COUNT_MEDIA_REPORTS_OF_ITEMS = text("""
    SELECT item, count(*) AS annotators FROM media_reports
    WHERE campaign_id = :campaign AND item = ANY(CAST(:numbers AS int[])) GROUP BY item
""")

LOAD_FIRST_OUTPUTS = text("""
    SELECT i.external_id AS system, s.external_id AS segment, o.shown AS output, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign ORDER BY o.item, o.segment LIMIT :limit
""")

# Joined from the annotators: simulated ones are few, and there are none in a campaign without a rehearsal.
COUNT_SIMULATED_HITS = text(f"""
    SELECT count(*) FROM annotators a JOIN responses r ON r.campaign_id = a.campaign_id AND r.annotator_id = a.id
    WHERE a.campaign_id = :campaign AND a.platform = ANY(:simulated) AND {COUNTING_RESPONSES_CONDITION}
""")


async def load_item_total_and_page(
    connection: AsyncConnection, campaign_id: int, *, offset: int, limit: int
) -> tuple[int, Sequence[Row[Any]]]:
    """Return the number of items, and one page of them in the order of their numbers."""
    total = (await connection.execute(select(item_count_sql(campaign_id)))).scalar_one()
    # Numbers have no gaps, so any page is a range of the primary key.
    is_on_page = items.c.number.between(offset, offset + limit - 1)
    statement = select(items).where(items.c.campaign_id == campaign_id, is_on_page).order_by(items.c.number)
    return total, (await connection.execute(statement)).all()


async def draw_items_with_report_counts(
    connection: AsyncConnection, campaign: Campaign, rows: Sequence[Row[Any]]
) -> tuple[RenderedItems, dict[int, int]]:
    """Return items as annotators see them, long ones shortened, and the annotators who could not open an item.

    The latter are counted by item number, for items with at least one.
    """
    numbers, texts = [row.number for row in rows], [shorten_listed_text(row.shown) for row in rows]
    drawn_items = await render_campaign_items(await driver_of(connection), campaign, numbers, texts)
    if not drawn_items.loads_media:
        return drawn_items, {}
    report_rows = await connection.execute(COUNT_MEDIA_REPORTS_OF_ITEMS, {"campaign": campaign.id, "numbers": numbers})
    return drawn_items, {row.item: row.annotators for row in report_rows}


def shorten_listed_text(text: str) -> str:
    """Return a text as short as a list of many items needs it."""
    return text if len(text) <= MAX_LISTED_ITEM_CHARACTERS else text[:MAX_LISTED_ITEM_CHARACTERS] + " …"


async def load_first_outputs(connection: AsyncConnection, campaign_id: int, *, limit: int) -> Sequence[Row[Any]]:
    """Return the first outputs of a campaign of systems, as they are uploaded."""
    return (await connection.execute(LOAD_FIRST_OUTPUTS, {"campaign": campaign_id, "limit": limit})).all()


async def count_simulated_hits(connection: AsyncConnection, campaign_id: int) -> int:
    """Return how many HITs `easel simulate` answered."""
    return int(
        (
            await connection.execute(
                COUNT_SIMULATED_HITS, {"campaign": campaign_id, "simulated": simulated_platform_names()}
            )
        ).scalar_one()
    )
