"""The engine and the transaction: the only place that commits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine


def create_engine(url: str, *, pool_size: int = 10) -> AsyncEngine:
    """An engine on PostgreSQL through asyncpg.

    Every statement here is short and finds its rows by an index: planning it anew each time, or compiling it, would
    cost more than running it.
    """
    return create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=False,
        connect_args={
            "server_settings": {"jit": "off", "plan_cache_mode": "force_generic_plan", "application_name": "easel"}
        },
    )


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """One unit of work: committed when the block ends, rolled back when it raises."""
    async with engine.begin() as connection:
        yield connection
