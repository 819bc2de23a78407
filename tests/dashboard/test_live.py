import asyncio
import signal
from collections import Counter
from contextlib import aclosing
from datetime import timedelta

import pytest
from asyncpg import ConnectionDoesNotExistError, InterfaceError
from sqlalchemy.exc import OperationalError

from app.annotation.hits import submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard import live, state
from app.dashboard.live import LiveDashboards
from app.database.session import borrow_driver_in_transaction
from app.designs.answer import Answer
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import import_results


async def clock():
    return NOW


@pytest.fixture
async def watching(engine):
    hub = LiveDashboards(engine, PosteriorCache(), clock)
    yield hub
    await hub.stop()


@pytest.fixture(autouse=True)
def frequent(monkeypatch):
    """Compute five times as often as a server does, so that tests wait less."""
    monkeypatch.setattr(live, "MIN_COMPUTE_SECONDS", live.MIN_COMPUTE_SECONDS / 5)


@pytest.fixture
def computed(monkeypatch):
    """Return a list that records when a state is computed."""
    moments: list[float] = []
    count_calls(monkeypatch, "load_dashboard_state", moments)
    count_calls(monkeypatch, "load_state_updated_to_now", moments)
    return moments


def count_calls(monkeypatch, name, moments):
    compute = getattr(state, name)

    async def compute_and_count(*arguments, **named):
        moments.append(asyncio.get_running_loop().time())
        return await compute(*arguments, **named)

    monkeypatch.setattr(live, name, compute_and_count)


async def next_state(states):
    """Return the next state, or None for a heartbeat."""
    async with asyncio.timeout(60):
        return await anext(states)


async def first(states):
    """Return the next state, after the heartbeats of a slow computation."""
    while (state := await next_state(states)) is None:
        pass
    return state


async def test_a_viewer_gets_the_state_at_once(engine, watching):
    campaign = await create_running_campaign(engine)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        assert (await first(states)).figures["words"]["hits"] == "0 tasks"


async def test_an_answer_reaches_viewers_at_the_next_look_which_is_at_most_a_second_away(engine, watching, monkeypatch):
    begun: list[int] = []
    look = watching.publish_state_if_changed_and_load_marker

    async def load_and_count(*arguments, **named):
        begun.append(1)
        return await look(*arguments, **named)

    monkeypatch.setattr(watching, "publish_state_if_changed_and_load_marker", load_and_count)
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        await first(states)
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
        before = len(begun)
        assert (await first(states)).figures["words"]["hits"] == "1 task"
        assert len(begun) - before <= 1
    assert max(live.LIVE_POLL_SECONDS, 5 * live.MIN_COMPUTE_SECONDS) <= 1  # see `frequent`


async def test_an_answer_that_is_stored_after_a_whole_import_reaches_viewers(engine, watching, monkeypatch):
    """Its number is far below the last ones, and as its lease is over, no open HIT is gone with it."""
    monkeypatch.setattr(live, "MAX_STATE_AGE_SECONDS", 1_000)
    campaign = await create_running_campaign(engine, judgments_per_item=1_000)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await expire_leases(engine, hit)
    free = [f"v{number}" for number in range(12) if number not in hit.items][:2]
    rows = 250 * f"{free[0]},{free[1]},10,90\n"
    over = await fetch_value(engine, "SELECT expires_at FROM hits")

    async def late():
        return over

    watching.clock = late
    async with borrow_driver_in_transaction(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(
            connection, me, hit.id, Answer(dict.fromkeys(hit.items, 20.0)), now=NOW
        )
        await import_results(engine, campaign, "Input.id1,Input.id2,Answer.range1,Answer.range2\n" + rows)
        states = watching.stream_states(campaign.slug)
        assert (await first(states)).figures["words"]["hits"] == "250 tasks"
        await asyncio.sleep(2 * live.MIN_COMPUTE_SECONDS)
    async with aclosing(states), asyncio.timeout(20):
        assert (await first(states)).figures["words"]["hits"] == "251 tasks"


async def test_who_comes_back_gets_only_what_they_have_not_seen(engine, watching, monkeypatch):
    monkeypatch.setattr(live, "LIVE_HEARTBEAT_SECONDS", 0.3)
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        seen = (await first(states)).version
    async with aclosing(watching.stream_states(campaign.slug, seen_version=seen)) as states:
        assert await next_state(states) is None  # nothing new: a heartbeat
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with aclosing(watching.stream_states(campaign.slug, seen_version=seen)) as states:
        assert (await first(states)).figures["words"]["hits"] == "1 task"


async def test_forty_viewers_share_the_computations_which_have_a_pause_between_them(
    engine, watching, computed, monkeypatch
):
    monkeypatch.setattr(live, "MIN_COMPUTE_SECONDS", 0.5)  # during which several answers come
    campaign = await create_running_campaign(engine, judgments_per_item=50)
    me = await create_annotator(engine, campaign)
    got: Counter[int] = Counter()

    async def view(number):
        async with aclosing(watching.stream_states(campaign.slug)) as states:
            async for new in states:
                got[number] += new is not None

    viewers = [asyncio.create_task(view(number)) for number in range(40)]
    for _ in range(12):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
        await asyncio.sleep(live.MIN_COMPUTE_SECONDS / 5)
    for viewer in viewers:
        viewer.cancel()
    await asyncio.gather(*viewers, return_exceptions=True)
    seconds = asyncio.get_running_loop().time() - computed[0]
    assert 2 <= len(computed) <= 2 + seconds / live.MIN_COMPUTE_SECONDS
    assert len(got) == 40
    assert set(got.values()) <= {len(computed) - 1, len(computed)}


async def test_without_viewers_nothing_is_computed(engine, watching, computed):
    campaign = await create_running_campaign(engine)
    async with (
        aclosing(watching.stream_states(campaign.slug)) as one,
        aclosing(watching.stream_states(campaign.slug)) as two,
    ):
        await first(one)
        await first(two)
        task = watching.broadcasts[campaign.slug, 0].task
    assert watching.broadcasts == {}
    await asyncio.sleep(0)
    assert task.cancelled() or task.cancelling()
    before = len(computed)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    await asyncio.sleep(0.5)
    assert len(computed) == before == 1


async def test_nothing_is_sent_when_nothing_changed(engine, watching, computed, monkeypatch):
    monkeypatch.setattr(live, "MAX_STATE_AGE_SECONDS", 0.1)
    monkeypatch.setattr(live, "MIN_COMPUTE_SECONDS", 0.1)
    monkeypatch.setattr(live, "LIVE_HEARTBEAT_SECONDS", 0.1)
    campaign = await create_running_campaign(engine)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        await first(states)
        while len(computed) <= 2:
            assert await next_state(states) is None


async def test_while_nothing_but_the_clock_moves_answers_are_not_read_again(engine, watching, monkeypatch):
    monkeypatch.setattr(live, "MAX_STATE_AGE_SECONDS", 0.1)
    monkeypatch.setattr(live, "MIN_COMPUTE_SECONDS", 0.1)
    moments: list[float] = []
    count_calls(monkeypatch, "load_dashboard_state", moments)
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        before = (await first(states)).figures["pace"]

        async def two_hours_later():
            return NOW + timedelta(hours=2)

        watching.clock = two_hours_later
        assert (await first(states)).figures["pace"] != before
    assert len(moments) == 1


async def test_a_change_of_the_settings_reaches_viewers(engine, watching, monkeypatch):
    monkeypatch.setattr(live, "MAX_STATE_AGE_SECONDS", 1_000)
    campaign = await create_running_campaign(engine)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        before = (await first(states)).figures["cards"]
        await execute_sql(engine, "UPDATE campaigns SET judgments_per_item = judgments_per_item + 1")
        assert (await first(states)).figures["cards"] != before


async def test_a_crowd_that_is_gone_for_less_than_a_second_is_not_shown_as_gone_for_longer(
    engine, watching, monkeypatch
):
    """It goes between the look for changes and the computation, and is back before the next look."""
    monkeypatch.setattr(live, "MAX_STATE_AGE_SECONDS", 1_000)
    original, rehearsal = await create_running_campaign(engine), await create_running_campaign(engine)
    await execute_sql(engine, f"UPDATE campaigns SET rehearsal_of = {original.id} WHERE id = {rehearsal.id}")
    await execute_sql(engine, f"INSERT INTO crowds VALUES ({rehearsal.id}, '{{}}', now() + interval '1 hour')")
    look, looks = state.load_dashboard_change_marker, []

    async def look_at_a_crowd_that_goes_and_comes_back(*arguments, **named):
        looks.append(1)
        if len(looks) == 2:
            await execute_sql(engine, "UPDATE crowds SET led_until = now() + interval '1 hour'")
        marker = await look(*arguments, **named)
        if len(looks) == 1:
            await execute_sql(engine, "UPDATE crowds SET led_until = now() - interval '1 hour'")
        return marker

    monkeypatch.setattr(live, "load_dashboard_change_marker", look_at_a_crowd_that_goes_and_comes_back)
    async with aclosing(watching.stream_states(rehearsal.slug)) as states:
        assert (await first(states)).figures["crowd_gone"]
        async with asyncio.timeout(20):
            assert not (await first(states)).figures["crowd_gone"]


async def test_a_database_that_is_away_for_a_moment_ends_no_stream(engine, watching, monkeypatch):
    campaign = await create_running_campaign(engine)
    look = watching.publish_state_if_changed_and_load_marker
    # As SQLAlchemy says it, and as its driver does, which reads the posteriors. No real database fails in each of
    # these ways one look after another.
    failures = [OperationalError("SELECT", {}, OSError("away")), ConnectionDoesNotExistError(), InterfaceError("away")]

    async def failing(*arguments, **named):
        if failures:
            raise failures.pop()
        return await look(*arguments, **named)

    monkeypatch.setattr(watching, "publish_state_if_changed_and_load_marker", failing)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        assert (await first(states)).figures["answered"] is False
    assert not failures


async def test_a_campaign_that_is_gone_ends_its_streams(watching):
    async with aclosing(watching.stream_states("nowhere")) as states:
        with pytest.raises(StopAsyncIteration):
            await first(states)


async def test_stopping_ends_streams_and_tasks(engine, watching):
    campaign = await create_running_campaign(engine)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        await first(states)
        task = watching.broadcasts[campaign.slug, 0].task
        waiting = asyncio.create_task(anext(states))
        await asyncio.sleep(0)
        await watching.stop()
        with pytest.raises(StopAsyncIteration):
            await waiting
    assert task.done()


async def test_stopping_waits_for_a_look_whose_last_viewer_has_just_left(engine, watching, monkeypatch):
    """Else it would give its connection back to a pool that is gone."""
    campaign = await create_running_campaign(engine)
    looking, given_back = asyncio.Event(), asyncio.Event()

    async def slow_look(*_arguments, **_named):  # a look that a real lock holds up ends at once when it is cancelled
        try:
            looking.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            given_back.set()

    monkeypatch.setattr(watching, "publish_state_if_changed_and_load_marker", slow_look)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        viewer = asyncio.create_task(anext(states))
        await looking.wait()
        viewer.cancel()
        await asyncio.gather(viewer, return_exceptions=True)
    await watching.stop()
    assert given_back.is_set()


async def test_a_page_takes_the_state_its_viewers_share(engine, watching, computed):
    campaign = await create_running_campaign(engine)
    alone = await watching.load_shared_or_new_state(campaign.criteria[0], now=NOW)
    async with aclosing(watching.stream_states(campaign.slug)) as states:
        shared = await first(states)
        assert await watching.load_shared_or_new_state(campaign.criteria[0], now=NOW) is shared
    assert shared.version == alone.version
    assert len(computed) == 2


async def test_a_signal_ends_the_streams_and_still_reaches_who_handled_it_before(watching):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        ours = signal.getsignal(signal.SIGTERM)
        with watching.ending_streams_on_signals():
            signal.raise_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                while not watching.stopping:  # noqa: ASYNC110  (the loop is told by a signal)
                    await asyncio.sleep(0)
        assert heard == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is ours
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_a_server_in_another_thread_leaves_signals_alone(watching):
    def inside():
        with watching.ending_streams_on_signals():
            return signal.getsignal(signal.SIGTERM)

    assert await asyncio.to_thread(inside) is signal.getsignal(signal.SIGTERM)
