"""The lock by which all processes together make one revision of a campaign at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.session import limit_idle_time_of_session

# Longer than any pause of a revision between two transactions.
MAX_IDLE_SECONDS = 60

LOCK_REVISIONS_OF_SESSION = text("SELECT pg_advisory_lock(hashtext('campaign.revision'), CAST(:campaign AS int))")


@asynccontextmanager
async def hold_revision_lock(
    engine: AsyncEngine, campaign_id: int, *, max_idle_seconds: int = MAX_IDLE_SECONDS
) -> AsyncIterator[AsyncConnection]:
    """Hold the lock of a campaign.

    The yielded connection holds the lock. It is closed at the end, which releases the lock whatever has happened. The
    server releases it, too, if the connection was idle for so long outside a transaction: then its process or the
    network is gone.
    """
    async with engine.connect() as connection:
        try:
            async with connection.begin():
                await limit_idle_time_of_session(connection, max_idle_seconds)
                await connection.execute(LOCK_REVISIONS_OF_SESSION, {"campaign": campaign_id})
            yield connection
        finally:
            await connection.invalidate()
