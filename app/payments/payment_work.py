"""Background work on money: one campaign at a time sends payments and reads the platform's service.

A process takes a due campaign by setting the time of its next turn and a deadline until which it holds the campaign, so
several processes share the work. A turn ends before its deadline: long work goes on in the next turn.
"""

import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.service import CallRefused, PlatformService, ServiceFailure
from app.payments.connections import ServiceConnector, platform_service_of_account
from app.payments.notice_subscription import check_subscription_and_store_problem
from app.payments.reading_back import read_back_unclear_payments
from app.payments.reconciliation import (
    forget_strangers_if_identifiers_were_erased,
    is_about_whole_account,
    reconcile_submissions_and_add_problems,
)
from app.payments.sending import Clock, SendingContext, resolve_interrupted_payments, send_prepared_payments

log = logging.getLogger(__name__)

PAYMENT_WORK_PAUSE_SECONDS = 5.0
TIME_BETWEEN_TURNS = timedelta(minutes=10)
MIN_TIME_AFTER_TOO_MANY_CALLS = timedelta(seconds=10)
# Each of a turn's three steps makes no call after its time, and one call takes at most half a minute.
TIME_OF_STEP_SECONDS = 120.0
MAX_TIME_OF_TURN = timedelta(minutes=10)

# A process that was killed holds its campaign until the deadline.
TAKE_DUE_ACCOUNT = text("""
    UPDATE payment_accounts SET due_at = :next, held_until = :held_until WHERE campaign_id = (
        SELECT campaign_id FROM payment_accounts
        WHERE due_at <= :now AND (held_until IS NULL OR held_until <= :now)
        AND (token IS NOT NULL OR token_variable IS NOT NULL)
        ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING *
""")
NOTE_TURN = text("""
    UPDATE payment_accounts SET checked_at = :now, problem = :problem,
        due_at = CASE WHEN due_at IS NOT NULL
            THEN least(due_at, CAST(:now AS timestamptz) + CAST(:goes_on_after AS interval)) END,
        held_until = CASE WHEN held_until <> :held_until THEN held_until END
    WHERE campaign_id = :campaign
""")


@dataclass
class Turn:
    """Outcome of a turn: problems, and when the next turn goes on with the rest; None: at its usual time."""

    problems: list[str] = field(default_factory=list)
    goes_on_after: timedelta | None = None


class PaymentWork:
    """Works on all campaigns that are due; call `pay_and_reconcile_due_campaigns` repeatedly."""

    def __init__(self, database: AsyncEngine, connector: ServiceConnector, clock: Clock) -> None:
        self.database = database
        self.connector = connector
        self.clock = clock
        # Campaigns whose submissions could not be read, such as for too many calls: they come first in the next turn.
        self.reconciles_first: set[int] = set()

    async def pay_and_reconcile_due_campaigns(self) -> None:
        """Work on each campaign that is due now, one after the other."""
        while account := await self.claim_due_account_or_none():
            await self.pay_and_reconcile_account(account)

    async def claim_due_account_or_none(self) -> Row[Any] | None:
        now = await self.clock()
        async with self.database.begin() as connection:
            parameters = {"now": now, "next": now + TIME_BETWEEN_TURNS, "held_until": now + MAX_TIME_OF_TURN}
            return (await connection.execute(TAKE_DUE_ACCOUNT, parameters)).one_or_none()

    async def pay_and_reconcile_account(self, account: Row[Any]) -> None:
        """Work on one campaign, store the problems if the service fails, and let the campaign go."""
        turn = Turn()
        try:
            await self.resolve_send_and_reconcile_payments(account, turn)
        except ServiceFailure as failure:
            turn.problems.append(failure.message)
        async with self.database.begin() as connection:
            parameters = {
                "campaign": account.campaign_id,
                "now": await self.clock(),
                "problem": " ".join(dict.fromkeys(turn.problems)),
                "goes_on_after": turn.goes_on_after,
                "held_until": account.held_until,
            }
            await connection.execute(NOTE_TURN, parameters)

    async def resolve_send_and_reconcile_payments(self, account: Row[Any], turn: Turn) -> None:
        """Settle what an ended process left, read back unclear payments, send those that are to be sent, and reconcile
        submissions. A step that fails, runs out of time or makes too many calls does not hold up the next.

        Raises:
            ServiceFailure: The service cannot be reached, or the token cannot be read or is not accepted.

        """
        await resolve_interrupted_payments(self.database, account.campaign_id, now=await self.clock())
        await forget_strangers_if_identifiers_were_erased(self.database, account.campaign_id)
        service = self.connector.service_with_token_of_account(account)
        steps = [self.read_back_unclear_payments_of_account, self.send, self.reconcile_submissions_of_account]
        if account.campaign_id in self.reconciles_first:
            steps = [self.reconcile_submissions_of_account, self.read_back_unclear_payments_of_account, self.send]
        for step in steps:
            async with service.session(seconds=TIME_OF_STEP_SECONDS) as session:
                try:
                    await step(session, account, turn)
                except ServiceFailure as failure:
                    self.remember_failure_or_raise_if_account_wide(
                        account, failure, turn, is_turn_cut_short=session.is_cut_short
                    )
                if session.is_cut_short:
                    turn.goes_on_after = timedelta(0)

    def remember_failure_or_raise_if_account_wide(
        self, account: Row[Any], failure: ServiceFailure, turn: Turn, *, is_turn_cut_short: bool
    ) -> None:
        if is_turn_cut_short:
            return
        if failure.is_about_rate and failure.retry_after_seconds is not None and turn.goes_on_after is None:
            wait = timedelta(seconds=min(failure.retry_after_seconds, TIME_BETWEEN_TURNS.total_seconds()))
            turn.goes_on_after = max(wait, MIN_TIME_AFTER_TOO_MANY_CALLS)
        if not isinstance(failure, CallRefused):
            log.warning("payments of campaign %d: the service failed: %s", account.campaign_id, failure.message)
        if is_about_whole_account(failure) and not failure.is_about_rate:
            raise failure
        turn.problems.append(failure.message)

    async def read_back_unclear_payments_of_account(
        self, service: PlatformService, account: Row[Any], _turn: Turn
    ) -> None:
        await read_back_unclear_payments(self.database, service, self.clock, account.campaign_id)

    async def send(self, service: PlatformService, account: Row[Any], _turn: Turn) -> None:
        await send_prepared_payments(
            SendingContext(
                database=self.database,
                service=service,
                clock=self.clock,
                campaign_id=account.campaign_id,
                workspace=f"{account.platform} {account.workspace}",
                through=account.send_through,
                max_bonuses=platform_service_of_account(account).max_bonuses_per_call,
            )
        )

    async def reconcile_submissions_of_account(self, service: PlatformService, account: Row[Any], turn: Turn) -> None:
        self.reconciles_first.add(account.campaign_id)
        await reconcile_submissions_and_add_problems(
            self.database,
            service,
            account,
            self.clock,
            turn.problems,
            submission_hash=self.connector.cipher.submission_hash,
        )
        self.reconciles_first.discard(account.campaign_id)
        await check_subscription_and_store_problem(self.database, service, account)
