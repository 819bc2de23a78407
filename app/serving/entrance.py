"""What someone sees before they are an annotator: the campaign and a few of its items, for looking only."""

from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns, items
from app.errors import NotFound


async def campaign_by_link(connection: AsyncConnection, link_key: str) -> Row[Any]:
    """The campaign with this link key. Raises `NotFound` (`campaign_not_found`)."""
    row = (await connection.execute(select(campaigns).where(campaigns.c.link_key == link_key))).one_or_none()
    if row is None:
        raise NotFound(
            "There is no task at this address. Please check that the link is complete.",
            code="campaign_not_found",
        )
    return row


async def sample(connection: AsyncConnection, campaign: Row[Any]) -> list[str]:
    """The texts of the first items, as many as a HIT has: the same for everyone, so a preview stores nothing."""
    statement = select(items.c.shown).where(items.c.campaign_id == campaign.id).order_by(items.c.number)
    return list(await connection.scalars(statement.limit(campaign.items_per_hit)))
