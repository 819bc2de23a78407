"""Campaigns as other rooms load them, by their address."""

from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import RowMapping, Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import (
    find_campaign_id_or_refuse,
    gold_and_attention_item_count_sql,
    gold_count_sql,
    has_personal_links_sql,
    number_of_items_sql,
    retired_count_sql,
    unknown_campaign_slug_error,
)
from app.database.tables import campaigns
from app.designs.campaign import Campaign

C = TypeVar("C", bound=Campaign)  # Python 3.11 has no other way


@dataclass(frozen=True, kw_only=True)
class CountedCampaign(Campaign):
    """A campaign with its numbers of items, of retired items, of gold and attention items, and of gold items alone."""

    item_count: int
    retired_count: int = 0
    check_count: int = 0
    gold_count: int = 0


@dataclass(frozen=True, kw_only=True)
class CampaignOnPage(CountedCampaign):
    """A campaign with what the checklist of a draft's pages shows."""

    has_people: bool


async def load_campaign(connection: AsyncConnection, campaign_id: int) -> Campaign:
    """Return the campaign with this id, which must exist."""
    rows = await connection.execute(select(campaigns).where(campaigns.c.id == campaign_id))
    return Campaign.from_columns(rows.mappings().one())


async def load_campaign_by_slug_or_refuse(connection: AsyncConnection, slug: str) -> Campaign:
    """Return the campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    return await fetch_campaign_or_refuse(connection, select(campaigns), slug, Campaign)


async def load_campaign_for_page_or_refuse(connection: AsyncConnection, slug: str) -> CampaignOnPage:
    """Return the campaign with this slug, for a page. Raises `NotFound` (code `campaign_not_found`)."""
    campaign_id = await find_campaign_id_or_refuse(connection, slug)
    statement = select(
        campaigns,
        number_of_items_sql(campaign_id).label("item_count"),
        retired_count_sql(campaign_id).label("retired_count"),
        gold_and_attention_item_count_sql(campaign_id).label("check_count"),
        gold_count_sql(campaign_id).label("gold_count"),
        has_personal_links_sql(campaign_id).label("has_people"),
    ).where(campaigns.c.id == campaign_id)
    return await fetch_campaign_or_refuse(connection, statement, slug, CampaignOnPage)


async def fetch_campaign_or_refuse(
    connection: AsyncConnection, statement: Select[Any], slug: str, campaign_class: type[C]
) -> C:
    """Return the row of a statement for the campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    return campaign_class.from_columns(await fetch_campaign_row_or_refuse(connection, statement, slug))


async def fetch_campaign_row_or_refuse(connection: AsyncConnection, statement: Select[Any], slug: str) -> RowMapping:
    """Return what a statement selects for the campaign with this slug. Raises as `fetch_campaign_or_refuse` does."""
    rows = await connection.execute(statement.where(campaigns.c.slug == slug))
    row: RowMapping | None = rows.mappings().one_or_none()
    if row is None:
        raise unknown_campaign_slug_error(slug)
    return row
