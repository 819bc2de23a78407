import asyncio
from datetime import timedelta

import numpy as np
from sqlalchemy import text

from app.annotation.hits.campaign_index import PosteriorCache
from tests.annotation.hits.campaigns import (
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


async def answer_iteration(engine, campaign, cache, name, hits):
    me = await create_annotator(engine, campaign, name)
    leased = []
    for _ in range(hits):
        hit = await try_to_lease_hit(engine, me, cache=cache)
        leased.append(hit)
        await submit_scores(engine, me, hit)
    return leased


async def test_iteration_0_asks_every_item_once(engine):
    campaign = await create_running_campaign(engine, items=20, selection="iterations")
    hits = await answer_iteration(engine, campaign, PosteriorCache(), "ann", 4)
    assert sorted(item for hit in hits for item in hit.items) == list(range(20))
    assert await fetch_value(engine, "SELECT iteration FROM campaigns") == 0


async def test_the_next_iteration_is_led_by_the_items_of_highest_variance(engine):
    campaign = await create_running_campaign(engine, items=20, selection="iterations")
    cache = PosteriorCache()
    await answer_iteration(engine, campaign, cache, "ann", 4)
    variance = dict(await fetch_rows(engine, "SELECT number, variance FROM current_posteriors"))
    await answer_iteration(engine, campaign, cache, "bob", 4)
    rows = await fetch_rows(engine, "SELECT leader, items FROM planned_hits WHERE iteration = 1")
    leaders = [leader for leader, _ in rows]
    assert len(leaders) == len(set(leaders)) == 4
    assert min(variance[leader] for leader in leaders) >= np.sort(list(variance.values()))[-4]
    assert all(set(items) & set(leaders) == {leader} for leader, items in rows)


async def test_an_iteration_waits_for_its_open_hits(engine):
    campaign = await create_running_campaign(engine, items=10, selection="iterations")
    cache = PosteriorCache()
    slow, quick = await create_annotator(engine, campaign, "slow"), await create_annotator(engine, campaign, "quick")
    held = await try_to_lease_hit(engine, slow, cache=cache)
    await submit_scores(engine, quick, await try_to_lease_hit(engine, quick, cache=cache))
    assert (await find_or_lease_next_hit(engine, quick, cache=cache)).reason == "wait"
    await submit_scores(engine, slow, held)
    assert (await find_or_lease_next_hit(engine, quick, cache=cache)).hit is not None
    assert await fetch_value(engine, "SELECT iteration FROM campaigns") == 1


async def test_the_place_of_an_expired_hit_goes_to_someone_else(engine):
    campaign = await create_running_campaign(engine, items=10, selection="iterations")
    cache = PosteriorCache()
    slow, quick = await create_annotator(engine, campaign, "slow"), await create_annotator(engine, campaign, "quick")
    held = await try_to_lease_hit(engine, slow, cache=cache)
    await submit_scores(engine, quick, await try_to_lease_hit(engine, quick, cache=cache))
    await expire_leases(engine)
    taken = await try_to_lease_hit(engine, quick, cache=cache)
    assert sorted(taken.items) == sorted(held.items)
    assert (await find_or_lease_next_hit(engine, slow, cache=cache)).reason == "wait"


async def test_many_who_find_an_iteration_finished_plan_the_next_one_once(engine):
    campaign = await create_running_campaign(engine, items=10, selection="iterations", judgments_per_item=5)
    cache = PosteriorCache()
    await answer_iteration(engine, campaign, cache, "ann", 2)
    crowd = [await create_annotator(engine, campaign, f"a{k}") for k in range(6)]
    works = await asyncio.gather(*(find_or_lease_next_hit(engine, one, cache=PosteriorCache()) for one in crowd))
    assert sum(work.hit is not None for work in works) == 2
    assert await fetch_rows(engine, "SELECT iteration, count(*) FROM planned_hits GROUP BY 1 ORDER BY 1") == [
        (0, 2),
        (1, 2),
    ]


async def test_a_campaign_by_iterations_ends_with_every_item_judged_as_often_as_wanted(engine):
    campaign = await create_running_campaign(
        engine, items=13, selection="iterations", judgments_per_item=3, items_per_hit=4
    )
    cache = PosteriorCache()
    me = await create_annotator(engine, campaign)
    while (work := await find_or_lease_next_hit(engine, me, cache=cache)).hit is not None:
        await submit_scores(engine, me, work.hit)
    assert work.reason == "all_done"
    assert set(await fetch_rows(engine, "SELECT judgments FROM posteriors")) == {(3,)}


async def test_without_repeats_an_annotator_gets_no_place_with_an_item_they_scored(engine):
    campaign = await create_running_campaign(engine, items=10, selection="iterations", repeat_items=False)
    cache = PosteriorCache()
    await answer_iteration(engine, campaign, cache, "ann", 2)
    me = await create_annotator(engine, campaign, "ann")
    assert (await find_or_lease_next_hit(engine, me, cache=cache)).reason == "seen_all"


async def test_without_repeats_a_place_is_answered_without_the_items_already_scored(engine):
    campaign = await create_running_campaign(
        engine, items=10, selection="iterations", repeat_items=False, judgments_per_item=2
    )
    cache = PosteriorCache()
    (first,) = await answer_iteration(engine, campaign, cache, "ann", 1)
    await answer_iteration(engine, campaign, cache, "bob", 1)
    me = await create_annotator(engine, campaign, "ann")
    hit = await try_to_lease_hit(engine, me, cache=cache)
    assert not set(hit.items) & set(first.items)


async def test_the_same_seed_plans_the_same_hits(engine):
    plans = []
    for _ in range(2):
        campaign = await create_running_campaign(engine, items=20, selection="iterations", seed=7)
        await answer_iteration(engine, campaign, PosteriorCache(), "ann", 4)
        plans.append(
            await fetch_rows(
                engine, "SELECT leader, items FROM planned_hits WHERE campaign_id = :c ORDER BY ordinal", c=campaign.id
            )
        )
    assert plans[0] == plans[1]


async def test_who_has_scored_all_that_is_free_is_not_asked_to_wait_for_nobody(engine):
    """Items that they have not scored are wanted, but not in this iteration, and nobody holds what would end it."""
    campaign = await create_running_campaign(
        engine, items=4, items_per_hit=2, selection="iterations", repeat_items=False
    )
    cache = PosteriorCache()
    ann, bob, cleo = [await create_annotator(engine, campaign, name) for name in ("ann", "bob", "cleo")]
    mine = await try_to_lease_hit(engine, ann, cache=cache)
    await submit_scores(engine, ann, mine)
    await submit_scores(engine, bob, await try_to_lease_hit(engine, bob, cache=cache))
    theirs = await try_to_lease_hit(engine, cleo, cache=cache)
    async with engine.begin() as connection:
        free = text("UPDATE planned_hits SET items = :items, leader = :leader WHERE iteration = 1")
        await connection.execute(free, {"items": mine.items, "leader": mine.items[0]})
    assert (await find_or_lease_next_hit(engine, ann, cache=cache)).reason == "wait"
    await submit_scores(engine, cleo, theirs)
    assert (await find_or_lease_next_hit(engine, ann, cache=cache)).reason == "seen_all"


async def test_an_iteration_is_planned_on_the_last_answer_of_the_one_before(engine):
    """Another process stores it after this one read the posteriors, before it sees that the iteration is done."""
    campaign = await create_running_campaign(
        engine, items=4, items_per_hit=2, judgments_per_item=2, selection="iterations"
    )
    ann, bob, cleo = [await create_annotator(engine, campaign, name) for name in ("ann", "bob", "cleo")]
    here = PosteriorCache()
    first, last = await try_to_lease_hit(engine, ann, cache=here), await try_to_lease_hit(engine, bob)
    await submit_scores(engine, ann, first, scores=[50, 51])
    async with engine.begin() as holding:
        await holding.execute(text("LOCK TABLE planned_hits"))
        asking = asyncio.create_task(try_to_lease_hit(engine, cleo, cache=here))
        await wait_until(
            engine, requests_are_waiting_sql(1)
        )  # it knows of the first answer, and looks for a place in the plan
        assert here.indexes[campaign.id].index.judgments.sum() == 2
        await submit_scores(engine, bob, last, scores=[0, 100])
    await asking
    # Of all items bob's were the most uncertain ones before he answered, and are the least uncertain ones now.
    leaders = await fetch_rows(engine, "SELECT leader FROM planned_hits WHERE iteration = 1 ORDER BY leader")
    assert [leader for (leader,) in leaders] == sorted(first.items)


async def test_an_iteration_does_not_wait_for_a_hit_that_is_held_for_much_longer_than_the_others_took(engine):
    campaign = await create_running_campaign(engine, items=15, selection="iterations", judgments_per_item=2)
    cache = PosteriorCache()
    gone, ann, bob = [await create_annotator(engine, campaign, name) for name in ("gone", "ann", "bob")]
    held = await try_to_lease_hit(engine, gone, cache=cache)
    for person in (ann, bob):
        hit = await try_to_lease_hit(engine, person, cache=cache)
        await submit_scores(engine, person, hit, now=NOW + timedelta(seconds=30))
    for seconds, reason in ((45, "wait"), (89, "wait"), (91, None)):
        work = await find_or_lease_next_hit(engine, ann, now=NOW + timedelta(seconds=seconds), cache=cache)
        assert work.reason == reason
    assert await fetch_value(engine, "SELECT iteration FROM campaigns") == 1
    await submit_scores(engine, gone, held)
    while (work := await find_or_lease_next_hit(engine, ann, cache=cache)).hit is not None:
        await submit_scores(engine, ann, work.hit)
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM posteriors") == [(2,)]


async def test_what_an_abandoned_hit_holds_is_not_planned_beyond_the_wanted_number(engine):
    campaign = await create_running_campaign(engine, items=10, selection="iterations", judgments_per_item=1)
    cache = PosteriorCache()
    gone, ann = [await create_annotator(engine, campaign, name) for name in ("gone", "ann")]
    held = await try_to_lease_hit(engine, gone, cache=cache)
    await submit_scores(engine, ann, await try_to_lease_hit(engine, ann, cache=cache), now=NOW + timedelta(seconds=5))
    late = NOW + timedelta(minutes=10)
    assert (await find_or_lease_next_hit(engine, ann, now=late, cache=cache)).reason == "wait"
    assert await fetch_value(engine, "SELECT iteration FROM campaigns") == 0
    await expire_leases(engine)
    assert sorted((await try_to_lease_hit(engine, ann, now=late, cache=cache)).items) == sorted(held.items)


async def test_what_is_left_of_a_place_gets_companions(engine):
    """Late answers took all items of a place but one to the wanted number."""
    campaign = await create_running_campaign(
        engine, items=20, selection="iterations", judgments_per_item=3, items_per_hit=4
    )
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "first"))
    ((left, *full),) = await fetch_rows(
        engine, "SELECT items[1], items[2], items[3], items[4] FROM planned_hits WHERE ordinal = 2"
    )
    async with engine.begin() as connection:
        answered = text("UPDATE posteriors SET judgments = 3 WHERE subject = ANY(:full)")
        await connection.execute(answered, {"full": full})
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "second"))
    assert left in hit.items
    assert len(hit.items) == 4
    assert not set(hit.items) & set(full)


async def test_a_place_whose_only_item_left_can_be_compared_with_no_other_is_not_leased(engine):
    campaign = await create_running_campaign(
        engine, items=2, design="pairwise", judgments_per_item=2, selection="iterations"
    )
    first, other = [await create_annotator(engine, campaign, name) for name in ("first", "other")]
    await try_to_lease_hit(engine, first)
    await expire_leases(engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE posteriors SET judgments = 2 WHERE subject = 0"))
    assert (await find_or_lease_next_hit(engine, other)).reason == "all_done"
    assert await fetch_value(engine, "SELECT iteration FROM campaigns") == 0
