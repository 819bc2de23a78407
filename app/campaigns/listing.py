"""What a campaign holds: how many items, a page of them at a time, and how many answers that are made up."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import items

# By way of the annotators: there are few of them, and none in a campaign that nobody rehearsed.
MADE_UP_HITS = text("""
    SELECT count(*) FROM annotators a JOIN responses r ON r.annotator_id = a.id
    WHERE a.campaign_id = :campaign AND a.platform = 'simulation'
""")


def item_count(campaign_id: int | ColumnElement[int]) -> ScalarSelect[int]:
    """SQL for the number of items. Theirs run from 0 without gaps, so the last one tells, without reading them all."""
    last = func.max(items.c.number)
    return select(func.coalesce(last + 1, 0)).where(items.c.campaign_id == campaign_id).scalar_subquery()


async def items_of(
    connection: AsyncConnection, campaign_id: int, *, offset: int, limit: int
) -> tuple[int, Sequence[Row[Any]]]:
    """How many items there are, and those of one page in the order of their numbers."""
    total = (await connection.execute(select(item_count(campaign_id)))).scalar_one()
    # Without gaps a page is a range of the primary key, however far down it lies.
    here = items.c.number.between(offset, offset + limit - 1)
    statement = select(items).where(items.c.campaign_id == campaign_id, here).order_by(items.c.number)
    return total, (await connection.execute(statement)).all()


async def made_up_hits(connection: AsyncConnection, campaign_id: int) -> int:
    """How many HITs were answered by `easel simulate`."""
    return int((await connection.execute(MADE_UP_HITS, {"campaign": campaign_id})).scalar_one())
