"""API: progress of a campaign towards its goal."""

from typing import Self

from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.analysis.dependencies import ProcessFits
from app.errors import Conflict
from app.goal_monitor.monitor import load_goal_progress_or_none
from app.goals.progress import Progress
from app.goals.settings import RELEASE_ITEMS
from app.http.dependencies import Database, openapi_description_of_refusals
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router("/api/v1/campaigns/{slug}", "Results")


class GoalProgress(BaseModel):
    """A goal and the progress towards it."""

    goal: str = Field(description="In words.")
    now: float = Field(description="A probability, a share of items or a correlation, depending on the goal; 0 to 1.")
    wanted: float = Field(description="The value to reach.")
    reached: bool = Field(
        description="Whether it is reached now. A campaign that stopped by itself may have reached it earlier."
    )
    measured_by: str = Field(
        description="The update law whose scores and errors measure the goal; `means` for the "
        "means of all answers that count."
    )
    settled: int | None = Field(
        description=(
            "Number of settled items, if items are released one by one: annotators will soon no longer get them."
        )
    )

    @classmethod
    def from_progress(cls, progress: Progress, *, releases_items: bool) -> Self:
        settled_count = len(progress.settled_items) if releases_items else None
        return cls(
            goal=progress.goal_text,
            now=progress.value,
            wanted=progress.target,
            reached=progress.is_reached,
            measured_by=progress.measured_by,
            settled=settled_count,
        )


@router.get(
    "/goal", responses=openapi_description_of_refusals({404: "`campaign_not_found`", 409: "`no_goal`, `not_launched`"})
)
async def show_goal(database: Database, fits: ProcessFits, slug: str) -> GoalProgress:
    """Return the campaign's progress towards its goal, from the newest answers."""
    async with fits.open_answers_snapshot(database) as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if campaign.status == "draft":
            raise Conflict(f"“{campaign.name}” is a draft: no one has answered yet.", code="not_launched")
        judgments_read = await fits.load_and_cache_calibrated_evidence(connection, campaign.goal_criterion)
        progress = await load_goal_progress_or_none(
            connection, campaign, await judgments_read.estimate_goal_in_thread(campaign)
        )
    if progress is None:
        raise Conflict(f"“{campaign.name}” has no goal.", code="no_goal")
    return GoalProgress.from_progress(progress, releases_items=campaign.when_reached == RELEASE_ITEMS)
