"""One submission that Prolific does not show or refuses holds up no other, and proves nothing about its payment."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse

from app.errors import Conflict
from app.payments.ledger import store_decision_on_payment_or_refuse
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.payments.studies import TestClock, create_study


async def decide(study, payment, decision):
    async with study.engine.begin() as connection:
        await store_decision_on_payment_or_refuse(connection, study.campaign, payment, decision, now=study.clock.now)


def fail_at(part, reply):
    return lambda call: reply if part in call else None


def refusal(status):
    return JSONResponse({"error": {"detail": "not for you"}}, status)


async def unclear_study(engine, prolific):
    """A study with a payment to s1 of which nobody knows whether it was made."""
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at("/pay/", PlainTextResponse("", 502))
    await study.send()
    prolific.trouble = fail_at("nothing", None)
    return study


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_submission_that_is_not_shown_is_no_evidence_that_it_was_not_paid(engine, prolific, status):
    study = await unclear_study(engine, prolific)
    prolific.trouble = fail_at("/submissions/s1/", refusal(status))
    await study.work_again(minutes=40)
    assert await fetch_rows(engine, "SELECT looked_at, amounts_seen FROM payments WHERE kind = 'bonus'") == [
        (None, None)
    ]
    assert "does not show" in (await study.problems())[0]
    payment = await fetch_value(engine, "SELECT id FROM payments WHERE kind = 'bonus'")
    for decision in ("again", "cancel", "sent"):
        with pytest.raises(Conflict) as refused:
            await decide(study, payment, decision)
        assert refused.value.code == "too_early"


async def test_after_a_day_without_a_look_a_person_can_settle_the_payment_but_not_repeat_it(engine, prolific):
    study = await unclear_study(engine, prolific)
    prolific.trouble = fail_at("/submissions/s1/", refusal(403))
    await study.work_again(hours=25)
    payment = await fetch_value(engine, "SELECT id FROM payments WHERE kind = 'bonus'")
    with pytest.raises(Conflict) as refused:
        await decide(study, payment, "again")
    assert refused.value.code == "too_early"
    await decide(study, payment, "cancel")
    assert await study.states() == ["cancelled"]


async def test_a_reply_without_bonuses_is_no_evidence(engine, prolific):
    study = await unclear_study(engine, prolific)
    del prolific.submissions["s1"]["bonus_payments"]
    await study.work_again(minutes=40)
    assert await fetch_rows(engine, "SELECT state, looked_at FROM payments WHERE kind = 'bonus'") == [("unknown", None)]


async def test_a_payment_waits_while_the_reply_has_no_bonuses(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425), ("A2", 100))
    del prolific.submissions["s1"]["bonus_payments"]
    await study.send()
    assert await study.states() == ["prepared", "sent"]


@pytest.mark.parametrize("status", [400, 403, 404, 500])
async def test_an_unclear_payment_that_cannot_be_read_holds_up_no_other(engine, prolific, status):
    study = await unclear_study(engine, prolific)
    study.clock.advance(minutes=6)  # until the call that was not answered is over
    await study.add(("A2", 100), key="list 2")
    prolific.trouble = fail_at("/submissions/s1/", refusal(status))
    await study.send()
    assert await study.states() == ["unknown", "sent"]


@pytest.mark.parametrize(("status", "state"), [(400, "failed"), (403, "failed"), (404, "failed"), (500, "prepared")])
async def test_a_submission_that_the_platform_refuses_holds_up_no_other(engine, prolific, status, state):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425), ("A2", 100))
    prolific.trouble = fail_at("/submissions/s1/", refusal(status))
    await study.send()
    assert await study.states() == [state, "sent"]
    assert (await study.problems())[0]


async def test_a_recipient_that_the_platform_refuses_fails_alone(engine, prolific):
    study = await create_study(engine, prolific, people=7)
    await study.add(*((f"A{number}", 100) for number in range(1, 8)))
    prolific.missing_for_bonuses = {"s3"}
    await study.send()
    assert await study.states() == ["sent", "sent", "failed", "sent", "sent", "sent", "sent"]
    assert "not in the study" in (await study.problems())[2]


async def test_submissions_are_read_although_payments_cannot_be_sent(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at("bonus-payments/", PlainTextResponse("", 503))
    await study.send()
    prolific.trouble = fail_at("GET /submissions/", PlainTextResponse("", 502))
    prolific.calls.clear()
    await study.work_again(minutes=10)
    assert any("/studies/" in call for call in prolific.calls)
    assert await study.states() == ["prepared"]


async def test_a_process_that_slept_before_the_call_does_not_make_it(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    real = study.clock
    study.clock = SleepingClock(real.now, engine)
    await study.send()
    assert prolific.paid == []
    assert await study.states() == ["prepared"]
    study.clock = real
    await study.work_again(minutes=50)
    assert prolific.paid_by_submission() == {"s1": [425]}


@dataclass
class SleepingClock(TestClock):
    """Of a process that sleeps for 40 minutes after it stored the service's id of the bonuses."""

    engine: Any = None

    async def __call__(self):
        stored = await fetch_value(self.engine, "SELECT count(*) FROM payments WHERE bulk_id IS NOT NULL")
        return self.now + timedelta(minutes=40 * stored)
