"""API of submissions: the platform's and ours, how they are read, and decisions about them."""

from datetime import datetime

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from app.accounts.guards import CurrentAccess, program_router
from app.annotation.platforms.service import SubmissionStatus
from app.database.audit_log import log_change
from app.designs.field_flags import RequestBody
from app.http.dependencies import (
    Database,
    Now,
    Transaction,
    get_now,
    openapi_description_of_refusals,
    request_base_url,
)
from app.payments import review
from app.payments.decisions import ReviewDecision, SubmissionDecision, carry_out_submission_decision_or_refuse
from app.payments.dependencies import REFUSE_ON_CLUSTER, Connector
from app.payments.notice_subscription import (
    end_notices_or_refuse,
    list_workspace_subscriptions_and_own_id,
    subscribe_to_notices_or_refuse,
)
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router(
    "/api/v1/campaigns/{slug}/submissions", "Payments", REFUSE_ON_CLUSTER, refusals={404: "`campaign_not_found`"}
)


class SubmissionSchema(BaseModel):
    """A submission as the platform has it, and what Easel has of it."""

    model_config = ConfigDict(from_attributes=True)

    external_id: str = Field(description="The platform’s id of the submission.")
    name: str | None = Field(description="The annotator, as A7; null if no such person came.")
    study: str
    status: SubmissionStatus
    seen_at: datetime
    completed_at: datetime | None = Field(description="When the visit was completed here.")
    answers: int = Field(description="Answered HITs of the submission.")
    finding: str = Field(description=f"One of {', '.join(review.FINDING_SENTENCES)}.")
    problem: str = Field(description="Why the platform refused to approve it.")
    reward: int | None = Field(description="What its approval pays or paid, in hundredths; null if it is not known.")
    return_requested_at: datetime | None = Field(description="When the person was asked here to return it.")


class ReviewSettingsSchema(RequestBody):
    study: str | None = Field(
        None,
        max_length=2200,
        description="Ids of the studies that are read, with blanks between them. No other is read or approved. "
        "If this is left out, the studies do not change.",
    )
    approves: bool = Field(default=False, description="Whether submissions whose answers are all here are approved.")
    hook_secret: str = Field(
        "",
        max_length=review.MAX_HOOK_SECRET_CHARACTERS,
        description="Secret of the service’s notices. If it is empty, the stored secret does not change.",
    )
    forgets_waiting: bool = Field(
        default=False,
        description="Whether submissions that wait for a decision may be forgotten with the study that is taken out.",
    )


class SubmissionDecisionSchema(RequestBody):
    submission: str = Field(max_length=200)
    decision: ReviewDecision
    category: str = Field("", max_length=100, description="Reason of a rejection, as the platform names it.")
    message: str = Field(
        "",
        max_length=5000,
        description="Message to the annotator: at least 100 characters for a rejection, or the reason to return it.",
    )


@router.get("")
async def get_submissions(connection: Transaction, slug: str) -> list[SubmissionSchema]:
    """Return the platform's submissions, those that differ from what is here first. This is logged, for their ids."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await log_change(connection, "people.downloaded", campaign, about="submissions")
    rows = await review.list_submissions(connection, campaign.id, limit=None)
    return [SubmissionSchema.model_validate(row) for row in rows]


@router.post(
    "/settings",
    status_code=204,
    responses=openapi_description_of_refusals(
        {
            409: "`no_budget`, `study_taken`, `submissions_wait`",
            422: "`invalid`, `service_id_unreadable`, `studies_many`",
        }
    ),
)
async def set_review_settings(
    connection: Transaction, connector: Connector, slug: str, body: ReviewSettingsSchema, now: Now
) -> None:
    """Set how submissions are compared."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await review.store_review_settings_or_refuse(connection, connector, campaign, **body.model_dump(), now=now)


@router.post(
    "",
    status_code=204,
    responses=openapi_description_of_refusals(
        {
            404: "`campaign_not_found`, `submission_not_found`",
            409: "`no_budget`, `no_token`, `submission_decided`, `over_budget`, `reward_elsewhere`, `reward_unknown`, "
            "`service_refused`",
            422: "`invalid`, `rejection_category`, `rejection_short`, `return_reason`",
            502: "`service_unavailable`",
        }
    ),
)
async def decide_on_submission_from_api(
    database: Database, connector: Connector, access: CurrentAccess, slug: str, body: SubmissionDecisionSchema
) -> None:
    """Approve or reject a submission at the platform, or ask the person to return it."""
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    decided = SubmissionDecision(**body.model_dump())
    await carry_out_submission_decision_or_refuse(database, connector, campaign, decided, clock=get_now, access=access)


class SubscriptionSchema(BaseModel):
    """A subscription of the workspace to notices about submissions."""

    id: str
    address: str
    is_enabled: bool = Field(description="False if the platform could not deliver notices for days.")
    is_of_campaign: bool


@router.get(
    "/notices",
    responses=openapi_description_of_refusals(
        {409: "`no_budget`, `no_token`, `service_refused`", 502: "`service_unavailable`"}
    ),
)
async def get_subscriptions(database: Database, connector: Connector, slug: str) -> list[SubscriptionSchema]:
    """Return the workspace's subscriptions to notices about submissions."""
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    found, own = await list_workspace_subscriptions_and_own_id(database, connector, campaign)
    return [
        SubscriptionSchema(id=row.id, address=row.address, is_enabled=row.is_enabled, is_of_campaign=row.id == own)
        for row in found
    ]


@router.post(
    "/notices",
    status_code=204,
    responses=openapi_description_of_refusals(
        {
            409: "`no_budget`, `no_token`, `address_not_https`, `subscribed_already`, `service_refused`",
            502: "`service_unavailable`",
        }
    ),
)
async def subscribe_to_notices_from_api(request: Request, database: Database, connector: Connector, slug: str) -> None:
    """Let the platform tell Easel at once when a submission changes."""
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await subscribe_to_notices_or_refuse(database, connector, campaign, request_base_url(request))


@router.delete(
    "/notices",
    status_code=204,
    responses=openapi_description_of_refusals(
        {409: "`no_budget`, `no_token`, `not_subscribed`, `service_refused`", 502: "`service_unavailable`"}
    ),
)
async def end_notices_from_api(database: Database, connector: Connector, slug: str) -> None:
    """Let the platform send no more notices."""
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await end_notices_or_refuse(database, connector, campaign)
