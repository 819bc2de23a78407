"""The list of campaigns: the pace of each, how near its goal or how well known it is, and in which order they stand."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.campaign_filter import ARCHIVED_FILTER, CampaignFilter
from app.campaigns.summaries import CampaignWithProgress
from app.dashboard.incremental import PrecisionReplay
from app.designs.campaign import Campaign
from app.designs.unit import UNKNOWN_SPREAD
from app.goals.progress import format_goal_progress, text_that_identifies_goal
from app.goals.settings import NO_GOAL
from app.record import pace
from app.record.answer_rates import (
    load_answer_times_by_campaign,
    load_hit_count_by_minute_by_campaign,
    minutes_since_epoch,
)

INTERVALS_BUDGET_SECONDS = 1.0  # for all campaigns; after that, an interval is shown as “being read”


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
    """Return the pace of each campaign, by the id of its row.

    Three statements serve all campaigns; only new answers are read campaign by campaign, in limited time.
    """
    deadline = time.monotonic() + INTERVALS_BUDGET_SECONDS
    launched_ids = [campaign.id for campaign in campaigns if campaign.status != "draft"]
    times_by_id = await load_answer_times_by_campaign(connection, launched_ids)
    answered = [campaign for campaign in campaigns if campaign.id in times_by_id and times_by_id[campaign.id].last_at]
    running_ids = [
        campaign.id for campaign in answered if campaign.status == "running" and times_by_id[campaign.id].first_at
    ]
    minutes_by_id = await load_hit_count_by_minute_by_campaign(connection, running_ids, now)
    criteria = [criterion for campaign in answered if campaign.design.is_ordered for criterion in campaign.criteria]
    half_widths = await precision_replay.load_typical_half_widths(
        connection, criteria, may_read_new_answers=lambda: time.monotonic() < deadline
    )
    half_widths_by_id: dict[int, list[float | None]] = {}
    for criterion, half_width in zip(criteria, half_widths, strict=True):
        half_widths_by_id.setdefault(criterion.campaign.id, []).append(half_width)
    return {campaign.id: CampaignPace() for campaign in campaigns} | {
        campaign.id: CampaignPace(
            times_by_id[campaign.id].last_at,
            rate_text_or_empty(times_by_id[campaign.id].first_at, minutes_by_id.get(campaign.id, {}), now),
            *interval_and_goal_texts(precision_replay, campaign, half_widths_by_id.get(campaign.id, [])),
        )
        for campaign in answered
    }


def rate_text_or_empty(first_answer_at: datetime | None, hits_by_minute: Mapping[int, int], now: datetime) -> str:
    """Return the recent tasks per hour of a running campaign; empty if there is none, or no answer for some time."""
    if first_answer_at is None or not hits_by_minute:
        return ""
    recent = pace.recent_hit_count_and_hits_per_hour_or_none(
        hits_by_minute, min(first_answer_at, now).timestamp(), now.timestamp()
    )
    quiet = pace.text_on_time_without_answers_or_none(hits_by_minute, minutes_since_epoch(now))
    return f"{recent[1]:,.0f} tasks/h" if recent and not quiet else ""


def interval_and_goal_texts(
    precision_replay: PrecisionReplay, campaign: Campaign, half_widths: Sequence[float | None]
) -> tuple[str, str]:
    """Return the typical interval by the criterion known least, and the progress towards the goal.

    Args:
        precision_replay: Replay that has read the campaign's answers.
        campaign: The campaign.
        half_widths: Typical interval by each criterion, None while answers are being read; empty if the design has no
            intervals.

    """
    if not half_widths:
        return "", ""
    known_half_widths = [half_width for half_width in half_widths if half_width is not None]
    if len(known_half_widths) < len(half_widths):
        return "loading", ""
    interval = campaign.design.unit.half_width_text_or_empty(max(known_half_widths))
    return "" if interval == UNKNOWN_SPREAD else interval, goal_progress_text_or_empty(precision_replay, campaign)


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
