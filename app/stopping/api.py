"""API: how near a campaign is to its goal."""

from typing import Self

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from app.analysis.routes import KeptFits
from app.auth.guards import program
from app.database.campaign import campaign_by_slug
from app.errors import Conflict
from app.goals.progress import Progress
from app.goals.settings import RELEASE
from app.stopping.watch import progress_of
from app.web import Database, refusals

router = APIRouter(
    prefix="/api/v1/campaigns/{slug}",
    tags=["Results"],
    dependencies=[Depends(program)],
    responses=refusals({401: "`token_missing`, `token_invalid`", 422: "`invalid`"}),
)


class GoalProgress(BaseModel):
    """What is to be reached, and how near it is."""

    goal: str = Field(description="In words.")
    now: float = Field(description="A chance, a share of items or a correlation, as the goal has it; 0 to 1.")
    wanted: float = Field(description="What it is to be.")
    reached: bool = Field(description="Now. A campaign that stopped by itself may have had it once.")
    measured_by: str = Field(
        description="The update law whose scores and errors it is measured by; `means` are those of all answers that "
        "count."
    )
    settled: int | None = Field(
        description="How many items are settled, where they are released one by one: soon nobody is asked about them."
    )

    @classmethod
    def of(cls, found: Progress, *, releases: bool) -> Self:
        """As it was measured."""
        settled = len(found.settled) if releases else None
        return cls(
            goal=found.goal,
            now=found.now,
            wanted=found.wanted,
            reached=found.reached,
            measured_by=found.by,
            settled=settled,
        )


@router.get("/goal", responses=refusals({404: "`campaign_not_found`", 409: "`no_goal`, `not_launched`"}))
async def show_goal(database: Database, fits: KeptFits, slug: str) -> GoalProgress:
    """How near the campaign is to its goal, by the newest answers."""
    async with fits.reading(database) as connection:
        campaign = await campaign_by_slug(connection, slug)
        if campaign.status == "draft":
            raise Conflict(f"“{campaign.name}” is a draft: nobody has answered yet.", code="not_launched")
        counted = await fits.counted(connection, campaign)
        found = await progress_of(connection, campaign, await counted.measured(campaign))
    if found is None:
        raise Conflict(f"“{campaign.name}” has no goal.", code="no_goal")
    return GoalProgress.of(found, releases=campaign.when_reached == RELEASE)
