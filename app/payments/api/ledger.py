"""API of payments: the ledger, new bonuses, and decisions about payments."""

import secrets
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from app.accounts.guards import program_router
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.designs.field_flags import RequestBody
from app.http.dependencies import Database, Now, RowId, Transaction, openapi_description_of_refusals
from app.payments import ledger
from app.payments.bonus_list import MAX_BONUSES_PER_LIST, BonusLine, valid_bonus_line_or_refuse
from app.payments.connections import (
    ConnectionSettings,
    check_and_store_payment_settings_or_refuse,
    has_token,
    load_account_or_refuse,
)
from app.payments.dependencies import REFUSE_ON_CLUSTER, Connector
from app.payments.money import MAX_AMOUNT
from app.payments.payment_decision import DecisionOnPayment
from app.payments.send_request import ShownPayments, request_sending_of_prepared_payments_or_refuse
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router(
    "/api/v1/campaigns/{slug}/payments", "Payments", REFUSE_ON_CLUSTER, refusals={404: "`campaign_not_found`"}
)

Hundredths = Annotated[int, Field(strict=True, gt=0, le=MAX_AMOUNT, description="In hundredths of the currency.")]


class PaymentSchema(BaseModel):
    """A payment to an annotator."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str = Field(description="The annotator, as A7.")
    kind: Literal["bonus", "reward"]
    submission: str
    amount: Hundredths
    currency: str
    reason: str
    state: Literal["prepared", "sending", "sent", "failed", "unknown", "cancelled"]
    problem: str
    created_at: datetime
    sending_at: datetime | None
    settled_at: datetime | None
    looked_at: datetime | None = Field(description="When the platform was last asked about an unclear payment.")
    amounts_seen: list[int] | None = Field(description="All bonuses of the submission at that time, in hundredths.")


class LedgerSchema(BaseModel):
    """A campaign's payments. Money is in hundredths of the currency."""

    currency: str
    budget: int
    left: int = Field(description="What is left of the budget: without prepared, sent and unclear payments.")
    budget_covers_rewards: bool = Field(
        description="Whether rewards count against the budget, too. False until a budget that was set before rewards "
        "were counted is set again."
    )
    amounts: dict[str, int] = Field(description="Money for bonuses and rewards, by state.")
    rewards: dict[str, int] = Field(description="Money for rewards alone, by state.")
    is_connected: bool = Field(description="Whether Easel has a token to send payments with.")
    problem: str = Field(description="Problem of the last try to reach the platform; empty if there is none.")
    payments: list[PaymentSchema] = Field(description="Unclear payments first.")

    @classmethod
    async def load_ledger_schema(cls, connection: Transaction, campaign: Campaign) -> Self:
        account = await load_account_or_refuse(connection, campaign)
        totals = await ledger.load_ledger_totals(connection, campaign.id, account)
        rows = await ledger.list_payments(connection, campaign.id, limit=None)
        return cls(
            currency=account.currency,
            budget=account.budget,
            left=totals.left,
            budget_covers_rewards=account.budget_covers_rewards,
            amounts=totals.amounts,
            rewards=totals.rewards,
            is_connected=has_token(account),
            problem=account.problem,
            payments=[PaymentSchema.model_validate(row) for row in rows],
        )


class ConnectionSchema(RequestBody):
    """How a campaign pays. What is left out is empty, but a token stays."""

    budget: Hundredths
    token: str = Field("", max_length=500, description="Token of the platform’s service. It is never shown again.")
    token_variable: str = Field("", max_length=200, description="Environment variable of the server with the token.")
    workspace: str = Field("", max_length=100, description="Id of the workspace that pays. A token needs it.")


class NewBonus(RequestBody):
    id: str = Field(max_length=200, description="A7, a pseudonym, or the platform’s id of the person or submission.")
    amount: Hundredths
    reason: str = ""


class NewBonuses(RequestBody):
    bonuses: list[NewBonus] = Field(min_length=1, max_length=MAX_BONUSES_PER_LIST)
    key: str = Field(
        "",
        max_length=100,
        description="A repeated request with the same key adds nothing; with other bonuses it is refused.",
    )


class AddedBonuses(BaseModel):
    added: int = Field(description="0 if a request with this key was stored before.")


class DecisionSchema(RequestBody):
    decision: DecisionOnPayment = Field(
        description="sent: an unclear payment was made. again: send an unclear or failed one again. cancel: drop it."
    )


@router.get("", responses=openapi_description_of_refusals({409: "`no_budget`"}))
async def get_payments(connection: Transaction, slug: str) -> LedgerSchema:
    """Return a campaign's payments and what is left of its budget. They have ids of people, so this is logged."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    ledger_of_campaign = await LedgerSchema.load_ledger_schema(connection, campaign)
    await log_change(connection, "people.downloaded", campaign, about="payments")
    return ledger_of_campaign


@router.post(
    "/connection",
    responses=openapi_description_of_refusals(
        {
            409: "`currency_fixed`, `connection_changed`",
            422: "`invalid`, `token_unreadable`, `token_twice`, `token_variable_unknown`, `token_refused`, "
            "`service_id_unreadable`, `workspace_missing`, `currency_differs`, `currency_unknown`",
            502: "`service_unavailable`",
        }
    ),
)
async def set_budget_and_payment_platform(
    database: Database, connector: Connector, slug: str, body: ConnectionSchema, now: Now
) -> LedgerSchema:
    """Set the budget of a campaign and, if it is given, the token with which Easel sends its payments."""
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await check_and_store_payment_settings_or_refuse(
        database, connector, campaign, ConnectionSettings(**body.model_dump()), now=now
    )
    async with database.begin() as connection:
        return await LedgerSchema.load_ledger_schema(connection, campaign)


@router.post(
    "",
    responses=openapi_description_of_refusals(
        {
            409: "`no_budget`, `over_budget`, `request_key_used`",
            422: "`invalid`, `recipient_unreadable`, `payment_reason_long`, `recipient_unknown`, "
            "`recipient_ambiguous`, `recipient_elsewhere`, `recipient_erased`",
        }
    ),
)
async def post_new_bonuses(connection: Transaction, slug: str, body: NewBonuses, now: Now) -> AddedBonuses:
    """Prepare bonuses, all or none."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    lines = [
        valid_bonus_line_or_refuse(BonusLine(bonus.id, bonus.amount, bonus.reason), number)
        for number, bonus in enumerate(body.bonuses, 1)
    ]
    key = body.key or secrets.token_hex(16)
    return AddedBonuses(
        added=await ledger.add_prepared_bonuses_and_count_new(connection, campaign, lines, request_key=key, now=now)
    )


class SendSchema(RequestBody):
    """The bonuses that are meant, as `GET` showed those with the state `prepared`."""

    through: int = Field(strict=True, description="Highest id of a prepared bonus.")
    amount: int = Field(strict=True, description="Total of the prepared bonuses, in hundredths.")


@router.post(
    "/send",
    status_code=202,
    responses=openapi_description_of_refusals({409: "`no_budget`, `no_token`, `payments_changed`"}),
)
async def send_payments(connection: Transaction, slug: str, now: Now, body: SendSchema | None = None) -> LedgerSchema:
    """Let Easel send all prepared bonuses, or none if they are not those of the body. The reply comes before they are
    sent.
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    shown = None if body is None else ShownPayments(body.through, body.amount)
    await request_sending_of_prepared_payments_or_refuse(connection, campaign, shown_payments=shown, now=now)
    return await LedgerSchema.load_ledger_schema(connection, campaign)


@router.post("/retry", responses=openapi_description_of_refusals({409: "`no_budget`, `over_budget`, `nothing_to_pay`"}))
async def retry_payments(connection: Transaction, slug: str, now: Now) -> LedgerSchema:
    """Prepare all failed bonuses again; those whose sending had been requested are sent at once."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await ledger.retry_failed_payments_and_count_them(connection, campaign, now=now)
    return await LedgerSchema.load_ledger_schema(connection, campaign)


@router.post(
    "/{payment}/decision",
    responses=openapi_description_of_refusals(
        {
            404: "`campaign_not_found`, `payment_not_found`",
            409: "`payment_decided`, `payment_is_reward`, `too_early`, `over_budget`, `recipient_erased`",
        }
    ),
)
async def decide_on_payment_from_api(
    connection: Transaction, slug: str, payment: RowId, body: DecisionSchema, now: Now
) -> LedgerSchema:
    """Decide about an unclear payment, or send a failed one again."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await ledger.store_decision_on_payment_or_refuse(connection, campaign, payment, body.decision, now=now)
    return await LedgerSchema.load_ledger_schema(connection, campaign)
