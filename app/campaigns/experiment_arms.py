"""Campaigns that are the arms of an experiment: they ask about the same items, and each person comes to one of them."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, exists, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth.access import Access, visible
from app.campaigns.lifecycle import wait_in_line
from app.crowd.places import link_base
from app.database.experiment_tables import experiment_arms
from app.database.tables import campaigns
from app.errors import Conflict, NotFound, shortened


@dataclass(frozen=True)
class ArmOfExperiment:
    """What a campaign's pages say of its experiment. others: slug and arm of those that are there for whoever reads."""

    experiment: str
    arm: str
    link_key: str
    others: Sequence[tuple[str, str]]


async def refuse_second(connection: AsyncConnection, experiment: str) -> None:
    """Until this transaction ends nobody else begins it. Raises `Conflict` (`experiment_exists`)."""
    await wait_in_line(connection)
    if await connection.scalar(select(exists().where(experiment_arms.c.experiment == experiment))):
        raise Conflict(
            f"There is an experiment “{experiment}” already. Nothing was changed. Give another --name.",
            code="experiment_exists",
        )


async def join(connection: AsyncConnection, experiment: str, arms: Mapping[str, int]) -> str:
    """Make campaigns, by their rows' ids, the arms of a new experiment; the key of its link."""
    key = secrets.token_urlsafe(9)
    rows = [
        {"experiment": experiment, "arm": arm, "campaign_id": campaign_id, "link_key": key}
        for arm, campaign_id in arms.items()
    ]
    await connection.execute(insert(experiment_arms), rows)
    return key


async def arms_of(connection: AsyncConnection, experiment: str) -> Sequence[Row[Any]]:
    """The campaigns of an experiment, with their `arm`, in the order in which they were made.

    Raises `NotFound` (`experiment_not_found`).
    """
    both = select(campaigns, experiment_arms.c.arm).join(experiment_arms)
    those = both.where(experiment_arms.c.experiment == experiment)
    rows = (await connection.execute(those.order_by(campaigns.c.id))).all()
    if not rows:
        said = shortened(experiment)
        raise NotFound(f"There is no experiment with people “{said}”.", code="experiment_not_found", experiment=said)
    return rows


async def of_campaign(connection: AsyncConnection, campaign_id: int, seen_by: Access | None) -> ArmOfExperiment | None:
    """None for a campaign that is no arm."""
    mine = (
        await connection.execute(select(experiment_arms).where(experiment_arms.c.campaign_id == campaign_id))
    ).one_or_none()
    if mine is None:
        return None
    beside = select(campaigns.c.slug, experiment_arms.c.arm).join(experiment_arms)
    others = beside.where(
        experiment_arms.c.experiment == mine.experiment, campaigns.c.id != campaign_id, visible(seen_by)
    )
    rows = await connection.execute(others.order_by(campaigns.c.id))
    return ArmOfExperiment(mine.experiment, mine.arm, mine.link_key, [(row.slug, row.arm) for row in rows])


def where_people_come(base: str, campaign: Row[Any], arm: ArmOfExperiment | None) -> tuple[str, str]:
    """What `links` makes a campaign's links of, or of an arm those of its experiment."""
    return link_base(base, campaign.link_key, arm.link_key if arm else None)
