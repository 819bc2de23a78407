"""Many open HITs: what they hold is remembered for a moment, and the database sees to it that nothing goes wrong."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.open_hits import MANY_OPEN_HITS, OpenHits
from app.database.session import borrow_autocommit_driver
from app.designs.campaign import Campaign
from app.selection.index import AlgorithmOne
from app.selection.rule import ItemValues, SelectionSettings
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_rows,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import import_results


def no_draw(*_: object, **__: object) -> None:
    raise AssertionError("drawn")


async def crowded(engine: AsyncEngine, *, free: int, **settings: Any) -> Campaign:
    """A campaign of one judgment per item: many HITs are open, each of five items, and so many items are free."""
    campaign = await create_running_campaign(engine, items=5 * MANY_OPEN_HITS + free, judgments_per_item=1, **settings)
    opened = """
        WITH people AS (
            INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
            SELECT :campaign, 'link', k, k, now() FROM generate_series(1, CAST(:many AS int)) AS k RETURNING id
        ), visits AS (
            INSERT INTO assignments (campaign_id, annotator_id, external_id, arrival, arrived_at)
            SELECT :campaign, id, 'visit', '{}', now() FROM people RETURNING id, annotator_id
        ), numbered AS (SELECT *, 5 * (row_number() OVER () - 1) AS first FROM visits)
        INSERT INTO hits (campaign_id, annotator_id, assignment_id, leader, items, issued_at, expires_at)
        SELECT :campaign, annotator_id, id, first, ARRAY(SELECT generate_series(first, first + 4)), now(),
               now() + interval '1 hour' FROM numbered
    """
    await execute_sql(engine, opened, campaign=campaign.id, many=MANY_OPEN_HITS)
    return campaign


async def held(engine: AsyncEngine) -> list[int]:
    rows = await fetch_rows(engine, "SELECT unnest(items) FROM hits WHERE expires_at > now()")
    return sorted(item for (item,) in rows)


async def test_what_many_open_hits_hold_is_read_once_a_second(engine):
    campaign, time = await crowded(engine, free=20), [100.0]
    cache = PosteriorCache(clock=lambda: time[0])
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "first"), cache=cache)
    me = AssignmentQuery(await create_annotator(engine, campaign, "second"))
    async with borrow_autocommit_driver(engine) as connection:
        assert (await load_assignment_updating_posteriors_or_refuse(connection, cache, me)).held is None
        assert (
            len((await load_assignment_updating_posteriors_or_refuse(connection, PosteriorCache(), me)).held or ())
            == 5 * MANY_OPEN_HITS + 5
        )
        time[0] += 1.1
        assert (
            len((await load_assignment_updating_posteriors_or_refuse(connection, cache, me)).held or ())
            == 5 * MANY_OPEN_HITS + 5
        )


async def test_what_few_open_hits_hold_is_read_for_every_draw(engine):
    campaign, cache = await create_running_campaign(engine, items=20), PosteriorCache(clock=lambda: 100.0)
    await try_to_lease_hit(engine, await create_annotator(engine, campaign, "first"), cache=cache)
    async with borrow_autocommit_driver(engine) as connection:
        here = await load_assignment_updating_posteriors_or_refuse(
            connection, cache, AssignmentQuery(await create_annotator(engine, campaign, "second"))
        )
    assert len(here.held or ()) == 5


async def test_no_item_is_leased_too_often_by_a_process_that_remembers_what_was_free(engine):
    campaign, cache = await crowded(engine, free=30), PosteriorCache(clock=lambda: 100.0)
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(7)]
    for k, person in enumerate(people[:6]):
        await try_to_lease_hit(engine, person, cache=cache if k % 2 == 0 else None)
    assert (await find_or_lease_next_hit(engine, people[6], cache=cache)).reason == "wait"
    assert await held(engine) == list(range(5 * MANY_OPEN_HITS + 30))


async def test_items_that_were_given_back_are_found_within_a_second_by_a_process_that_remembers_them_as_held(engine):
    campaign, time = await crowded(engine, free=10), [100.0]
    cache = PosteriorCache(clock=lambda: time[0])
    slow, quick, late = [await create_annotator(engine, campaign, name) for name in ("slow", "quick", "late")]
    given_back = await try_to_lease_hit(engine, slow, cache=cache)
    await try_to_lease_hit(engine, quick, cache=cache)
    await expire_leases(engine, given_back)
    assert (await find_or_lease_next_hit(engine, late, cache=cache)).reason == "wait"
    time[0] += 1.1
    assert sorted((await try_to_lease_hit(engine, late, cache=cache)).items) == sorted(given_back.items)


async def test_whoever_waits_is_told_so_without_another_draw_until_what_others_hold_is_read_anew(engine):
    campaign, time = await crowded(engine, free=5), [100.0]
    cache = PosteriorCache(clock=lambda: time[0])
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(3)]
    await try_to_lease_hit(engine, people[0], cache=cache)
    assert (await find_or_lease_next_hit(engine, people[1], cache=cache)).reason == "wait"
    (copy,) = cache.indexes.values()
    copy.index.draw_hit_or_none = no_draw  # type: ignore[method-assign]  # fails loudly
    assert (await find_or_lease_next_hit(engine, people[2], cache=cache)).reason == "wait"
    time[0] += 1.1
    with pytest.raises(AssertionError, match="drawn"):
        await find_or_lease_next_hit(engine, people[2], cache=cache)


async def test_one_who_has_seen_all_that_is_free_leaves_it_to_others(engine):
    campaign, cache = await crowded(engine, free=5, repeat_items=False), PosteriorCache(clock=lambda: 100.0)
    me, other = [await create_annotator(engine, campaign, name) for name in ("me", "other")]
    hit = await try_to_lease_hit(engine, me, cache=cache)
    await submit_scores(engine, me, hit)
    await execute_sql(engine, "UPDATE posteriors SET judgments = 0")
    cache.indexes.clear()
    assert (await find_or_lease_next_hit(engine, me, cache=cache)).hit is None
    assert sorted((await try_to_lease_hit(engine, other, cache=cache)).items) == sorted(hit.items)


async def test_a_hit_is_whole_where_items_were_given_back_that_a_process_remembers_as_held(engine):
    campaign, cache = await crowded(engine, free=11), PosteriorCache(clock=lambda: 100.0)
    slow, quick, late = [await create_annotator(engine, campaign, name) for name in ("slow", "quick", "late")]
    given_back = await try_to_lease_hit(engine, slow, cache=cache)
    await try_to_lease_hit(engine, quick, cache=cache)
    await expire_leases(engine, given_back)
    assert len((await try_to_lease_hit(engine, late, cache=cache)).items) == 5


async def test_whoever_has_seen_all_is_told_so_beside_many_open_hits(engine):
    campaign, cache = await crowded(engine, free=5, repeat_items=False), PosteriorCache(clock=lambda: 100.0)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me, cache=cache))
    everything = "UPDATE responses SET items = ARRAY(SELECT generate_series(0, CAST(:last AS int)))"
    await execute_sql(engine, everything, last=5 * MANY_OPEN_HITS + 4)
    assert (await find_or_lease_next_hit(engine, me, cache=cache)).reason == "seen_all"


async def test_a_campaign_whose_items_an_import_filled_is_over_beside_many_open_hits(engine):
    campaign, cache = await crowded(engine, free=5), PosteriorCache(clock=lambda: 100.0)
    first, second = [await create_annotator(engine, campaign, name) for name in ("first", "second")]
    await try_to_lease_hit(engine, first, cache=cache)
    columns = ",".join([*(f"Input.id{k}" for k in range(1, 6)), *(f"Answer.range{k}" for k in range(1, 6))])
    hits = [[f"v{item}" for item in range(first, first + 5)] for first in range(0, 5 * MANY_OPEN_HITS + 5, 5)]
    await import_results(engine, campaign, "\n".join([columns, *(",".join([*hit, "1,2,3,4,5"]) for hit in hits)]))
    await execute_sql(engine, "UPDATE campaigns SET status = 'running'")
    assert (await find_or_lease_next_hit(engine, second, cache=cache)).reason == "all_done"


def test_a_new_hit_counts_for_its_segment_its_leader_and_its_items():
    values = ItemValues([0.5] * 4, [0.1] * 4, [0] * 4)
    index = AlgorithmOne().make_selection_index(values, SelectionSettings(2, items_per_hit=2, gamma=0.1))
    open_hits = OpenHits([0], [0, 1], index, read_at=0.0, segments=[7])
    open_hits.add_hit(1, [1, 2], index, segment=7)
    open_hits.add_hit(2, [2, 3], index, segment=8)
    open_hits.add_hit(3, [3], index)
    assert open_hits.segments == {7: 2, 8: 1}
    assert open_hits.leading == {0, 1, 2, 3}
    assert open_hits.leases == {0: 1, 1: 2, 2: 2, 3: 2}
    assert open_hits.full == {1, 2, 3}


def test_what_many_open_hits_hold_is_known_for_a_second_and_what_few_hold_not_at_all():
    values = ItemValues([0.5], [0.1], [0])
    index = AlgorithmOne().make_selection_index(values, SelectionSettings(2, items_per_hit=1, gamma=0.1))
    many, few = [OpenHits(range(count), [], index, read_at=5.0) for count in (MANY_OPEN_HITS, MANY_OPEN_HITS - 1)]
    assert [many.is_fresh(now) for now in (5.0, 5.9, 6.0, 7.0)] == [True, True, False, False]
    assert not few.is_fresh(5.0)


async def test_a_process_counts_the_hits_that_it_leases_until_it_reads_the_open_ones_again(engine):
    campaign, cache = await crowded(engine, free=20), PosteriorCache(clock=lambda: 100.0)
    hits = [
        await try_to_lease_hit(engine, await create_annotator(engine, campaign, name), cache=cache)
        for name in ("first", "second")
    ]
    (copy,) = cache.indexes.values()
    assert copy.open_hits is not None
    held_here = [item for hit in hits for item in hit.items]
    assert [copy.open_hits.leases[item] for item in held_here] == [1] * 10
    assert len(copy.open_hits.leading) == MANY_OPEN_HITS + 2
