"""Background work on money: one campaign at a time sends payments and reads the platform's service.

A process takes a due campaign by setting the time of its next turn, so several processes share the work.
"""

import logging
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.service import CallRefused, ServiceFailure
from app.payments.connections import ServiceConnector, service_of_account
from app.payments.reading_back import read_back_unclear_payments
from app.payments.reconciliation import reconcile_submissions
from app.payments.sending import Clock, SendingContext, send_prepared_payments, settle_interrupted_payments

log = logging.getLogger(__name__)

PAYMENT_WORK_PAUSE_SECONDS = 5.0
TIME_BETWEEN_TURNS = timedelta(minutes=10)

TAKE_DUE_ACCOUNT = text("""
    UPDATE payment_accounts SET due_at = :next WHERE campaign_id = (
        SELECT campaign_id FROM payment_accounts
        WHERE due_at <= :now AND (token IS NOT NULL OR token_variable IS NOT NULL)
        ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING *
""")
NOTE_TURN = text("UPDATE payment_accounts SET checked_at = :now, problem = :problem WHERE campaign_id = :campaign")


class PaymentWork:
    """Works on all campaigns that are due; call `work_on_due_campaigns` repeatedly."""

    def __init__(self, database: AsyncEngine, connector: ServiceConnector, clock: Clock) -> None:
        self.database = database
        self.connector = connector
        self.clock = clock

    async def work_on_due_campaigns(self) -> None:
        """Work on each campaign that is due now, one after the other."""
        while account := await self.take_due_account():
            await self.work_on_account(account)

    async def take_due_account(self) -> Row[Any] | None:
        now = await self.clock()
        async with self.database.begin() as connection:
            parameters = {"now": now, "next": now + TIME_BETWEEN_TURNS}
            return (await connection.execute(TAKE_DUE_ACCOUNT, parameters)).one_or_none()

    async def work_on_account(self, account: Row[Any]) -> None:
        """Work on one campaign, and store the problem if the service fails."""
        problem = ""
        try:
            await self.take_turn(account)
        except ServiceFailure as failure:
            problem = failure.message
            if not isinstance(failure, CallRefused):
                log.warning("payments of campaign %d: the service failed: %s", account.campaign_id, problem)
        async with self.database.begin() as connection:
            parameters = {"campaign": account.campaign_id, "now": await self.clock(), "problem": problem}
            await connection.execute(NOTE_TURN, parameters)

    async def take_turn(self, account: Row[Any]) -> None:
        """Settle what an ended process left, read back unclear payments, send those that are to be sent, and reconcile
        submissions, even if payments could not be sent. Raises `ServiceFailure`.
        """
        await settle_interrupted_payments(self.database, account.campaign_id, now=await self.clock())
        service = self.connector.connect_account(account)
        platform = service_of_account(account)
        failed_sending: ServiceFailure | None = None
        try:
            await read_back_unclear_payments(self.database, service, self.clock, account.campaign_id)
            await send_prepared_payments(
                SendingContext(
                    database=self.database,
                    service=service,
                    clock=self.clock,
                    campaign_id=account.campaign_id,
                    workspace=f"{account.platform} {account.workspace or f'campaign {account.campaign_id}'}",
                    through=account.send_through,
                    max_bonuses=platform.max_bonuses_per_call,
                )
            )
        except ServiceFailure as failure:
            failed_sending = failure
        await reconcile_submissions(self.database, service, platform, account, self.clock)
        if failed_sending is not None:
            raise failed_sending
