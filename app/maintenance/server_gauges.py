"""Gauges for `/metrics`: what a process holds now, and what waits in the database."""

from importlib.metadata import version
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.alerts.outbox import MAX_TRIES_PER_MESSAGE
from app.background.metrics import Series
from app.database.session import DATABASE_ERRORS

COUNT_CAMPAIGNS_BY_STATUS = text("SELECT status, count(*) FROM campaigns WHERE rehearsal_of IS NULL GROUP BY status")
COUNT_DUE_MESSAGES = text(
    "SELECT count(*) FROM alert_messages WHERE sent_at IS NULL AND tries < :tries AND next_try_at <= now()"
)


def gauges_of_process(state: Any) -> dict[Series, float]:
    """Return what this process holds now, from the `app.state` of its application."""
    return {
        ("easel_build_info", (version("easel"),)): 1,
        ("easel_db_connections_in_use", ("serving",)): state.serving_connections.borrowed_connection_count,
        ("easel_db_connections_in_use", ("pages",)): state.database.pool.checkedout(),
        ("easel_db_connections_in_use", ("reading",)): state.reading_database.pool.checkedout(),
        ("easel_indexes", ()): len(state.posterior_cache.indexes),
        ("easel_live_viewers", ()): sum(broadcast.viewers for broadcast in state.live.broadcasts.values()),
        ("easel_requests_waiting", ()): sum(
            len(waiting) for queue in (state.visit_requests, state.page_requests) for waiting in queue.waiting.values()
        ),
    }


async def load_database_gauges_or_empty(database: AsyncEngine) -> dict[Series, float]:
    """Return what is in the database; nothing while it does not answer, so that the other metrics can be read."""
    try:
        async with database.connect() as connection:
            counts = (await connection.execute(COUNT_CAMPAIGNS_BY_STATUS)).all()
            due = await connection.scalar(COUNT_DUE_MESSAGES, {"tries": MAX_TRIES_PER_MESSAGE})
    except DATABASE_ERRORS:
        return {}
    statuses: dict[Series, float] = {("easel_campaigns", (status,)): count for status, count in counts}
    return statuses | {("easel_outbox_due", ()): due or 0}
