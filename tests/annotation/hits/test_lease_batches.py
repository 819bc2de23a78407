"""Annotators that get their next HITs together: each as if they had asked alone."""

import asyncio
from collections import Counter

import numpy as np
import pytest
from asyncpg import LockNotAvailableError

from app.annotation.hits import leases
from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.leases import LeaseBatch, NextHitRequest, PendingRequest
from app.annotation.hits.next_hit import NextHit
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import borrow_autocommit_driver, borrow_driver_in_transaction
from app.errors import NotFound
from app.quality.decisions import hold_annotator
from tests.annotation.hits.campaigns import (
    LOCK_ROOM_OF_EACH_CAMPAIGN,
    NOW,
    begin_session_with_short_lock_timeout,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)


async def ask_together(engine, campaign, assignments, *, cache=None):
    """The next HITs of all these assignments, and the statements that were sent for them."""
    requests = [NextHitRequest(AssignmentQuery(assignment), NOW) for assignment in assignments]
    statements = []
    async with borrow_autocommit_driver(engine) as connection:
        with connection.query_logger(lambda logged: statements.append(logged.query)):
            outcomes = await leases.find_or_lease_next_hits(
                connection, campaign.id, requests, cache=cache or PosteriorCache()
            )
            await asyncio.sleep(0)  # asyncpg calls loggers in the next round of the loop
    # Each connection asks for the types of columns once.
    return outcomes, [statement for statement in statements if "standing" in statement or "easel_" in statement]


async def create_crowd(engine, campaign, people, **more):
    return [await create_annotator(engine, campaign, f"a{k}", **more) for k in range(people)]


async def test_two_statements_serve_all_annotators_of_a_batch(engine):
    campaign = await create_running_campaign(engine, items=200)
    crowd, cache = await create_crowd(engine, campaign, 8), PosteriorCache()
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "first"), cache=cache)
    warm = await create_annotator(engine, campaign, "second")
    await ask_together(engine, campaign, [warm], cache=cache)
    outcomes, statements = await ask_together(engine, campaign, crowd, cache=cache)
    assert len(statements) == 2
    assert len({outcome.hit.id for outcome in outcomes}) == 8
    rows = await fetch_rows(engine, "SELECT id, assignment_id, items FROM hits")
    stored = {assignment: (hit, items) for hit, assignment, items in rows}
    for assignment, outcome in zip(crowd, outcomes, strict=True):
        assert stored[assignment.assignment_id] == (outcome.hit.id, outcome.hit.items)
        assert outcome.hit.texts == [f"verb {item}" for item in outcome.hit.items]
    assert len({items[0] for _, items in stored.values()}) > 1


@pytest.mark.parametrize(("selection", "holders"), [("streaming", 2), ("iterations", 1)])  # an iteration asks once
async def test_no_item_is_held_more_often_than_it_wants_judgments(engine, selection, holders):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=2, selection=selection)
    outcomes, _ = await ask_together(engine, campaign, await create_crowd(engine, campaign, 9))
    held = Counter(item for outcome in outcomes if outcome.hit for item in outcome.hit.items)
    assert held == dict.fromkeys(range(10), holders)
    assert {outcome.reason for outcome in outcomes if not outcome.hit} == {"wait"}


async def test_two_requests_of_one_visit_get_the_same_hit(engine):
    campaign = await create_running_campaign(engine)
    me, other = await create_crowd(engine, campaign, 2)
    first, elsewhere, second = (await ask_together(engine, campaign, [me, other, me]))[0]
    assert first.hit.id == second.hit.id != elsewhere.hit.id
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 2


async def test_an_assignment_that_is_gone_fails_alone(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    gone = AssignmentId(campaign.id, 2**40)
    problem, work = (await ask_together(engine, campaign, [gone, me]))[0]
    assert isinstance(problem, NotFound)
    assert work.hit is not None


async def test_a_request_that_is_drawing_is_served_once_another_one_has_turned_out_to_be_gone(engine):
    """One is drawn for after a lost race, without a new read of open HITs for it; the other one is read again."""
    campaign, cache = await create_running_campaign(engine), PosteriorCache()
    me, gone = await create_annotator(engine, campaign), AssignmentId(campaign.id, 2**40)
    async with borrow_autocommit_driver(engine) as connection:
        state = await load_assignment_updating_posteriors_or_refuse(connection, cache, AssignmentQuery(me))
        requests = [
            PendingRequest(NextHitRequest(AssignmentQuery(gone), NOW)),
            PendingRequest(NextHitRequest(AssignmentQuery(me), NOW), state, has_redrawn=True),
        ]
        problem, work = await LeaseBatch(connection, cache, campaign.id, requests).serve_all_requests()
    assert isinstance(problem, NotFound)
    assert isinstance(work, NextHit)
    assert work.hit is not None


async def test_visits_of_one_person_in_a_batch_do_not_go_over_the_limit_and_share_no_item(engine):
    campaign = await create_running_campaign(engine, items=30, hits_per_annotator=2, repeat_items=False)
    visits = [await create_annotator(engine, campaign, "ann", "mturk", assignment=f"{k}") for k in range(5)]
    outcomes, _ = await ask_together(engine, campaign, visits)
    items = [item for outcome in outcomes if outcome.hit for item in outcome.hit.items]
    assert len(items) == len({*items}) == 10
    assert [outcome.reason for outcome in outcomes].count("limit") == 3


async def test_batches_of_two_processes_that_want_the_same_items_do_not_deadlock(engine):
    campaign = await create_running_campaign(engine, items=12, judgments_per_item=4)
    crowds = [await create_crowd(engine, campaign, 6, assignment=f"visit {k}") for k in range(2)]
    crowds[1] = [await create_annotator(engine, campaign, f"b{k}") for k in range(6)]
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        batches = [asyncio.create_task(ask_together(engine, campaign, crowd)) for crowd in crowds]
        await wait_until(engine, requests_are_waiting_sql(2))
    for outcomes, _ in await asyncio.gather(*batches):
        assert all(outcome.hit or outcome.reason == "wait" for outcome in outcomes)
    rows = await fetch_rows(engine, "SELECT item, count(*) FROM hits, unnest(items) AS item GROUP BY 1")
    assert max(count for _, count in rows) <= 4


async def test_no_hit_is_leased_once_a_pause_is_committed(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        asking = asyncio.create_task(ask_together(engine, campaign, [me]))
        await wait_until(engine, requests_are_waiting_sql(1))
        await execute_sql(engine, "UPDATE campaigns SET status = 'paused'")
    ((work,), _) = await asking
    assert (work.hit, work.reason) == (None, "paused")
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0


async def test_a_batch_leases_in_the_order_of_assignments_so_that_no_two_wait_for_each_other(engine):
    """Another process has leased to the first of two annotators and not committed yet: the second must be free."""
    campaign = await create_running_campaign(engine, items=60)
    first, second = await create_crowd(engine, campaign, 2)
    lease = """
        INSERT INTO hits (campaign_id, annotator_id, assignment_id, leader, items, issued_at, expires_at)
        SELECT campaign_id, annotator_id, id, 0, '{0,1,2,3,4}', now(), now() + interval '1 hour'
        FROM assignments WHERE id = $1"""
    async with borrow_driver_in_transaction(engine) as other:
        await other.execute(lease, first.assignment_id)
        asking = asyncio.create_task(ask_together(engine, campaign, [second, first]))
        await wait_until(engine, requests_are_waiting_sql(1))
        async with borrow_driver_in_transaction(engine) as free:
            await free.execute("SET LOCAL lock_timeout = '1s'")
            await free.execute(lease, second.assignment_id)
    outcomes, _ = await asking
    assert all(outcome.hit for outcome in outcomes)


async def test_a_lock_that_one_annotator_waits_for_too_long_fails_no_one_else(engine):
    campaign = await create_running_campaign(engine, items=60)
    late, other = await create_crowd(engine, campaign, 2)
    await try_to_lease_hit(engine, late)
    await expire_leases(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM hits FOR NO KEY UPDATE")
        async with begin_session_with_short_lock_timeout(engine) as connection:
            requests = [NextHitRequest(AssignmentQuery(assignment), NOW) for assignment in (late, other)]
            problem, work = await leases.find_or_lease_next_hits(
                connection, campaign.id, requests, cache=PosteriorCache()
            )
    assert isinstance(problem, LockNotAvailableError)
    assert isinstance(work, NextHit)
    assert work.hit is not None


async def test_what_an_annotator_answered_is_read_once_and_followed_whoever_stores_it(engine):
    """Two processes answer for a few annotators in any order; both know at once what each has answered."""
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=100)
    crowd, processes = await create_crowd(engine, campaign, 3), [PosteriorCache(), PosteriorCache()]
    rng = np.random.default_rng(1)
    for step in range(30):
        me, cache = crowd[rng.integers(3)], processes[rng.integers(2)]
        async with borrow_autocommit_driver(engine) as connection:
            known = await load_assignment_updating_posteriors_or_refuse(connection, cache, AssignmentQuery(me))
            read = await load_assignment_updating_posteriors_or_refuse(
                connection, PosteriorCache(), AssignmentQuery(me)
            )
        assert (known.seen, known.hits_answered) == (read.seen, read.hits_answered)
        if step > 20:
            assert known.own_items is None
        await submit_scores(engine, me, await try_to_lease_hit(engine, me, cache=cache))


BLOCK = "UPDATE annotators SET barred = $1, barred_reason = $1, barred_by = 'ann', barred_at = now()"


@pytest.mark.parametrize(("state", "reason"), [("erased", "erased"), ("held", "held"), ("excluded", "held")])
async def test_no_hit_is_leased_once_a_block_is_committed(engine, state, reason):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    async with borrow_driver_in_transaction(engine) as blocking:
        await blocking.execute("SELECT FROM annotators FOR UPDATE")
        asking = asyncio.create_task(ask_together(engine, campaign, [me]))
        await wait_until(engine, requests_are_waiting_sql(1))
        await blocking.execute(BLOCK, state)
    ((work,), _) = await asking
    assert (work.hit, work.reason) == (None, reason)
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0


async def test_a_block_of_one_annotator_takes_no_hit_from_the_others_of_a_batch(engine):
    campaign = await create_running_campaign(engine, items=60)
    crowd = await create_crowd(engine, campaign, 3)
    async with borrow_driver_in_transaction(engine) as blocking:
        await blocking.execute(f"{BLOCK} WHERE id = (SELECT min(id) FROM annotators)", "held")
        asking = asyncio.create_task(ask_together(engine, campaign, crowd))
        await wait_until(engine, requests_are_waiting_sql(1))
    (outcomes, _) = await asking
    assert [outcome.hit is not None for outcome in outcomes] == [False, True, True]


async def test_no_lease_is_renewed_once_a_pause_is_committed_and_the_hit_is_kept(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await try_to_lease_hit(engine, me)
    await expire_leases(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        asking = asyncio.create_task(ask_together(engine, campaign, [me]))
        await wait_until(engine, requests_are_waiting_sql(1))
        await execute_sql(engine, "UPDATE campaigns SET status = 'paused'")
    ((work,), _) = await asking
    assert (work.hit, work.reason) == (None, "paused")
    kept = "SELECT count(*) FROM hits WHERE closed_at IS NULL AND expires_at < now()"
    assert await fetch_value(engine, kept) == 1


@pytest.mark.parametrize("is_renewal", [False, True])
async def test_a_block_releases_the_hit_that_is_leased_while_it_is_decided(engine, is_renewal):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    if is_renewal:
        await try_to_lease_hit(engine, me)
        await expire_leases(engine)
    annotator_id = await fetch_value(engine, "SELECT id FROM annotators")

    async def hold():
        async with engine.begin() as connection:
            await hold_annotator(connection, campaign, annotator_id, reason="too fast", now=NOW)

    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        asking = asyncio.create_task(ask_together(engine, campaign, [me]))
        await wait_until(engine, requests_are_waiting_sql(1))
        deciding = asyncio.create_task(hold())
        await wait_until(engine, requests_are_waiting_sql(2))
    await asyncio.gather(asking, deciding)
    assert await fetch_value(engine, "SELECT count(*) FROM hits WHERE expires_at > clock_timestamp()") == 0
