"""Too many calls (429): Easel waits as it is told, and no step of a turn starves."""

import pytest
from fastapi.responses import PlainTextResponse

from app.annotation.platforms.prolific.service import ProlificService
from app.annotation.platforms.service import CallNotMade
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.payments.fake_prolific import TOKEN
from tests.payments.studies import create_study


def refuse_first_calls(part, count, **headers):
    """Let this many calls to an address be too many."""
    left = [count]

    def trouble(call):
        if part in call and left[0]:
            left[0] -= 1
            return PlainTextResponse("", 429, headers=headers)
        return None

    return trouble


def refuse_all_calls(part, **headers):
    return lambda call: PlainTextResponse("", 429, headers=headers) if part in call else None


async def test_a_call_of_a_session_is_made_again_when_the_service_allows_it(prolific):
    prolific.add("s1")
    prolific.trouble = refuse_first_calls("/submissions/s1/", 2, **{"Retry-After": "0"})
    async with ProlificService(prolific.address, TOKEN).session(seconds=60) as session:
        assert (await session.load_submission("s1")).id == "s1"
    assert prolific.calls.count("GET /submissions/s1/") == 3


@pytest.mark.parametrize("wait", ["61", "Fri, 31 Dec 2100 23:59:59 GMT"])
async def test_a_wait_that_is_longer_than_the_session_is_told(prolific, wait):
    prolific.trouble = refuse_all_calls("/submissions/", **{"Retry-After": wait})
    async with ProlificService(prolific.address, TOKEN).session(seconds=60) as session:
        with pytest.raises(CallNotMade) as failed:
            await session.load_submission("s1")
    assert (failed.value.retry_after_seconds or 0) >= 61
    assert len(prolific.calls) == 1


@pytest.mark.parametrize("wait", ["", "soon", "-1", "١"])
async def test_a_wait_that_cannot_be_read_is_none(prolific, wait):
    prolific.trouble = refuse_all_calls("/submissions/", **{"Retry-After": wait.encode("utf-8").decode("latin-1")})
    async with ProlificService(prolific.address, TOKEN).session(seconds=60) as session:
        with pytest.raises(CallNotMade) as failed:
            await session.load_submission("s1")
    assert failed.value.retry_after_seconds is None


async def test_a_call_that_pays_is_never_made_again_by_itself(prolific):
    prolific.trouble = refuse_all_calls("/pay/", **{"Retry-After": "0"})
    async with ProlificService(prolific.address, TOKEN).session(seconds=60) as session:
        with pytest.raises(CallNotMade):
            await session.pay_bonuses("bulk-1")
    assert len(prolific.calls) == 1


async def test_submissions_are_read_although_payments_make_too_many_calls(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = refuse_all_calls("GET /submissions/")
    await study.send()
    assert await fetch_value(engine, "SELECT count(*) FROM submissions") == 2
    assert "too many calls" in await fetch_value(engine, "SELECT problem FROM payment_accounts")


async def test_the_next_turn_comes_when_the_service_allows_it(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.trouble = refuse_all_calls("/studies/", **{"Retry-After": "130"})
    await study.work_again(minutes=10)
    in_time = "SELECT due_at - :now = interval '130 seconds' FROM payment_accounts"
    assert await fetch_rows(engine, in_time, now=study.clock.now) == [(True,)]
    study.clock.advance(seconds=130)
    prolific.trouble = lambda _call: None
    await study.work.pay_and_reconcile_due_campaigns()
    assert await fetch_value(engine, "SELECT count(*) FROM submissions") == 2


async def test_submissions_that_were_not_read_come_first_in_the_next_turn(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = refuse_all_calls("/studies/")
    await study.send()
    prolific.trouble = lambda _call: None
    await study.add(("A2", 425), key="list 2")
    prolific.calls.clear()
    await study.send()
    assert prolific.calls[0] == "GET /studies/study-1/submissions/"
    prolific.calls.clear()
    await study.add(("A2", 100), key="list 3")
    await study.send()
    assert prolific.calls[0] == "GET /submissions/s2/"
