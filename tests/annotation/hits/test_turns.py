"""Processes that draw at the same time, and take turns once they have lost HITs to each other."""

import asyncio

from app.annotation.hits import open_hits
from app.annotation.hits.answer_leases import MAX_BATCHES_IN_TURN
from app.annotation.hits.campaign_index import PosteriorCache
from app.database.session import borrow_autocommit_driver, borrow_driver_in_transaction
from tests.annotation.hits.campaigns import (
    LOCK_ROOM_OF_EACH_CAMPAIGN,
    begin_session_with_short_lock_timeout,
    create_annotator,
    execute_sql,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.hits.crowds import Crowd, are_leased_with_their_answers, create_crowd

TURN = "SELECT pg_advisory_xact_lock(hashtext('campaign.turn'), CAST(id AS int)) FROM campaigns"


async def create_crowd_that_lost_a_hit_to_another_process(engine):
    """Both drew the least certain item to lead before either had leased it."""
    crowd = await create_crowd(engine, people=1)
    ((me, hit),) = crowd.held.items()
    leader = next(item for item in range(60) if item not in hit.items)
    await execute_sql(engine, f"UPDATE posteriors SET variance = variance * 0.9 WHERE subject <> {leader}")
    crowd.cache.indexes.clear()
    async with borrow_autocommit_driver(engine) as connection:
        await crowd.cache.load_current_index(connection, crowd.campaign)
    rival = await create_annotator(engine, crowd.campaign, "rival")
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        asking = asyncio.create_task(find_or_lease_next_hit(engine, rival))
        await wait_until(engine, requests_are_waiting_sql(1))
        answering = asyncio.create_task(crowd.answer_and_ask(me))
        await wait_until(engine, requests_are_waiting_sql(2))
    asked = (await asking).hit
    assert asked is not None
    assert leader in asked.items
    (reply,) = await answering
    assert leader not in reply.next_hit.hit.items
    return crowd


async def test_a_process_that_lost_a_hit_to_another_waits_for_its_turn_before_it_draws(engine):
    crowd = await create_crowd_that_lost_a_hit_to_another_process(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(TURN)
        answering = asyncio.create_task(crowd.answer_and_ask())
        await wait_until(engine, requests_are_waiting_sql(1))
    (reply,) = await answering
    assert reply.next_hit.hit
    assert are_leased_with_their_answers(crowd)


async def test_a_process_that_loses_no_hit_waits_for_nobody(engine):
    crowd = await create_crowd(engine)
    async with borrow_driver_in_transaction(engine) as holding, asyncio.timeout(60):
        await holding.execute(TURN)
        assert all(reply.next_hit.hit for reply in await crowd.answer_and_ask())
    assert are_leased_with_their_answers(crowd)


async def test_a_process_that_loses_no_more_hits_stops_waiting(engine):
    crowd = await create_crowd_that_lost_a_hit_to_another_process(engine)
    for _ in range(MAX_BATCHES_IN_TURN):
        await crowd.answer_and_ask()
    async with borrow_driver_in_transaction(engine) as holding, asyncio.timeout(60):
        await holding.execute(TURN)
        (reply,) = await crowd.answer_and_ask()
    assert reply.next_hit.hit
    assert are_leased_with_their_answers(crowd)


async def test_answers_are_stored_without_next_hits_if_their_turn_does_not_come(engine):
    crowd = await create_crowd_that_lost_a_hit_to_another_process(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(TURN)
        async with begin_session_with_short_lock_timeout(engine) as connection:
            (reply,) = await crowd.answer_and_ask(connection=connection)
    assert reply.receipt is not None
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2
    assert await crowd.copy_is_that_of_the_database()


async def test_a_process_whose_turn_did_not_come_does_not_wait_for_the_next_one(engine):
    crowd = await create_crowd_that_lost_a_hit_to_another_process(engine)
    async with borrow_driver_in_transaction(engine) as holding, asyncio.timeout(60):
        await holding.execute(TURN)
        async with begin_session_with_short_lock_timeout(engine) as connection:
            (reply,) = await crowd.answer_and_ask(connection=connection)
        ((me, _),) = crowd.held.items()
        crowd.held[me] = reply.next_hit.hit
        await crowd.answer_and_ask()
    assert are_leased_with_their_answers(crowd)


async def test_processes_in_turn_lose_no_hits_to_each_other_if_many_hits_are_open(engine, monkeypatch):
    """Open HITs are remembered then, and what another process leases meanwhile is not among them."""
    monkeypatch.setattr(open_hits, "MANY_OPEN_HITS", 3)
    first = await create_crowd_that_lost_a_hit_to_another_process(engine)
    for number in range(3):
        await find_or_lease_next_hit(engine, await create_annotator(engine, first.campaign, f"holder {number}"))
    person = await create_annotator(engine, first.campaign, "person")
    cache = PosteriorCache(draw_seed=1)
    second = Crowd(engine, first.campaign, {person: await try_to_lease_hit(engine, person, cache=cache)}, cache)
    await execute_sql(engine, "UPDATE posteriors SET variance = variance * (0.9 + 0.001 * subject)")
    for crowd in (first, second):
        crowd.cache.indexes.clear()
        async with borrow_autocommit_driver(engine) as connection:
            index = await crowd.cache.load_current_index(connection, crowd.campaign)
        index.batches_in_turn = MAX_BATCHES_IN_TURN
    lost = []
    for _ in range(5):
        for crowd in (first, second):
            await crowd.answer_and_ask()
            lost.append(not are_leased_with_their_answers(crowd))
    assert not any(lost[2:])  # the first answers of each process read the open HITs
