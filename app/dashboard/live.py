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

from app.background.tasks import KeyedTasks
from app.campaigns import lifecycle
from app.dashboard.follow import Followers
from app.dashboard.state import Marker, State, marker, newest_state
from app.database.session import TROUBLE, is_away
from app.designs.criteria import for_criterion, number_of
from app.serving.posterior_cache import PosteriorCache

TICK_SECONDS = 0.2  # how often the task asks whether anything changed
PERIOD_SECONDS = 1.0  # and how often it computes at most
STALE_SECONDS = 15.0  # bars and rates move with the clock, even if no answer comes
HEARTBEAT_SECONDS = 5.0  # a silent connection is closed by proxies, and this is how soon a log-out ends it

Clock = Callable[[], Awaitable[datetime]]
Address = tuple[str, int]  # a campaign by its slug, and the number of the criterion by which it is read


@dataclass
class Broadcast:
    """One campaign by a criterion: the newest state, and a bell that rings when there is a newer one."""

    viewers: int = 0
    state: State | None = None
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def ring(self) -> None:
        self.bell.set()
        self.bell = asyncio.Event()

    def publish(self, state: State) -> None:
        if self.state is None or state.version != self.state.version:
            self.state = state
            self.ring()


class Live:
    """The campaigns that someone watches through this process."""

    def __init__(self, database: AsyncEngine, cache: PosteriorCache, clock: Clock) -> None:
        self.database = database
        self.cache = cache
        self.followers = Followers()
        self.clock = clock
        self.broadcasts: dict[Address, Broadcast] = {}
        self.tasks = KeyedTasks[tuple[str, int, int]](
            "live pages"
        )  # also those that are cancelled and still give back a connection
        self.stopping = False

    async def state(self, campaign: Any, *, now: datetime) -> State:
        """The state for a page: the one its viewers share, else one made for it."""
        broadcast = self.broadcasts.get((campaign.slug, number_of(campaign)))
        if broadcast is not None and broadcast.state is not None:
            return broadcast.state
        async with self.database.connect() as connection:
            return await newest_state(connection, self.cache, self.followers, campaign, now=now)

    async def states(self, slug: str, criterion: int = 0, *, seen: str = "") -> AsyncGenerator[State | None]:
        """The newest state unless its version is `seen`, then every newer one; None while nothing happens."""
        address = slug, criterion
        broadcast = self.join(address)
        try:
            while not self.stopping:
                bell = broadcast.bell
                if broadcast.state is not None and broadcast.state.version != seen:
                    seen = broadcast.state.version
                    yield broadcast.state
                    continue
                if broadcast.task is not None and broadcast.task.done():
                    return  # it failed; whoever watches comes back, and finds a new one
                if not await changed_before_heartbeat(bell):
                    yield None
        finally:
            self.leave(address, broadcast)

    def join(self, address: Address) -> Broadcast:
        broadcast = self.broadcasts.get(address)
        if broadcast is None or broadcast.task is None or broadcast.task.done():
            broadcast = self.broadcasts[address] = Broadcast()
            broadcast.task = self.tasks.start((*address, id(broadcast)), partial(self.watch, address, broadcast))
            broadcast.task.add_done_callback(lambda _task: broadcast.ring())
        broadcast.viewers += 1
        return broadcast

    def leave(self, address: Address, broadcast: Broadcast) -> None:
        broadcast.viewers -= 1
        if broadcast.viewers == 0:
            assert broadcast.task is not None  # noqa: S101  (`join` made it)
            broadcast.task.cancel()
            if self.broadcasts.get(address) is broadcast:
                del self.broadcasts[address]

    async def watch(self, address: Address, broadcast: Broadcast) -> None:
        """Look every tick; compute when something changed, never twice within the period.

        While the database is away, viewers keep what they have, and the next tick asks again.
        """
        loop = asyncio.get_running_loop()
        before: Marker | None = None
        computed_at = -STALE_SECONDS
        while True:
            began = loop.time()
            pause = TICK_SECONDS
            try:
                stale = began - computed_at >= STALE_SECONDS
                after = await self.look(address, None if stale else before, broadcast)
                if after is None or after != before or stale:
                    computed_at, pause = began, PERIOD_SECONDS
                before = after
            except TROUBLE as trouble:
                if not is_away(trouble):
                    raise
            await asyncio.sleep(max(0.0, began + pause - loop.time()))

    async def look(self, address: Address, before: Marker | None, broadcast: Broadcast) -> Marker | None:
        """The campaign's marker; when it differs from `before`, a new state is published first.

        None while a part of the past is not replayed yet, so that the next look goes on with it.
        """
        now = await self.clock()
        async with self.database.connect() as connection:
            slug, criterion = address
            campaign = for_criterion(await lifecycle.find(connection, slug), criterion)
            # Read before the state: what comes in between is in the state already, and looked at once more.
            after = await marker(connection, campaign, before, now=now)
            if after != before:
                state = await newest_state(connection, self.cache, self.followers, campaign, now=now)
                broadcast.publish(state)
                if state.behind:
                    return None
        return after

    async def stop(self) -> None:
        """End all streams and tasks."""
        self.end_streams()
        await self.tasks.stop()

    def end_streams(self) -> None:
        self.stopping = True
        for broadcast in self.broadcasts.values():
            broadcast.ring()

    @contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """End the streams when the process is told to stop.

        The server waits for open replies before it lets the application shut down, so the streams must hear of the
        signal themselves. What handled it before still does.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = {number: signal.getsignal(number) for number in ending}

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


async def changed_before_heartbeat(bell: asyncio.Event) -> bool:
    """Whether something happened before it was time to tell viewers that nothing did."""
    with suppress(TimeoutError):
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            await bell.wait()
            return True
    return False
