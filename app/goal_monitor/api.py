"""API: progress of a campaign towards its goal."""

from dataclasses import asdict

from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.analysis.dependencies import ProcessFits
from app.goal_monitor.goal_report import load_goal_report_or_refuse
from app.http.dependencies import Database, openapi_description_of_refusals

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


@router.get(
    "/goal", responses=openapi_description_of_refusals({404: "`campaign_not_found`", 409: "`no_goal`, `not_launched`"})
)
async def show_goal(database: Database, fits: ProcessFits, slug: str) -> GoalProgress:
    """Return the campaign's progress towards its goal, from the newest answers."""
    return GoalProgress(**asdict(await load_goal_report_or_refuse(database, fits, slug)))
