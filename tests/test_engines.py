"""The engines that tests use one after another."""

import asyncio
from contextlib import AsyncExitStack

from sqlalchemy import text

from tests.engines import Engines

AT_A_START = 3  # connections of an application whose background work has begun


async def test_an_engine_keeps_the_connections_that_an_application_needs_as_it_starts(database_url: str) -> None:
    engines = Engines(database_url, asyncio.get_running_loop())
    engine = engines.create(database_url, pool_size=AT_A_START + 2)
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(engine.connect()) for _ in range(AT_A_START)]
        used = [await connection.scalar(text("SELECT pg_backend_pid()")) for connection in connections]
    await engine.dispose()
    assert sorted(engines.connections()) == sorted(used)
    assert engines.create(database_url, pool_size=AT_A_START + 2) is engine
    await engine.dispose()
    await engines.close()
