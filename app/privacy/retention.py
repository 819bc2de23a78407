"""Erase data of finished campaigns whose time is over, as each campaign's settings and the server say.

What is due is erased in batches, each in a transaction of its own, so that nobody waits for long. A run that was
interrupted is continued by the next one: it finds what is left.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from sqlalchemy import TextClause, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.database.alerts import store_alert_unless_known
from app.database.audit_log import SERVER_ACTOR, log_change
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Conflict, pluralize
from app.privacy.inventory import ERASED_PREFIX, PERSONAL_TABLES, RANDOM_ID_SQL
from app.privacy.inventory_types import RetentionKind
from app.record.deletion import delete_campaign_and_all_its_data

RETENTION_PAUSE_SECONDS = 600.0
ROWS_PER_RETENTION_BATCH = 1_000
BATCH_PAUSE_SECONDS = 0.05
WARNING_TIME = timedelta(days=7)

RetentionPeriod = Literal["identifiers", "free_text", "telemetry", "everything"]
PERIOD_TITLES: dict[RetentionPeriod, str] = {
    "identifiers": "ids and names of annotators",
    "free_text": "free text of annotators",
    "telemetry": "telemetry of answers",
    "everything": "the whole campaign",
}

INSERT_RETENTION_RUN = text("""
    INSERT INTO retention_runs (campaign_id, kind, ran_at, counts)
    VALUES (:campaign, :kind, :now, CAST(:counts AS jsonb))
    ON CONFLICT (campaign_id, kind, ran_at) DO NOTHING
""")

TRY_RETENTION_LOCK = text("SELECT pg_try_advisory_lock(hashtext('easel.retention'))")

HAS_ERASED_IDENTIFIERS = text("""
    SELECT EXISTS (SELECT FROM retention_runs WHERE campaign_id = :campaign AND kind = 'identifiers')
""")


@dataclass(frozen=True)
class RetentionDue:
    """Data of a finished campaign, and when it is to be erased."""

    period: RetentionPeriod
    due_at: datetime


def retention_days(campaign: Campaign, period: RetentionPeriod, max_days: int | None) -> int | None:
    """Return how many days after the finish data is erased; None if never.

    Args:
        campaign: The campaign.
        period: The kind of data.
        max_days: The server's limit, which does not apply to whole campaigns.

    """
    limits = [getattr(campaign, f"{period}_days"), None if period == "everything" else max_days]
    return min((days for days in limits if days is not None), default=None)


def list_retention_dues(campaign: Campaign, max_days: int | None) -> list[RetentionDue]:
    """Return when each kind of data of a finished campaign is to be erased; empty for other campaigns."""
    if campaign.status != "finished" or campaign.finished_at is None:
        return []
    return [
        RetentionDue(period, campaign.finished_at + timedelta(days=days))
        for period in get_args(RetentionPeriod)
        if (days := retention_days(campaign, period, max_days)) is not None
    ]


def retention_statements(kind: RetentionKind) -> Iterator[tuple[str, TextClause]]:
    """Yield the name of each table and a statement that erases the next rows of it; the inventory says what."""
    for table in PERSONAL_TABLES:
        if table.retention == kind:
            yield table.name, batch_statement(f"DELETE FROM {table.name}", table.name, "")
            continue
        values = {
            name: column.anonymised
            for column in table.columns
            if column.retention == kind and column.anonymised
            for name in column.names
        }
        if values:
            left = " OR ".join(
                f"NOT starts_with(\"{name}\", '{ERASED_PREFIX}')"
                if value == RANDOM_ID_SQL
                else f'"{name}" IS DISTINCT FROM {value}'
                for name, value in values.items()
            )
            changes = ", ".join(f'"{name}" = {value}' for name, value in values.items())
            yield table.name, batch_statement(f"UPDATE {table.name} SET {changes}", table.name, f"AND ({left})")


def batch_statement(change: str, table: str, condition: str) -> TextClause:
    return text(f"""
        {change} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM {table} WHERE campaign_id = :campaign {condition} LIMIT {ROWS_PER_RETENTION_BATCH}))
    """)


RETENTION_STATEMENTS: dict[str, list[tuple[str, TextClause]]] = {
    kind: [*retention_statements(kind)] for kind in get_args(RetentionKind)
}


async def refuse_import_without_identifiers(engine: AsyncEngine, campaign: Campaign) -> None:
    """Raise `Conflict` (`identifiers_erased`) if no import can tell any more which answers are stored already."""
    async with engine.connect() as connection:
        has_erased = (await connection.execute(HAS_ERASED_IDENTIFIERS, {"campaign": campaign.id})).scalar_one()
    if has_erased:
        raise Conflict(
            f"The ids of the annotators of “{campaign.name}” were erased, so Easel cannot tell which answers of a file "
            "it already has. Nothing was imported.",
            code="identifiers_erased",
        )


async def erase_outdated_data(engine: AsyncEngine, *, now: datetime, max_days: int | None = None) -> None:
    """Erase what is due in all finished campaigns, and raise an alert a week before.

    Args:
        engine: The database.
        now: The present time.
        max_days: The server's limit for identifiers, free text and telemetry; None for no limit.

    """
    async with hold_retention_lock_if_free(engine) as is_free:
        if not is_free:  # another process of the server is at it
            return
        async with engine.connect() as connection:
            rows = await connection.execute(select(campaigns).where(campaigns.c.status == "finished").order_by("id"))
            finished = [Campaign.from_columns(row) for row in rows.mappings()]
        for campaign in finished:
            for due in list_retention_dues(campaign, max_days):
                if due.due_at <= now:
                    await erase_period(engine, campaign, due.period, now=now)
                elif due.due_at - WARNING_TIME <= now:
                    await store_retention_alert(engine, campaign, due)


@asynccontextmanager
async def hold_retention_lock_if_free(engine: AsyncEngine) -> AsyncIterator[bool]:
    """Hold the lock by which one process at a time erases, and yield whether it was free.

    Its connection is closed at the end, which releases the lock whatever has happened.
    """
    async with engine.connect() as connection:
        try:
            async with connection.begin():
                is_free = (await connection.execute(TRY_RETENTION_LOCK)).scalar_one()
            yield is_free
        finally:
            await connection.invalidate()


async def erase_period(engine: AsyncEngine, campaign: Campaign, period: RetentionPeriod, *, now: datetime) -> None:
    """Erase one kind of data of a campaign, and log how many rows that changed."""
    if period == "everything":
        async with engine.begin() as connection:
            await delete_campaign_and_all_its_data(connection, campaign.id)
            before = {"name": campaign.name, "because": PERIOD_TITLES[period]}
            await log_change(connection, "campaign.deleted", campaign, before=before, actor=SERVER_ACTOR)
        return
    counts: dict[str, int] = {}
    for table, statement in RETENTION_STATEMENTS[period]:
        changed = ROWS_PER_RETENTION_BATCH
        while changed == ROWS_PER_RETENTION_BATCH:
            async with engine.begin() as connection:
                changed = (await connection.execute(statement, {"campaign": campaign.id})).rowcount
            counts[table] = counts.get(table, 0) + changed
            if changed == ROWS_PER_RETENTION_BATCH:
                await asyncio.sleep(BATCH_PAUSE_SECONDS)
    counts = {table: count for table, count in counts.items() if count}
    if counts:
        async with engine.begin() as connection:
            run = {"campaign": campaign.id, "kind": period, "now": now, "counts": json.dumps(counts)}
            await connection.execute(INSERT_RETENTION_RUN, run)
            await log_change(
                connection,
                "people.retention",
                campaign,
                about=PERIOD_TITLES[period],
                after=counts,
                actor=SERVER_ACTOR,
            )


async def store_retention_alert(engine: AsyncEngine, campaign: Campaign, due: RetentionDue) -> None:
    """Raise an alert that data will be erased, once for each day on which that would happen."""
    async with engine.begin() as connection:
        await store_alert_unless_known(
            connection,
            campaign.id,
            "retention",
            f"{due.period} {due.due_at.date()}",
            about=PERIOD_TITLES[due.period],
            because=f"On {due.due_at:%Y-%m-%d}, {pluralize(WARNING_TIME.days, 'day')} after this alert at the latest.",
        )


class RetentionWork:
    """Retention of all campaigns of a server."""

    def __init__(self, database: AsyncEngine, clock: Callable[[], Awaitable[datetime]], max_days: int | None) -> None:
        self.database = database
        self.clock = clock
        self.max_days = max_days

    async def erase_outdated(self) -> None:
        """Erase what is due now."""
        await erase_outdated_data(self.database, now=await self.clock(), max_days=self.max_days)
