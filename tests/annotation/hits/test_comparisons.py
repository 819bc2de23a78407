"""Campaigns whose rule reads comparisons, on real PostgreSQL: every process asks by all answers that count."""

import asyncio
import threading
from itertools import count
from typing import Any

import numpy as np
import pytest

from app.annotation.hits.campaign_index import PosteriorCache
from app.database.session import create_engine
from app.inference.preferences import joint_thurstone
from app.inference.preferences.joint_thurstone import fit_joint_scores
from app.record import revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import replay_is_clean

PAIRS: dict[str, Any] = {"design": "pairwise", "rule": "pairs", "judgments_per_item": 60, "repeat_items": True}

READERS = count()


def better_number_first(items, rng):
    """Places: the item with the higher number wins four times in five."""
    won = (items[0] > items[1]) == (rng.random() < 0.8)
    return [1.0, 2.0] if won else [2.0, 1.0]


async def answer_some(engine, campaign, times, *, caches=(None,), names="abcdefg", seed=1):
    rng = np.random.default_rng(seed)
    for k in range(times):
        me = await create_annotator(engine, campaign, names[k % len(names)])
        hit = await try_to_lease_hit(engine, me, cache=caches[k % len(caches)])
        await submit_scores(engine, me, hit, scores=better_number_first(hit.items, rng))


async def log_of_reader(engine, campaign, cache):
    """The comparisons of a process, after it was asked for a HIT."""
    await find_or_lease_next_hit(
        engine, await create_annotator(engine, campaign, f"reader {next(READERS)}"), cache=cache
    )
    return cache.indexes[campaign.id].index.log


async def joint_of_record(engine, condition="true"):
    rows = await fetch_rows(engine, f"SELECT items, values FROM responses WHERE {condition} ORDER BY seq")
    first, second = np.array([items for items, _ in rows]).T
    return fit_joint_scores(first, second, [1 if values[0] < values[1] else -1 for _, values in rows], item_count=8)


async def test_hits_are_drawn_for_information_once_each_item_has_five_comparisons(engine):
    campaign = await create_running_campaign(engine, items=8, **PAIRS)
    await answer_some(engine, campaign, 30, caches=(PosteriorCache(),))
    reasons = [because for (because,) in await fetch_rows(engine, "SELECT drawn_because FROM hits ORDER BY id")]
    assert reasons == ["fewest_judgments"] * 20 + ["most_informative"] * 10
    pairs = await fetch_rows(engine, "SELECT items FROM hits ORDER BY id DESC LIMIT 10")
    assert np.mean([abs(first - second) for ((first, second),) in pairs]) < 3
    assert await replay_is_clean(engine, campaign.slug)


async def test_after_a_failed_fit_hits_are_drawn_as_before_until_the_next_fit(engine, monkeypatch, caplog):
    attempts = count()

    def fail_once(*columns, **sizes):
        if next(attempts) == 0:
            raise np.linalg.LinAlgError("no fit")
        return fit_joint_scores(*columns, **sizes)

    monkeypatch.setattr(joint_thurstone, "fit_joint_scores", fail_once)
    campaign = await create_running_campaign(engine, items=8, **PAIRS)
    await answer_some(engine, campaign, 23, caches=(PosteriorCache(),))
    reasons = [because for (because,) in await fetch_rows(engine, "SELECT drawn_because FROM hits ORDER BY id")]
    assert reasons == ["fewest_judgments"] * 21 + ["most_informative"] * 2
    assert "no fit" in caplog.text


async def test_the_fit_of_a_request_that_was_given_up_is_made_by_the_next_request(engine, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()

    def fit_when_allowed(*columns, **sizes):
        begun.set()
        may_end.wait()
        return fit_joint_scores(*columns, **sizes)

    campaign, cache = await create_running_campaign(engine, items=8, **PAIRS), PosteriorCache()
    await answer_some(engine, campaign, 20, caches=(cache,))
    monkeypatch.setattr(joint_thurstone, "fit_joint_scores", fit_when_allowed)
    request = asyncio.create_task(log_of_reader(engine, campaign, cache))
    await asyncio.to_thread(begun.wait)
    request.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await request
    log = await log_of_reader(engine, campaign, cache)
    assert np.array_equal(log.joint.mean, (await joint_of_record(engine)).mean)


async def test_a_process_that_follows_and_one_that_has_just_started_know_the_same(engine):
    campaign = await create_running_campaign(engine, items=8, **PAIRS)
    following = PosteriorCache(), PosteriorCache()
    await answer_some(engine, campaign, 29, caches=following)
    logs = [await log_of_reader(engine, campaign, cache) for cache in (*following, PosteriorCache())]
    assert all(len(log.hits) == 29 for log in logs)
    for log in logs[1:]:
        assert np.array_equal(log.joint.mean, logs[0].joint.mean)
        assert np.array_equal(log.joint.difference_variance, logs[0].joint.difference_variance)
    whole = await joint_of_record(engine)
    assert np.corrcoef(logs[0].joint.mean, whole.mean)[0, 1] > 0.99


async def test_the_answers_of_an_excluded_annotator_are_forgotten(engine):
    campaign = await create_running_campaign(engine, items=8, **PAIRS)
    cache = PosteriorCache()
    await answer_some(engine, campaign, 28, caches=(cache,))
    assert len((await log_of_reader(engine, campaign, cache)).hits) == 28
    ((excluded,),) = await fetch_rows(engine, "SELECT min(annotator_id) FROM responses")
    async with engine.begin() as connection:
        await revisions.store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", excluded, reason="", actor="ada", now=NOW
        )
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    log = await log_of_reader(engine, campaign, cache)
    rows = await fetch_rows(engine, "SELECT seq FROM responses WHERE annotator_id <> :excluded", excluded=excluded)
    assert log.hits == {seq for (seq,) in rows}
    remaining = await joint_of_record(engine, f"annotator_id <> {excluded}")
    assert np.corrcoef(log.joint.mean, remaining.mean)[0, 1] > 0.99


@pytest.mark.parametrize("design", ["ranking", "best_worst", "slider"])
async def test_every_two_items_of_a_larger_hit_are_compared(engine, design):
    law = {"update_law": "trueskill"} if design == "slider" else {}
    campaign = await create_running_campaign(engine, items=8, items_per_hit=4, **PAIRS | {"design": design} | law)
    cache, values = PosteriorCache(), {"ranking": [1.0, 2.0, 3.0, 3.0], "best_worst": [1.0, 2.0, 2.0, 3.0]}
    for k in range(12):
        me = await create_annotator(engine, campaign, f"a{k}")
        hit = await try_to_lease_hit(engine, me, cache=cache)
        await submit_scores(engine, me, hit, scores=values.get(design, [90.0, 50.0, 20.0, 10.0]))
    log = await log_of_reader(engine, campaign, cache)
    assert len(log.hits) == 12
    reasons = [because for (because,) in await fetch_rows(engine, "SELECT drawn_because FROM hits ORDER BY id")]
    # Six comparisons a HIT, of a best-worst HIT only five: 20 are enough for eight items.
    assert reasons.index("most_informative") == 4


async def compare_until_done(engine, campaign, assignment, cache, rng):
    while True:
        work = await find_or_lease_next_hit(engine, assignment, cache=cache)
        if work.reason == "wait":
            await asyncio.sleep(0.01)
        elif work.hit is None:
            return work.reason
        else:
            await submit_scores(engine, assignment, work.hit, scores=better_number_first(work.hit.items, rng))


async def test_ten_people_at_once_compare_until_the_items_have_their_judgments(database_url):
    engines = [create_engine(database_url, pool_size=6) for _ in range(2)]
    processes = [PosteriorCache(), PosteriorCache()]
    try:
        campaign = await create_running_campaign(engines[0], items=10, **PAIRS | {"judgments_per_item": 12})
        crowd = [await create_annotator(engines[0], campaign, f"a{k}") for k in range(10)]
        reasons = await asyncio.gather(
            *(
                compare_until_done(engines[k % 2], campaign, who, processes[k % 2], np.random.default_rng(k))
                for k, who in enumerate(crowd)
            )
        )
        assert set(reasons) == {"all_done"}
        judgments = sorted(count for (count,) in await fetch_rows(engines[0], "SELECT judgments FROM posteriors"))
        assert judgments[1:] == [12] * 9  # a last item may have nothing left to be compared with
        drawn = {because for (because,) in await fetch_rows(engines[0], "SELECT drawn_because FROM hits")}
        assert drawn == {"fewest_judgments", "most_informative"}
        assert await replay_is_clean(engines[0], campaign.slug)
    finally:
        for engine in engines:
            await engine.dispose()
