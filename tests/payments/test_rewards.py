"""Rewards are money of the ledger: reserved while a submission waits, and settled by what the platform says of it."""

import asyncio
from datetime import timedelta

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse

from app.errors import Conflict
from app.payments.connections import (
    ConnectionSettings,
    check_and_store_payment_settings_or_refuse,
    forget_token_and_submissions_of_strangers,
    load_account_or_refuse,
)
from app.payments.decisions import SubmissionDecision, carry_out_submission_decision_or_refuse
from app.payments.ledger import load_ledger_totals, store_decision_on_payment_or_refuse
from app.payments.rewards import count_rewards_outside_ledger
from app.privacy.erasures import erase_person_and_return_erasure
from tests.annotation.hits.campaigns import execute_sql, fetch_value
from tests.payments.studies import create_study


async def let_easel_approve(study):
    await execute_sql(study.engine, "UPDATE payment_accounts SET approves = true")


async def approve(study, submission):
    decided = SubmissionDecision(submission, "approve")
    await carry_out_submission_decision_or_refuse(
        study.engine, study.connector, study.campaign, decided, clock=study.clock
    )


async def money_left(study):
    async with study.engine.begin() as connection:
        account = await load_account_or_refuse(connection, study.campaign)
        return (await load_ledger_totals(connection, study.campaign.id, account)).left


async def account_problem(study):
    return await fetch_value(study.engine, "SELECT problem FROM payment_accounts")


async def test_the_reward_of_a_complete_submission_that_waits_is_reserved(engine, prolific):
    study = await create_study(engine, prolific, budget=1_000)
    await execute_sql(engine, "UPDATE assignments SET completed_at = NULL WHERE external_id = 's2'")
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 90)]
    assert await money_left(study) == 910
    assert prolific.rewards_paid == []


async def test_approved_submissions_are_sent_rewards(engine, prolific):
    study = await create_study(engine, prolific)
    await let_easel_approve(study)
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90), ("s2", "sent", 90)]
    assert prolific.rewards_paid == ["s1", "s2"]


async def test_an_approval_by_hand_is_booked_as_sent(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.submissions["s1"]["status"] = "APPROVED"  # before Easel knew the submission
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90), ("s2", "prepared", 90)]
    prolific.submissions["s2"]["status"] = "APPROVED"
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90), ("s2", "sent", 90)]


@pytest.mark.parametrize("status", ["REJECTED", "RETURNED", "TIMED-OUT"])
async def test_the_reward_of_a_submission_that_is_not_paid_is_free_again(engine, prolific, status):
    study = await create_study(engine, prolific, people=1, budget=1_000)
    await study.work_again(minutes=10)
    prolific.submissions["s1"]["status"] = status
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "cancelled", 90)]
    assert await money_left(study) == 1_000
    prolific.submissions["s1"]["status"] = "AWAITING REVIEW"  # the rejection was taken back
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 90)]


async def test_a_submission_has_a_reward_of_its_own(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.submissions["s1"]["reward"] = 60  # before the study’s was raised
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 60), ("s2", "prepared", 90)]


@pytest.mark.parametrize("status", ["PARTIALLY APPROVED", "SCREENED OUT"])
async def test_a_payment_in_part_is_booked_with_its_part(engine, prolific, status):
    study = await create_study(engine, prolific)
    await study.work_again(minutes=10)
    for name, reward in (("s1", 40), ("s2", 90)):  # the second is the study's: no part is known
        prolific.submissions[name] |= {"status": status, "reward": reward}
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 40), ("s2", "cancelled", 90)]
    async with engine.begin() as connection:
        assert await count_rewards_outside_ledger(connection, study.campaign.id) == 1


async def test_the_paid_submission_of_a_person_who_never_came_is_counted_outside_the_ledger(engine, prolific):
    study = await create_study(engine, prolific, people=0)
    prolific.add("without", "APPROVED", person="a stranger")
    await study.work_again(minutes=10)
    assert await study.rewards() == []
    async with engine.begin() as connection:
        assert await count_rewards_outside_ledger(connection, study.campaign.id) == 1


async def test_rewards_and_bonuses_share_the_budget(engine, prolific):
    study = await create_study(engine, prolific, budget=200)
    await let_easel_approve(study)
    await study.add(("A1", 30))
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90)]
    assert prolific.rewards_paid == ["s1"]
    assert "no room for the reward of 1 submission" in await account_problem(study)
    with pytest.raises(Conflict) as refused:
        await approve(study, "s2")
    assert refused.value.code == "over_budget"
    with pytest.raises(Conflict) as refused:
        await study.add(("A1", 90), key="list 2")
    assert refused.value.code == "over_budget"
    await execute_sql(engine, "UPDATE payment_accounts SET budget = 210")
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s1", "s2"]
    assert await account_problem(study) == ""


async def test_a_budget_from_before_rewards_were_counted_covers_bonuses_alone_until_it_is_saved(engine, prolific):
    study = await create_study(engine, prolific, budget=100)
    await execute_sql(engine, "UPDATE payment_accounts SET budget_covers_rewards = false")
    await let_easel_approve(study)
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s1", "s2"]
    assert await money_left(study) == 100
    chosen = ConnectionSettings(workspace="workspace1", budget=200)
    await check_and_store_payment_settings_or_refuse(
        engine, study.connector, study.campaign, chosen, now=study.clock.now
    )
    assert await money_left(study) == 20


async def test_an_approval_without_a_reply_is_unclear_and_settled_by_the_status(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    prolific.after = lambda call: PlainTextResponse("", 504) if "transition" in call else None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "unknown", 90)]
    prolific.after = lambda _call: None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90)]
    assert sum("transition" in call for call in prolific.calls) == 1


async def test_an_unclear_approval_that_did_not_happen_is_asked_for_again(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    prolific.trouble = lambda call: PlainTextResponse("", 502) if "transition" in call else None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "unknown", 90)]
    prolific.trouble = lambda _call: None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90)]
    assert prolific.rewards_paid == ["s1"]


async def test_one_approval_without_a_reply_holds_up_no_other(engine, prolific):
    study = await create_study(engine, prolific)
    await let_easel_approve(study)
    prolific.trouble = lambda call: PlainTextResponse("", 502) if "s1/transition" in call else None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "unknown", 90), ("s2", "sent", 90)]
    assert "502" in await account_problem(study)


async def test_a_refused_approval_has_failed_until_a_person_approves_again(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    prolific.trouble = lambda call: JSONResponse({"error": {"detail": "no"}}, 400) if "s1/tr" in call else None
    await study.work_again(minutes=10)
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "failed", 90)]
    prolific.trouble = lambda _call: None
    await approve(study, "s1")
    assert await study.rewards() == [("s1", "sent", 90)]


async def test_an_approval_that_the_limit_of_calls_stopped_stays_reserved(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    prolific.trouble = lambda call: PlainTextResponse("", 429) if "transition" in call else None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 90)]


async def test_two_managers_who_approve_at_once_pay_once(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    await asyncio.gather(*(approve(study, "s1") for _ in range(4)), return_exceptions=True)
    assert prolific.rewards_paid == ["s1"]
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90)]


async def test_a_person_approves_a_submission_that_is_not_complete_here(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await execute_sql(engine, "UPDATE assignments SET completed_at = NULL")
    await study.work_again(minutes=10)
    assert await study.rewards() == []
    await approve(study, "s1")
    assert await study.rewards() == [("s1", "sent", 90)]


async def test_a_submission_whose_reward_was_not_read_yet_is_not_approved(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    await execute_sql(engine, "UPDATE submissions SET reward = NULL")
    with pytest.raises(Conflict) as refused:
        await approve(study, "s1")
    assert refused.value.code == "reward_unknown"


async def test_a_reward_that_is_no_bonus_is_neither_sent_nor_mistaken_for_one(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    await study.add(("A1", 90))  # the amount of the reward
    await study.send()
    await study.work_again(minutes=10)
    assert prolific.paid_by_submission() == {"s1": [90]}
    assert await study.states() == ["sent"]
    assert await study.rewards() == [("s1", "sent", 90)]


@pytest.mark.parametrize("decision", ["again", "cancel", "sent"])
async def test_a_reward_is_decided_by_its_submission(engine, prolific, decision):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    payment = await fetch_value(engine, "SELECT id FROM payments")
    with pytest.raises(Conflict) as refused:
        async with engine.begin() as connection:
            await store_decision_on_payment_or_refuse(
                connection, study.campaign, payment, decision, now=study.clock.now
            )
    assert refused.value.code == "payment_is_reward"


async def test_without_a_token_no_reward_stays_reserved(engine, prolific):
    study = await create_study(engine, prolific)
    await study.work_again(minutes=10)
    async with engine.begin() as connection:
        await forget_token_and_submissions_of_strangers(connection, study.campaign, now=study.clock.now)
    assert await study.rewards() == [("s1", "cancelled", 90), ("s2", "cancelled", 90)]


async def test_an_erased_person_keeps_one_reward_without_an_id(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    await study.work_again(minutes=10)
    await erase_person_and_return_erasure(engine, study.campaign.slug, "A1", "anonymise", now=study.clock.now)
    await study.work_again(minutes=10)
    ((submission, state, amount),) = await study.rewards()
    assert (submission[:7], state, amount) == ("erased:", "sent", 90)


async def test_a_submission_that_the_service_no_longer_lists_needs_no_money(engine, prolific):
    study = await create_study(engine, prolific)
    await study.work_again(minutes=10)
    del prolific.submissions["s1"]
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "cancelled", 90), ("s2", "prepared", 90)]


async def test_a_list_that_lags_behind_an_approval_pays_once(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    await study.work_again(minutes=10)
    outdated = {"results": [{"id": "s1", "participant_id": "p1", "status": "AWAITING REVIEW"}]}
    prolific.after = lambda call: JSONResponse(outdated) if call.endswith("/studies/study-1/submissions/") else None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "sent", 90)]
    assert prolific.rewards_paid == ["s1"]


async def test_an_unclear_reward_without_a_token_is_decided_by_a_person(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    prolific.after = lambda call: PlainTextResponse("", 504) if "transition" in call else None
    await study.work_again(minutes=10)
    async with engine.begin() as connection:
        await forget_token_and_submissions_of_strangers(connection, study.campaign, now=study.clock.now)
    payment = await fetch_value(engine, "SELECT id FROM payments")

    async def decide_after(minutes):
        now = study.clock.now + timedelta(minutes=minutes)
        async with engine.begin() as connection:
            await store_decision_on_payment_or_refuse(connection, study.campaign, payment, "sent", now=now)

    with pytest.raises(Conflict) as refused:
        await decide_after(29)
    assert refused.value.code == "too_early"
    await decide_after(31)
    assert await study.rewards() == [("s1", "sent", 90)]


async def test_a_reward_that_was_raised_at_the_platform_is_reserved_again(engine, prolific):
    study = await create_study(engine, prolific, budget=1_000)
    await study.work_again(minutes=10)
    prolific.studies["study-1"]["reward"] = 400
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 400), ("s2", "prepared", 400)]
    assert await money_left(study) == 200


async def test_a_raised_reward_beyond_the_budget_is_not_approved(engine, prolific):
    study = await create_study(engine, prolific, budget=600)
    await study.work_again(minutes=10)
    await let_easel_approve(study)
    prolific.studies["study-1"]["reward"] = 500
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == ["s1"]
    assert await study.rewards() == [("s1", "sent", 500), ("s2", "prepared", 90)]
    assert "no room for the reward of 1 submission" in await account_problem(study)
    with pytest.raises(Conflict) as refused:
        await approve(study, "s2")
    assert refused.value.code == "over_budget"


async def test_a_lowered_reward_frees_its_money_even_beyond_the_budget(engine, prolific):
    study = await create_study(engine, prolific, people=1, budget=1_000)
    await study.work_again(minutes=10)
    await execute_sql(engine, "UPDATE payment_accounts SET budget = 50")
    prolific.studies["study-1"]["reward"] = 80
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 80)]


@pytest.mark.parametrize("reward", [120, 1])  # more than the study's 90, or perhaps in another unit
async def test_an_implausible_reward_of_a_submission_is_not_believed(engine, prolific, reward):
    study = await create_study(engine, prolific, people=1)
    await let_easel_approve(study)
    prolific.submissions["s1"]["reward"] = reward
    await study.work_again(minutes=10)
    assert await study.rewards() == []
    assert prolific.rewards_paid == []
    assert "cannot read the reward of 1 submission" in await account_problem(study)


async def test_a_study_without_a_reward_is_a_problem(engine, prolific):
    study = await create_study(engine, prolific)
    await let_easel_approve(study)
    prolific.studies["study-1"]["reward"] = 0
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == []
    assert "cannot read the reward of 2 submissions" in await account_problem(study)


async def test_a_study_in_another_currency_is_neither_booked_nor_approved(engine, prolific):
    study = await create_study(engine, prolific)
    await let_easel_approve(study)
    prolific.cost_currency = "USD"
    prolific.submissions["s2"] |= {"status": "APPROVED", "reward": 60}
    await study.work_again(minutes=10)
    assert await study.rewards() == []
    assert prolific.rewards_paid == []
    assert "Study study-1 pays in USD, but this campaign pays in GBP" in await account_problem(study)


async def test_a_study_whose_currency_is_not_told_is_read(engine, prolific):
    study = await create_study(engine, prolific)
    prolific.trouble = lambda call: PlainTextResponse("", 404) if "/cost/" in call else None
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 90), ("s2", "prepared", 90)]


async def test_a_paid_submission_that_did_not_come_here_is_outside_the_ledger(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    prolific.add("other", "APPROVED", person="p1")  # for another campaign with the same study
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "prepared", 90)]
    async with engine.begin() as connection:
        assert await count_rewards_outside_ledger(connection, study.campaign.id) == 1


async def test_a_submission_that_one_reading_misses_is_still_asked_to_be_returned(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    decided = SubmissionDecision("s1", "request_return", message="Your answers are missing.")
    await carry_out_submission_decision_or_refuse(engine, study.connector, study.campaign, decided, clock=study.clock)
    await let_easel_approve(study)
    row = prolific.submissions.pop("s1")
    await study.work_again(minutes=10)
    assert await study.rewards() == [("s1", "cancelled", 90)]
    prolific.submissions["s1"] = row
    await study.work_again(minutes=10)
    assert prolific.rewards_paid == []
    assert await study.rewards() == [("s1", "prepared", 90)]
