"""Payments are sent once, whatever the platform does."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from app.errors import Conflict, Invalid
from app.payments.by_hand import claim_payments_to_make_by_hand
from app.payments.ledger import store_decision_on_payment_or_refuse
from app.payments.reading_back import ids_of_unclear_payments_surely_made
from app.payments.send_request import request_sending_of_prepared_payments_or_refuse
from tests.annotation.hits.campaigns import create_annotator, execute_sql, fetch_value
from tests.payments.studies import create_study


async def decide(study, payment, decision):
    async with study.engine.begin() as connection:
        await store_decision_on_payment_or_refuse(connection, study.campaign, payment, decision, now=study.clock.now)


def fail_at(part, reply):
    return lambda call: reply if part in call else None


async def test_prepared_payments_are_sent_when_a_person_says_so(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425), ("p2", 100))
    await study.work_again(minutes=10)
    assert await study.states() == ["prepared", "prepared"]
    await study.send()
    assert await study.states() == ["sent", "sent"]
    assert prolific.paid_by_submission() == {"s1": [425], "s2": [100]}


async def test_payments_that_are_added_after_the_word_wait_for_the_next_one(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    await study.send()
    await study.add(("A2", 100), key="list 2")
    await study.work_again(minutes=10)
    assert await study.states() == ["sent", "prepared"]


async def test_201_people_are_paid_in_two_calls(engine, prolific):
    study = await create_study(engine, prolific, people=201)
    await study.add(*((f"p{number}", 10) for number in range(1, 202)))
    await study.send()
    assert await study.states() == ["sent"] * 201
    assert [len(bonuses) for bonuses in prolific.bulks.values()] == [200, 1]
    assert prolific.most_at_a_time == 1


async def test_two_payments_to_one_submission_go_in_two_calls(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 100), ("A1", 100))
    await study.send()
    assert prolific.paid_by_submission() == {"s1": [100, 100]}
    assert len(prolific.bulks) == 2


async def test_a_call_without_a_reply_is_unclear_and_is_found_in_the_platforms_list(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.after = fail_at("/pay/", PlainTextResponse("", 504))  # it was paid all the same
    await study.send()
    assert await study.states() == ["unknown"]
    prolific.after = fail_at("nothing", None)
    await study.work_again(minutes=10)
    assert await study.states() == ["sent"]
    assert prolific.paid_by_submission() == {"s1": [425]}


async def test_an_unclear_payment_is_never_sent_again_by_itself(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at("/pay/", PlainTextResponse("", 502))
    await study.send()
    prolific.trouble = fail_at("nothing", None)
    for _ in range(5):
        await study.work_again(minutes=10)
        assert await study.states() == ["unknown"]
    assert prolific.paid == []


async def test_a_person_decides_after_30_minutes_and_a_look(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at("/pay/", PlainTextResponse("", 502))
    await study.send()
    prolific.trouble = fail_at("nothing", None)
    payment = await fetch_value(engine, "SELECT id FROM payments WHERE kind = 'bonus'")
    study.clock.advance(minutes=29)
    for decision in ("sent", "again"):
        with pytest.raises(Conflict) as refused:
            await decide(study, payment, decision)
        assert refused.value.code == "too_early"
    await study.work_again(minutes=2)
    await decide(study, payment, "again")
    await study.work_again()
    assert await study.states() == ["sent"]
    assert prolific.paid_by_submission() == {"s1": [425]}


async def test_a_slow_payment_is_found_later_and_not_paid_twice(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.is_slow = True
    prolific.after = fail_at("/pay/", PlainTextResponse("", 504))
    await study.send()
    await study.work_again(minutes=10)
    assert await study.states() == ["unknown"]
    prolific.fit_until_scores_settle()
    await study.work_again(minutes=10)
    assert await study.states() == ["sent"]


async def test_the_same_amount_that_was_paid_by_hand_before_is_not_mistaken_for_an_unclear_payment(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.pay_by_hand("s1", 425)
    await study.add(("A1", 425))
    prolific.trouble = fail_at("/pay/", PlainTextResponse("", 502))
    await study.send()
    prolific.trouble = fail_at("nothing", None)
    await study.work_again(minutes=10)
    assert await study.states() == ["unknown"]


def row(id_, state, paid_before=0, amount=100):
    return SimpleNamespace(id=id_, state=state, paid_before=paid_before, amount=amount)


def test_unclear_payments_are_made_as_far_as_the_list_has_more_than_is_explained():
    rows = [row(1, "sent"), row(2, "unknown", 1), row(3, "unknown", 1), row(4, "unknown", None)]
    assert ids_of_unclear_payments_surely_made(rows, [100, 100]) == []
    assert ids_of_unclear_payments_surely_made(rows, [100, 100, 100, 50]) == [2]
    assert ids_of_unclear_payments_surely_made(rows, [100] * 9) == [2, 3]  # the one by hand is for a person to say


@pytest.mark.parametrize("part", ["bonus-payments/", "/pay/"])
async def test_what_the_platform_refuses_has_failed_with_its_reason(engine, prolific, part):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at(part, JSONResponse({"error": {"detail": "no money"}}, 400))
    await study.send()
    assert await study.states() == ["failed"]
    assert "no money" in (await study.problems())[0]
    prolific.trouble = fail_at("nothing", None)
    await decide(study, await fetch_value(engine, "SELECT id FROM payments WHERE kind = 'bonus'"), "again")
    await study.work_again()
    assert await study.states() == ["sent"]


@pytest.mark.parametrize(("part", "status"), [("bonus-payments/", 503), ("bonus-payments/", 429), ("/pay/", 429)])
async def test_what_was_certainly_not_paid_is_tried_again(engine, prolific, part, status):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at(part, PlainTextResponse("", status))
    await study.send()
    assert await study.states() == ["prepared"]
    prolific.trouble = fail_at("nothing", None)
    await study.work_again(minutes=10)
    assert prolific.paid_by_submission() == {"s1": [425]}


async def test_a_payment_waits_until_an_earlier_one_of_the_same_amount_is_in_the_platforms_list(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.pay_by_hand("s1", 100)
    prolific.is_slow = True
    await study.add(("A1", 100), ("A1", 100))
    await study.send()
    assert await study.states() == ["sent", "prepared"]
    assert "not in the platform’s list" in (await study.problems())[1]
    prolific.fit_until_scores_settle()
    prolific.trouble = fail_at("/pay/", PlainTextResponse("", 502))
    await study.work_again(minutes=10)
    prolific.trouble = fail_at("nothing", None)
    await study.work_again(minutes=10)
    assert await study.states() == ["sent", "unknown"]  # what was paid by hand is not taken for it


async def test_a_limit_of_calls_holds_up_the_rest_alone(engine, prolific):
    study = await create_study(engine, prolific, people=3)
    await study.add(("A1", 100), ("A2", 100), ("A3", 100))
    prolific.trouble = fail_at("submissions/s3/", PlainTextResponse("", 429))
    await study.send()
    assert await study.states() == ["sent", "sent", "prepared"]
    assert "too many calls" in await fetch_value(engine, "SELECT problem FROM payment_accounts")
    prolific.trouble = fail_at("nothing", None)
    await study.work_again(minutes=10)
    assert await study.states() == ["sent"] * 3


async def test_a_submission_that_is_gone_fails_and_the_others_are_paid(engine, prolific):
    study = await create_study(engine, prolific)
    del prolific.submissions["s1"]
    await study.add(("A1", 425), ("A2", 100))
    await study.send()
    assert await study.states() == ["failed", "sent"]


async def test_a_revoked_token_leaves_payments_prepared_and_is_told(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.token = "another"
    await study.send()
    assert await study.states() == ["prepared"]
    assert "token" in await fetch_value(engine, "SELECT problem FROM payment_accounts")


async def test_two_processes_send_each_payment_once(engine, prolific):
    study = await create_study(engine, prolific, people=6)
    await study.add(*((f"A{number}", 100) for number in range(1, 7)), *((f"A{number}", 50) for number in range(1, 7)))
    async with engine.begin() as connection:
        await request_sending_of_prepared_payments_or_refuse(connection, study.campaign, now=study.clock.now)
    account = await study.work.claim_due_account_or_none()
    assert account is not None
    await asyncio.gather(*(study.work.pay_and_reconcile_account(account) for _ in range(4)))
    await study.work_again(minutes=10)
    assert prolific.paid_by_submission() == {f"s{number}": [100, 50] for number in range(1, 7)}
    assert prolific.most_at_a_time == 1


async def test_campaigns_of_one_workspace_pay_one_after_the_other(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    held = "INSERT INTO payment_calls VALUES ('prolific workspace1', 'of another campaign', :until)"
    await execute_sql(engine, held, until=study.clock.now.replace(hour=10))
    await study.send()
    assert await study.states() == ["prepared"]
    await study.work_again(hours=2)  # the one that held it has ended
    assert await study.states() == ["sent"]


async def test_a_person_in_two_studies_is_paid_in_the_study_of_the_submission(engine, prolific):
    study = await create_study(engine, prolific)
    await execute_sql(engine, "UPDATE payment_accounts SET other_studies = '{study-2}'")
    prolific.add("t1", study="study-2", person="p1")
    await create_annotator(engine, study.campaign, "p1", "prolific", assignment="t1", STUDY_ID="study-2")
    await study.add(("t1", 200), ("s1", 100))
    await study.send()
    assert prolific.paid_by_submission() == {"t1": [200], "s1": [100]}
    assert len(prolific.bulks) == 2


async def test_payments_by_hand_are_unclear_until_a_person_has_made_them(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425), ("A2", 100))
    async with engine.begin() as connection:
        rows = await claim_payments_to_make_by_hand(connection, study.campaign, "study-1", now=study.clock.now)
    assert [(row.submission, row.amount) for row in rows] == [("s1", 425), ("s2", 100)]
    await study.send()
    assert await study.states() == ["unknown", "unknown"]
    await decide(study, rows[0].id, "sent")
    await decide(study, rows[1].id, "cancel")
    assert await study.states() == ["sent", "cancelled"]
    assert prolific.paid == []


async def test_a_decision_is_refused_where_it_makes_no_sense(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    payment = await fetch_value(engine, "SELECT id FROM payments WHERE kind = 'bonus'")
    with pytest.raises(Invalid):
        await decide(study, payment, "pay")
    with pytest.raises(Conflict) as refused:
        await decide(study, payment, "sent")
    assert refused.value.code == "payment_decided"
    await decide(study, payment, "cancel")
    await study.send()
    assert prolific.paid == []


@pytest.mark.parametrize("text", ["no\x00money", "no\ud800money", "no\x1b[31mmoney\r\n"])
async def test_a_refusal_with_characters_that_cannot_be_stored_is_stored_without_them(engine, prolific, text):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    refusal = json.dumps({"error": {"detail": text}})
    prolific.trouble = fail_at("/pay/", Response(refusal, 400, media_type="application/json"))
    await study.send()
    assert await study.states() == ["failed"]
    (problem,) = await study.problems()
    assert problem.startswith("Prolific refused this (400): no ")
    assert problem.isprintable()


async def test_a_refusal_in_plain_text_is_stored_without_control_characters(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at("/pay/", PlainTextResponse("no\x00money", 400))
    await study.send()
    assert await study.states() == ["failed"]
    assert await study.problems() == ["Prolific refused this (400): no money"]


async def test_an_id_with_characters_that_cannot_be_stored_does_not_break_the_turn(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    prolific.trouble = fail_at("/bonus-payments/", JSONResponse({"id": "bulk\x00-1"}))
    await study.send()
    assert await study.states() != ["sending"]
    assert prolific.paid == []


async def test_submissions_with_such_characters_are_read(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.add("s\x00odd", status="AWAITING\x00REVIEW", person="p\x00odd")
    await study.work_again(minutes=10)
    assert await fetch_value(engine, "SELECT status FROM submissions WHERE external_id = 's odd'") == "awaiting"
    assert await fetch_value(engine, "SELECT problem FROM payment_accounts") == ""
