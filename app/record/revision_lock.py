"""The lock by which all processes together make one revision of a campaign at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

# Longer than any pause of a revision between two transactions.
MAX_IDLE_SECONDS = 60

LOCK_REVISIONS_OF_SESSION = text("SELECT pg_advisory_lock(hashtext('campaign.revision'), CAST(:campaign AS int))")

# A connection that falls silent leaves its session at the server, with the lock: PostgreSQL then ends the session.
# The limit holds until the connection is closed.
LIMIT_IDLE_TIME = text("SELECT set_config('idle_session_timeout', CAST(CAST(:seconds AS int) AS text) || 's', false)")


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
                await connection.execute(LIMIT_IDLE_TIME, {"seconds": max_idle_seconds})
                await connection.execute(LOCK_REVISIONS_OF_SESSION, {"campaign": campaign_id})
            yield connection
        finally:
            await connection.invalidate()
