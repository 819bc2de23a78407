"""A draft's page: how much will be asked."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import lifecycle


async def of(connection: AsyncConnection, slug: str) -> dict[str, Any]:
    """What the page shows of the draft with this slug. Raises `NotFound` (`campaign_not_found`)."""
    campaign = await lifecycle.find_counted(connection, slug)
    return {"campaign": campaign, "hits": -(-campaign.judgments_wanted // campaign.items_per_hit)}
