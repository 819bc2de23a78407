"""A process that ends at any moment while it pays or approves: every person is paid, and none twice."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import pytest
from fastapi.responses import PlainTextResponse
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.prolific.service import ProlificService
from app.payments.connections import ServiceConnector
from app.payments.ledger import store_decision_on_payment_or_refuse
from app.payments.payment_work import PaymentWork
from app.payments.send_request import request_sending_of_prepared_payments_or_refuse
from tests.annotation.hits.campaigns import execute_sql, fetch_rows
from tests.payments.fake_prolific import TOKEN, FakeProlific, create_fake
from tests.payments.studies import Study, create_study

PARTS = 5  # for as many processes of a test run
SCHEDULES_PER_PART = int(os.environ.get("PAYMENT_SCHEDULES", "250")) // PARTS
MOST_STEPS = 90  # of a turn that sends two batches and approves three submissions


UNCLEAR = "kind = 'bonus' AND state = 'unknown'"


class ProcessEnded(BaseException):
    """The process ends here: nothing after it runs."""


class Steps:
    """Counts what a process does, and ends it at one step."""

    def __init__(self, last: int | None) -> None:
        self.left = last

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise ProcessEnded


class EndingEngine:
    """An engine whose process may end before or after each commit."""

    def __init__(self, engine: AsyncEngine, steps: Steps) -> None:
        self.engine = engine
        self.steps = steps

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        async with self.engine.begin() as connection:
            yield connection
            self.steps.step()
        self.steps.step()


class EndingService:
    """A service whose client may end before or after each call."""

    def __init__(self, service: ProlificService, steps: Steps) -> None:
        self.service = service
        self.steps = steps

    is_cut_short = False

    @asynccontextmanager
    async def session(self, *, seconds: float) -> AsyncIterator["EndingService"]:
        async with self.service.session(seconds=seconds) as session:
            yield EndingService(cast("ProlificService", session), self.steps)

    def iterate_submissions(self, study: str) -> Any:
        return self.service.iterate_submissions(study)

    def __getattr__(self, name: str) -> Any:
        async def call(*values: Any) -> Any:
            self.steps.step()
            reply = await getattr(self.service, name)(*values)
            self.steps.step()
            return reply

        return call


def process_that_ends(study: Study, service: ProlificService, last: int | None) -> PaymentWork:
    steps = Steps(last)
    connector = ServiceConnector(
        study.connector.settings, study.connector.cipher, lambda *_: cast("Any", EndingService(service, steps))
    )
    return PaymentWork(cast("AsyncEngine", EndingEngine(study.engine, steps)), connector, study.clock)


def choose_trouble(chance: random.Random, books: FakeProlific) -> None:
    """Let a call that pays fail before or after its effect, or not at all, and be slow or not."""
    kind, part = chance.choice(["none", "none", "before", "after", "busy"]), chance.choice(["/pay/", "/transition/"])
    books.trouble = lambda call: (
        PlainTextResponse("", {"before": 502, "busy": 429}[kind])
        if kind in ("before", "busy") and part in call
        else None
    )
    books.after = lambda call: PlainTextResponse("", 504) if kind == "after" and part in call else None
    books.is_slow = chance.random() < 0.4


async def make_due(study: Study) -> None:
    """Let the next process take the campaign, as after the deadline of one that was killed."""
    await execute_sql(study.engine, "UPDATE payment_accounts SET due_at = :now, held_until = NULL", now=study.clock.now)


async def run_chaos(study: Study, service: ProlificService, chance: random.Random) -> None:
    """Let processes work that end anywhere, one or two at a time, with breaks in between."""
    for _ in range(chance.randint(1, 5)):
        choose_trouble(chance, study.books)
        processes = [
            process_that_ends(study, service, chance.choice([None, *range(MOST_STEPS)]))
            for _ in range(chance.choice([1, 1, 2]))
        ]
        await make_due(study)
        account = await study.work.claim_due_account_or_none()
        assert account is not None
        await asyncio.gather(
            *(process.pay_and_reconcile_account(account) for process in processes), return_exceptions=True
        )
        if chance.random() < 0.2:  # a person on the platform's own page
            study.books.submissions[f"s{chance.randint(1, 3)}"]["status"] = "APPROVED"
        minutes = chance.choice([0, 1, 6, 11])
        study.clock.advance(minutes=minutes)
        if minutes > 5 or chance.random() < 0.5:
            study.books.fit_until_scores_settle()


async def end_calmly(study: Study) -> None:
    """Let the platform work, and let a person decide what stays unclear, by what both sides show."""
    study.books.trouble = study.books.after = lambda _call: None
    study.books.is_slow = False
    study.books.fit_until_scores_settle()
    while {*(await study.states())} != {"sent"} or [state for _, state, _ in await study.rewards()] != ["sent"] * 3:
        await study.work_again(minutes=31)
        await study.work_again(minutes=31)
        for (payment,) in await fetch_rows(study.engine, f"SELECT id FROM payments WHERE {UNCLEAR}"):
            async with study.engine.begin() as connection:
                await store_decision_on_payment_or_refuse(
                    connection, study.campaign, payment, "again", now=study.clock.now
                )


async def run_schedule(study: Study, service: ProlificService, seed: int) -> None:
    chance = random.Random(seed)
    for table in ("payments", "payment_calls", "submissions"):
        await execute_sql(study.engine, f"DELETE FROM {table}")
    study.books.bulks.clear()
    study.books.paid.clear()
    study.books.rewards_paid.clear()
    for submission in study.books.submissions.values():
        submission["status"] = "AWAITING REVIEW"
        submission["bonus_payments"] = [100] if chance.random() < 0.2 else []  # paid by hand before
    bonuses = [(f"s{chance.randint(1, 3)}", chance.choice([100, 250])) for _ in range(chance.randint(1, 4))]
    await study.add(*bonuses, key=f"schedule {seed}")
    async with study.engine.begin() as connection:
        await request_sending_of_prepared_payments_or_refuse(connection, study.campaign, now=study.clock.now)
    await run_chaos(study, service, chance)
    await end_calmly(study)
    assert await study.states() == ["sent"] * len(bonuses), f"seed {seed}"
    assert Counter(study.books.paid) == Counter(bonuses), f"seed {seed}"
    assert await study.rewards() == [(f"s{number}", "sent", 90) for number in (1, 2, 3)], f"seed {seed}"
    assert {row["status"] for row in study.books.submissions.values()} == {"APPROVED"}, f"seed {seed}"
    assert max(Counter(study.books.rewards_paid).values(), default=0) <= 1, f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
async def test_whenever_a_process_ends_each_person_is_paid_and_none_twice(engine, prolific, part):
    study = await create_study(engine, prolific, people=3, budget=1_000_000_000)
    await execute_sql(engine, "UPDATE payment_accounts SET approves = true")
    service = ProlificService("http://prolific.test/api/v1", TOKEN, httpx.ASGITransport(create_fake(prolific)))
    study.connector = ServiceConnector(study.connector.settings, study.connector.cipher, lambda *_: service)
    first = int(os.environ.get("PAYMENT_SEED", random.SystemRandom().randrange(10**9))) + part * SCHEDULES_PER_PART
    print(f"seeds {first} to {first + SCHEDULES_PER_PART - 1}")  # noqa: T201  (pytest shows it with a failure)
    for seed in range(first, first + SCHEDULES_PER_PART):
        await run_schedule(study, service, seed)
