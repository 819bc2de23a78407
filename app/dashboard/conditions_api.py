"""API: annotators by list and order of conditions, and judgments by condition."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.annotation.hits.condition_counts import load_square_counts_or_none
from app.errors import Conflict
from app.http.dependencies import Now, Transaction, openapi_description_of_refusals
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router("/api/v1/campaigns/{slug}", "Campaigns")


class ConditionSchema(BaseModel):
    condition: str
    items: int
    judgments: int = Field(description="Judgments of its items that count.")


class ConditionListSchema(BaseModel):
    number: int = Field(description="Number of the list, from 1.")
    at_work_or_done: int
    left_early: int = Field(description="People who left; the next ones get their lists first.")


class BlockOrderSchema(BaseModel):
    conditions: Sequence[str]
    at_work_or_done: int
    left_early: int = Field(description="People who left; the next ones get their orders first.")


class SquareSchema(BaseModel):
    """The conditions of a campaign, and how many people have each list and order. Excluded people do not count."""

    conditions: list[ConditionSchema]
    lists: list[ConditionListSchema] = Field(description="Empty without a column of contents.")
    orders: list[BlockOrderSchema] = Field(description="Orders of blocks; empty without blocks.")


@router.get(
    "/conditions", responses=openapi_description_of_refusals({404: "`campaign_not_found`", 409: "`no_conditions`"})
)
async def show_square_counts(connection: Transaction, slug: str, now: Now) -> SquareSchema:
    """Return how many people have each list and order of conditions, and how many judgments each condition has."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    counts = await load_square_counts_or_none(connection, campaign, now=now)
    if counts is None:
        raise Conflict(f"The items of “{campaign.name}” have no conditions.", code="no_conditions")
    return SquareSchema.model_validate(counts, from_attributes=True)
