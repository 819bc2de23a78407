"""Revisions while many people answer."""

import asyncio
import itertools
import random

import pytest
import pytest_asyncio

from app.annotation.hits.campaign_index import PosteriorCache
from app.database.session import create_engine
from app.record import law_storage, revision_draft
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.record.test_revisions import answer_being_stored, answered, decide, row_of, verified

SWITCH_IS_WAITING = """
    SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND NOT granted
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""


@pytest_asyncio.fixture
async def roomy(database_url):
    """Open an engine with a connection for each of 17 people, so that none has to wait for one."""
    engine = create_engine(database_url, pool_size=20)
    yield engine
    await engine.dispose()


async def test_a_decision_is_acted_on_where_somebody_is_always_storing_and_takes_long(engine):
    campaign, (row, *_) = await answered(engine)

    async def store(seconds):
        while True:
            async with engine.begin() as connection:
                await connection.execute(law_storage.SHARE_STORE_LOCK, {"campaign": campaign.id})
                await asyncio.sleep(seconds)

    storing = [asyncio.create_task(store(seconds)) for seconds in (0.21, 0.25, 0.29)]
    async with asyncio.timeout(30):
        await decide(engine, campaign, annotator=row)
    for task in storing:
        task.cancel()
    await asyncio.wait(storing)
    assert await fetch_rows(engine, "SELECT DISTINCT revision FROM current_posteriors") == [(1,)]


async def decide_while_an_answer_is_stored(engine, campaign, kind, *, annotator):
    """Decide, and hold the switch until it waits for another answer, which it has to apply."""
    slow = await create_annotator(engine, campaign, "slow")
    async with answer_being_stored(engine, slow, await try_to_lease_hit(engine, slow)):
        deciding = asyncio.create_task(decide(engine, campaign, kind, annotator=annotator))
        await wait_until(engine, SWITCH_IS_WAITING)
    await deciding


async def exclude_under_load(engine, law, *, excluded, most, decide):
    """Exclude, include and exclude some of sixteen people again while all answer without a pause.

    Not for ever: a revision of more answers under the slow law is made in another process. Each revision is verified,
    because the next one would bring back what it lost.
    """
    campaign = await create_running_campaign(engine, update_law=law, judgments_per_item=1000, items=60)
    assignments = [await create_annotator(engine, campaign, f"ann {k}") for k in range(16)]
    rows = [await row_of(engine, assignment) for assignment in assignments]
    cache, over = PosteriorCache(), asyncio.Event()
    receipts: list[int] = []

    async def work(assignment, rng):
        while not over.is_set() and len(receipts) < most:
            hit = await try_to_lease_hit(engine, assignment, cache=cache)
            scores = [rng.randint(0, 100) for _ in hit.items]
            receipts.append((await submit_scores(engine, assignment, hit, scores=scores)).seq)

    async def exclude():
        for row, kind in itertools.product(rows[:excluded], ("exclude", "include", "exclude")):
            await decide(engine, campaign, kind, annotator=row)
            assert (await verified(engine, campaign)).has_no_mismatches
        over.set()

    people = [work(assignment, random.Random(k)) for k, assignment in enumerate(assignments)]
    await asyncio.gather(exclude(), *people)
    stored = await fetch_rows(
        engine, "SELECT seq FROM responses WHERE annotator_id = ANY(:rows) ORDER BY seq", rows=rows
    )
    assert sorted(receipts) == [seq for (seq,) in stored]
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 3 * excluded
    counted = "SELECT count(*) FROM responses WHERE annotator_id <> ALL(:rows)"
    found = await verified(engine, campaign)
    assert found.responses == await fetch_value(engine, counted, rows=rows[:excluded])
    assert found.has_no_mismatches


@pytest.mark.parametrize(("law", "excluded", "most"), [("easl", 4, 400), ("easl-aware", 1, 150)])
async def test_exclusions_under_load_lose_no_answer_and_leave_every_bit_as_a_replay_has_it(
    roomy, monkeypatch, law, excluded, most
):
    for name in ("MIN_SWITCH_WAIT_MS", "MAX_SWITCH_WAIT_MS"):
        monkeypatch.setattr(revision_draft, name, 30_000)
    monkeypatch.setattr(revision_draft, "MAX_ANSWERS_LEFT_AT_SLOW_SWITCH", 17)  # one of each person
    await exclude_under_load(roomy, law, excluded=excluded, most=most, decide=decide_while_an_answer_is_stored)
