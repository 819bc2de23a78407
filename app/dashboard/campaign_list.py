"""The list of campaigns: the pace and the typical interval of each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.incremental import PrecisionReplay
from app.designs.campaign import Campaign
from app.record import pace
from app.record.answer_rates import FIRST_ANSWER_TIME_COLUMN, count_hits_per_minute, minutes_since_epoch

INTERVALS_BUDGET_SECONDS = 1.0  # for all campaigns; after that, an interval is shown as “being read”

LOAD_FIRST_AND_LAST_ANSWER = text(f"""
    SELECT {FIRST_ANSWER_TIME_COLUMN},
           (SELECT received_at FROM responses WHERE campaign_id = :campaign ORDER BY seq DESC LIMIT 1) AS last_at
""")


@dataclass(frozen=True)
class CampaignPace:
    """Pace of a campaign in words; empty where there is nothing to say.

    Attributes:
        last_at: When the last answer came.
        rate: Recent HITs per hour.
        interval: Typical interval, by the criterion by which items are known least.

    """

    last_at: datetime | None = None
    rate: str = ""
    interval: str = ""


async def load_campaign_paces(
    connection: AsyncConnection, precision_replay: PrecisionReplay, campaigns: Sequence[Campaign], *, now: datetime
) -> dict[int, CampaignPace]:
    """Return the pace of each campaign, by the id of its row."""
    deadline = time.monotonic() + INTERVALS_BUDGET_SECONDS
    return {
        campaign.id: await load_campaign_pace(connection, precision_replay, campaign, deadline, now=now)
        for campaign in campaigns
    }


async def load_campaign_pace(
    connection: AsyncConnection,
    precision_replay: PrecisionReplay,
    campaign: Campaign,
    deadline: float,
    *,
    now: datetime,
) -> CampaignPace:
    if campaign.status == "draft":
        return CampaignPace()
    answers = (await connection.execute(LOAD_FIRST_AND_LAST_ANSWER, {"campaign": campaign.id})).one()
    if answers.last_at is None:
        return CampaignPace()
    rate = ""
    if campaign.status == "running" and answers.first_at is not None:
        minutes = await count_hits_per_minute(connection, campaign.id, now)
        recent = pace.recent_hits_and_hourly_rate(minutes, min(answers.first_at, now).timestamp(), now.timestamp())
        quiet = pace.describe_silence(minutes, minutes_since_epoch(now))
        rate = f"{recent[1]:,.0f} HITs/h" if recent and not quiet else ""
    design = campaign.design
    if not design.is_ordered:
        return CampaignPace(answers.last_at, rate)
    widest = 0.0
    for criterion in campaign.criteria:
        interval = await precision_replay.load_typical_interval(
            connection, criterion, in_time=time.monotonic() < deadline
        )
        if interval is None:
            return CampaignPace(answers.last_at, rate, "loading")
        widest = max(widest, interval)
    return CampaignPace(answers.last_at, rate, design.unit.format_spread(widest))
