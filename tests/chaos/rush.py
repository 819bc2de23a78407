"""A rush to a campaign, in which both servers draw tasks before either of them leases one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import asyncpg

from tests.chaos.crowd import Annotator

SERVERS = 2  # each leases the tasks of a campaign on one connection at a time
LOOKS_DURING_HOLD, SECONDS_BETWEEN_LOOKS = 100, 0.02  # together shorter than servers wait for a lock
LOCK_ITEMS = """
    SELECT FROM posteriors WHERE campaign_id = (SELECT id FROM campaigns WHERE slug = $1)
    ORDER BY revision, criterion, subject FOR NO KEY UPDATE
"""
COUNT_WAITING_SESSIONS = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def rush_to_campaign(people: Sequence[Annotator], slug: str, database_url: str) -> None:
    """Let people open a campaign at once, each for one task.

    Until both servers wait for the campaign's items, or two seconds, nobody gets a task: so the servers race for the
    same items, however busy the machine is.
    """
    async with asyncio.TaskGroup() as tasks, hold_items_of_campaign(slug, database_url) as connection:
        for person in people:
            tasks.create_task(person.answer_hits(1))
        for _ in range(LOOKS_DURING_HOLD):
            if connection is None or await connection.fetchval(COUNT_WAITING_SESSIONS) >= SERVERS:
                break
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


@asynccontextmanager
async def hold_items_of_campaign(slug: str, database_url: str) -> AsyncIterator[asyncpg.Connection | None]:
    """Hold the locks of a campaign's items, and yield the connection; None if a fault has just cut the database off."""
    connection = None
    try:
        connection = await asyncpg.connect(database_url, timeout=5)
        await connection.execute("BEGIN")
        await connection.fetch(LOCK_ITEMS, slug, timeout=5)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError):
        if connection is not None:
            connection.terminate()
        yield None
        return
    try:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            yield connection
    finally:
        connection.terminate()
