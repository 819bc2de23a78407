import asyncio

import pytest

from app.annotation.hits import drafts, held_hits
from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import borrow_autocommit_driver, borrow_driver_in_transaction
from app.errors import Gone, NotFound
from tests.annotation.hits.campaigns import (
    LOCK_ROOM_OF_EACH_CAMPAIGN,
    NOW,
    create_annotator,
    create_running_campaign,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)


async def test_asking_again_returns_the_same_hit_with_what_was_entered(engine):
    me = await create_annotator(engine, await create_running_campaign(engine))
    hit = await try_to_lease_hit(engine, me)
    async with borrow_driver_in_transaction(engine) as connection:
        assert await drafts.try_to_save_draft_of_open_hit(connection, me, hit.id, {"00": {"score": 71}})
    again = await try_to_lease_hit(engine, me)
    assert (again.id, again.items, again.texts) == (hit.id, hit.items, hit.texts)
    assert again.draft == {"00": {"score": 71}}


async def test_texts_stand_in_the_order_of_the_items(engine):
    hit = await try_to_lease_hit(engine, await create_annotator(engine, await create_running_campaign(engine)))
    assert hit.texts == [f"verb {item}" for item in hit.items]


async def test_two_tabs_that_ask_at_once_get_the_same_hit(engine):
    me = await create_annotator(engine, await create_running_campaign(engine))
    cache = PosteriorCache()
    hits = await asyncio.gather(*(try_to_lease_hit(engine, me, cache=cache) for _ in range(6)))
    assert len({hit.id for hit in hits}) == 1
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 1


async def test_nobody_keeps_a_draft_in_the_hit_of_someone_else(engine):
    campaign = await create_running_campaign(engine)
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "owner"))
    stranger = await create_annotator(engine, campaign, "stranger")
    async with borrow_driver_in_transaction(engine) as connection:
        assert not await drafts.try_to_save_draft_of_open_hit(connection, stranger, hit.id, {})


async def test_an_expired_lease_is_taken_up_again_while_nobody_needs_its_items(engine):
    me = await create_annotator(engine, await create_running_campaign(engine))
    hit = await try_to_lease_hit(engine, me)
    await expire_leases(engine)
    again = await try_to_lease_hit(engine, me)
    assert again.id == hit.id
    assert again.expires_at > hit.expires_at


async def test_an_expired_lease_returns_to_the_pool(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    slow, quick = await create_annotator(engine, campaign, "slow"), await create_annotator(engine, campaign, "quick")
    hit = await try_to_lease_hit(engine, slow)
    assert (await find_or_lease_next_hit(engine, quick)).reason == "wait"
    await expire_leases(engine)
    taken = await try_to_lease_hit(engine, quick)
    assert sorted(taken.items) == sorted(hit.items)
    assert (await find_or_lease_next_hit(engine, slow)).reason == "wait"


async def test_a_lease_that_cannot_be_renewed_is_given_up(engine):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=1)
    slow, quick = await create_annotator(engine, campaign, "slow"), await create_annotator(engine, campaign, "quick")
    hit = await try_to_lease_hit(engine, slow)
    await expire_leases(engine)
    other = await try_to_lease_hit(engine, quick)
    assert set(hit.items) & set(other.items)
    async with borrow_autocommit_driver(engine) as connection:
        held = await load_assignment_updating_posteriors_or_refuse(connection, PosteriorCache(), AssignmentQuery(slow))
        assert await held_hits.resume_held_hit_or_close_it_and_return_none(connection, held, None, now=NOW) is None
    assert await fetch_rows(engine, "SELECT id FROM hits WHERE closed_at IS NULL") == [(other.id,)]


async def test_a_renewed_lease_and_a_new_one_of_its_items_wait_for_each_other(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    slow, quick = await create_annotator(engine, campaign, "slow"), await create_annotator(engine, campaign, "quick")
    hit = await try_to_lease_hit(engine, slow)
    await expire_leases(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        renewing = asyncio.create_task(find_or_lease_next_hit(engine, slow))
        await wait_until(engine, requests_are_waiting_sql(1))
        leasing = asyncio.create_task(find_or_lease_next_hit(engine, quick))
        await wait_until(engine, requests_are_waiting_sql(2))
    first, second = await asyncio.gather(renewing, leasing)
    assert first.hit is not None
    assert first.hit.id == hit.id
    assert second.reason == "wait"


async def test_two_open_hits_do_not_share_a_leader(engine):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=20)
    cache = PosteriorCache()
    assignments = [await create_annotator(engine, campaign, f"a{k}") for k in range(10)]
    await asyncio.gather(*(find_or_lease_next_hit(engine, assignment, cache=cache) for assignment in assignments))
    assert await fetch_value(engine, "SELECT count(DISTINCT leader) FROM hits") == 10


async def test_what_is_held_in_one_campaign_is_free_in_another(engine):
    for _ in range(2):
        campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
        assert len((await try_to_lease_hit(engine, await create_annotator(engine, campaign))).items) == 5


async def test_when_every_item_leads_a_hit_leaders_are_shared(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=20)
    assignments = [await create_annotator(engine, campaign, f"a{k}") for k in range(7)]
    for someone in assignments:
        await try_to_lease_hit(engine, someone)
    assert await fetch_rows(engine, "SELECT count(*), count(DISTINCT leader) FROM hits") == [(7, 5)]


async def test_an_annotator_sees_every_item_before_any_item_again(engine):
    me = await create_annotator(engine, await create_running_campaign(engine, items=12))
    shown = []
    for _ in range(3):
        hit = await try_to_lease_hit(engine, me)
        shown += hit.items
        await submit_scores(engine, me, hit)
    assert sorted(set(shown)) == list(range(12))


async def test_without_repeats_nothing_is_left_for_an_annotator_who_scored_all(engine):
    me = await create_annotator(engine, await create_running_campaign(engine, items=10, repeat_items=False))
    for _ in range(2):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    work = await find_or_lease_next_hit(engine, me)
    assert (work.reason, work.is_finished) == ("seen_all", True)
    assert await fetch_value(engine, "SELECT completed_at FROM assignments") == NOW


async def test_the_limit_of_hits_per_annotator_holds_over_several_visits(engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1)
    me = await create_annotator(engine, campaign, assignment="first")
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    back = await create_annotator(engine, campaign, assignment="second")
    assert (await find_or_lease_next_hit(engine, back)).reason == "limit"


async def test_two_open_visits_cannot_go_over_the_limit(engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1)
    first, second = [await create_annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("A1", "A2")]
    await try_to_lease_hit(engine, first)
    assert (await find_or_lease_next_hit(engine, second)).reason == "limit"


async def test_an_mturk_assignment_is_one_hit(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign, "W1", "mturk", assignment="A1", hitId="H1")
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    assert (await find_or_lease_next_hit(engine, me)).reason == "assignment_done"
    again = await create_annotator(engine, campaign, "W1", "mturk", assignment="A2", hitId="H2")
    assert (await find_or_lease_next_hit(engine, again)).hit is not None


async def test_an_assignment_id_given_to_a_second_worker_is_another_assignment(engine):
    campaign = await create_running_campaign(engine)
    first = await create_annotator(engine, campaign, "W1", "mturk", assignment="A1")
    assert await create_annotator(engine, campaign, "W1", "mturk", assignment="A1") == first
    assert await create_annotator(engine, campaign, "W2", "mturk", assignment="A1") != first


async def test_a_draft_campaign_says_it_is_not_open(engine):
    me = await create_annotator(engine, await create_running_campaign(engine, launched=False))
    assert (await find_or_lease_next_hit(engine, me)).reason == "not_open"


async def test_an_unknown_assignment_is_not_found(engine):
    with pytest.raises(NotFound):
        await find_or_lease_next_hit(engine, AssignmentId(1, 12345))


async def test_a_campaign_with_fewer_items_than_a_hit_shows_them_all(engine):
    hit = await try_to_lease_hit(engine, await create_annotator(engine, await create_running_campaign(engine, items=3)))
    assert sorted(hit.items) == [0, 1, 2]


async def test_another_process_sees_answers_at_once(engine):
    """Two `PosteriorCache` stand for two server processes."""
    campaign = await create_running_campaign(engine)
    here, there = PosteriorCache(), PosteriorCache()
    me = await create_annotator(engine, campaign)
    other = await create_annotator(engine, campaign, "other")
    await find_or_lease_next_hit(engine, other, cache=there)
    hit = await try_to_lease_hit(engine, me, cache=here)
    await submit_scores(engine, me, hit)
    async with borrow_driver_in_transaction(engine) as connection:
        copy = await there.load_current_index(connection, campaign)
    assert [copy.index.judgments[item] for item in hit.items] == [1] * 5


async def test_a_person_with_many_visits_at_once_gets_no_item_twice(engine):
    """Of an item that they hold in one visit nothing is asked in another."""
    campaign = await create_running_campaign(engine, items=10, repeat_items=False, judgments_per_item=8)
    visits = [await create_annotator(engine, campaign, "W1", "mturk", assignment=f"A{k}", hitId="H") for k in range(8)]
    cache = PosteriorCache()
    works = await asyncio.gather(*(find_or_lease_next_hit(engine, visit, cache=cache) for visit in visits))
    held = [work.hit.items for work in works if work.hit is not None]
    assert sorted(item for items in held for item in items) == list(range(10))
    assert {work.reason for work in works} == {None, "wait"}
    for visit, work in zip(visits, works, strict=True):
        if work.hit is not None:
            await submit_scores(engine, visit, work.hit)
    assert {(await find_or_lease_next_hit(engine, visit)).reason for visit in visits} == {"assignment_done", "seen_all"}


async def test_of_two_visits_of_one_person_that_ask_for_the_same_items_at_once_one_gets_them(engine):
    campaign = await create_running_campaign(engine, items=5, repeat_items=False)
    visits = [await create_annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("first", "second")]
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute(LOCK_ROOM_OF_EACH_CAMPAIGN)
        asking = [
            asyncio.create_task(find_or_lease_next_hit(engine, visit, cache=PosteriorCache())) for visit in visits
        ]
        await wait_until(engine, requests_are_waiting_sql(2))
    works = await asyncio.gather(*asking)
    assert sorted(str(work.reason) for work in works) == ["None", "wait"]


async def test_where_items_are_shown_again_a_second_visit_begins_with_those_that_the_first_does_not_hold(engine):
    campaign = await create_running_campaign(engine, items=10, repeat_items=True)
    first, second, third = [
        await create_annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("1st", "2nd", "3rd")
    ]
    held = [*(await try_to_lease_hit(engine, first)).items, *(await try_to_lease_hit(engine, second)).items]
    assert sorted(held) == list(range(10))
    assert (await find_or_lease_next_hit(engine, third)).hit is not None


@pytest.mark.parametrize("shown", ["open", "answered"])
async def test_a_late_answer_of_what_its_annotator_got_again_meanwhile_is_refused(engine, shown):
    campaign = await create_running_campaign(engine, items=5, repeat_items=False)
    first, second = [
        await create_annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("first", "second")
    ]
    late = await try_to_lease_hit(engine, first)
    await expire_leases(engine)
    again = await try_to_lease_hit(engine, second)
    if shown == "answered":
        await submit_scores(engine, second, again)
    with pytest.raises(Gone):
        await submit_scores(engine, first, late)
    assert await fetch_value(engine, "SELECT max(judgments) FROM posteriors") == (shown == "answered")


async def test_a_lease_is_not_renewed_when_its_annotator_has_the_items_in_another_visit(engine):
    campaign = await create_running_campaign(engine, items=5, repeat_items=False)
    first, second = [
        await create_annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("first", "second")
    ]
    await try_to_lease_hit(engine, first)
    await expire_leases(engine)
    await try_to_lease_hit(engine, second)
    assert (await find_or_lease_next_hit(engine, first)).reason == "wait"


async def test_thirty_sessions_at_once_get_no_more_hits_than_one_annotator_may_have(engine):
    campaign = await create_running_campaign(engine, items=200, hits_per_annotator=4)
    sessions = [await create_annotator(engine, campaign, "W1", "mturk", assignment=f"A{k}") for k in range(30)]
    works = await asyncio.gather(
        *(find_or_lease_next_hit(engine, session, cache=PosteriorCache()) for session in sessions)
    )
    assert sum(work.hit is not None for work in works) == 4
    assert {work.reason for work in works} == {None, "limit"}


@pytest.mark.parametrize("answered_first", [True, False])
async def test_a_late_answer_does_not_go_over_the_hits_of_an_annotator(engine, answered_first):
    campaign = await create_running_campaign(engine, items=50, hits_per_annotator=1)
    first, second = [
        await create_annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("first", "second")
    ]
    late = await try_to_lease_hit(engine, first)
    await expire_leases(engine)
    hit = await try_to_lease_hit(engine, second)
    if answered_first:
        await submit_scores(engine, second, hit)
    with pytest.raises(Gone):
        await submit_scores(engine, first, late)
    assert (await find_or_lease_next_hit(engine, first)).reason == "limit"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == answered_first


async def test_a_renewed_lease_and_a_new_one_of_the_same_annotator_wait_for_each_other(engine):
    campaign = await create_running_campaign(engine, items=50, hits_per_annotator=1)
    first, second = [
        await create_annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("first", "second")
    ]
    await try_to_lease_hit(engine, first)
    await expire_leases(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM annotators FOR NO KEY UPDATE")
        asking = [
            asyncio.create_task(find_or_lease_next_hit(engine, visit, cache=PosteriorCache()))
            for visit in (first, second)
        ]
        await wait_until(engine, requests_are_waiting_sql(2))
    works = await asyncio.gather(*asking)
    assert sorted(str(work.reason) for work in works) == ["None", "limit"]


async def test_a_lease_is_renewed_in_one_transaction(engine):
    """Its HIT stays locked while the rest is waited for, so that a late answer to it cannot come between."""
    campaign = await create_running_campaign(engine, hits_per_annotator=5)
    me = await create_annotator(engine, campaign)
    await try_to_lease_hit(engine, me)
    await expire_leases(engine)
    async with borrow_driver_in_transaction(engine) as holding:
        await holding.execute("SELECT FROM annotators FOR NO KEY UPDATE")
        renewing = asyncio.create_task(try_to_lease_hit(engine, me))
        await wait_until(engine, requests_are_waiting_sql(1))
        assert await fetch_rows(engine, "SELECT id FROM hits FOR NO KEY UPDATE SKIP LOCKED") == []
    await renewing
