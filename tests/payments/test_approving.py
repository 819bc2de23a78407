"""Turns that approve submissions: what changes meanwhile counts, and no submission holds up the others."""

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse

from app.payments.connections import forget_token_and_submissions_of_strangers
from app.payments.payment_work import PaymentWork
from app.privacy.erasures import erase_person_and_return_erasure
from tests.annotation.hits.campaigns import execute_sql, fetch_rows, fetch_value
from tests.payments.busy_service import busy_connector
from tests.payments.studies import create_study


async def create_study_with_approvals(engine, prolific, **settings):
    study = await create_study(engine, prolific, **settings)
    await execute_sql(engine, "UPDATE payment_accounts SET approves = true")
    return study


async def take_turn(study, connector):
    study.clock.advance(minutes=10)
    await execute_sql(study.engine, "UPDATE payment_accounts SET due_at = :now", now=study.clock.now)
    await PaymentWork(study.engine, connector, study.clock).pay_and_reconcile_due_campaigns()


async def account_problem(study):
    return await fetch_value(study.engine, "SELECT problem FROM payment_accounts")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE payment_accounts SET approves = false",
        "UPDATE annotators SET barred = 'held'",
        "UPDATE submissions SET return_requested_at = now()",
        "UPDATE payment_accounts SET study = 'study-2'",
    ],
)
async def test_what_changes_during_a_turn_counts_for_the_rest_of_it(engine, prolific, change):
    study = await create_study_with_approvals(engine, prolific, people=3)
    connector = busy_connector(study, "approve_submission", after=lambda: execute_sql(engine, change))
    await take_turn(study, connector)
    assert prolific.rewards_paid == ["s1"]


async def test_an_approval_never_waits_for_the_limit_of_calls(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=1)
    too_many = PlainTextResponse("", 429, headers={"Retry-After": "0"})
    prolific.trouble = lambda call: too_many if "transition" in call else None
    await study.work_again(minutes=10)
    assert sum("transition" in call for call in prolific.calls) == 1
    assert await study.rewards() == [("s1", "prepared", 90)]


async def test_one_submission_that_is_always_refused_holds_up_no_other(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=3)
    prolific.trouble = lambda call: PlainTextResponse("not yours", 403) if "s1/transition" in call else None
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s2", "s3"]
    assert "Approvals in study study-1 wait" in await account_problem(study)


async def test_after_three_refusals_the_others_are_tried_in_the_next_turn(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=5)
    refused = tuple(f"s{number}/transition" for number in (1, 2, 3))
    prolific.trouble = lambda call: PlainTextResponse("", 403) if any(part in call for part in refused) else None
    await study.work_again(minutes=10)
    assert sum("transition" in call for call in prolific.calls) == 3
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s4", "s5"]


async def test_a_low_balance_is_no_reason_to_repeat_an_approval_that_was_refused_for_another(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=1)
    prolific.balance = 0  # the rewards of a published study are set aside
    prolific.trouble = lambda call: JSONResponse({"error": {"detail": "no"}}, 400) if "transition" in call else None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "failed", 90)]


async def test_a_refusal_is_not_final_if_the_submission_cannot_be_read(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=1)
    prolific.trouble = lambda call: (
        PlainTextResponse("no", 400)
        if "s1/transition" in call
        else PlainTextResponse("", 502)
        if call == "GET /submissions/s1/"
        else None
    )
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 90)]
    assert "wait" in await account_problem(study)
    prolific.trouble = lambda _call: None
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s1"]


@pytest.mark.parametrize("status", ["RETURNED", "REJECTED"])
async def test_the_reward_of_a_submission_that_ended_during_its_approval_is_free_at_once(engine, prolific, status):
    study = await create_study_with_approvals(engine, prolific, people=1)

    async def end_submission():
        prolific.submissions["s1"]["status"] = status

    await take_turn(study, busy_connector(study, "approve_submission", before=end_submission))
    assert await study.rewards() == [("s1", "cancelled", 90)]


async def test_an_approval_is_booked_although_its_person_was_erased_meanwhile(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=1)

    async def erase():
        await erase_person_and_return_erasure(engine, study.campaign.slug, "A1", "anonymise", now=study.clock.now)

    await take_turn(study, busy_connector(study, "approve_submission", after=erase))
    ((submission, state, _),) = await study.rewards()
    assert (submission[:7], state) == ("erased:", "sent")


async def test_an_approval_is_booked_although_its_study_was_taken_out_meanwhile(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=1)
    connector = busy_connector(
        study, "approve_submission", after=lambda: execute_sql(engine, "DELETE FROM submissions")
    )
    await take_turn(study, connector)
    assert await study.rewards() == [("s1", "sent", 90)]


@pytest.mark.parametrize("status", [403, 429])
async def test_no_reward_stays_reserved_if_the_token_is_removed_during_a_turn(engine, prolific, status):
    study = await create_study_with_approvals(engine, prolific, people=2)

    async def remove_token():
        async with engine.begin() as connection:
            await forget_token_and_submissions_of_strangers(connection, study.campaign, now=study.clock.now)

    prolific.trouble = lambda call: PlainTextResponse("", status) if "transition" in call else None
    await take_turn(study, busy_connector(study, "approve_submission", before=remove_token))
    assert {state for _, state, _ in await study.rewards()} == {"cancelled"}


async def test_no_reward_is_reserved_after_the_token_was_removed_while_submissions_were_read(engine, prolific):
    study = await create_study_with_approvals(engine, prolific, people=1)

    async def remove_token():
        async with engine.begin() as connection:
            await forget_token_and_submissions_of_strangers(connection, study.campaign, now=study.clock.now)

    await take_turn(study, busy_connector(study, "iterate_submissions", after=remove_token))
    assert await fetch_rows(engine, "SELECT 1 FROM payments WHERE state = 'prepared'") == []


@pytest.mark.parametrize("status", [429, 502])
async def test_problems_from_before_approvals_failed_are_told(engine, prolific, status):
    study = await create_study_with_approvals(engine, prolific, people=4, budget=300)
    await execute_sql(engine, "UPDATE payment_accounts SET other_studies = '{gone}'")
    prolific.trouble = lambda call: PlainTextResponse("", status) if "transition" in call else None
    await study.work_again(minutes=10)
    problem = await account_problem(study)
    assert "Study gone: " in problem
    assert "no room for the reward of 1 submission" in problem
