"""Answers that are stored while a revision is made are in it once it is the present one."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.database.session import LOCK_NOT_AVAILABLE_CODE, sqlstate_of_error_or_empty
from app.record import law_storage, revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.hits.criteria import answer_all_hits, create_campaign_with_criteria
from tests.annotation.hits.test_unjudged import answer
from tests.campaigns.drafts import replay_is_clean


@asynccontextmanager
async def revision_in_the_making(engine, campaign):
    """A draft of the next revision, which is made the present one at the end."""
    async with (
        revisions.hold_revision_work_during_block(engine, campaign.id) as claim,
        engine.connect() as connection,
    ):
        draft = await revisions.create_revision_draft_or_none_if_not_needed(
            connection, claim, campaign.id, even_if_current=True, by_newest_edition=False
        )
        assert draft is not None
        yield draft
        await revisions.finish_draft_and_switch_to_it(connection, draft, now=NOW)


async def test_items_that_cannot_be_judged_are_counted(engine):
    campaign = await create_running_campaign(engine, items=4, items_per_hit=2, cannot_be_judged=True)
    before, during = [await create_annotator(engine, campaign, name) for name in ("before", "during")]
    hit = await try_to_lease_hit(engine, before)
    await answer(engine, before, hit, hit.items[:1])
    later = [await try_to_lease_hit(engine, who) for who in (before, during)]
    async with revision_in_the_making(engine, campaign):
        for who, one in zip((before, during), later, strict=True):
            await answer(engine, who, one, one.items)
    expected = {(item, who) for who, one in zip((before, during), later, strict=True) for item in one.items}
    expected.add((hit.items[0], before))
    counts = {item: sum(one == item for one, _ in expected) for item, _ in expected}
    stored = await fetch_rows(engine, "SELECT number, unjudged FROM current_posteriors WHERE unjudged > 0")
    assert dict(stored) == counts
    assert await replay_is_clean(engine, campaign.slug)


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_all_of_them_count_by_every_criterion(engine, law):
    campaign = await create_campaign_with_criteria(engine, update_law=law)
    async with revision_in_the_making(engine, campaign):
        await answer_all_hits(engine, campaign, people=2, hits=2)
    judgments = "SELECT criterion, sum(judgments) FROM posteriors GROUP BY 1 ORDER BY 1"
    assert await fetch_rows(engine, judgments) == [(0, 20), (1, 20)]
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_an_answer_that_is_stored_while_a_revision_replays_counts_once(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    async with engine.begin() as holding:  # a replay reads the items first, and no answer does
        await holding.execute(text("LOCK TABLE items IN ACCESS EXCLUSIVE MODE"))
        revising = asyncio.create_task(revisions.switch_to_revision_from_same_answers(engine, campaign.id, now=NOW))
        await wait_until(engine, requests_are_waiting_sql(1))
        await submit_scores(engine, me, hit)
    await revising
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == len(hit.items)
    assert await replay_is_clean(engine, campaign.slug)


async def test_the_rows_of_the_earlier_revision_are_kept_while_a_transaction_may_still_use_them(engine):
    """The wait for it ends soon, so that others, which wait behind it, can store; then it begins again."""
    campaign = await create_running_campaign(engine)
    async with revision_in_the_making(engine, campaign) as draft, engine.connect() as waiting:
        async with engine.begin() as storing:
            await storing.execute(law_storage.SHARE_STORE_LOCK, {"campaign": campaign.id})
            async with asyncio.timeout(20):
                with pytest.raises(DBAPIError) as problem:
                    await revisions.wait_for_storing_transactions_to_end(waiting, draft)
        assert sqlstate_of_error_or_empty(problem.value) == LOCK_NOT_AVAILABLE_CODE
        assert await revisions.wait_for_storing_transactions_to_end(waiting, draft)


async def test_a_switch_waits_longer_each_time_that_an_answer_is_being_stored(engine):
    campaign = await create_running_campaign(engine)
    async with revision_in_the_making(engine, campaign) as draft, engine.connect() as switching:
        first_patience = draft.lock_timeout_parameters
        async with engine.begin() as storing:
            await storing.execute(law_storage.SHARE_STORE_LOCK, {"campaign": campaign.id})
            assert not await revisions.catch_up_and_try_to_switch_to_draft(switching, draft)
        assert draft.lock_timeout_parameters["milliseconds"] > first_patience["milliseconds"]
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 1


async def test_an_answer_of_an_annotator_who_is_left_out_does_not_count(engine):
    campaign = await create_running_campaign(engine)
    out, other = [await create_annotator(engine, campaign, name) for name in ("out", "other")]
    hits = [await try_to_lease_hit(engine, who) for who in (out, other)]
    who = await fetch_value(engine, "SELECT annotator_id FROM assignments WHERE id = :id", id=out.assignment_id)
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", who, reason="bot", actor="ada", now=NOW
        )
    async with revision_in_the_making(engine, campaign):
        await submit_scores(engine, out, hits[0])
        await submit_scores(engine, other, hits[1])
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 5
    assert await replay_is_clean(engine, campaign.slug)


async def test_with_many_answers_missing_a_draft_is_not_switched_to_and_may_have_more_left_the_next_time(engine):
    """No annotator could store an answer meanwhile."""
    campaign = await create_running_campaign(engine, update_law="easl-aware", items=30)
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(5)]
    hits = [await try_to_lease_hit(engine, who) for who in people]
    async with revision_in_the_making(engine, campaign) as draft, engine.connect() as switching:
        most = draft.max_answers_left
        for who, hit in zip(people, hits, strict=True):
            await submit_scores(engine, who, hit)
        assert await revisions.apply_last_answers_and_try_switch_to_draft(switching, draft) is False
        assert draft.failed_attempts == 1
        assert draft.max_answers_left == 2 * most
        assert await fetch_value(engine, "SELECT revision FROM campaigns") == 0
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 25
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_draft_does_not_replace_a_revision_that_came_before_it(engine):
    campaign = await create_running_campaign(engine)
    with pytest.raises(RuntimeError, match="another process has made revision 1"):
        async with revision_in_the_making(engine, campaign):
            await execute_sql(engine, "UPDATE campaigns SET revision = 1")


async def test_another_problem_than_a_wait_for_a_lock_ends_a_revision(engine):
    campaign = await create_running_campaign(engine)
    async with revision_in_the_making(engine, campaign) as draft, engine.connect() as connection:
        failing = connection.execute(text("SELECT 1 / 0"))
        with pytest.raises(DBAPIError, match="division by zero"):
            await revisions.try_locking_work_with_timeout(failing, draft)
        assert draft.failed_attempts == 0


async def test_a_process_makes_a_revision_with_connections_of_its_own(engine, database_url):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    who = await fetch_value(engine, "SELECT annotator_id FROM responses")
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", who, reason="bot", actor="ada", now=NOW
        )
    await revisions.switch_to_new_revision_in_own_process(database_url, campaign.id, NOW)
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 0
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 1


async def test_a_revision_can_be_made_from_the_same_answers(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    before = await fetch_rows(engine, "SELECT number, state, judgments FROM current_posteriors ORDER BY number")
    await revisions.switch_to_revision_from_same_answers(engine, campaign.id, now=NOW)
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 1
    after = await fetch_rows(engine, "SELECT number, state, judgments FROM current_posteriors ORDER BY number")
    assert after == before
