"""Progress of a campaign towards its goal, as programs and `easel campaign goal` show it."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.fit_cache import FitCache
from app.errors import Conflict
from app.goal_monitor.monitor import load_goal_progress_or_none
from app.goals.settings import RELEASE_ITEMS
from app.record.campaign import load_campaign_by_slug_or_refuse


@dataclass(frozen=True, slots=True)
class GoalReport:
    """A goal and the progress towards it; `settled` is None unless items are released one by one."""

    goal: str
    now: float
    wanted: float
    reached: bool
    measured_by: str
    settled: int | None


async def load_goal_report_or_refuse(engine: AsyncEngine, fits: FitCache, slug: str) -> GoalReport:
    """Return the campaign's progress towards its goal, from the newest answers.

    Raises:
        NotFound: `campaign_not_found`.
        Conflict: `not_launched`, `no_goal`.

    """
    async with fits.open_answers_snapshot(engine) as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if campaign.status == "draft":
            raise Conflict(f"“{campaign.name}” is a draft: no one has answered yet.", code="not_launched")
        judgments_read = await fits.load_and_cache_calibrated_evidence(connection, campaign.goal_criterion)
        progress = await load_goal_progress_or_none(
            connection, campaign, await judgments_read.estimate_goal_in_thread(campaign)
        )
    if progress is None:
        raise Conflict(f"“{campaign.name}” has no goal.", code="no_goal")
    return GoalReport(
        goal=progress.goal_text,
        now=progress.value,
        wanted=progress.target,
        reached=progress.is_reached,
        measured_by=progress.measured_by,
        settled=len(progress.settled_items) if campaign.when_reached == RELEASE_ITEMS else None,
    )
