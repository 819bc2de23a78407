"""A campaign whose annotators came from Prolific, with a budget and a connection to the Prolific of a test."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx
from sqlalchemy.ext.asyncio import AsyncEngine

from app.designs.campaign import Campaign
from app.payments.bonus_list import BonusLine
from app.payments.connections import ConnectionSettings, ServiceConnector, check_and_store_payment_settings_or_refuse
from app.payments.ledger import add_prepared_bonuses_and_count_new
from app.payments.payment_work import PaymentWork
from app.payments.send_request import request_sending_of_prepared_payments_or_refuse
from app.payments.token_encryption import TokenCipher
from app.settings import Settings
from tests.annotation.hits.campaigns import NOW, create_annotator, create_running_campaign, execute_sql, fetch_rows
from tests.payments.fake_prolific import TOKEN, FakeProlific

KEY = "a key of the server for tests, long enough"


@dataclass
class TestClock:
    """A clock that a test moves."""

    now: datetime = NOW
    __test__ = False

    async def __call__(self) -> datetime:
        return self.now

    def advance(self, **time: float) -> None:
        self.now += timedelta(**time)


@dataclass
class Study:
    """A campaign, its work on payments, and Prolific's books."""

    engine: AsyncEngine
    campaign: Campaign
    books: FakeProlific
    connector: ServiceConnector
    clock: TestClock = field(default_factory=TestClock)
    reconciles_first: set[int] = field(default_factory=set)  # which the process remembers

    @property
    def work(self) -> PaymentWork:
        work = PaymentWork(self.engine, self.connector, self.clock)
        work.reconciles_first = self.reconciles_first
        return work

    async def add(self, *bonuses: tuple[str, int], key: str = "list 1", reason: str = "careful") -> int:
        lines = [BonusLine(recipient, amount, reason) for recipient, amount in bonuses]
        async with self.engine.begin() as connection:
            return await add_prepared_bonuses_and_count_new(
                connection, self.campaign, lines, request_key=key, now=self.clock.now
            )

    async def send(self) -> None:
        async with self.engine.begin() as connection:
            await request_sending_of_prepared_payments_or_refuse(connection, self.campaign, now=self.clock.now)
        await self.work.pay_and_reconcile_due_campaigns()

    async def work_again(self, **time: float) -> None:
        """Let the next turn come, after this time."""
        self.clock.advance(**time)
        await execute_sql(self.engine, "UPDATE payment_accounts SET due_at = :now", now=self.clock.now)
        await self.work.pay_and_reconcile_due_campaigns()

    async def states(self) -> list[str]:
        """Of bonuses."""
        sql = "SELECT state FROM payments WHERE kind = 'bonus' ORDER BY id"
        return [state for (state,) in await fetch_rows(self.engine, sql)]

    async def rewards(self) -> list[tuple[str, str, int]]:
        sql = "SELECT submission, state, amount FROM payments WHERE kind = 'reward' ORDER BY submission"
        return [*await fetch_rows(self.engine, sql)]

    async def problems(self) -> list[str]:
        return [
            problem
            for (problem,) in await fetch_rows(
                self.engine, "SELECT problem FROM payments WHERE kind = 'bonus' ORDER BY id"
            )
        ]


def connector_to(address: str) -> ServiceConnector:
    return ServiceConnector(Settings(prolific_api_url=address), TokenCipher(KEY))


async def create_study(
    engine: AsyncEngine,
    books: FakeProlific,
    *,
    people: int = 2,
    budget: int = 100_000,
    entered: str = "study-1",
    **settings: Any,
) -> Study:
    """A study with people p1, p2, ... whose submissions s1, s2, ... are complete."""
    campaign = await create_running_campaign(engine, currency="GBP", **settings)
    for number in range(1, people + 1):
        books.add(f"s{number}", person=f"p{number}")
        await create_annotator(engine, campaign, f"p{number}", "prolific", assignment=f"s{number}", STUDY_ID="study-1")
    await execute_sql(
        engine, "UPDATE assignments SET completed_at = :now WHERE campaign_id = :id", now=NOW, id=campaign.id
    )
    connector = connector_to(books.address)
    chosen = ConnectionSettings(token=TOKEN, workspace="workspace1", budget=budget)
    await check_and_store_payment_settings_or_refuse(engine, connector, campaign, chosen, now=NOW)
    await execute_sql(engine, "UPDATE payment_accounts SET study = :study", study=entered)
    return Study(engine, campaign, books, connector)


def words(reply: httpx.Response) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", reply.text).split())


async def audit_lines(engine: AsyncEngine) -> list[str]:
    return [action for (action,) in await fetch_rows(engine, "SELECT action FROM audit_log ORDER BY id")]
