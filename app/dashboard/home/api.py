"""API: archive, restore, tag or delete several campaigns at once."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, Field, StringConstraints

from app.accounts.guards import CurrentAccess, program_router
from app.campaigns.tags import Tag
from app.dashboard.home.chosen_campaigns import (
    MAX_CHOSEN_CAMPAIGNS,
    ChosenAction,
    ChosenChange,
    change_chosen_campaigns,
)
from app.designs.field_flags import OneLine, RequestBody
from app.http.dependencies import Database, Now, openapi_description_of_refusals
from app.simulation.rehearsals import RehearsalCrowds

router = program_router("/api/v1/campaigns", "Campaigns")

Slug = Annotated[str, StringConstraints(min_length=1, max_length=200), OneLine]


class ChosenCampaigns(RequestBody):
    """An action on several campaigns."""

    action: ChosenAction = Field(description="`delete` is for campaigns without answers, and for rehearsals.")
    slugs: list[Slug] = Field(min_length=1, max_length=MAX_CHOSEN_CAMPAIGNS, description="The campaigns to change.")
    tags: list[Tag] = Field(default=[], description="The tags to add or to remove; otherwise not read.")


class NotChangedCampaign(BaseModel):
    """A campaign that was not changed, and why."""

    slug: str
    code: str = Field(description="The code with which the action on this campaign alone would be refused.")
    message: str
    details: Mapping[str, Any]


class ChosenCampaignsOutcome(BaseModel):
    """The campaigns that were changed, and the others with their reasons."""

    changed: list[str] = Field(description="Slugs of the changed campaigns.")
    refused: list[NotChangedCampaign]


@router.post("/chosen", responses=openapi_description_of_refusals({422: "`invalid`, `tags_invalid`"}))
async def change_several_campaigns(
    request: Request, database: Database, access: CurrentAccess, now: Now, chosen: ChosenCampaigns
) -> ChosenCampaignsOutcome:
    """Archive, restore, tag or delete several campaigns, each as your role there allows.

    A campaign that is refused keeps no other from being changed; the outcome lists it with its reason.
    """
    change = ChosenChange.from_input_or_refuse(chosen.action, chosen.tags)
    crowds: RehearsalCrowds = request.app.state.rehearsals
    outcome = await change_chosen_campaigns(database, crowds, access, chosen.slugs, change, now=now)
    return ChosenCampaignsOutcome(
        changed=[campaign.slug for campaign in outcome.changed],
        refused=[
            NotChangedCampaign(
                slug=campaign.slug,
                code=campaign.refusal.code,
                message=campaign.refusal.message,
                details=campaign.refusal.details,
            )
            for campaign in outcome.refused
        ],
    )
