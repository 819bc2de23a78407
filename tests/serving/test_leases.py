import asyncio
from datetime import timedelta

import pytest

from app.database.session import statements, transaction
from app.errors import NotFound
from app.serving import leases
from app.serving.newest import Newest
from app.serving.standing import by_id
from tests.serving.campaigns import NOW, annotator, hit_of, next_hit, running, submit, value, values

LATER = NOW + timedelta(minutes=31)


async def test_asking_again_returns_the_same_hit_with_what_was_entered(engine):
    me = await annotator(engine, await running(engine))
    hit = await hit_of(engine, me)
    async with transaction(engine) as connection:
        assert await leases.save_draft(connection, me, hit.id, {str(hit.items[0]): {"score": 71}}, now=NOW)
    again = await hit_of(engine, me)
    assert (again.id, again.items, again.texts) == (hit.id, hit.items, hit.texts)
    assert again.draft == {str(hit.items[0]): {"score": 71}}


async def test_texts_stand_in_the_order_of_the_items(engine):
    hit = await hit_of(engine, await annotator(engine, await running(engine)))
    assert hit.texts == [f"verb {item}" for item in hit.items]


async def test_two_tabs_that_ask_at_once_get_the_same_hit(engine):
    me = await annotator(engine, await running(engine))
    newest = Newest()
    hits = await asyncio.gather(*(hit_of(engine, me, newest=newest) for _ in range(6)))
    assert len({hit.id for hit in hits}) == 1
    assert await value(engine, "SELECT count(*) FROM hits") == 1


async def test_nobody_keeps_a_draft_in_the_hit_of_someone_else(engine):
    campaign = await running(engine)
    hit = await hit_of(engine, await annotator(engine, campaign, "owner"))
    stranger = await annotator(engine, campaign, "stranger")
    async with transaction(engine) as connection:
        assert not await leases.save_draft(connection, stranger, hit.id, {}, now=NOW)


async def test_an_expired_lease_is_taken_up_again_while_nobody_needs_its_items(engine):
    me = await annotator(engine, await running(engine))
    hit = await hit_of(engine, me)
    again = await hit_of(engine, me, now=LATER)
    assert again.id == hit.id
    assert again.expires_at == LATER + timedelta(minutes=30)


async def test_an_expired_lease_returns_to_the_pool(engine):
    campaign = await running(engine, items=5, judgments_per_item=1)
    slow, quick = await annotator(engine, campaign, "slow"), await annotator(engine, campaign, "quick")
    hit = await hit_of(engine, slow)
    assert (await next_hit(engine, quick)).reason == "wait"
    taken = await hit_of(engine, quick, now=LATER)
    assert sorted(taken.items) == sorted(hit.items)
    assert (await next_hit(engine, slow, now=LATER)).reason == "wait"


async def test_a_lease_that_cannot_be_renewed_is_given_up(engine):
    campaign = await running(engine, items=10, judgments_per_item=1)
    slow, quick = await annotator(engine, campaign, "slow"), await annotator(engine, campaign, "quick")
    hit = await hit_of(engine, slow)
    other = await hit_of(engine, quick, now=LATER)
    assert set(hit.items) & set(other.items)
    async with statements(engine) as connection:
        assert await leases.hold_or_lease(connection, Newest(), by_id(slow), now=LATER) is None
    assert await values(engine, "SELECT id FROM hits WHERE closed_at IS NULL") == [(other.id,)]


async def test_a_renewed_lease_and_a_new_one_of_its_items_wait_for_each_other(engine):
    campaign = await running(engine, items=5, judgments_per_item=1)
    slow, quick = await annotator(engine, campaign, "slow"), await annotator(engine, campaign, "quick")
    hit = await hit_of(engine, slow)
    async with transaction(engine) as holding:
        await holding.execute("SELECT FROM posteriors FOR NO KEY UPDATE")
        renewing = asyncio.create_task(next_hit(engine, slow, now=LATER))
        await blocked(engine, 1)
        leasing = asyncio.create_task(next_hit(engine, quick, now=LATER))
        await blocked(engine, 2)
    first, second = await asyncio.gather(renewing, leasing)
    assert first.hit is not None
    assert first.hit.id == hit.id
    assert second.reason == "wait"


async def blocked(engine, requests):
    """Until so many requests wait for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while await value(engine, waiting) < requests:  # noqa: ASYNC110  (another connection changes it)
        await asyncio.sleep(0.01)


async def test_two_open_hits_do_not_share_a_leader(engine):
    campaign = await running(engine, items=10, judgments_per_item=20)
    newest = Newest()
    assignments = [await annotator(engine, campaign, f"a{k}") for k in range(10)]
    await asyncio.gather(*(next_hit(engine, assignment, newest=newest) for assignment in assignments))
    assert await value(engine, "SELECT count(DISTINCT leader) FROM hits") == 10


async def test_when_every_item_leads_a_hit_leaders_are_shared(engine):
    campaign = await running(engine, items=5, judgments_per_item=20)
    assignments = [await annotator(engine, campaign, f"a{k}") for k in range(7)]
    for someone in assignments:
        await hit_of(engine, someone)
    assert await values(engine, "SELECT count(*), count(DISTINCT leader) FROM hits") == [(7, 5)]


async def test_an_annotator_sees_every_item_before_any_item_again(engine):
    me = await annotator(engine, await running(engine, items=12))
    shown = []
    for _ in range(3):
        hit = await hit_of(engine, me)
        shown += hit.items
        await submit(engine, me, hit)
    assert sorted(set(shown)) == list(range(12))


async def test_without_repeats_nothing_is_left_for_an_annotator_who_scored_all(engine):
    me = await annotator(engine, await running(engine, items=10, repeat_items=False))
    for _ in range(2):
        await submit(engine, me, await hit_of(engine, me))
    work = await next_hit(engine, me)
    assert (work.reason, work.finished) == ("seen_all", True)
    assert await value(engine, "SELECT completed_at FROM assignments") == NOW


async def test_the_limit_of_hits_per_annotator_holds_over_several_visits(engine):
    campaign = await running(engine, hits_per_annotator=1)
    me = await annotator(engine, campaign, assignment="first")
    await submit(engine, me, await hit_of(engine, me))
    back = await annotator(engine, campaign, assignment="second")
    assert (await next_hit(engine, back)).reason == "limit"


async def test_two_open_visits_cannot_go_over_the_limit(engine):
    campaign = await running(engine, hits_per_annotator=1)
    first, second = [await annotator(engine, campaign, "W1", "mturk", assignment=name) for name in ("A1", "A2")]
    await hit_of(engine, first)
    assert (await next_hit(engine, second)).reason == "limit"


async def test_an_mturk_assignment_is_one_hit(engine):
    campaign = await running(engine)
    me = await annotator(engine, campaign, "W1", "mturk", assignment="A1", hitId="H1")
    await submit(engine, me, await hit_of(engine, me))
    assert (await next_hit(engine, me)).reason == "assignment_done"
    again = await annotator(engine, campaign, "W1", "mturk", assignment="A2", hitId="H2")
    assert (await next_hit(engine, again)).hit is not None


async def test_an_assignment_id_given_to_a_second_worker_is_another_assignment(engine):
    campaign = await running(engine)
    first = await annotator(engine, campaign, "W1", "mturk", assignment="A1")
    assert await annotator(engine, campaign, "W1", "mturk", assignment="A1") == first
    assert await annotator(engine, campaign, "W2", "mturk", assignment="A1") != first


async def test_a_draft_campaign_says_it_is_not_open(engine):
    me = await annotator(engine, await running(engine, launched=False))
    assert (await next_hit(engine, me)).reason == "not_open"


async def test_an_unknown_assignment_is_not_found(engine):
    with pytest.raises(NotFound):
        await next_hit(engine, 12345)


async def test_a_campaign_with_fewer_items_than_a_hit_shows_them_all(engine):
    hit = await hit_of(engine, await annotator(engine, await running(engine, items=3)))
    assert sorted(hit.items) == [0, 1, 2]


async def test_another_process_sees_answers_at_once(engine):
    """Two `Newest` stand for two server processes."""
    campaign = await running(engine)
    here, there = Newest(), Newest()
    me = await annotator(engine, campaign)
    other = await annotator(engine, campaign, "other")
    await next_hit(engine, other, newest=there)
    hit = await hit_of(engine, me, newest=here)
    await submit(engine, me, hit)
    async with transaction(engine) as connection:
        copy = await there.posteriors(connection, campaign)
    assert [copy.index.judgments[item] for item in hit.items] == [1] * 5
