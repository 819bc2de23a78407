"""API of a campaign's study on its platform."""

from typing import Literal, Self

from fastapi import Request
from pydantic import BaseModel, Field

from app.accounts.guards import program_router
from app.http.dependencies import Database, Now, openapi_description_of_refusals, request_base_url
from app.payments.dependencies import Connector
from app.recruiting.studies import StudyView, act_on_study, draft_study, study_total, view_study

router = program_router("/api/v1/campaigns/{slug}/study", "Payments", refusals={404: "`campaign_not_found`"})

CALL_REFUSALS = "`no_budget`, `no_token`, `study_settings_missing`, `service_refused`"


class StudySchema(BaseModel):
    """A campaign's study. Money is in hundredths of the currency."""

    study: str = Field(description="The platform’s id; empty before a draft is made.")
    status: str | None = Field(description="As the platform says it; null before a draft is made.")
    reward: int = Field(description="Of one person.")
    places: int
    most_places: int | None = Field(description="At the upper end of the plan; null without a plan or an end.")
    minutes: int
    total: int = Field(description="Rewards of all places, without fees.")
    currency: str
    hourly_pay: int
    warnings: list[str]
    proposed_places: int | None = Field(description="More places that the campaign needs; null if there are enough.")

    @classmethod
    def from_view(cls, view: StudyView) -> Self:
        state, plan = view.state, view.plan
        return cls(
            study=view.study,
            status=state.status if state else None,
            reward=state.reward if state else plan.reward,
            places=state.places if state else plan.places,
            most_places=plan.most_places,
            minutes=plan.minutes,
            total=study_total(state) if state else plan.total,
            currency=plan.currency,
            hourly_pay=plan.hourly_pay,
            warnings=view.warnings,
            proposed_places=view.proposed_places,
        )


class StudyActionSchema(BaseModel):
    action: Literal["publish", "pause", "resume", "places"]
    total: str = Field("", max_length=20, description="To publish: the total of all rewards, such as `120.00`.")
    places: str = Field("", max_length=10, description="The new number of places.")


@router.get("", responses=openapi_description_of_refusals({409: CALL_REFUSALS, 502: "`service_unavailable`"}))
async def get_study(request: Request, database: Database, connector: Connector, slug: str) -> StudySchema:
    """Return what a study of this campaign costs and, once it is drafted, its state on the platform."""
    return StudySchema.from_view(await view_study(database, connector, slug, request_base_url(request)))


@router.post(
    "/draft",
    status_code=201,
    responses=openapi_description_of_refusals(
        {409: f"{CALL_REFUSALS}, `study_exists`, `study_of_rehearsal`", 502: "`service_unavailable`"}
    ),
)
async def draft_study_from_api(
    request: Request, database: Database, connector: Connector, slug: str, now: Now
) -> StudySchema:
    """Make an unpublished study on the platform from this campaign."""
    base_url = request_base_url(request)
    await draft_study(database, connector, slug, base_url, now=now)
    return StudySchema.from_view(await view_study(database, connector, slug, base_url))


@router.post(
    "",
    responses=openapi_description_of_refusals(
        {
            409: f"{CALL_REFUSALS}, `study_missing`, `not_running`, `total_differs`",
            422: "`invalid`, `places_unreadable`",
            502: "`service_unavailable`",
        }
    ),
)
async def change_study_from_api(
    request: Request, database: Database, connector: Connector, slug: str, body: StudyActionSchema
) -> StudySchema:
    """Publish, pause or resume the study, or give it more places."""
    await act_on_study(database, connector, slug, body.action, total=body.total, places=body.places)
    return StudySchema.from_view(await view_study(database, connector, slug, request_base_url(request)))
