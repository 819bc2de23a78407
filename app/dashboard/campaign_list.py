"""The list of campaigns: the pace of each, how near its goal or how well known it is, and in which order they stand."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.campaign_filter import ARCHIVED_FILTER, CampaignFilter
from app.campaigns.summaries import CampaignWithProgress
from app.dashboard.incremental import PrecisionReplay
from app.designs.campaign import Campaign
from app.designs.unit import UNKNOWN_SPREAD
from app.goals.progress import format_goal_progress, text_that_identifies_goal
from app.goals.settings import NO_GOAL
from app.record import pace
from app.record.answer_rates import FIRST_ANSWER_TIME_COLUMN, load_hit_count_by_minute, minutes_since_epoch

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
        rate: Recent tasks per hour.
        interval: Typical interval, by the criterion by which items are known least.
        goal: Progress towards the goal, such as `18 % of 95 %`.

    """

    last_at: datetime | None = None
    rate: str = ""
    interval: str = ""
    goal: str = ""


async def load_campaign_pace_by_id(
    connection: AsyncConnection, precision_replay: PrecisionReplay, campaigns: Sequence[Campaign], *, now: datetime
) -> dict[int, CampaignPace]:
    """Return the pace of each campaign, by the id of its row."""
    deadline = time.monotonic() + INTERVALS_BUDGET_SECONDS
    return {
        campaign.id: await load_pace_and_progress_of_campaign(connection, precision_replay, campaign, deadline, now=now)
        for campaign in campaigns
    }


async def load_pace_and_progress_of_campaign(
    connection: AsyncConnection,
    precision_replay: PrecisionReplay,
    campaign: Campaign,
    intervals_deadline: float,
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
        minutes = await load_hit_count_by_minute(connection, campaign.id, now)
        recent = pace.recent_hit_count_and_hits_per_hour_or_none(
            minutes, min(answers.first_at, now).timestamp(), now.timestamp()
        )
        quiet = pace.text_on_time_without_answers_or_none(minutes, minutes_since_epoch(now))
        rate = f"{recent[1]:,.0f} tasks/h" if recent and not quiet else ""
    design = campaign.design
    if not design.is_ordered:
        return CampaignPace(answers.last_at, rate)
    widest = 0.0
    for criterion in campaign.criteria:
        interval = await precision_replay.load_typical_half_width_or_none(
            connection, criterion, may_read_new_answers=time.monotonic() < intervals_deadline
        )
        if interval is None:
            return CampaignPace(answers.last_at, rate, "loading")
        widest = max(widest, interval)
    spread = design.unit.half_width_text_or_empty(widest)
    return CampaignPace(
        answers.last_at,
        rate,
        "" if spread == UNKNOWN_SPREAD else spread,
        goal_progress_text_or_empty(precision_replay, campaign),
    )


def goal_progress_text_or_empty(precision_replay: PrecisionReplay, campaign: Campaign) -> str:
    """Return how near a campaign is to its goal; empty without a goal, or while that is not known."""
    if campaign.goal == NO_GOAL:
        return ""
    if campaign.goal_reached == text_that_identifies_goal(campaign):
        return "reached"
    if (progress := precision_replay.cached_goal_progress_or_none(campaign)) is None:
        return ""
    target = f"{progress.target:.2f}" if campaign.goal == "halves" else f"{100 * progress.target:.0f} %"
    return f"{format_goal_progress(campaign, progress)} of {target}"


CampaignSort = Literal["newest", "name", "progress", "answer"]
SORT_TITLES: dict[CampaignSort, str] = {
    "newest": "Newest first",
    "answer": "Last answer first",
    "progress": "Most complete first",
    "name": "By name",
}


class CampaignsView(CampaignFilter):
    """The campaigns that the list shows, and their order. `archived` is how older addresses ask for archived ones."""

    sort: CampaignSort = "newest"
    archived: bool = False

    @property
    def shows_archived(self) -> bool:
        return self.archived or self.status == ARCHIVED_FILTER


def campaigns_in_order(
    campaigns: Sequence[CampaignWithProgress], pace_by_campaign: Mapping[int, CampaignPace], sort: CampaignSort
) -> list[CampaignWithProgress]:
    """Return campaigns, which are given newest first, in another order."""

    def completed_share(campaign: CampaignWithProgress) -> float:
        return campaign.judgments_taken / campaign.judgments_wanted if campaign.judgments_wanted else 0.0

    def last_answer(campaign: CampaignWithProgress) -> float:
        last_at = pace_by_campaign[campaign.id].last_at
        return last_at.timestamp() if last_at else 0.0

    keys: dict[CampaignSort, Callable[[CampaignWithProgress], float | str]] = {
        "newest": lambda _: 0,
        "name": lambda campaign: campaign.name.casefold(),
        "progress": lambda campaign: -completed_share(campaign),
        "answer": lambda campaign: -last_answer(campaign),
    }
    return sorted(campaigns, key=keys[sort])
