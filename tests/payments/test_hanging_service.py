"""A service that takes a call and never replies: what it did is unclear, and nobody is paid twice."""

import asyncio

import httpx
import pytest

from app.annotation.platforms.prolific import service as prolific_service
from app.annotation.platforms.prolific.service import ProlificService
from app.payments.connections import ServiceConnector
from tests.annotation.hits.campaigns import execute_sql, fetch_value
from tests.payments.fake_prolific import TOKEN, create_fake
from tests.payments.studies import create_study


class HangingApplication:
    """An application that never replies to calls whose path has a part, and may carry them out before."""

    def __init__(self, application, part, *, carries_out):
        self.application, self.part, self.carries_out = application, part, carries_out

    async def __call__(self, scope, receive, send):
        if self.part is None or self.part not in scope["path"]:
            await self.application(scope, receive, send)
            return
        if self.carries_out:
            await self.application(scope, receive, drop_message)
        await asyncio.Event().wait()


async def drop_message(_message):
    pass


@pytest.fixture
async def study(engine, prolific, monkeypatch):
    monkeypatch.setattr(prolific_service, "CALL_TIMEOUT_SECONDS", 1.0)
    return await create_study(engine, prolific, people=1)


def let_calls_hang(study, part, *, carries_out=True):
    application = HangingApplication(create_fake(study.books), part, carries_out=carries_out)
    service = ProlificService("http://prolific.test/api/v1", TOKEN, httpx.ASGITransport(application))
    study.connector = ServiceConnector(study.connector.settings, study.connector.cipher, lambda *_: service)


@pytest.mark.parametrize("carries_out", [True, False])
async def test_a_bonus_without_a_reply_is_unclear_and_paid_at_most_once(study, carries_out):
    await study.add(("A1", 425))
    let_calls_hang(study, "/pay/", carries_out=carries_out)
    await study.send()
    assert await study.states() == ["unknown"]
    let_calls_hang(study, None)
    await study.work_again(minutes=10)
    await study.work_again(minutes=31)
    paid = [("s1", 425)] if carries_out else []
    assert (await study.states(), study.books.paid) == (["sent" if carries_out else "unknown"], paid)


@pytest.mark.parametrize("carries_out", [True, False])
async def test_an_approval_without_a_reply_is_settled_by_the_next_reading(engine, study, carries_out):
    await execute_sql(engine, "UPDATE payment_accounts SET approves = true")
    let_calls_hang(study, "/transition/", carries_out=carries_out)
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "unknown", 90)]
    let_calls_hang(study, None)
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90)]
    assert study.books.rewards_paid == ["s1"]


async def test_a_reading_without_a_reply_says_so_and_changes_nothing(engine, study):
    await study.work_again(minutes=10)
    let_calls_hang(study, "/submissions/")
    await study.work_again(minutes=10)
    assert "did not reply" in await fetch_value(engine, "SELECT problem FROM payment_accounts")
    assert await study.rewards() == [("s1", "prepared", 90)]
    let_calls_hang(study, None)
    await study.work_again(minutes=10)
    assert await fetch_value(engine, "SELECT problem FROM payment_accounts") == ""
