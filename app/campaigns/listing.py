"""A campaign's items, a page at a time."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import items


async def items_of(
    connection: AsyncConnection, campaign_id: int, *, offset: int, limit: int
) -> tuple[int, Sequence[Row[Any]]]:
    """How many items there are, and those of one page in the order of their numbers."""
    mine = items.c.campaign_id == campaign_id
    total = (await connection.execute(select(func.count()).select_from(items).where(mine))).scalar_one()
    # Numbers run from 0 without gaps, so a page is a range of the primary key, however far down it lies.
    here = items.c.number.between(offset, offset + limit - 1)
    rows = (await connection.execute(select(items).where(mine, here).order_by(items.c.number))).all()
    return total, rows
