"""Campaigns with their progress, for lists and summaries; for a researcher, the campaigns they can see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Select, all_, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts import members
from app.accounts.access import SHARING_CAMPAIGN_ID, Access, visible_campaigns_sql_condition
from app.accounts.roles import SEE_CAMPAIGN
from app.database.campaign import (
    find_campaign_id_or_refuse,
    gold_and_attention_item_count_sql,
    gold_count_sql,
    has_personal_links_sql,
    number_of_items_sql,
    retired_count_sql,
    unknown_campaign_slug_error,
)
from app.database.session import leads_to_citus
from app.database.sharing_tables import experiment_arms
from app.database.tables import campaigns, current_posteriors
from app.designs.campaign import Campaign
from app.record.campaign import CountedCampaign, fetch_campaign_or_refuse, fetch_campaign_row_or_refuse
from app.record.judgment_count import count_judgments_by_campaign


@dataclass(frozen=True, kw_only=True)
class CampaignWithProgress(CountedCampaign):
    """A campaign with its number of items, and of judgments of the drawn items.

    Attributes:
        experiment: Name of the experiment if the campaign is one of its arms, else None; likewise `arm`.
        experiment_key: Link key of that experiment.
        member: Role in the campaign of the researcher who asked for a list.
        has_people: Whether any annotator has a personal link; only of a single campaign.

    """

    judgments_taken: int
    judgments_wanted: int
    experiment: str | None
    arm: str | None
    experiment_key: str | None
    member: str | None = None
    has_people: bool = False


async def load_campaigns_with_progress(
    connection: AsyncConnection,
    *,
    only_archived: bool = False,
    only_rehearsals: bool = False,
    access: Access | None = None,
    permission: str = SEE_CAMPAIGN,
) -> Sequence[CampaignWithProgress]:
    """Return campaigns, archived campaigns or rehearsals, newest first.

    With `access`, only campaigns where the user has this permission.
    """
    is_archived, is_rehearsal = campaigns.c.archived_at.is_not(None), campaigns.c.rehearsal_of.is_not(None)
    condition = is_rehearsal if only_rehearsals else ~is_rehearsal & (is_archived if only_archived else ~is_archived)
    conditions = condition, visible_campaigns_sql_condition(access, permission)
    member_role = members.member_role_sql(SHARING_CAMPAIGN_ID, access)
    rows: list[Mapping[Any, Any]] = []
    if leads_to_citus(connection):  # which counts the items of one campaign at a time
        listed = select(campaigns.c.id, member_role).where(*conditions).order_by(campaigns.c.id.desc())
        for visible in (await connection.execute(listed)).mappings().all():
            found = await connection.execute(select_campaigns_with_progress_statement(visible["id"]))
            rows += ({**progress, **visible} for progress in found.mappings())  # none if it was deleted meanwhile
    else:
        statement = select_campaigns_with_progress_statement().add_columns(member_role).where(*conditions)
        rows += (await connection.execute(statement.order_by(campaigns.c.id.desc()))).mappings()
    judgments = await count_judgments_by_campaign(connection, [row["id"] for row in rows])
    return [
        CampaignWithProgress.from_columns({**row, "judgments_taken": judgments[row["id"]]})
        for row in rows
        if row["id"] in judgments  # else the campaign was deleted since the first statement
    ]


async def count_archived_campaigns(connection: AsyncConnection, *, access: Access | None = None) -> int:
    """Return how many campaigns are archived, among those that the user can see."""
    conditions = (
        campaigns.c.archived_at.is_not(None),
        campaigns.c.rehearsal_of.is_(None),
        visible_campaigns_sql_condition(access),
    )
    statement = select(func.count()).select_from(campaigns).where(*conditions)
    return (await connection.execute(statement)).scalar_one()


async def load_campaign_with_progress_or_refuse(connection: AsyncConnection, slug: str) -> CampaignWithProgress:
    """Return a campaign with its progress and `has_people`. Raises `NotFound` (`campaign_not_found`)."""
    campaign_id = await find_campaign_id_or_refuse(connection, slug)
    statement = select_campaigns_with_progress_statement(campaign_id).add_columns(
        has_personal_links_sql(campaign_id).label("has_people")
    )
    row = await fetch_campaign_row_or_refuse(connection, statement, slug)
    judgments = await count_judgments_by_campaign(connection, [row["id"]])
    if row["id"] not in judgments:  # deleted since the first statement
        raise unknown_campaign_slug_error(slug)
    return CampaignWithProgress.from_columns({**row, "judgments_taken": judgments[row["id"]]})


async def load_visible_campaign_or_refuse(connection: AsyncConnection, slug: str, access: Access) -> Campaign:
    """Return a campaign that the user can see. Raises `NotFound` (`campaign_not_found`) for all others."""
    return await fetch_campaign_or_refuse(
        connection, select(campaigns).where(visible_campaigns_sql_condition(access)), slug, Campaign
    )


def select_campaigns_with_progress_statement(campaign_id: int | None = None) -> Select[Any]:
    """Return a query of campaigns, or of one, with `item_count`, and `judgments_wanted` of the drawn items.

    An arm has its `experiment`, the `arm` and the `experiment_key`; for other campaigns these are None.
    """
    which = campaigns.c.id if campaign_id is None else campaign_id
    item_total = number_of_items_sql(which)
    drawn_items = item_total - func.cardinality(campaigns.c.always_shown)
    judgments_wanted = cast(drawn_items, BigInteger) * campaigns.c.judgments_per_item  # a million items times thousands
    # Judgments of settled items, no longer wanted. Only for campaigns that can have any, since this scans all items.
    missing_judgments = func.greatest(campaigns.c.judgments_per_item - current_posteriors.c.judgments, 0)
    released_judgments = (
        select(func.coalesce(func.sum(missing_judgments), 0))
        .where(current_posteriors.c.campaign_id == which, current_posteriors.c.criterion == 0)
        .where(current_posteriors.c.number != all_(campaigns.c.always_shown))
        .where(current_posteriors.c.settled | (current_posteriors.c.unjudged >= campaigns.c.unjudged_people))
        .scalar_subquery()
    )
    judgments_wanted -= case((campaigns.c.cannot_be_judged | (campaigns.c.releases > 0), released_judgments), else_=0)
    query = select(
        campaigns,
        item_total.label("item_count"),
        retired_count_sql(which).label("retired_count"),
        gold_and_attention_item_count_sql(which).label("check_count"),
        gold_count_sql(which).label("gold_count"),
        judgments_wanted.label("judgments_wanted"),
        experiment_arms.c.experiment,
        experiment_arms.c.arm,
        experiment_arms.c.link_key.label("experiment_key"),
    ).outerjoin_from(campaigns, experiment_arms)
    return query if campaign_id is None else query.where(campaigns.c.id == campaign_id)


def campaign_progress_as_dict(campaign: CampaignWithProgress) -> dict[str, Any]:
    """Return the progress of a campaign of `load_campaigns_with_progress`."""
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
