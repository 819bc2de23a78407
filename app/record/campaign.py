"""Campaigns as other rooms load them, by their address."""

from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import RowMapping, Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import HAS_PEOPLE_COLUMN, campaign_not_found, number_of_items_sql, retired_count_sql
from app.database.tables import campaigns
from app.designs.campaign import Campaign

C = TypeVar("C", bound=Campaign)  # Python 3.11 has no other way


@dataclass(frozen=True, kw_only=True)
class CampaignOnPage(Campaign):
    """A campaign with what the checklist of a draft's pages shows."""

    item_count: int
    has_people: bool
    retired_count: int = 0


async def load_campaign(connection: AsyncConnection, campaign_id: int) -> Campaign:
    """Return the campaign with this id, which must exist."""
    rows = await connection.execute(select(campaigns).where(campaigns.c.id == campaign_id))
    return Campaign.from_columns(rows.mappings().one())


async def load_campaign_by_slug(connection: AsyncConnection, slug: str) -> Campaign:
    """Return the campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    return await fetch_campaign(connection, select(campaigns), slug, Campaign)


async def load_campaign_for_page(connection: AsyncConnection, slug: str) -> CampaignOnPage:
    """Return the campaign with this slug, for a page. Raises `NotFound` (code `campaign_not_found`)."""
    item_count = number_of_items_sql(campaigns.c.id).label("item_count")
    retired_count = retired_count_sql(campaigns.c.id).label("retired_count")
    statement = select(campaigns, item_count, retired_count, HAS_PEOPLE_COLUMN)
    return await fetch_campaign(connection, statement, slug, CampaignOnPage)


async def fetch_campaign(connection: AsyncConnection, statement: Select[Any], slug: str, campaign_class: type[C]) -> C:
    """Return the row of a statement for the campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    return campaign_class.from_columns(await fetch_campaign_row(connection, statement, slug))


async def fetch_campaign_row(connection: AsyncConnection, statement: Select[Any], slug: str) -> RowMapping:
    """Return what a statement selects for the campaign with this slug. Raises as `fetch_campaign` does."""
    rows = await connection.execute(statement.where(campaigns.c.slug == slug))
    row: RowMapping | None = rows.mappings().one_or_none()
    if row is None:
        raise campaign_not_found(slug)
    return row
