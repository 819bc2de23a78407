"""Engines on one database that tests use one after another, each alone.

A new engine compiles every statement again, and a new connection is a new process of PostgreSQL that knows nothing yet:
together they take longer than a short test does.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from sqlalchemy import AsyncAdaptedQueuePool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.database.session import LOST_CONNECTION_ERRORS, driver_of

# Connections that an engine may keep: as many as the background work of an application needs as it starts. PostgreSQL
# has room for a hundred, and all engines of all processes share it.
MAX_KEPT_CONNECTIONS = 3


class Engines:
    """Makes engines; those on `url` are used again once they are disposed of."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.loop = loop
        self._resting: defaultdict[str, list[Reusable]] = defaultdict(list)

    def create(self, url: str, **options: Any) -> AsyncEngine:
        """As `create_async_engine`."""
        if url != self.url:
            return create_async_engine(url, **options)
        resting = self._resting[f"{options} {self.at_home()}"]
        return resting.pop() if resting else Reusable(create_async_engine(url, **options), self, resting.append)

    def at_home(self) -> bool:
        """Whether this is the loop to which connections that are kept belong."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def connections(self) -> list[int]:
        """The processes of PostgreSQL that wait for the next test."""
        return [pid for engines in self._resting.values() for engine in engines for pid in engine.kept]

    async def close(self) -> None:
        for engines in self._resting.values():
            for engine in engines:
                await engine.close()


class Reusable(AsyncEngine):
    """An engine that rests once it is disposed of. To go on afterwards, make another one."""

    def __init__(self, engine: AsyncEngine, engines: Engines, rest: Callable[["Reusable"], None]) -> None:
        super().__init__(engine.sync_engine)
        self._engines = engines
        self._rest = rest
        self.kept: list[int] = []

    async def dispose(self, close: bool = True) -> None:
        self.kept = await self._as_new() if self._engines.at_home() else []
        if not self.kept:
            await self.close(close=close)
        self._rest(self)

    async def close(self, *, close: bool = True) -> None:
        await super().dispose(close)

    async def _as_new(self) -> list[int]:
        """The processes of its connections, which are as new; empty if they are not to be kept."""
        pool = self.sync_engine.pool
        assert isinstance(pool, AsyncAdaptedQueuePool)
        if pool.checkedout() or pool.checkedin() > MAX_KEPT_CONNECTIONS:
            return []
        async with AsyncExitStack() as stack:
            connections = [await stack.enter_async_context(self.connect()) for _ in range(pool.checkedin())]
            return [pid for connection in connections if (pid := await _reset(connection))]


async def _reset(connection: AsyncConnection) -> int | None:
    """Its process once it has no settings and locks of its own any more; None if it broke."""
    try:
        driver = await driver_of(connection)
        await driver.reset()
        return driver.get_server_pid()
    except (DBAPIError, *LOST_CONNECTION_ERRORS):
        await connection.invalidate()
        return None
