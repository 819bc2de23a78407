"""Decisions of people about submissions, while Easel approves others, and when the platform does not reply."""

import asyncio

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse

from app.errors import BadGateway, Conflict
from app.payments.connections import forget_token_and_submissions_of_strangers
from app.payments.decisions import SubmissionDecision, carry_out_submission_decision_or_refuse
from app.payments.payment_work import PaymentWork
from app.payments.review import list_submissions
from app.privacy.erasures import erase_person_and_return_erasure
from tests.annotation.hits.campaigns import execute_sql, fetch_value
from tests.payments.busy_service import busy_connector
from tests.payments.studies import create_study

LONG = "You answered all tasks within two seconds, and your answers to the checks were wrong, so we cannot use them."
DECISIONS = {
    "approve": SubmissionDecision("s1", "approve"),
    "reject": SubmissionDecision("s1", "reject", "FAILED_CHECK", LONG),
    "request_return": SubmissionDecision("s1", "request_return", message="Most of your answers are empty."),
}
CALL_BY_DECISION = {
    "approve": "approve_submission",
    "reject": "reject_submission",
    "request_return": "request_return",
}
against = pytest.mark.parametrize("decision", ["reject", "request_return"])


class ProcessEnded(BaseException):
    """The process ends here: nothing after it runs."""


async def end_process():
    raise ProcessEnded


async def decide(study, decision, connector=None):
    await carry_out_submission_decision_or_refuse(
        study.engine, connector or study.connector, study.campaign, DECISIONS[decision], clock=study.clock
    )


async def create_study_with_approvals(engine, prolific):
    """A study with one submission whose reward is reserved, and which Easel approves in the next turn."""
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    await execute_sql(engine, "UPDATE payment_accounts SET approves = true")
    return study


async def finding(study):
    async with study.engine.begin() as connection:
        return [row.finding for row in await list_submissions(connection, study.campaign.id)]


def fail_calls(reply):
    return lambda call: reply if "s1/transition" in call or "request-return" in call else None


@against
async def test_a_decision_without_a_reply_is_followed_by_no_approval(engine, prolific, decision):
    study = await create_study_with_approvals(engine, prolific)
    prolific.trouble = fail_calls(PlainTextResponse("", 502))
    with pytest.raises(BadGateway):
        await decide(study, decision)
    prolific.trouble = lambda _call: None
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == []
    assert await finding(study) == ["decision_unclear"]
    assert await study.rewards() == [("s1", "prepared", 90)]
    await decide(study, "approve")
    assert prolific.rewards_paid == ["s1"]


@against
async def test_a_list_that_misses_the_submission_once_does_not_forget_a_decision_without_a_reply(
    engine, prolific, decision
):
    study = await create_study_with_approvals(engine, prolific)
    prolific.trouble = fail_calls(PlainTextResponse("", 502))
    with pytest.raises(BadGateway):
        await decide(study, decision)
    prolific.trouble = lambda _call: None
    prolific.after = lambda call: (
        JSONResponse({"results": []}) if call.endswith("/studies/study-1/submissions/") else None
    )
    await study.work_again(minutes=10)
    prolific.after = lambda _call: None
    for _ in range(2):
        await study.work_again(minutes=10)
    assert prolific.rewards_paid == []


@against
async def test_a_process_that_ends_while_a_person_decides_leaves_nothing_to_approve(engine, prolific, decision):
    study = await create_study_with_approvals(engine, prolific)
    with pytest.raises(ProcessEnded):
        await decide(study, decision, busy_connector(study, CALL_BY_DECISION[decision], before=end_process))
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == []


@against
async def test_a_turn_while_a_person_decides_does_not_approve(engine, prolific, decision):
    study = await create_study_with_approvals(engine, prolific)
    await decide(
        study, decision, busy_connector(study, CALL_BY_DECISION[decision], before=lambda: study.work_again(minutes=0))
    )
    assert prolific.rewards_paid == []
    assert await finding(study) == [{"reject": "rejected_there", "request_return": "return_requested"}[decision]]


@against
@pytest.mark.parametrize("reply", [JSONResponse({"error": {"detail": "no"}}, 400), PlainTextResponse("", 429)])
async def test_after_a_decision_that_certainly_had_no_effect_easel_goes_on_approving(engine, prolific, decision, reply):
    study = await create_study_with_approvals(engine, prolific)
    prolific.trouble = fail_calls(reply)
    with pytest.raises((Conflict, BadGateway)):
        await decide(study, decision)
    prolific.trouble = lambda _call: None
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s1"]


@against
async def test_a_decision_that_had_no_effect_does_not_settle_an_earlier_one_without_a_reply(engine, prolific, decision):
    study = await create_study_with_approvals(engine, prolific)
    for status in (502, 429):
        prolific.trouble = fail_calls(PlainTextResponse("", status))
        with pytest.raises(BadGateway):
            await decide(study, decision)
        study.clock.advance(minutes=5)
    prolific.trouble = lambda _call: None
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == []


@against
@pytest.mark.parametrize("other", [*DECISIONS])
async def test_of_two_decisions_at_once_the_second_is_refused(engine, prolific, decision, other):
    study = await create_study_with_approvals(engine, prolific)

    async def decide_otherwise():
        with pytest.raises(Conflict) as refused:
            await decide(study, other)
        assert refused.value.code == "submission_decided"

    await decide(study, decision, busy_connector(study, CALL_BY_DECISION[decision], before=decide_otherwise))
    assert prolific.rewards_paid == []


@against
async def test_a_submission_that_easel_approves_just_now_is_neither_rejected_nor_to_be_returned(
    engine, prolific, decision
):
    study = await create_study_with_approvals(engine, prolific)

    async def decide_too_late():
        with pytest.raises(Conflict) as refused:
            await decide(study, decision)
        assert refused.value.code == "submission_decided"

    connector = busy_connector(study, "approve_submission", before=decide_too_late)
    await take_turn(study, connector)
    assert await study.rewards() == [("s1", "sent", 90)]
    assert not any("request-return" in call for call in prolific.calls)


async def take_turn(study, connector):
    study.clock.advance(minutes=10)
    await execute_sql(study.engine, "UPDATE payment_accounts SET due_at = :now", now=study.clock.now)
    await PaymentWork(study.engine, connector, study.clock).pay_and_reconcile_due_campaigns()


@pytest.mark.parametrize(("decision", "state"), [("reject", "cancelled"), ("approve", "sent")])
async def test_a_list_that_was_read_during_a_decision_does_not_undo_it(engine, prolific, decision, state):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    is_read, is_decided = asyncio.Event(), asyncio.Event()
    turns = []

    async def wait_after_reading():
        is_read.set()
        await is_decided.wait()

    async def let_a_turn_read():
        study.clock.advance(minutes=1)
        turns.append(
            asyncio.create_task(
                take_turn(study, busy_connector(study, "iterate_submissions", after=wait_after_reading))
            )
        )
        await is_read.wait()
        study.clock.advance(minutes=1)

    await decide(study, decision, busy_connector(study, CALL_BY_DECISION[decision], before=let_a_turn_read))
    is_decided.set()
    await asyncio.gather(*turns)
    assert await fetch_value(engine, "SELECT status FROM submissions") != "awaiting"
    assert await study.rewards() == [("s1", state, 90)]


async def test_an_approval_is_booked_although_the_person_was_erased_meanwhile(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)

    async def erase():
        await erase_person_and_return_erasure(engine, study.campaign.slug, "A1", "anonymise", now=study.clock.now)

    await decide(study, "approve", busy_connector(study, "approve_submission", after=erase))
    ((submission, state, _),) = await study.rewards()
    assert (submission[:7], state) == ("erased:", "sent")


async def test_an_approval_that_is_refused_after_the_token_was_removed_reserves_nothing(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)

    async def remove_token():
        async with engine.begin() as connection:
            await forget_token_and_submissions_of_strangers(connection, study.campaign, now=study.clock.now)

    prolific.trouble = fail_calls(JSONResponse({"error": {"detail": "no"}}, 400))
    with pytest.raises(Conflict):
        await decide(study, "approve", busy_connector(study, "approve_submission", before=remove_token))
    assert await study.rewards() == [("s1", "cancelled", 90)]


@pytest.mark.parametrize("state", ["failed", "cancelled", "prepared", "unknown"])
@pytest.mark.parametrize("status", [400, 429])
async def test_after_a_refused_approval_the_reward_is_as_before(engine, prolific, state, status):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    await execute_sql(engine, "UPDATE payments SET state = :state, sending_at = created_at", state=state)
    prolific.trouble = fail_calls(PlainTextResponse("no", status))
    with pytest.raises((Conflict, BadGateway)):
        await decide(study, "approve")
    assert await study.rewards() == [("s1", state, 90)]


async def test_a_refused_approval_of_an_incomplete_submission_reserves_nothing(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await execute_sql(engine, "UPDATE assignments SET completed_at = NULL")
    await study.work_again(minutes=10)
    prolific.trouble = fail_calls(PlainTextResponse("no", 400))
    with pytest.raises(Conflict):
        await decide(study, "approve")
    assert await study.rewards() == [("s1", "cancelled", 90)]
