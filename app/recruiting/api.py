"""API of a campaign's study on its platform."""

from typing import Literal, Self

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from app.accounts.guards import program_router
from app.designs.field_flags import RequestBody
from app.http.dependencies import Database, Now, openapi_description_of_refusals, request_base_url
from app.payments.dependencies import Connector
from app.recruiting.studies import (
    StudyView,
    change_study_state_or_places_or_refuse,
    draft_study_and_return_id_or_refuse,
    load_study_view_or_refuse,
    total_rewards_of_study,
)
from app.recruiting.study_trial import create_test_study_of_campaign_or_refuse

router = program_router("/api/v1/campaigns/{slug}/study", "Payments", refusals={404: "`campaign_not_found`"})

CALL_REFUSALS = "`no_budget`, `no_token`, `study_settings_missing`, `service_refused`"


class StudyCostSchema(BaseModel):
    """Cost of all places of a study, in hundredths."""

    model_config = ConfigDict(from_attributes=True)

    rewards: int
    fees: int
    tax: int
    total: int
    currency: str


class StudySchema(BaseModel):
    """A campaign's study. Money is in hundredths of the currency."""

    study: str = Field(description="The platform’s id; empty before a draft is made.")
    status: str | None = Field(description="As the platform says it; null before a draft is made.")
    reward: int = Field(description="Reward of one person.")
    places: int
    most_places: int | None = Field(description="At the upper end of the plan; null without a plan or an end.")
    minutes: int
    total: int = Field(description="Rewards of all places, without fees.")
    cost: StudyCostSchema | None = Field(
        description="What the platform computes for all places; null before a draft is made, or if it does not say."
    )
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
            total=total_rewards_of_study(state) if state else plan.total,
            cost=StudyCostSchema.model_validate(view.cost) if view.cost else None,
            currency=plan.currency,
            hourly_pay=plan.hourly_pay,
            warnings=view.warnings,
            proposed_places=view.proposed_places,
        )


class StudyActionSchema(RequestBody):
    action: Literal["publish", "pause", "resume", "places"]
    total: str = Field("", max_length=20, description="To publish: the total of all rewards, such as `120.00`.")
    places: str = Field("", max_length=10, description="The new number of places.")


@router.get("", responses=openapi_description_of_refusals({409: CALL_REFUSALS, 502: "`service_unavailable`"}))
async def get_study(request: Request, database: Database, connector: Connector, slug: str) -> StudySchema:
    """Return what a study of this campaign costs and, once it is drafted, its state on the platform."""
    return StudySchema.from_view(await load_study_view_or_refuse(database, connector, slug, request_base_url(request)))


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
    await draft_study_and_return_id_or_refuse(database, connector, slug, base_url, now=now)
    return StudySchema.from_view(await load_study_view_or_refuse(database, connector, slug, base_url))


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
async def change_study_state_or_places_by_program(
    request: Request, database: Database, connector: Connector, slug: str, body: StudyActionSchema
) -> StudySchema:
    """Publish, pause or resume the study, or give it more places."""
    await change_study_state_or_places_or_refuse(
        database, connector, slug, body.action, total=body.total, places=body.places
    )
    return StudySchema.from_view(await load_study_view_or_refuse(database, connector, slug, request_base_url(request)))


class TestParticipantSchema(RequestBody):
    __test__ = False  # for pytest, which would collect it
    email: str = Field(
        "", max_length=254, description="E-mail address of a test participant to add first, if there is none yet."
    )


class TestStudySchema(BaseModel):
    """A test study, on which a test participant works without pay."""

    __test__ = False
    study: str
    url: str


@router.post(
    "/test",
    status_code=201,
    responses=openapi_description_of_refusals(
        {
            409: "`no_budget`, `no_token`, `study_missing`, `study_published`, `service_refused`",
            422: "`invalid`, `email_unreadable`",
            502: "`service_unavailable`",
        }
    ),
)
async def create_test_study_from_api(
    database: Database, connector: Connector, slug: str, body: TestParticipantSchema
) -> TestStudySchema:
    """Make a test study of the draft. Not every workspace may."""
    made = await create_test_study_of_campaign_or_refuse(database, connector, slug, email=body.email)
    return TestStudySchema(study=made.study, url=made.url)
