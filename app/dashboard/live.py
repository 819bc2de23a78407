"""One computation per campaign, criterion and second, for however many viewers; none without viewers.

The first viewer of a campaign starts a task that watches it, the last one ends it. Every viewer gets the newest state
at once, then each that differs: a state is whole, so whatever a lost connection swallowed is in the next one.
"""

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits.campaign_index import PosteriorCache
from app.background.tasks import KeyedTasks
from app.dashboard.daily_answers import DailyAnswerCounts
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.square_counts import RecentSquareCounts
from app.dashboard.state import (
    ChangeMarker,
    DashboardState,
    load_dashboard_change_marker,
    load_dashboard_state,
    load_state_updated_to_now,
)
from app.database.session import DATABASE_ERRORS, is_database_away
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.record.campaign import load_campaign_by_slug_or_refuse

LIVE_POLL_SECONDS = 0.2
MIN_COMPUTE_SECONDS = 1.0
QUIET_AFTER_SECONDS = 10.0  # without a change: then polls are further apart
QUIET_POLL_SECONDS = 1.0
MAX_STATE_AGE_SECONDS = 15.0  # bars and rates move with the clock, even if no answer comes
LIVE_HEARTBEAT_SECONDS = 5.0  # proxies close a silent connection, and a log-out ends a stream this soon

LiveClock = Callable[[], Awaitable[datetime]]
LiveAddress = tuple[str, int]  # a campaign by its slug, and the number of the criterion by which it is read


@dataclass
class StateBroadcast:
    """Newest state of one campaign by a criterion, and an event that is set when there is a newer one."""

    viewers: int = 0
    state: DashboardState | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def notify_viewers(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def publish(self, state: DashboardState) -> None:
        before, self.state = self.state, state
        if before is None or state.version != before.version:
            self.notify_viewers()


class LiveDashboards:
    """The campaigns that someone watches through this process."""

    def __init__(self, database: AsyncEngine, cache: PosteriorCache, clock: LiveClock) -> None:
        self.database = database
        self.cache = cache
        self.followers = IncrementalReplays()
        self.square_counts = RecentSquareCounts(cache)
        self.daily_answer_counts = DailyAnswerCounts()
        self.clock = clock
        self.broadcasts: dict[LiveAddress, StateBroadcast] = {}
        # Includes tasks that are cancelled but still have to give back a connection.
        self.tasks = KeyedTasks[tuple[str, int, int]]("live pages")
        self.stopping = False

    async def load_shared_or_new_state(self, criterion: Criterion[Campaign], *, now: datetime) -> DashboardState:
        """Return the state for a page: the one that its viewers share, or one made for it."""
        broadcast = self.broadcasts.get((criterion.campaign.slug, criterion.number))
        if broadcast is not None and broadcast.state is not None:
            return broadcast.state
        async with self.database.connect() as connection:
            return await load_dashboard_state(connection, self.cache, self.followers, criterion, now=now)

    async def stream_states(
        self, slug: str, criterion: int = 0, *, seen_version: str = ""
    ) -> AsyncGenerator[DashboardState | None]:
        """Yield the newest state unless its version is `seen_version`, then every newer one; None as a heartbeat."""
        address = slug, criterion
        broadcast = self.join_or_start_broadcast(address)
        try:
            while not self.stopping:
                bell = broadcast.changed
                if broadcast.state is not None and broadcast.state.version != seen_version:
                    seen_version = broadcast.state.version
                    yield broadcast.state
                    continue
                if broadcast.task is not None and broadcast.task.done():
                    return  # the task failed; browsers reconnect, and the first one starts a new task
                if not await wait_for_change_until_heartbeat(bell):
                    yield None
        finally:
            self.leave_or_stop_broadcast(address, broadcast)

    def join_or_start_broadcast(self, address: LiveAddress) -> StateBroadcast:
        broadcast = self.broadcasts.get(address)
        if broadcast is None or broadcast.task is None or broadcast.task.done():
            broadcast = self.broadcasts[address] = StateBroadcast()
            broadcast.task = self.tasks.start(
                (*address, id(broadcast)), partial(self.publish_state_on_each_change, address, broadcast)
            )
            broadcast.task.add_done_callback(lambda _task: broadcast.notify_viewers())
        broadcast.viewers += 1
        return broadcast

    def leave_or_stop_broadcast(self, address: LiveAddress, broadcast: StateBroadcast) -> None:
        broadcast.viewers -= 1
        if broadcast.viewers == 0:
            assert broadcast.task is not None  # noqa: S101  (`join_or_start_broadcast` made it)
            broadcast.task.cancel()
            if self.broadcasts.get(address) is broadcast:
                del self.broadcasts[address]

    async def publish_state_on_each_change(self, address: LiveAddress, broadcast: StateBroadcast) -> None:
        """Poll every tick; compute when something changed, never twice within `MIN_COMPUTE_SECONDS`.

        While the database is away, viewers keep their last state, and the next tick asks again.
        """
        loop = asyncio.get_running_loop()
        old_marker: ChangeMarker | None = None
        computed_at = -MAX_STATE_AGE_SECONDS
        changed_at = loop.time()
        while True:
            started_at = loop.time()
            pause = LIVE_POLL_SECONDS if started_at - changed_at < QUIET_AFTER_SECONDS else QUIET_POLL_SECONDS
            try:
                is_old = started_at - computed_at >= MAX_STATE_AGE_SECONDS
                new_marker = await self.publish_state_if_changed_and_load_marker(
                    address, old_marker, broadcast, is_old=is_old
                )
                is_changed = new_marker is None or new_marker != old_marker
                if is_changed or is_old:
                    computed_at, pause = started_at, MIN_COMPUTE_SECONDS
                if is_changed:
                    changed_at = started_at
                old_marker = new_marker
            except DATABASE_ERRORS as trouble:
                if not is_database_away(trouble):
                    raise
            await asyncio.sleep(max(0.0, started_at + pause - loop.time()))

    async def publish_state_if_changed_and_load_marker(
        self, address: LiveAddress, old_marker: ChangeMarker | None, broadcast: StateBroadcast, *, is_old: bool
    ) -> ChangeMarker | None:
        """Publish a new state if the campaign's marker or row changed, or the state is old; return the new marker.

        Return None while answers are still being replayed, so that the next poll continues.
        """
        now = await self.clock()
        async with self.database.connect() as connection:
            slug, number = address
            criterion = (await load_campaign_by_slug_or_refuse(connection, slug)).criteria[number]
            # Read before the state: an answer in between is in the state already, and causes one more computation.
            new_marker = await load_dashboard_change_marker(connection, criterion, old_marker, now=now)
            state = broadcast.state
            if (
                state is None
                or new_marker != old_marker
                or state.snapshot.campaign != criterion.campaign
                or state.snapshot.crowd_gone != new_marker.crowd_gone  # it went after the old marker, and came back
            ):
                state = await load_dashboard_state(connection, self.cache, self.followers, criterion, now=now)
                broadcast.publish(state)
                if state.unread_answer_count:
                    return None
            elif is_old:
                broadcast.publish(await load_state_updated_to_now(connection, state, now=now))
        return new_marker

    async def stop(self) -> None:
        """End all streams and tasks."""
        self.end_streams()
        await self.tasks.stop()

    def end_streams(self) -> None:
        self.stopping = True
        for broadcast in self.broadcasts.values():
            broadcast.notify_viewers()

    @contextmanager
    def ending_streams_on_signals(self) -> Iterator[None]:
        """End the streams when the process gets a signal to stop.

        The server waits for open replies before it lets the application shut down, so the streams must handle the
        signal themselves. The previous handler still runs.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = {number: signal.getsignal(number) for number in signals}

        def pass_on(number: int, frame: Any) -> None:
            loop.call_soon_threadsafe(self.end_streams)
            handler = handlers[signal.Signals(number)]
            assert callable(handler)  # noqa: S101  (others are left alone below)
            handler(number, frame)

        replaced = [number for number, handler in handlers.items() if callable(handler)]
        for number in replaced:
            signal.signal(number, pass_on)
        try:
            yield
        finally:
            for number in replaced:
                if signal.getsignal(number) is pass_on:
                    signal.signal(number, handlers[number])


async def wait_for_change_until_heartbeat(change_event: asyncio.Event) -> bool:
    """Return whether the event was set before the next heartbeat is due."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LIVE_HEARTBEAT_SECONDS):
            await change_event.wait()
            return True
    return False
