"""The platform pays a submission once, so two campaigns that read its study have one reward for it."""

import asyncio
from dataclasses import replace

import pytest

from app.accounts.access import Access
from app.errors import Conflict
from app.payments.connections import ConnectionSettings, check_and_store_payment_settings_or_refuse
from app.payments.decisions import SubmissionDecision, carry_out_submission_decision_or_refuse
from app.payments.rewards import book_rewards_and_return_problems
from app.privacy.erasures import erase_person_and_return_erasure
from tests.annotation.hits.campaigns import NOW, create_annotator, create_running_campaign, execute_sql, fetch_rows
from tests.payments.fake_prolific import TOKEN
from tests.payments.studies import create_study, words

LIVE_REWARDS = """
    SELECT campaign_id, submission, state FROM payments WHERE kind = 'reward' AND state <> 'cancelled'
    ORDER BY submission, campaign_id
"""
COMPLETE_ALL = "UPDATE assignments SET completed_at = :now WHERE completed_at IS NULL"
RESERVE_TWICE = """
    INSERT INTO payments (campaign_id, annotator_id, submission, study, amount, currency, reason, request_key, line,
        created_by, created_at, kind)
    SELECT campaign_id, annotator_id, external_id, study, 90, 'GBP', '', 'reward ' || external_id, 1, 'Easel', :now,
        'reward'
    FROM submissions ORDER BY campaign_id
"""


async def create_two_studies(engine, prolific, *, people=1, budget=1_000):
    """Two campaigns of a workspace that both read study-1, with the same people and submissions."""
    first = await create_study(engine, prolific, people=people, budget=budget)
    return first, await create_campaign_that_reads_study_1(engine, first, "Other", people=people, budget=budget)


async def create_campaign_that_reads_study_1(engine, first, name, *, people, budget=1_000):
    """A campaign of the same workspace, with the same people and submissions as the first one."""
    other = await create_running_campaign(engine, name=name, currency="GBP")
    for number in range(1, people + 1):
        await create_annotator(engine, other, f"p{number}", "prolific", assignment=f"s{number}", STUDY_ID="study-1")
    await execute_sql(engine, COMPLETE_ALL, now=NOW)
    chosen = ConnectionSettings(token=TOKEN, workspace="workspace1", budget=budget)
    await check_and_store_payment_settings_or_refuse(engine, first.connector, other, chosen, now=NOW)
    await execute_sql(engine, "UPDATE payment_accounts SET study = 'study-1'")
    return replace(first, campaign=other)


async def approve(study, submission, access=None):
    decided = SubmissionDecision(submission, "approve")
    await carry_out_submission_decision_or_refuse(
        study.engine, study.connector, study.campaign, decided, clock=study.clock, access=access
    )


async def live_rewards(study):
    return await fetch_rows(study.engine, LIVE_REWARDS)


async def test_one_reward_is_reserved_and_booked_once(engine, prolific):
    first, _ = await create_two_studies(engine, prolific, people=2)
    await first.work_again(minutes=10)
    assert [(submission, state) for _, submission, state in await live_rewards(first)] == [
        ("s1", "prepared"),
        ("s2", "prepared"),
    ]
    for name in ("s1", "s2"):
        prolific.submissions[name]["status"] = "APPROVED"
    await first.work_again(minutes=10)
    await first.work_again(minutes=10)
    assert [(submission, state) for _, submission, state in await live_rewards(first)] == [
        ("s1", "sent"),
        ("s2", "sent"),
    ]


async def test_submissions_that_were_approved_before_easel_read_them_are_booked_once(engine, prolific):
    first, _ = await create_two_studies(engine, prolific, people=2)
    for name in ("s1", "s2"):
        prolific.submissions[name]["status"] = "APPROVED"
    await first.work_again(minutes=10)
    assert [(submission, state) for _, submission, state in await live_rewards(first)] == [
        ("s1", "sent"),
        ("s2", "sent"),
    ]


async def test_a_reward_that_was_reserved_twice_before_is_reserved_once_from_the_next_reading_on(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    await execute_sql(engine, "DELETE FROM payments")
    await execute_sql(engine, RESERVE_TWICE, now=NOW)
    assert len(await live_rewards(first)) == 2
    await first.work_again(minutes=10)
    assert await live_rewards(first) == [(first.campaign.id, "s1", "prepared")]
    prolific.submissions["s1"]["status"] = "APPROVED"
    await first.work_again(minutes=10)
    assert await live_rewards(first) == [(first.campaign.id, "s1", "sent")]
    assert await live_rewards(second) == await live_rewards(first)


async def test_a_person_approves_where_the_reward_is_reserved_and_is_told_so_elsewhere(engine, prolific, researcher):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    ((holder, *_),) = await live_rewards(first)
    holding, waiting = (first, second) if holder == first.campaign.id else (second, first)
    with pytest.raises(Conflict, match="Another campaign") as refused:
        await approve(waiting, "s1")
    assert refused.value.code == "reward_elsewhere"
    assert f"“{holding.campaign.name}”" in refused.value.message
    with pytest.raises(Conflict) as refused_to_stranger:
        await approve(waiting, "s1", Access(user_id=999, role="member"))
    assert refused_to_stranger.value.code == "reward_elsewhere"
    assert holding.campaign.name not in refused_to_stranger.value.message
    assert prolific.rewards_paid == []
    await approve(holding, "s1")
    assert prolific.rewards_paid == ["s1"]
    await first.work_again(minutes=10)
    assert await live_rewards(first) == [(holder, "s1", "sent")]
    page = await researcher.get(f"/admin/campaigns/{waiting.campaign.slug}/payments")
    assert "1 paid submission is not in these amounts" in words(page)


async def test_of_several_campaigns_with_the_reward_the_one_that_paid_is_named(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    third = await create_campaign_that_reads_study_1(engine, first, "Third", people=1)
    await first.work_again(minutes=10)
    await execute_sql(engine, "DELETE FROM payments")
    await execute_sql(engine, RESERVE_TWICE, now=NOW)
    await execute_sql(engine, "DELETE FROM payments WHERE campaign_id = :id", id=third.campaign.id)
    paid = "UPDATE payments SET state = 'sent', settled_at = :now WHERE campaign_id = :id"
    await execute_sql(engine, paid, now=NOW, id=second.campaign.id)
    assert [state for *_, state in await live_rewards(first)] == ["prepared", "sent"]
    with pytest.raises(Conflict, match=f"“{second.campaign.name}”"):
        await approve(third, "s1")


async def test_a_reward_goes_to_the_other_campaign_when_the_first_one_no_longer_reads_the_study(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    ((holder, *_),) = await live_rewards(first)
    await execute_sql(engine, "UPDATE payment_accounts SET study = '' WHERE campaign_id = :id", id=holder)
    await execute_sql(engine, "DELETE FROM submissions WHERE campaign_id = :id", id=holder)
    await first.work_again(minutes=10)
    await first.work_again(minutes=10)
    ((new_holder, *_),) = await live_rewards(first)
    assert {holder, new_holder} == {first.campaign.id, second.campaign.id}


def holder_and_other(rewards, first, second):
    """The study whose campaign has the one live reward, and the other one."""
    ((holder, *_),) = rewards
    return (first, second) if holder == first.campaign.id else (second, first)


async def erase_p1(study):
    """Erase the person of submission s1 from a campaign."""
    ((name,),) = await fetch_rows(
        study.engine,
        "SELECT n.name FROM named_annotators n JOIN annotators a ON a.id = n.id AND a.campaign_id = n.campaign_id "
        "WHERE n.campaign_id = :id AND a.worker_id = 'p1'",
        id=study.campaign.id,
    )
    await erase_person_and_return_erasure(
        study.engine, study.campaign.slug, name, "anonymise", now=study.clock.now, requested_by="Ann"
    )


async def test_a_reward_counts_once_after_its_person_was_erased_where_it_was_booked(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    prolific.submissions["s1"]["status"] = "APPROVED"
    await first.work_again(minutes=10)
    holder, _ = holder_and_other(await live_rewards(first), first, second)
    await erase_p1(holder)
    await first.work_again(minutes=10)
    await first.work_again(minutes=10)
    ((campaign, submission, state),) = await live_rewards(first)
    assert (campaign, state) == (holder.campaign.id, "sent")
    assert submission.startswith("erased:")


async def test_a_reserved_reward_of_an_erased_person_is_reserved_in_the_campaign_that_still_knows_them(
    engine, prolific
):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    holder, other = holder_and_other(await live_rewards(first), first, second)
    await erase_p1(holder)
    await first.work_again(minutes=10)
    await first.work_again(minutes=10)
    assert await live_rewards(first) == [(other.campaign.id, "s1", "prepared")]


async def test_a_reward_counts_once_although_its_campaign_moved_to_another_workspace(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    prolific.submissions["s1"]["status"] = "APPROVED"
    await first.work_again(minutes=10)
    holder, _ = holder_and_other(await live_rewards(first), first, second)
    await execute_sql(
        engine,
        "UPDATE payment_accounts SET workspace = 'workspace2' WHERE campaign_id = :id",
        id=holder.campaign.id,
    )
    await first.work_again(minutes=10)
    assert await live_rewards(first) == [(holder.campaign.id, "s1", "sent")]


async def test_a_reward_that_was_booked_before_hashes_were_stored_counts_once(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    prolific.submissions["s1"]["status"] = "APPROVED"
    await first.work_again(minutes=10)
    holder, _ = holder_and_other(await live_rewards(first), first, second)
    await execute_sql(engine, "UPDATE payments SET submission_hash = NULL")
    await first.work_again(minutes=10)
    await erase_p1(holder)
    await first.work_again(minutes=10)
    ((campaign, _, state),) = await live_rewards(first)
    assert (campaign, state) == (holder.campaign.id, "sent")


LEAVING = {
    "removed its study": "UPDATE payment_accounts SET study = '' WHERE campaign_id = :id",
    "removed its token": "UPDATE payment_accounts SET token = NULL, due_at = NULL WHERE campaign_id = :id",
}


@pytest.mark.parametrize("second_reads", [True, False])
@pytest.mark.parametrize("state_of_first", ["unknown", "sent"])
async def test_a_reward_that_is_unclear_in_two_campaigns_is_booked_in_one(
    engine, prolific, state_of_first, second_reads
):
    """As before Easel compared campaigns, when a person could approve a submission in both."""
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    await execute_sql(engine, "DELETE FROM payments")
    await execute_sql(engine, RESERVE_TWICE, now=first.clock.now)
    await execute_sql(
        engine, "UPDATE payments SET state = 'unknown', sending_at = :now, batch = 'b'", now=first.clock.now
    )
    await execute_sql(
        engine,
        "UPDATE payments SET state = :state, settled_at = CASE WHEN :state = 'sent' THEN CAST(:now AS timestamptz) END "
        "WHERE campaign_id = :id",
        state=state_of_first,
        now=first.clock.now,
        id=first.campaign.id,
    )
    if not second_reads:
        await execute_sql(engine, LEAVING["removed its study"], id=second.campaign.id)
    prolific.submissions["s1"]["status"] = "APPROVED"
    await first.work_again(minutes=10)
    await first.work_again(minutes=10)
    ((_, submission, state),) = await live_rewards(first)
    assert (submission, state) == ("s1", "sent")


@pytest.mark.parametrize("leaving", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize(("status", "holds_in_the_end"), [("APPROVED", True), ("AWAITING REVIEW", False)])
async def test_an_unclear_reward_of_a_campaign_that_no_longer_reads_is_settled_by_the_one_that_does(
    engine, prolific, leaving, status, holds_in_the_end
):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    holder, other = holder_and_other(await live_rewards(first), first, second)
    await execute_sql(
        engine, "UPDATE payments SET state = 'unknown', sending_at = :now, batch = 'b'", now=first.clock.now
    )
    await execute_sql(engine, leaving, id=holder.campaign.id)
    await execute_sql(engine, "DELETE FROM submissions WHERE campaign_id = :id", id=holder.campaign.id)
    prolific.submissions["s1"]["status"] = status
    first.clock.advance(minutes=10)
    await execute_sql(engine, "UPDATE payment_accounts SET due_at = :now WHERE token IS NOT NULL", now=first.clock.now)
    await first.work.pay_and_reconcile_due_campaigns()
    expected = (holder.campaign.id, "s1", "sent") if holds_in_the_end else (other.campaign.id, "s1", "prepared")
    assert await live_rewards(first) == [expected]


async def test_a_bonus_of_the_campaign_that_settles_an_unclear_reward_is_not_taken_for_it(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    holder, other = holder_and_other(await live_rewards(first), first, second)
    await other.add(("p1", 50))
    await execute_sql(engine, "UPDATE payments SET state = 'sent', settled_at = :now WHERE kind = 'bonus'", now=NOW)
    await execute_sql(
        engine, "UPDATE payments SET state = 'unknown', sending_at = :now WHERE kind = 'reward'", now=first.clock.now
    )
    await execute_sql(engine, LEAVING["removed its study"], id=holder.campaign.id)
    prolific.submissions["s1"]["status"] = "APPROVED"
    await other.work_again(minutes=10)
    assert await live_rewards(first) == [(holder.campaign.id, "s1", "sent")]


async def test_an_unclear_reward_of_a_campaign_that_still_reads_stays_there(engine, prolific):
    first, second = await create_two_studies(engine, prolific)
    await first.work_again(minutes=10)
    holder, _ = holder_and_other(await live_rewards(first), first, second)
    await execute_sql(
        engine, "UPDATE payments SET state = 'unknown', sending_at = :now, batch = 'b'", now=first.clock.now
    )
    await first.work_again(minutes=10)
    assert await live_rewards(first) == [(holder.campaign.id, "s1", "prepared")]


async def test_a_hundred_readings_at_once_reserve_each_reward_once_and_pass_no_budget(engine, prolific):
    """12 submissions of 0.90: each campaign has room for 5 of them, so 10 rewards are reserved, and 2 wait."""
    first, second = await create_two_studies(engine, prolific, people=12, budget=5 * 90 + 89)
    await execute_sql(engine, "UPDATE payment_accounts SET budget = 0")  # so that this reading reserves nothing
    await first.work_again(minutes=10)
    assert await live_rewards(first) == []
    await execute_sql(engine, "UPDATE payment_accounts SET budget = :budget", budget=5 * 90 + 89)
    campaigns = [first.campaign.id, second.campaign.id]
    await asyncio.gather(
        *(book_rewards_and_return_problems(engine, campaigns[k % 2], now=first.clock.now) for k in range(100))
    )
    rewards = await live_rewards(first)
    assert len({submission for _, submission, _ in rewards}) == len(rewards) == 10
    assert [sum(holder == campaign for holder, *_ in rewards) for campaign in campaigns] == [5, 5]
