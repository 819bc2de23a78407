"""Decisions about answers: posteriors without them, made while people go on answering."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import text

from app.annotation.hits import submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns.empty_campaigns import revert_unanswered_to_draft_or_refuse
from app.database import exclusive_work
from app.database.bulk import open_snapshot
from app.database.session import create_engine, driver_of
from app.designs.answer import Answer
from app.errors import Conflict, NotFound
from app.imports.imported_hits_store import LOCK_RESPONSE_IMPORTS
from app.inference.online.law import AnsweredHit
from app.record import replay, revision_draft, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.campaigns.drafts import create_draft, import_results
from tests.inference.beliefs import posteriors_after
from tests.laws import SCORE_LAWS

POSTERIORS = "SELECT number, state, score, variance, judgments FROM current_posteriors ORDER BY number"


@pytest.fixture
def patient(monkeypatch):
    """Make the switch wait until the test lets it continue."""
    monkeypatch.setattr(revision_draft, "MIN_SWITCH_WAIT_MS", 30_000)
    monkeypatch.setattr(revision_draft, "MAX_SWITCH_WAIT_MS", 30_000)


async def decide(engine, campaign, kind="exclude", **about) -> int:
    async with engine.begin() as connection:
        seq = await decided(connection, campaign, kind, **about)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    return seq


async def decided(connection, campaign, kind="exclude", **about) -> int:
    what: Any
    ((what, number),) = about.items()
    return await revisions.store_decision_and_return_number(
        connection, campaign, kind, what, number, reason="too fast", actor="ada", now=NOW
    )


async def verified(engine, campaign) -> replay.Verification:
    async with open_snapshot(engine) as connection:
        return await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        )


@asynccontextmanager
async def answer_being_stored(engine, assignment, hit):
    """An answer that is stored, and whose transaction ends with the block."""
    async with engine.connect() as connection:
        driver = await driver_of(connection)
        async with driver.transaction():
            answer = Answer(dict.fromkeys(hit.items, 50.0))
            yield await submission.store_answer_of_hit_and_return_receipt(driver, assignment, hit.id, answer, now=NOW)


async def row_of(engine, assignment):
    """Return the annotator's row of an assignment."""
    return await fetch_value(
        engine, "SELECT annotator_id FROM assignments WHERE id = :assignment", **assignment.parameters
    )


async def answered(engine, *, people: int = 4, hits: int = 3, **settings):
    """Create a campaign in which each of some people answered some HITs, and return their rows."""
    campaign = await create_running_campaign(engine, judgments_per_item=50, items=30, **settings)
    assignments = [await create_annotator(engine, campaign, f"ann {k}") for k in range(people)]
    for k in range(hits):
        for n, assignment in enumerate(assignments):
            hit = await try_to_lease_hit(engine, assignment)
            await submit_scores(engine, assignment, hit, scores=[(7 * i + 13 * n + 31 * k) % 101 for i in hit.items])
    return campaign, [await row_of(engine, assignment) for assignment in assignments]


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_posteriors_are_those_of_a_campaign_without_the_excluded_annotators_answers(engine, law):
    campaign, (_, _, third, _) = await answered(engine, update_law=law, hits=5)
    before = await fetch_rows(engine, "SELECT state FROM current_posteriors ORDER BY number")
    await decide(engine, campaign, annotator=third)
    others = "SELECT annotator_id, items, values FROM responses WHERE annotator_id <> :id ORDER BY seq"
    answers = await fetch_rows(engine, others, id=third)
    hits = [AnsweredHit(who, items, [score / 100 for score in scores]) for who, items, scores in answers]
    alone = posteriors_after(campaign.law, 30, hits, campaign.criteria[0].law_parameters)
    after = await fetch_rows(engine, "SELECT state FROM current_posteriors ORDER BY number")
    assert after == [(state,) for state in alone.T.tolist()] != before
    assert await verified(engine, campaign) == replay.Verification(15, 30, 0, [])


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_who_is_included_again_counts_as_before_to_the_last_bit(engine, law):
    campaign, (first, *_) = await answered(engine, update_law=law)
    before = await fetch_rows(engine, POSTERIORS)
    await decide(engine, campaign, annotator=first)
    await decide(engine, campaign, "include", annotator=first)
    assert await fetch_rows(engine, POSTERIORS) == before
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_one_answer_can_be_left_out_and_its_annotators_others_count(engine):
    campaign, _ = await answered(engine)
    seq, items = (await fetch_rows(engine, "SELECT seq, items FROM responses ORDER BY seq OFFSET 4 LIMIT 1"))[0]
    before = {row[0]: row[4] for row in await fetch_rows(engine, POSTERIORS)}
    await decide(engine, campaign, "withdraw", response=seq)
    after = {row[0]: row[4] for row in await fetch_rows(engine, POSTERIORS)}
    assert {item for item in before if after[item] == before[item] - 1} == set(items)
    assert sum(after.values()) == sum(before.values()) - len(items)
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_every_decision_and_every_response_stays_in_the_record(engine):
    campaign, (first, *_) = await answered(engine)
    count = await fetch_value(engine, "SELECT count(*) FROM responses")
    seqs = [await decide(engine, campaign, kind, annotator=first) for kind in ("exclude", "include", "withdraw")]
    last_response = await fetch_value(engine, "SELECT max(seq) FROM responses")
    assert last_response < seqs[0] < seqs[1] < seqs[2]  # one sequence, so that it is known which came first
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == count
    told = await fetch_rows(engine, "SELECT kind, reason, decided_by, decided_at FROM decisions ORDER BY seq")
    assert told == [(kind, "too fast", "ada", NOW) for kind in ("exclude", "include", "withdraw")]
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 3


async def test_only_the_present_revision_is_kept(engine):
    campaign, (first, second, *_) = await answered(engine, update_law="easl-aware")
    await decide(engine, campaign, annotator=first)
    await decide(engine, campaign, annotator=second)
    for table in ("posteriors", "states"):
        assert await fetch_rows(engine, f"SELECT DISTINCT revision FROM {table}") == [(2,)]


async def test_a_revision_without_a_new_decision_changes_nothing(engine):
    campaign, _ = await answered(engine)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 0


async def test_later_answers_of_who_is_left_out_are_stored_and_count_for_nothing(engine):
    campaign, (first, *_) = await answered(engine)
    me = await create_annotator(engine, campaign, "ann 0")
    hit = await try_to_lease_hit(engine, me)
    await decide(engine, campaign, annotator=first)
    before = await fetch_rows(engine, POSTERIORS)
    receipt = await submit_scores(engine, me, hit)
    assert await fetch_value(engine, "SELECT count(*) FROM responses WHERE seq = :seq", seq=receipt.seq) == 1
    assert await fetch_rows(engine, POSTERIORS) == before
    assert (await verified(engine, campaign)).has_no_mismatches
    await decide(engine, campaign, "include", annotator=first)
    assert await fetch_rows(engine, POSTERIORS) != before
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_imported_answers_of_who_is_left_out_count_for_nothing(engine):
    campaign = await create_running_campaign(engine)
    row = "WorkerId,AssignmentId,Input.id1,Input.id2,Answer.range1,Answer.range2\nW1,{},v0,v1,10,90\n"
    await import_results(engine, campaign, row.format("A1"))
    worker = await fetch_value(engine, "SELECT id FROM annotators")
    await decide(engine, campaign, annotator=worker)
    await import_results(engine, campaign, row.format("A2"))
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 0
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_a_draft_has_nothing_to_decide_about(engine):
    campaign = await create_draft(engine)
    async with engine.begin() as connection:
        with pytest.raises(Conflict) as problem:
            await decided(connection, campaign, annotator=1)
    assert problem.value.code == "not_launched"


async def test_a_copy_of_the_posteriors_follows_though_judgments_become_fewer(engine):
    campaign, (first, *_) = await answered(engine)
    cache, me = PosteriorCache(), await create_annotator(engine, campaign, "somebody else")
    await try_to_lease_hit(engine, me, cache=cache)
    assert cache.indexes[campaign.id].index.judgments.sum() == 60
    await decide(engine, campaign, annotator=first)
    await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "another"), cache=cache)
    assert cache.indexes[campaign.id].index.judgments.sum() == 45


async def test_items_are_asked_anew_for_what_no_longer_counts(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=1, items=5)
    me = await create_annotator(engine, campaign, "careless")
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    await execute_sql(engine, "UPDATE campaigns SET status = 'running', finished_at = NULL")
    assert (
        await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "nobody is needed"))
    ).hit is None
    await execute_sql(engine, "UPDATE campaigns SET status = 'running', finished_at = NULL")
    await decide(engine, campaign, annotator=await row_of(engine, me))
    assert len((await try_to_lease_hit(engine, await create_annotator(engine, campaign, "careful"))).items) == 5


async def test_who_comes_back_can_complete_a_campaign(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=1, items=5)
    me = await create_annotator(engine, campaign, "careless")
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    await execute_sql(engine, "UPDATE campaigns SET status = 'running', finished_at = NULL")
    await decide(engine, campaign, annotator=await row_of(engine, me))
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "running"
    await decide(engine, campaign, "include", annotator=await row_of(engine, me))
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"


async def test_an_attempt_that_broke_off_is_simulated_for_at_the_next_start(engine):
    campaign, (first, *_) = await answered(engine, update_law="easl-aware")
    async with engine.begin() as connection:
        await decided(connection, campaign, annotator=first)
    before = await fetch_rows(engine, POSTERIORS)
    async with engine.connect() as holding:  # an answer that is being stored: the switch waits, and is killed
        await holding.execute(text("SELECT FROM campaigns FOR KEY SHARE"))
        attempt = asyncio.create_task(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW))
        await wait_until(engine, requests_are_waiting_sql(1))
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    assert await fetch_rows(engine, POSTERIORS) == before
    assert (await verified(engine, campaign)).has_no_mismatches
    assert await revisions.load_campaign_ids_due_for_revision(engine) == [campaign.id]
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await revisions.load_campaign_ids_due_for_revision(engine) == []
    assert await fetch_rows(engine, POSTERIORS) != before
    assert await fetch_rows(engine, "SELECT DISTINCT revision FROM posteriors") == [(1,)]
    assert (await verified(engine, campaign)).has_no_mismatches


@pytest.mark.parametrize("what", ["annotator", "response"])
async def test_nothing_is_decided_about_who_or_what_is_not_there(engine, what):
    campaign, _ = await answered(engine, hits=1)
    other, _ = await answered(engine, hits=1)
    theirs = await fetch_value(engine, f"SELECT max({'annotator_id' if what == 'annotator' else 'seq'}) FROM responses")
    for number in (99_999, theirs):  # the second is of another campaign
        async with engine.begin() as connection:
            with pytest.raises(NotFound) as problem:
                await decided(connection, campaign, **{what: number})
        assert problem.value.code == f"{what}_not_found"
    async with engine.begin() as connection:
        await decided(connection, other, **{what: theirs})


async def test_revisions_of_many_campaigns_at_once_take_one_connection(database_url):
    small = create_engine(database_url, pool_size=1)
    campaigns = [await answered(small, people=2, hits=2) for _ in range(4)]
    async with small.begin() as connection:
        for campaign, (first, _) in campaigns:
            await decided(connection, campaign, annotator=first)
    await asyncio.gather(
        *(revisions.switch_revision_if_it_misses_decisions(small, campaign.id, now=NOW) for campaign, _ in campaigns)
    )
    assert await fetch_rows(small, "SELECT DISTINCT revision FROM campaigns") == [(1,)]
    await small.dispose()


async def test_two_processes_that_revise_at_once_take_turns(engine, database_url):
    campaign, (first, *_) = await answered(engine, update_law="easl-aware")
    async with engine.begin() as connection:
        await decided(connection, campaign, annotator=first)
    other = create_engine(database_url, pool_size=1)
    async with revisions.hold_revision_work_during_block(other, campaign.id):
        waits = asyncio.create_task(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW))
        await asyncio.sleep(0.05)
        assert not waits.done()
    await waits
    await other.dispose()
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_a_change_during_a_long_revision_is_refused_with_its_reason(engine, monkeypatch):
    campaign = await create_running_campaign(engine)
    monkeypatch.setattr(exclusive_work, "MAX_WAIT_OF_TRANSACTION_SECONDS", 0.5)
    async with revisions.hold_revision_work_during_block(engine, campaign.id), engine.begin() as connection:
        with pytest.raises(Conflict, match="scores of this campaign are being computed again") as refusal:
            await revert_unanswered_to_draft_or_refuse(connection, campaign.slug)
    assert refusal.value.code == "revision_running"


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_an_answer_that_waits_for_the_switch_counts_in_the_new_revision(engine, patient, law):
    campaign, (first, *_) = await answered(engine, update_law=law)
    quick, slow = [await create_annotator(engine, campaign, name) for name in ("quick", "slow")]
    hits = [await try_to_lease_hit(engine, who) for who in (quick, slow)]
    async with engine.begin() as connection:
        await decided(connection, campaign, annotator=first)
    async with answer_being_stored(engine, quick, hits[0]):
        revising = asyncio.create_task(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW))
        await wait_until(engine, requests_are_waiting_sql(1))
        submitting = asyncio.create_task(submit_scores(engine, slow, hits[1]))
        await wait_until(engine, requests_are_waiting_sql(2))  # who comes after the switch does not pass it by
    await asyncio.gather(revising, submitting)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 14
    assert await fetch_rows(engine, "SELECT DISTINCT revision FROM posteriors") == [(1,)]
    assert await verified(engine, campaign) == replay.Verification(11, 30, 0, [])


async def test_the_switch_waits_for_an_import_that_has_begun_to_write(engine, patient):
    """Else it would wait for the campaign's row, and the import for the right to store."""
    campaign, (first, *_) = await answered(engine)
    async with engine.begin() as connection:
        await decided(connection, campaign, annotator=first)
    row = "WorkerId,AssignmentId,Input.id1,Input.id2,Answer.range1,Answer.range2\nW1,A1,v0,v1,10,90\n"
    async with engine.begin() as another_import:
        await another_import.execute(LOCK_RESPONSE_IMPORTS, {"campaign": campaign.id})
        importing = asyncio.create_task(import_results(engine, campaign, row))
        await wait_until(engine, requests_are_waiting_sql(1))
        revising = asyncio.create_task(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW))
        await wait_until(engine, requests_are_waiting_sql(2))
    await asyncio.gather(importing, revising)
    assert await fetch_rows(engine, "SELECT DISTINCT revision FROM posteriors") == [(1,)]
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_an_answer_in_time_that_meets_the_switch_is_still_in_time(engine, patient):
    """By then its items have fewer judgments to spare than late answers need, yet as many as its lease holds."""
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=3)
    people = [await create_annotator(engine, campaign, name) for name in ("excluded", "one", "two")]
    await submit_scores(engine, people[0], await try_to_lease_hit(engine, people[0]))
    excluded = await row_of(engine, people[0])
    await decide(engine, campaign, annotator=excluded)
    hits = [await try_to_lease_hit(engine, who) for who in people[1:]]
    third = await create_annotator(engine, campaign, "three")
    held = await try_to_lease_hit(engine, third)
    async with engine.begin() as connection:
        await decided(connection, campaign, "include", annotator=excluded)
    async with engine.connect() as holding:
        await holding.execute(text("SELECT FROM campaigns FOR KEY SHARE"))
        revising = asyncio.create_task(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW))
        await wait_until(engine, requests_are_waiting_sql(1))
        submitting = asyncio.create_task(submit_scores(engine, people[1], hits[0]))
        await wait_until(engine, requests_are_waiting_sql(2))
    await asyncio.gather(revising, submitting)
    assert held.id
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM current_posteriors") == [(2,)]
    assert (await verified(engine, campaign)).has_no_mismatches
