"""API: calls to the platform's server."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.accounts.guards import program_router
from app.designs.field_flags import RequestBody
from app.http.dependencies import RowId, Transaction, openapi_description_of_refusals
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.server_calls.call_decision import CallDecision, RepeatedState
from app.server_calls.ledger import (
    count_people_to_call_for,
    list_server_calls,
    repeat_server_calls_and_count_them,
    store_and_count_calls_for_earlier_completions,
    store_decision_on_server_call_or_refuse,
)

router = program_router(
    "/api/v1/campaigns/{slug}/calls", "Calls to the platform", refusals={404: "`campaign_not_found`"}
)


class ServerCallSchema(BaseModel):
    """A call that tells the annotator's platform how their visit ended, without the address and the ids in it."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    annotator: str = Field(description="The annotator, as A7.")
    outcome: Literal["completed", "failed_checks", "screened_out", "quota_full", "nothing_left"]
    state: Literal["prepared", "sending", "sent", "failed", "unknown", "cancelled"]
    tries: int
    problem: str = Field(description="Why the last try was not accepted; empty if it was.")
    created_at: datetime
    due_at: datetime | None = Field(description="Time of the next try; null: at once, or never.")
    sending_at: datetime | None
    settled_at: datetime | None
    decided_by: str | None


class ServerCallDecision(RequestBody):
    decision: CallDecision = Field(
        description="sent: the platform counted the call. again: make it once more. cancel: drop it."
    )


class RepetitionOfServerCalls(RequestBody):
    state: RepeatedState = Field(description="failed: what the platform refused. unknown: what it may have counted.")


class RepeatedServerCalls(BaseModel):
    repeated: int


class EarlierPeopleSchema(BaseModel):
    people: int = Field(description="People who completed before the campaign had an address, and have no call.")


class PreparedServerCalls(BaseModel):
    prepared: int


@router.get("")
async def get_server_calls(connection: Transaction, slug: str) -> list[ServerCallSchema]:
    """Return all calls of a campaign, unclear and failed ones first."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    rows = await list_server_calls(connection, campaign.id, limit=None)
    return [ServerCallSchema.model_validate(row) for row in rows]


@router.post("/repeat", responses=openapi_description_of_refusals({422: "`invalid`"}))
async def repeat_server_calls(connection: Transaction, slug: str, body: RepetitionOfServerCalls) -> RepeatedServerCalls:
    """Let all failed or all unclear calls be made again."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return RepeatedServerCalls(repeated=await repeat_server_calls_and_count_them(connection, campaign, body.state))


@router.get("/earlier")
async def count_people_without_server_call(connection: Transaction, slug: str) -> EarlierPeopleSchema:
    """Return for how many people `POST` would prepare a call."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return EarlierPeopleSchema(people=await count_people_to_call_for(connection, campaign))


@router.post("/earlier", responses=openapi_description_of_refusals({409: "`no_call_address`"}))
async def prepare_server_calls_for_earlier_completions(connection: Transaction, slug: str) -> PreparedServerCalls:
    """Make a call for each person who completed before the campaign had an address to call."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return PreparedServerCalls(prepared=await store_and_count_calls_for_earlier_completions(connection, campaign))


@router.post(
    "/{call}/decision",
    status_code=204,
    responses=openapi_description_of_refusals(
        {404: "`campaign_not_found`, `call_not_found`", 409: "`call_decided`", 422: "`invalid`"}
    ),
)
async def decide_on_server_call_from_api(
    connection: Transaction, slug: str, call: RowId, body: ServerCallDecision
) -> None:
    """Decide about an unclear or failed call, or make it again."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await store_decision_on_server_call_or_refuse(connection, campaign, call, body.decision)
