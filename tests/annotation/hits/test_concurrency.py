import asyncio

import numpy as np
import pytest
from scipy import stats

from app.annotation.hits import draw_hit
from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.campaign_index import PosteriorCache
from app.database.bulk import open_snapshot
from app.database.session import borrow_driver_in_transaction, create_engine
from app.record.replay import verify_by_replay_or_refuse
from app.selection.match_quality import match_quality
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)


async def work_until_done(engine, assignment, cache, rng):
    """One annotator who posts every answer twice and sometimes asks twice."""
    while True:
        work = await find_or_lease_next_hit(engine, assignment, cache=cache)
        if work.reason == "wait":
            await asyncio.sleep(0.01)
        elif work.hit is None:
            return work.reason
        else:
            scores = rng.integers(0, 101, len(work.hit.items)).astype(float).tolist()
            await asyncio.gather(*(submit_scores(engine, assignment, work.hit, scores=scores) for _ in range(2)))


@pytest.mark.parametrize(("selection", "law"), [("streaming", "ra"), ("iterations", "ra"), ("streaming", "easl-aware")])
async def test_32_clients_finish_a_campaign_with_every_wanted_judgment_once(database_url, selection, law):
    engines = [create_engine(database_url, pool_size=8) for _ in range(2)]
    processes = [PosteriorCache(), PosteriorCache()]  # each stands for one server process with its own copy
    try:
        campaign = await create_running_campaign(
            engines[0], items=50, judgments_per_item=6, selection=selection, update_law=law
        )
        crowd = [await create_annotator(engines[0], campaign, f"a{k}") for k in range(32)]
        reasons = await asyncio.gather(
            *(
                work_until_done(engines[k % 2], assignment, processes[k % 2], np.random.default_rng(k))
                for k, assignment in enumerate(crowd)
            )
        )
        assert set(reasons) == {"all_done"}
        assert set(await fetch_rows(engines[0], "SELECT judgments FROM posteriors")) == {(6,)}
        assert await fetch_value(engines[0], "SELECT sum(cardinality(items)) FROM responses") == 50 * 6
        assert await fetch_value(engines[0], "SELECT status FROM campaigns") == "finished"
        async with open_snapshot(engines[0]) as connection:
            assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches
    finally:
        for engine in engines:
            await engine.dispose()


async def test_served_companions_follow_the_match_quality_of_algorithm_1(engine):
    """The first companion of a known leader, over many HITs that are given back each time, by chi-square."""
    campaign = await create_running_campaign(engine, items=8, items_per_hit=2, judgments_per_item=10_000)
    first = await create_annotator(engine, campaign)
    rng = np.random.default_rng(5)
    cache = PosteriorCache()
    for _ in range(12):
        hit = await try_to_lease_hit(engine, first, cache=cache)
        await submit_scores(engine, first, hit, scores=rng.integers(0, 101, 2).astype(float).tolist())
    rows = await fetch_rows(engine, "SELECT score, variance FROM current_posteriors ORDER BY number")
    score, variance = np.array(rows).T
    leader = int(np.argmax(variance))
    quality = match_quality(score[leader], variance[leader], score, variance, campaign.gamma)
    quality[leader] = 0
    counts = np.zeros(8)
    someone = await create_annotator(engine, campaign, "someone")
    async with borrow_driver_in_transaction(engine) as connection:
        here = await load_assignment_updating_posteriors_or_refuse(connection, cache, AssignmentQuery(someone))
        for _ in range(1500):
            proposal = await draw_hit.propose_hit_or_none(connection, here, cache, here, now=NOW)
            assert proposal is not None
            assert proposal.leader == leader
            (companion,) = set(proposal.items) - {leader}
            counts[companion] += 1
    expected = 1500 * quality / quality.sum()
    others = np.arange(8) != leader
    assert stats.chisquare(counts[others], expected[others]).pvalue > 0.001
