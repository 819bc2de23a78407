"""Answers that are stored together: each has its own outcome, and all of them the same bits as one after another."""

import asyncio
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from asyncpg import InterfaceError, LockNotAvailableError

from app.annotation.hits import submission
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.next_hit import HitOnPage
from app.annotation.platforms.assignments import AssignmentId
from app.database.batch_queue import BatchQueue, Unserved
from app.database.bulk import open_snapshot
from app.database.session import ServingConnections, borrow_autocommit_driver, borrow_driver_in_transaction
from app.designs.answer import Answer, AnswerByCriterion
from app.errors import Gone, Invalid, NotFound
from app.record.replay import verify_by_replay_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    begin_session_with_short_lock_timeout,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    try_to_lease_hit,
    wait_until,
)
from tests.laws import SCORE_LAWS


async def lease_to_each(engine, campaign, people: int) -> list[tuple[AssignmentId, HitOnPage]]:
    """A HIT for each of so many annotators."""
    annotators = [await create_annotator(engine, campaign, f"a{k}") for k in range(people)]
    return [(annotator, await try_to_lease_hit(engine, annotator)) for annotator in annotators]


def answer_to(leased: tuple[AssignmentId, HitOnPage], score: float = 50.0) -> SubmittedAnswer:
    assignment, hit = leased
    scores = {item: min(100.0, score + place) for place, item in enumerate(hit.items)}
    return SubmittedAnswer(assignment, hit.id, Answer(scores), NOW)


async def store(engine, campaign, answers):
    async with borrow_autocommit_driver(engine) as connection:
        return await submission.store_answers_and_return_outcomes(
            connection, campaign.id, answers, cache=PosteriorCache()
        )


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_answers_stored_together_change_posteriors_like_one_after_another(engine, law):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=20, update_law=law)
    rng = np.random.default_rng(3)
    for size in (5, 1, 7):
        leased = [
            (person, await try_to_lease_hit(engine, person))
            for person in [await create_annotator(engine, campaign, f"{size}-{k}") for k in range(size)]
        ]
        answers = [answer_to(one, float(rng.integers(0, 90))) for one in leased]
        receipts = await store(engine, campaign, answers)
        assert [receipt.hit_id for receipt in receipts] == [hit.id for _, hit in leased]
        assert [receipt.seq for receipt in receipts] == sorted(receipt.seq for receipt in receipts)
    assert await fetch_value(engine, "SELECT count(DISTINCT transaction_id) FROM responses") == 3
    async with open_snapshot(engine) as connection:
        verification = await verify_by_replay_or_refuse(connection, campaign)
    assert (verification.responses, verification.has_no_mismatches) == (13, True)


async def test_several_criteria_learn_from_all_answers_of_a_batch(engine):
    criteria = [{"name": name, "question": f"How {name}?"} for name in ("fluent", "true")]
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=20, criteria=criteria)
    answers = []
    for place, (assignment, hit) in enumerate(await lease_to_each(engine, campaign, 4)):
        parts = {
            name: Answer({item: float(20 * place + shift) for item in hit.items})
            for name, shift in (("fluent", 0), ("true", 7))
        }
        answers.append(SubmittedAnswer(assignment, hit.id, AnswerByCriterion(parts), NOW))
    receipts = await store(engine, campaign, answers)
    assert all(isinstance(receipt, AnswerReceipt) for receipt in receipts)
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


async def test_a_bad_answer_fails_alone(engine):
    campaign = await create_running_campaign(engine, items=30)
    good, incomplete, last = await lease_to_each(engine, campaign, 3)
    assignment, hit = incomplete
    stranger = SubmittedAnswer(assignment, last[1].id, Answer(dict.fromkeys(last[1].items, 5.0)), NOW)
    answers = [
        answer_to(good),
        SubmittedAnswer(assignment, hit.id, Answer({hit.items[0]: 5.0}), NOW),
        SubmittedAnswer(assignment, 2**40, Answer({}), NOW),
        answer_to(last),
    ]
    outcomes = await store(engine, campaign, answers)
    assert [type(outcome) for outcome in outcomes] == [AnswerReceipt, Invalid, NotFound, AnswerReceipt]
    assert [outcome.code for outcome in outcomes[1:3]] == ["scores_missing", "hit_not_found"]
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2
    assert await fetch_rows(engine, "SELECT id FROM hits WHERE closed_at IS NULL") == [(hit.id,)]
    (refusal,) = await store(engine, campaign, [stranger])
    assert refusal.code == "hit_not_found"
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


async def test_an_answer_that_postgresql_cannot_store_fails_alone(engine):
    """The others are stored, each in a transaction of its own."""
    campaign = await create_running_campaign(engine, items=30)
    good, bad, last = await lease_to_each(engine, campaign, 3)
    await execute_sql(engine, f"ALTER TABLE responses ADD CONSTRAINT unlucky CHECK (hit_id <> {bad[1].id})")
    connections = ServingConnections(engine, 1)
    queue = BatchQueue(connections, partial(submission.store_answers_and_return_outcomes, cache=PosteriorCache()))
    try:
        outcomes = await asyncio.gather(
            *(queue.submit_and_await_reply(campaign.id, answer_to(one)) for one in (good, bad, last)),
            return_exceptions=True,
        )
    finally:
        await connections.close()
        await execute_sql(engine, "ALTER TABLE responses DROP CONSTRAINT unlucky")
    assert [isinstance(outcome, AnswerReceipt) for outcome in outcomes] == [True, False, True]
    assert "unlucky" in str(outcomes[1])
    assert await fetch_rows(engine, "SELECT id FROM hits WHERE closed_at IS NULL") == [(bad[1].id,)]
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


async def test_of_two_answers_to_a_hit_in_one_batch_the_first_counts(engine):
    campaign = await create_running_campaign(engine)
    (leased,) = await lease_to_each(engine, campaign, 1)
    first, second = await store(engine, campaign, [answer_to(leased, 10), answer_to(leased, 90)])
    assert (first.repeated, second.repeated, first.seq) == (False, True, second.seq)
    assert await fetch_value(engine, "SELECT values[1] FROM responses") == 10.0


async def test_an_answer_in_time_after_a_refused_one_to_the_same_hit_is_not_late(engine):
    campaign = await create_running_campaign(engine)
    (leased,) = await lease_to_each(engine, campaign, 1)
    await execute_sql(engine, "UPDATE campaigns SET status = 'finished'")  # a late answer would be refused
    empty = replace(answer_to(leased), submitted=Answer({}))
    refused, stored, again = await store(engine, campaign, [empty, answer_to(leased), answer_to(leased)])
    assert isinstance(refused, Invalid)
    assert (stored.repeated, again.repeated, again.seq) == (False, True, stored.seq)


async def test_answers_keep_their_receipts_if_the_connection_is_lost_before_a_late_one(engine):
    campaign = await create_running_campaign(engine, items=60)
    in_time, late, later = await lease_to_each(engine, campaign, 3)
    for _, hit in (late, later):
        await expire_leases(engine, hit)
    answers = [answer_to(leased) for leased in (in_time, late, later)]
    async with borrow_driver_in_transaction(engine) as holding:
        items = {*late[1].items} - {*in_time[1].items}
        await holding.execute("SELECT FROM posteriors WHERE subject = ANY($1) FOR NO KEY UPDATE", items)
        async with borrow_autocommit_driver(engine) as connection:
            storing = asyncio.create_task(
                submission.store_answers_and_return_outcomes(connection, campaign.id, answers, cache=PosteriorCache())
            )
            await wait_until(engine, requests_are_waiting_sql(1))
            connection.terminate()
            receipt, problem, unserved = await storing
    assert isinstance(receipt, AnswerReceipt)
    assert (receipt.hit_id, receipt.repeated) == (in_time[1].id, False)
    assert isinstance(problem, InterfaceError | ConnectionError)
    assert isinstance(unserved, Unserved)
    assert unserved.request is answers[2]
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_late_answers_do_not_go_over_the_wanted_number_beside_answers_in_time(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    late, in_time = [await create_annotator(engine, campaign, name) for name in ("late", "in time")]
    given_up = (late, await try_to_lease_hit(engine, late))
    await expire_leases(engine)
    held = (in_time, await try_to_lease_hit(engine, in_time))
    refusal, receipt = await store(engine, campaign, [answer_to(given_up), answer_to(held)])
    assert isinstance(refusal, Gone)
    assert not receipt.repeated
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM posteriors") == [(1,)]
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"


async def test_of_late_answers_in_one_batch_as_many_are_taken_as_items_want(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    leased = []
    for name in ("first", "second"):
        person = await create_annotator(engine, campaign, name)
        leased.append((person, await try_to_lease_hit(engine, person)))
        await expire_leases(engine)
    receipt, refusal = await store(engine, campaign, [answer_to(one) for one in leased])
    assert isinstance(receipt, AnswerReceipt)
    assert isinstance(refusal, Gone)
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM posteriors") == [(1,)]


async def test_a_person_who_cannot_judge_an_item_counts_once_however_many_answers_say_so(engine):
    campaign = await create_running_campaign(
        engine, items=3, items_per_hit=3, judgments_per_item=9, cannot_be_judged=True, unjudged_reasons=[]
    )
    visits = [await create_annotator(engine, campaign, "ann", "mturk", assignment=f"{k}") for k in range(2)]
    leased = [(visit, await try_to_lease_hit(engine, visit)) for visit in visits]
    unclear = leased[0][1].items[0]
    answers = [
        SubmittedAnswer(
            visit, hit.id, Answer({i: 50.0 for i in hit.items if i != unclear}, unjudged={unclear: ""}), NOW
        )
        for visit, hit in leased
    ]
    receipts = await store(engine, campaign, answers)
    assert all(isinstance(receipt, AnswerReceipt) for receipt in receipts)
    assert await fetch_value(engine, "SELECT count(DISTINCT transaction_id) FROM responses") == 1
    assert await fetch_value(engine, "SELECT unjudged FROM posteriors WHERE subject = :item", item=unclear) == 1
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


async def test_two_batches_that_share_hits_and_items_in_opposite_order_do_not_deadlock(engine):
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=50)
    leased = await lease_to_each(engine, campaign, 8)
    answers = [answer_to(one, 10.0 * place) for place, one in enumerate(leased)]
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM posteriors WHERE subject = 3 FOR NO KEY UPDATE")
        batches = [
            asyncio.create_task(store(engine, campaign, order)) for order in (answers, answers[::-1], answers[::2])
        ]
        await wait_until(engine, requests_are_waiting_sql(3))
    outcomes = [outcome for batch in await asyncio.gather(*batches) for outcome in batch]
    assert sum(not outcome.repeated for outcome in outcomes) == len(answers)
    assert len({(outcome.hit_id, outcome.seq) for outcome in outcomes}) == len(answers)
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches


async def test_a_late_answer_that_waits_for_a_lock_too_long_fails_alone(engine):
    campaign = await create_running_campaign(engine, items=60)
    late, in_time = await lease_to_each(engine, campaign, 2)
    await execute_sql(engine, f"UPDATE hits SET expires_at = now() - interval '1 hour' WHERE id = {late[1].id}")
    answers = [answer_to(in_time), answer_to(late)]
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(f"SELECT FROM posteriors WHERE subject = {late[1].items[0]} FOR NO KEY UPDATE")
        async with begin_session_with_short_lock_timeout(engine) as connection:
            receipt, problem = await submission.store_answers_and_return_outcomes(
                connection, campaign.id, answers, cache=PosteriorCache()
            )
    assert isinstance(receipt, AnswerReceipt)
    assert isinstance(problem, LockNotAvailableError)
    again = await store(engine, campaign, answers)
    assert [outcome.repeated for outcome in again] == [True, False]


async def test_a_late_answer_locks_all_items_of_its_hit_in_their_order(engine):
    """Those that every HIT shows, too: an answer in time locks them in this order."""
    campaign = await create_running_campaign(engine, items=6, items_per_hit=6)
    (late,) = await lease_to_each(engine, campaign, 1)
    await execute_sql(engine, "UPDATE campaigns SET always_shown = '{0}'")
    await expire_leases(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM posteriors WHERE subject = 0 FOR NO KEY UPDATE")
        storing = asyncio.create_task(store(engine, campaign, [answer_to(late)]))
        await wait_until(engine, requests_are_waiting_sql(1))
        async with borrow_driver_in_transaction(engine) as free:
            await free.execute("SELECT FROM posteriors WHERE subject > 0 FOR NO KEY UPDATE NOWAIT")
    (receipt,) = await storing
    assert not receipt.repeated
