"""The engine. A unit of work is `async with engine.begin()`: committed when it ends, rolled back when it raises."""

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine


def create_engine(url: str, *, pool_size: int = 8) -> AsyncEngine:
    """An engine on PostgreSQL through asyncpg.

    Every statement here is short and finds its rows by an index: planning it anew each time, or compiling it, would
    cost more than running it. A plan is made once per connection, perhaps when its tables were still empty, so it must
    be the right one whatever the statistics say: PostgreSQL is told to prefer indexes and nested loops.
    """
    return create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=False,
        connect_args={
            "server_settings": {
                "application_name": "easel",
                "jit": "off",
                "plan_cache_mode": "force_generic_plan",
                "enable_seqscan": "off",
                "enable_hashjoin": "off",
                "enable_mergejoin": "off",
            }
        },
    )
