"""Campaigns that are the arms of an experiment: they ask about the same items, and each annotator gets one of them."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import exists, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.access import Access, visible_campaigns_sql_condition
from app.annotation.platforms.registry import annotator_link_base_url_and_key
from app.campaigns.lifecycle import lock_campaign_creation
from app.database.sharing_tables import experiment_arms
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Conflict, NotFound, shorten_echo


@dataclass(frozen=True)
class CampaignArm:
    """The experiment of a campaign as its pages show it; `others` has slug and arm of the other visible arms."""

    experiment: str
    arm: str
    link_key: str
    other_arms: Sequence[tuple[str, str]]


async def refuse_taken_and_lock_experiment_name(connection: AsyncConnection, experiment: str) -> None:
    """Raise `Conflict` (`experiment_exists`) if a name is taken, else reserve it until this transaction ends."""
    await lock_campaign_creation(connection)
    if await connection.scalar(select(exists().where(experiment_arms.c.experiment == experiment))):
        raise Conflict(
            f"There is already an experiment “{experiment}”. Nothing was changed. Give another --name.",
            code="experiment_exists",
        )


async def create_experiment_arms_and_link_key(
    connection: AsyncConnection, experiment: str, campaign_id_by_arm: Mapping[str, int]
) -> str:
    """Make campaigns, given by their ids, the arms of a new experiment; return the key of its link."""
    link_key = secrets.token_urlsafe(9)
    rows = [
        {"experiment": experiment, "arm": arm, "campaign_id": campaign_id, "link_key": link_key}
        for arm, campaign_id in campaign_id_by_arm.items()
    ]
    await connection.execute(insert(experiment_arms), rows)
    return link_key


@dataclass(frozen=True, kw_only=True)
class ArmCampaign(Campaign):
    """A campaign that is an arm of an experiment, with the name of the arm."""

    arm: str


async def load_experiment_arms_or_refuse(connection: AsyncConnection, experiment: str) -> Sequence[ArmCampaign]:
    """Return the campaigns of an experiment, oldest first.

    Raises `NotFound` (`experiment_not_found`).
    """
    campaigns_with_arm = select(campaigns, experiment_arms.c.arm).join(experiment_arms)
    statement = campaigns_with_arm.where(experiment_arms.c.experiment == experiment)
    rows = await connection.execute(statement.order_by(campaigns.c.id))
    arms = [ArmCampaign.from_columns(row) for row in rows.mappings()]
    if not arms:
        shown_name = shorten_echo(experiment)
        raise NotFound(
            f"There is no experiment with people called “{shown_name}”.",
            code="experiment_not_found",
            experiment=shown_name,
        )
    return arms


async def load_experiment_arm_or_none(
    connection: AsyncConnection, campaign_id: int, access: Access | None
) -> CampaignArm | None:
    """Return the experiment of a campaign; None for a campaign that is no arm."""
    arm_row = (
        await connection.execute(select(experiment_arms).where(experiment_arms.c.campaign_id == campaign_id))
    ).one_or_none()
    if arm_row is None:
        return None
    arms_with_slug = select(campaigns.c.slug, experiment_arms.c.arm).join(experiment_arms)
    other_arms = arms_with_slug.where(
        experiment_arms.c.experiment == arm_row.experiment,
        campaigns.c.id != campaign_id,
        visible_campaigns_sql_condition(access),
    )
    rows = await connection.execute(other_arms.order_by(campaigns.c.id))
    return CampaignArm(arm_row.experiment, arm_row.arm, arm_row.link_key, [(row.slug, row.arm) for row in rows])


def annotator_link_base_and_key_of_campaign(
    server_url: str, campaign: Campaign, arm: CampaignArm | None
) -> tuple[str, str]:
    """Return the base of a campaign's links for annotators; for an arm, the base of the links of its experiment."""
    return annotator_link_base_url_and_key(server_url, campaign.link_key, arm.link_key if arm else None)
