"""Finding a campaign by the name researchers use in addresses; every room needs it."""

from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns
from app.errors import NotFound


async def campaign_by_slug(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    row: Row[Any] | None = (await connection.execute(select(campaigns).where(campaigns.c.slug == slug))).one_or_none()
    if row is None:
        raise NotFound(f"There is no campaign “{slug}”.", code="campaign_not_found", campaign=slug)
    return row
