"""The list of campaigns: beside what each is, how it goes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.follow import Precisions
from app.designs.criteria import criteria_of
from app.designs.registry import design_of
from app.record import pace
from app.record.per_minute import FIRST_AT, minute_of, per_minute

PATIENCE_SECONDS = 1.0  # for the intervals of all campaigns; those that are not read by then say so

ANSWERS = text(f"""
    SELECT {FIRST_AT},
           (SELECT received_at FROM responses WHERE campaign_id = :campaign ORDER BY seq DESC LIMIT 1) AS last_at
""")  # noqa: S608  (made of constants)


@dataclass(frozen=True)
class Going:
    """How a campaign goes, in words; empty where there is nothing to say. last_at: when its last answer came. interval:
    the typical one, by the criterion by which items are known least.
    """

    last_at: datetime | None = None
    rate: str = ""
    interval: str = ""


async def how_they_go(
    connection: AsyncConnection, precisions: Precisions, campaigns: Sequence[Row[Any]], *, now: datetime
) -> dict[int, Going]:
    """Of each campaign, by its row's id."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    return {one.id: await how_it_goes(connection, precisions, one, deadline, now=now) for one in campaigns}


async def how_it_goes(
    connection: AsyncConnection, precisions: Precisions, campaign: Row[Any], deadline: float, *, now: datetime
) -> Going:
    if campaign.status == "draft":
        return Going()
    answers = (await connection.execute(ANSWERS, {"campaign": campaign.id})).one()
    if answers.last_at is None:
        return Going()
    rate = ""
    if campaign.status == "running" and answers.first_at is not None:
        minutes = await per_minute(connection, campaign.id, now)
        recent = pace.recent_rate(minutes, min(answers.first_at, now).timestamp(), now.timestamp())
        quiet = pace.silence(minutes, minute_of(now))
        rate = f"{recent[1]:,.0f} HITs/h" if recent and not quiet else ""
    design = design_of(campaign)
    if not design.ordered:
        return Going(answers.last_at, rate)
    widest = 0.0
    for one in criteria_of(campaign):
        places = await precisions.typical(connection, one, in_time=time.monotonic() < deadline)
        if places is None:
            return Going(answers.last_at, rate, "being read")
        widest = max(widest, places)
    return Going(answers.last_at, rate, design.unit.give_or_take(widest))
