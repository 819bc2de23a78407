"""Campaigns with how far each is, as lists and summaries say it; of a researcher, those that are there for them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Row, Select, all_, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts import members
from app.accounts.access import SHARING_CAMPAIGN_ID, Access, visible_campaigns_condition
from app.accounts.roles import SEE_CAMPAIGN
from app.database.campaign import HAS_PEOPLE_COLUMN, fetch_campaign_row, item_count_sql, load_campaign_by_slug
from app.database.experiment_tables import experiment_arms
from app.database.tables import campaigns, current_posteriors


async def load_campaign_list(
    connection: AsyncConnection,
    *,
    archived: bool = False,
    only_rehearsals: bool = False,
    access: Access | None = None,
    permission: str = SEE_CAMPAIGN,
) -> Sequence[Row[Any]]:
    """The campaigns, or those that were archived, or the rehearsals, newest first: each with its number of items and of
    judgments taken and wanted. Of some researcher, those of which they may do what has this need, with their role as
    `member`.
    """
    is_archived, is_rehearsal = campaigns.c.archived_at.is_not(None), campaigns.c.rehearsal_of.is_not(None)
    condition = is_rehearsal if only_rehearsals else ~is_rehearsal & (is_archived if archived else ~is_archived)
    statement = (
        select_campaigns_with_progress()
        .add_columns(members.member_role_sql(SHARING_CAMPAIGN_ID, access))
        .where(condition, visible_campaigns_condition(access, permission))
    )
    rows: Sequence[Row[Any]] = (await connection.execute(statement.order_by(campaigns.c.id.desc()))).all()
    return rows


async def count_archived_campaigns(connection: AsyncConnection, *, access: Access | None = None) -> int:
    """How many campaigns were archived, of those that somebody sees."""
    conditions = (
        campaigns.c.archived_at.is_not(None),
        campaigns.c.rehearsal_of.is_(None),
        visible_campaigns_condition(access),
    )
    statement = select(func.count()).select_from(campaigns).where(*conditions)
    return (await connection.execute(statement)).scalar_one()


async def find_campaign_with_progress(connection: AsyncConnection, slug: str) -> Row[Any]:
    """One campaign as `listed` has it, with `has_people`. Raises `NotFound` (code `campaign_not_found`)."""
    campaign = await load_campaign_by_slug(connection, slug)
    row: Row[Any] = (
        await connection.execute(
            select_campaigns_with_progress().add_columns(HAS_PEOPLE_COLUMN).where(campaigns.c.id == campaign.id)
        )
    ).one()
    return row


async def find_visible_campaign(connection: AsyncConnection, slug: str, access: Access) -> Row[Any]:
    """One that somebody sees. Raises `NotFound` (code `campaign_not_found`), as if there were none, for others."""
    return await fetch_campaign_row(connection, select(campaigns).where(visible_campaigns_condition(access)), slug)


def select_campaigns_with_progress() -> Select[Any]:
    """Campaigns with `item_count`, `judgments_taken` and `judgments_wanted`, both of the items that are drawn; of an
    arm its `experiment`, the `arm` and the `experiment_key`, of other campaigns None.
    """
    item_total = item_count_sql(campaigns.c.id)
    judgments_taken = (
        select(func.coalesce(func.sum(current_posteriors.c.judgments), 0))
        .where(current_posteriors.c.campaign_id == campaigns.c.id, current_posteriors.c.criterion == 0)
        .where(current_posteriors.c.number != all_(campaigns.c.always_shown))
        .scalar_subquery()
    )
    drawn_items = item_total - func.cardinality(campaigns.c.always_shown)
    judgments_wanted = cast(drawn_items, BigInteger) * campaigns.c.judgments_per_item  # a million items times thousands
    # What nobody is asked for any more; only where there can be any, since it goes through all items.
    missing_judgments = func.greatest(campaigns.c.judgments_per_item - current_posteriors.c.judgments, 0)
    released_judgments = (
        select(func.coalesce(func.sum(missing_judgments), 0))
        .where(current_posteriors.c.campaign_id == campaigns.c.id, current_posteriors.c.criterion == 0)
        .where(current_posteriors.c.number != all_(campaigns.c.always_shown))
        .where(current_posteriors.c.settled | (current_posteriors.c.unjudged >= campaigns.c.unjudged_people))
        .scalar_subquery()
    )
    judgments_wanted -= case((campaigns.c.cannot_be_judged | (campaigns.c.releases > 0), released_judgments), else_=0)
    return select(
        campaigns,
        item_total.label("item_count"),
        judgments_taken.label("judgments_taken"),
        judgments_wanted.label("judgments_wanted"),
        experiment_arms.c.experiment,
        experiment_arms.c.arm,
        experiment_arms.c.link_key.label("experiment_key"),
    ).outerjoin_from(campaigns, experiment_arms)


def campaign_progress_json(campaign: Row[Any]) -> dict[str, Any]:
    """How far a campaign of `listed` is."""
    return {
        "slug": campaign.slug,
        "name": campaign.name,
        "status": campaign.status,
        "rehearsal": campaign.rehearsal_of is not None,
        "experiment": campaign.experiment,
        "arm": campaign.arm,
        "items": campaign.item_count,
        "judgments_taken": campaign.judgments_taken,
        "judgments_wanted": campaign.judgments_wanted,
        "created_at": campaign.created_at,
        "launched_at": campaign.launched_at,
        "finished_at": campaign.finished_at,
        "archived_at": campaign.archived_at,
    }
