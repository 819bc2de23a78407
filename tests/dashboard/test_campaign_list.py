"""How campaigns go, as their list says: each is read once, beside the event loop."""

import threading
from datetime import timedelta

import pytest

from app.campaigns import summaries
from app.dashboard import campaign_list, incremental, precision
from app.dashboard.incremental import PrecisionReplay
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.record.responses import load_counted_responses
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)


async def answered(engine, number, count):
    """Create campaigns with answers from two people that are far apart."""
    made = [await create_running_campaign(engine, judgments_per_item=40) for _ in range(number)]
    for campaign in made:
        for k in range(count):
            me = await create_annotator(engine, campaign, f"ann {k % 2}")
            await submit_scores(engine, me, await try_to_lease_hit(engine, me), scores=[30.0 + 20 * (k % 2)] * 5)
    return made


async def intervals(engine, precisions):
    async with engine.connect() as connection:
        rows = await summaries.load_campaigns_with_progress(connection)
        going = await campaign_list.load_campaign_pace_by_id(connection, precisions, rows, now=NOW)
    return {number: one.interval for number, one in going.items()}


async def test_the_list_gives_no_pace_of_a_campaign_that_nobody_answers_any_more(engine):
    (campaign,) = await answered(engine, 1, 6)
    async with engine.connect() as connection:
        row = next(one for one in await summaries.load_campaigns_with_progress(connection) if one.id == campaign.id)
        for minutes, told in ((5, True), (26, False)):
            now = NOW + timedelta(minutes=minutes)
            going = (await campaign_list.load_campaign_pace_by_id(connection, PrecisionReplay(), [row], now=now))[
                campaign.id
            ]
            assert bool(going.rate) == told


@pytest.fixture
def read(monkeypatch):
    """Return a list that records each campaign whose answers are read."""
    of = []

    async def noting(connection, campaign_id, **which):
        of.append(campaign_id)
        return await load_counted_responses(connection, campaign_id, **which)

    monkeypatch.setattr("app.dashboard.incremental.load_counted_responses", noting)
    return of


async def test_only_campaigns_with_new_answers_are_read_again_however_many_there_are(engine, monkeypatch, read):
    monkeypatch.setattr(incremental, "MAX_REPLAY_BYTES", 1)
    monkeypatch.setattr(campaign_list, "INTERVALS_BUDGET_SECONDS", 60)
    one, *_ = await answered(engine, 3, 8)
    precisions = PrecisionReplay()
    first = await intervals(engine, precisions)
    assert all(words.startswith("±") for words in first.values())
    read.clear()
    assert await intervals(engine, precisions) == first
    assert read == []
    me = await create_annotator(engine, one)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    await intervals(engine, precisions)
    assert read == [one.id]


async def test_what_is_known_is_said_also_when_there_is_no_time_to_read_more(engine, monkeypatch):
    precisions = PrecisionReplay()
    monkeypatch.setattr(campaign_list, "INTERVALS_BUDGET_SECONDS", 60)
    (known,) = await answered(engine, 1, 8)
    before = await intervals(engine, precisions)
    monkeypatch.setattr(campaign_list, "INTERVALS_BUDGET_SECONDS", 0)
    (new,) = await answered(engine, 1, 8)
    assert await intervals(engine, precisions) == before | {new.id: "loading"}
    assert before[known.id] != "loading"


async def test_intervals_are_computed_beside_the_event_loop(engine, monkeypatch):
    threads = []

    def noting(tally):
        threads.append(threading.current_thread())
        return moderated_means_of_tally(tally)

    monkeypatch.setattr(precision, "moderated_means_of_tally", noting)
    monkeypatch.setattr(campaign_list, "INTERVALS_BUDGET_SECONDS", 60)
    await answered(engine, 1, 8)
    await intervals(engine, PrecisionReplay())
    assert threads
    assert threading.main_thread() not in threads
