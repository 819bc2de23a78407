import asyncio
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from app.annotation.hits import campaign_index, submission
from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.campaign_index import CampaignIndex, PosteriorCache
from app.annotation.hits.draw_hit import propose_hit_or_none
from app.database.server_database import reset_restored_transaction_ids
from app.database.session import borrow_autocommit_driver, borrow_driver_in_transaction, driver_of
from app.designs.answer import Answer
from app.selection.goal_rules import BEST_ITEMS_RULE
from app.selection.index import SelectionIndex
from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    submit_scores,
    try_to_lease_hit,
)


async def judgment_counts(engine, campaign, copy_of):
    async with borrow_driver_in_transaction(engine) as connection:
        copy = await copy_of.load_current_index(connection, campaign)
    return copy.index.judgments.tolist()


async def test_a_copy_follows_every_answer(engine):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    copy, me = PosteriorCache(), await create_annotator(engine, campaign)
    await judgment_counts(engine, campaign, copy)
    for _ in range(6):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
        stored = [
            count for (count,) in await fetch_rows(engine, "SELECT judgments FROM current_posteriors ORDER BY number")
        ]
        assert await judgment_counts(engine, campaign, copy) == stored


async def test_processes_draw_different_hits_and_each_draws_the_same_ones_again(engine):
    """All items of a new campaign tie, so processes with the same random numbers would lose HITs to each other."""
    campaign = await create_running_campaign(engine, items=100)
    around: dict[str, Any] = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}
    leaders = []
    async with borrow_driver_in_transaction(engine) as connection:
        for draw_seed in (1, 2, 1):
            copy = await PosteriorCache(draw_seed=draw_seed).load_current_index(connection, campaign)
            draws = [copy.index.draw_hit_or_none(5, **around, rng=copy.rng) for _ in range(20)]
            leaders.append([draw.leader for draw in draws if draw is not None])
    assert leaders[0] == leaders[2]
    assert sum(one == other for one, other in zip(leaders[0], leaders[1], strict=True)) < 5


def test_the_order_in_which_changes_are_found_makes_no_difference():
    """PostgreSQL finds them in the order of its plan, and a plan may change at any time."""
    rows = [(item, 0.5, 0.01, 1) for item in (3, 1, 7, 5, 0)]
    draws = []
    for found in (rows, rows[::-1], sorted(rows)):
        index = SelectionIndex(
            ItemValues([0.5] * 10, [0.08] * 10, [0] * 10),
            SelectionSettings(judgments_per_item=9, items_per_hit=5, gamma=0.1),
        )
        read: dict[str, Any] = {"revision": 0, "releases": 0, "watermark": "3:3:", "server_started": NOW}
        copy = CampaignIndex(index, np.random.default_rng(1), wanted_judgments=1, **read)
        numbers, scores, variances, judgments = zip(*found, strict=True)
        news: Any = SimpleNamespace(
            new_numbers=numbers, new_scores=scores, new_variances=variances, watermark="4:4:", revision=0, releases=0
        )
        news.new_judgments, news.new_status = judgments, [0] * len(rows)
        news.new_hits = news.new_annotators = news.new_items = None
        copy.merge_changes(news)
        around: dict[str, Any] = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}
        draws.append([index.draw_hit_or_none(5, **around, rng=copy.rng) for _ in range(20)])
    assert draws[0] == draws[1] == draws[2]


async def test_an_answer_that_commits_after_a_later_one_is_not_missed(engine):
    """Its number is lower than one that was read already: following the highest number would lose it."""
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    slow, quick = [await create_annotator(engine, campaign, name) for name in ("slow", "quick")]
    slow_hit, quick_hit = await try_to_lease_hit(engine, slow), None
    while quick_hit is None or set(quick_hit.items) & set(slow_hit.items):
        quick_hit = await try_to_lease_hit(
            engine, quick := await create_annotator(engine, campaign, f"quick {quick_hit}")
        )
    copy = PosteriorCache()
    await judgment_counts(engine, campaign, copy)
    async with engine.connect() as connection:
        driver = await driver_of(connection)
        open_transaction = driver.transaction()
        await open_transaction.start()
        answer = Answer(dict.fromkeys(slow_hit.items, 50.0))
        await submission.store_answer_of_hit_and_return_receipt(driver, slow, slow_hit.id, answer, now=NOW)
        await submit_scores(engine, quick, quick_hit)
        before = await judgment_counts(engine, campaign, copy)
        assert [before[item] for item in slow_hit.items] == [0] * 5
        await open_transaction.commit()
    after = await judgment_counts(engine, campaign, copy)
    assert [after[item] for item in slow_hit.items] == [1] * 5


async def test_a_campaign_is_loaded_once_however_many_ask(engine, monkeypatch):
    campaign = await create_running_campaign(engine)
    loads = []
    load = campaign_index.load_campaign_index

    async def load_and_count(*arguments):  # a second load would only cost time, and nobody outside would see it
        loads.append(1)
        return await load(*arguments)

    monkeypatch.setattr(campaign_index, "load_campaign_index", load_and_count)
    copy = PosteriorCache()
    await asyncio.gather(*(judgment_counts(engine, campaign, copy) for _ in range(5)))
    assert len(loads) == 1


async def test_while_another_revision_is_loaded_others_draw_from_the_one_before(engine, monkeypatch):
    campaign, cache = await create_running_campaign(engine), PosteriorCache()
    people = [await create_annotator(engine, campaign, name) for name in ("one", "two", "three")]
    await try_to_lease_hit(engine, people[0], cache=cache)
    old, load, may_load = cache.indexes[campaign.id], campaign_index.load_campaign_index, asyncio.Event()
    begun = asyncio.Event()

    async def slow(*arguments):
        begun.set()
        await may_load.wait()
        return await load(*arguments)

    monkeypatch.setattr(campaign_index, "load_campaign_index", slow)
    await execute_sql(engine, "UPDATE posteriors SET revision = 1")
    await execute_sql(engine, "UPDATE campaigns SET revision = 1")
    first = asyncio.create_task(try_to_lease_hit(engine, people[1], cache=cache))  # who notices it
    await begun.wait()
    assert (await try_to_lease_hit(engine, people[2], cache=cache)).items
    assert not first.done()
    assert cache.loaded_index_or_none(campaign.id) is old
    assert cache.loaded_index_or_none(campaign.id, [11]) is old
    assert (
        cache.loaded_index_or_none(campaign.id, [12]) is None
    )  # an item that joined since: annotators who have seen it wait
    may_load.set()
    assert (await first).items
    assert cache.indexes[campaign.id].revision == 1
    assert not cache.previous_indexes


async def test_beyond_the_memory_for_campaigns_the_one_used_least_recently_is_dropped(engine):
    first, second, third = [await create_running_campaign(engine) for _ in range(3)]
    cache = PosteriorCache()
    await judgment_counts(engine, first, cache)
    cache = PosteriorCache(max_bytes=2 * cache.indexes[first.id].approximate_bytes)
    for campaign in (first, second, first, third):
        await judgment_counts(engine, campaign, cache)
    assert {*cache.indexes} == {first.id, third.id}


async def test_a_campaign_whose_rule_takes_more_memory_counts_as_larger(engine, monkeypatch):
    monkeypatch.setitem(SELECTION_RULES, "best", replace(BEST_ITEMS_RULE, index_bytes_per_item=400))
    compact = await create_running_campaign(engine, items=200)
    sorting = await create_running_campaign(engine, items=200, rule="best", goal="best", goal_percent=95)
    cache = PosteriorCache()
    for campaign in (compact, sorting):
        await judgment_counts(engine, campaign, cache)
    assert cache.indexes[sorting.id].approximate_bytes > cache.indexes[compact.id].approximate_bytes


async def test_many_small_campaigns_stay_in_memory(engine):
    campaigns = [await create_running_campaign(engine) for _ in range(70)]
    cache = PosteriorCache()
    for campaign in campaigns:
        await judgment_counts(engine, campaign, cache)
    assert len(cache.indexes) == 70


async def test_a_campaign_larger_than_the_memory_is_kept_by_itself(engine):
    small, large = await create_running_campaign(engine), await create_running_campaign(engine, items=50)
    cache = PosteriorCache(max_bytes=1)
    for campaign in (small, large):
        await judgment_counts(engine, campaign, cache)
    assert list(cache.indexes) == [large.id]


async def test_a_campaign_larger_than_the_memory_leaves_room_for_small_ones(engine, monkeypatch):
    """Otherwise two campaigns that are asked in turn would load the large one again for each HIT."""
    monkeypatch.setattr(campaign_index, "INDEX_BYTES_PER_CAMPAIGN", 0)
    small, large = await create_running_campaign(engine), await create_running_campaign(engine, items=200)
    cache = PosteriorCache()
    await judgment_counts(engine, large, cache)
    cache = PosteriorCache(max_bytes=cache.indexes[large.id].approximate_bytes // 2)
    await judgment_counts(engine, large, cache)
    kept = cache.indexes[large.id]
    for campaign in (small, large):
        await judgment_counts(engine, campaign, cache)
    assert cache.indexes[large.id] is kept
    assert {*cache.indexes} == {small.id, large.id}


async def test_a_copy_that_was_dropped_while_in_use_serves_on_and_the_next_look_misses_nothing(engine):
    campaign, other = (
        await create_running_campaign(engine, judgments_per_item=50),
        await create_running_campaign(engine),
    )
    copy, me = PosteriorCache(max_bytes=1), await create_annotator(engine, campaign)
    await judgment_counts(engine, campaign, copy)
    old = copy.indexes[campaign.id]
    async with borrow_driver_in_transaction(engine) as connection:
        delayed: Any = Delayed(connection)
        look = asyncio.create_task(copy.load_current_index(delayed, campaign))
        await delayed.read.wait()
        await judgment_counts(engine, other, copy)
        delayed.arrive.set()
        assert await look is old
    assert list(copy.indexes) == [other.id]
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    assert sum(await judgment_counts(engine, campaign, copy)) == 5
    assert copy.indexes[campaign.id] is not old


class Delayed:
    """A connection whose answers are handed over only when `arrive` is set."""

    def __init__(self, connection):
        self.connection, self.read, self.arrive = connection, asyncio.Event(), asyncio.Event()

    async def fetch(self, *arguments, **options):
        result = await self.connection.fetch(*arguments, **options)
        self.read.set()
        await self.arrive.wait()
        return result


async def test_a_late_look_does_not_bring_back_what_was_there_before(engine):
    """An older one that arrives between the start and the end of a newer one: what it overwrote is not read again."""
    campaign = await create_running_campaign(engine, items=5)
    copy, me = PosteriorCache(), await create_annotator(engine, campaign)
    await judgment_counts(engine, campaign, copy)
    first = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, first)
    async with borrow_driver_in_transaction(engine) as one, borrow_driver_in_transaction(engine) as two:
        old: Any = Delayed(one)
        new: Any = Delayed(two)
        looks = [asyncio.create_task(copy.load_current_index(old, campaign))]
        await old.read.wait()
        second = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, second)
        stored = await judgment_counts(engine, campaign, copy)
        looks.append(asyncio.create_task(copy.load_current_index(new, campaign)))
        await new.read.wait()
        for look in (old, new):
            look.arrive.set()
            await looks.pop(0)
    assert (await judgment_counts(engine, campaign, copy)) == stored


async def test_what_a_dump_brought_along_counts_as_read_and_new_answers_are_seen(engine):
    """The transaction ids of another database may lie far ahead of this one's."""
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    copy, me = PosteriorCache(), await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE responses SET transaction_id = '99999999999'"))
    async with engine.begin() as connection:
        await reset_restored_transaction_ids(connection)
    assert await fetch_rows(engine, "SELECT transaction_id::text FROM responses") == [("3",)]
    assert sum(await judgment_counts(engine, campaign, copy)) == 5
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    assert sum(await judgment_counts(engine, campaign, copy)) == 10


async def index_after_request(engine, cache, someone):
    """The copy of `newest` after a request of this assignment, which brings it up to date."""
    async with borrow_autocommit_driver(engine) as connection:
        here = await load_assignment_updating_posteriors_or_refuse(connection, cache, AssignmentQuery(someone))
        await propose_hit_or_none(connection, here, cache, here, now=NOW)
    return cache.indexes[here.id]


async def test_a_copy_loaded_while_another_request_asked_without_one_misses_nothing(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    cache = PosteriorCache()
    await index_after_request(engine, cache, me)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit)
    async with borrow_autocommit_driver(engine) as connection:
        cache.merge_changes_of_row_unless_stale(
            await load_assignment_updating_posteriors_or_refuse(connection, PosteriorCache(), AssignmentQuery(me))
        )
    copy = await index_after_request(engine, cache, me)
    assert [copy.index.judgments[item] for item in hit.items] == [1] * 5


async def test_each_campaign_is_asked_from_its_own_watermark_on(engine):
    first, second = await create_running_campaign(engine), await create_running_campaign(engine, name="Nouns")
    me, you = await create_annotator(engine, first), await create_annotator(engine, second)
    cache = PosteriorCache()
    await index_after_request(engine, cache, me)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit)
    await index_after_request(engine, cache, you)
    copy = await index_after_request(engine, cache, me)
    assert [copy.index.judgments[item] for item in hit.items] == [1] * 5


async def test_an_id_that_a_crashed_server_gives_out_again_is_not_missed(engine):
    """A transaction that was rolled back has left no trace: after a crash another one may have its id."""
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    cache, me = PosteriorCache(), await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with engine.connect() as connection:
        lost = await connection.scalar(text("SELECT pg_current_xact_id()::text"))
        await connection.rollback()
    await index_after_request(engine, cache, me)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with engine.begin() as connection:
        again = text(
            "UPDATE responses SET transaction_id = CAST(CAST(:lost AS text) AS xid8) "
            "WHERE seq = (SELECT max(seq) FROM responses)"
        )
        await connection.execute(again, {"lost": lost})
    assert sum((await index_after_request(engine, cache, me)).index.judgments) == 10


@pytest.mark.parametrize("look", ["asked", "judged"])
async def test_a_copy_from_before_the_server_was_started_again_is_dropped(engine, look):
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    cache, me = PosteriorCache(), await create_annotator(engine, campaign)
    copy = await index_after_request(engine, cache, me)
    copy.server_started -= timedelta(seconds=1)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE responses SET transaction_id = '3'"))
    if look == "asked":
        assert (await index_after_request(engine, cache, me)) is not copy
    assert sum(await judgment_counts(engine, campaign, cache)) == 5
    assert cache.indexes[campaign.id] is not copy


class ChangedMeanwhile:
    """A connection on which somebody changes the campaign after the first statement."""

    def __init__(self, connection, change):
        self.connection, self.changes = connection, [change]

    async def fetch(self, *statement, **more):
        rows = await self.connection.fetch(*statement, **more)
        if self.changes:
            await self.changes.pop()()
        return rows


async def test_settings_that_change_between_two_reads_are_not_mixed_with_rows_from_before(engine):
    campaign = await create_running_campaign(engine)
    me, cache = await create_annotator(engine, campaign), PosteriorCache()
    await try_to_lease_hit(engine, me)

    async def change():
        await execute_sql(engine, "UPDATE campaigns SET visit_version = visit_version + 1, question = 'Again?'")

    async with borrow_autocommit_driver(engine) as connection:
        changed: Any = ChangedMeanwhile(connection, change)
        assignment = await load_assignment_updating_posteriors_or_refuse(changed, cache, AssignmentQuery(me))
    assert (assignment.question, assignment.admitted) == ("Again?", False)
