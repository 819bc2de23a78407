"""Erase data of finished campaigns whose time is over, as each campaign's settings and the server say.

Due data are erased in batches, each in a transaction of its own, so that other requests do not wait for long. The next
run continues an interrupted one: it finds what is left.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Delete,
    Table,
    Update,
    delete,
    literal_column,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

import app.database.payment_tables
import app.database.privacy_tables
import app.database.quality_tables
import app.database.sharing_tables
import app.database.visit_tables  # noqa: F401  (parts of the metadata)
from app.database.alerts import store_alert_unless_known
from app.database.audit_log import SERVER_ACTOR, log_change
from app.database.exclusive_work import ClaimLost, WorkClaim, hold_work_during_block_if_free
from app.database.schema import metadata
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Conflict, pluralize, shorten_echo
from app.privacy.inventory import PERSONAL_TABLES
from app.privacy.inventory_types import RetentionKind
from app.record.deletion import delete_campaign_and_all_its_data_or_refuse
from app.record.revisions import block_answers_until_transaction_ends

log = logging.getLogger(__name__)

RETENTION_PAUSE_SECONDS = 600.0
ROWS_PER_RETENTION_BATCH = 1_000
BATCH_PAUSE_SECONDS = 0.05
WARNING_TIME = timedelta(days=7)
TIME_BETWEEN_RUNS = timedelta(days=1)

RetentionPeriod = Literal["identifiers", "free_text", "telemetry", "everything"]
PERIOD_TITLES: dict[RetentionPeriod, str] = {
    "identifiers": "ids and names of annotators",
    "free_text": "free text of annotators",
    "telemetry": "telemetry of answers",
    "everything": "the whole campaign",
}

LOAD_LAST_RETENTION_RUN = text("""
    SELECT ran_at, finished_at, counts FROM retention_runs WHERE campaign_id = :campaign AND kind = :kind
    ORDER BY ran_at DESC LIMIT 1
""")
INSERT_RETENTION_RUN = text("""
    INSERT INTO retention_runs (campaign_id, kind, ran_at, counts) VALUES (:campaign, :kind, :ran_at, '{}')
    ON CONFLICT (campaign_id, kind, ran_at) DO NOTHING
""")
NOTE_RETENTION_COUNTS = text("""
    UPDATE retention_runs SET counts = CAST(:counts AS jsonb)
    WHERE campaign_id = :campaign AND kind = :kind AND ran_at = :ran_at
""")
NOTE_FINISHED_RETENTION = text("""
    UPDATE retention_runs SET finished_at = :now WHERE campaign_id = :campaign AND kind = :kind AND ran_at = :ran_at
""")

# A run that found nothing leaves the run before as the latest one. Without any ids, imports stay possible.
DELETE_EMPTY_RETENTION_RUN = text("""
    WITH earlier AS (
        UPDATE retention_runs SET finished_at = :now WHERE campaign_id = :campaign AND kind = :kind AND ran_at = (
            SELECT max(ran_at) FROM retention_runs
            WHERE campaign_id = :campaign AND kind = :kind AND ran_at < :ran_at)
        RETURNING ran_at)
    DELETE FROM retention_runs WHERE campaign_id = :campaign AND kind = :kind AND ran_at = :ran_at
    AND (kind = 'identifiers' OR EXISTS (SELECT FROM earlier))
""")

HAS_WARNED_BEFORE = text("""
    SELECT EXISTS (
        SELECT FROM alerts WHERE campaign_id = :campaign AND kind = 'retention' AND occasion = :occasion
        AND raised_at <= :before
    ) OR EXISTS (SELECT FROM campaigns WHERE id = :campaign AND rehearsal_of IS NOT NULL)
""")

# Its file is deleted with the ids of the annotators.
FIND_UNFINISHED_IMPORT = text("SELECT name, started_at FROM unfinished_imports WHERE campaign_id = :campaign")
ENDED_IMPORT_TEXT = "The ids of the annotators of this campaign were erased, and with them the file."

RETENTION_WORK = "retention"

HAS_ERASED_IDENTIFIERS = text("""
    SELECT EXISTS (SELECT FROM retention_runs WHERE campaign_id = :campaign AND kind = 'identifiers')
""")


@dataclass(frozen=True)
class RetentionDue:
    """Data of a finished campaign, and when it is to be erased."""

    period: RetentionPeriod
    due_at: datetime


def retention_days_or_none(campaign: Campaign, period: RetentionPeriod, max_days: int | None) -> int | None:
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
        if (days := retention_days_or_none(campaign, period, max_days)) is not None
    ]


@dataclass(frozen=True)
class RetentionStep:
    """Erasure of one kind of data from one table.

    Attributes:
        table: The table.
        values: SQL of the new value by column; empty if the rows are deleted.
        left: SQL condition on the rows that are not erased yet.

    """

    table: Table
    values: Mapping[str, str]
    left: str

    @property
    def key_columns(self) -> list[Column[Any]]:
        return [*self.table.primary_key.columns]

    def sql_conditions_after_row(self, campaign_id: int, last_key: Sequence[Any]) -> list[ColumnElement[bool]]:
        """Return conditions on the rows that are left; `last_key` is the key of the last row of the batch before."""
        conditions = [self.table.c.campaign_id == campaign_id, literal_column(f"({self.left})", Boolean)]
        return [*conditions, tuple_(*self.key_columns) > tuple_(*last_key)] if last_key else conditions

    async def erase_next_batch_returning_count_and_last_key(
        self, connection: AsyncConnection, campaign_id: int, last_key: Sequence[Any]
    ) -> tuple[int, Sequence[Any]]:
        """Erase the next rows, and return how many they were and the key of the last; empty if no more are left."""
        conditions = self.sql_conditions_after_row(campaign_id, last_key)
        batch = select(*self.key_columns).where(*conditions).order_by(*self.key_columns).limit(ROWS_PER_RETENTION_BATCH)
        keys = (await connection.execute(batch)).all()
        if not keys:
            return 0, ()
        change: Update | Delete = delete(self.table)
        if self.values:
            change = update(self.table).values({name: literal_column(value) for name, value in self.values.items()})
        in_batch = tuple_(*self.key_columns) <= tuple_(*keys[-1])
        changed = (await connection.execute(change.where(*conditions, in_batch))).rowcount
        return changed, tuple(keys[-1]) if len(keys) == ROWS_PER_RETENTION_BATCH else ()


def iterate_retention_steps(kind: RetentionKind) -> Iterator[RetentionStep]:
    """Yield the step that erases each table's part of this kind of data; the inventory says it."""
    for personal in PERSONAL_TABLES:
        table = metadata.tables[personal.name]
        if personal.retention == kind:
            yield RetentionStep(table, {}, personal.deleted_by_anonymise)
        values = {
            name: column.anonymised
            for column in personal.columns
            if column.retention == kind and column.anonymised
            for name in column.names
        }
        if values:
            left = " OR ".join(f'"{name}" IS DISTINCT FROM {value}' for name, value in values.items())
            yield RetentionStep(table, values, f"({personal.about_any_annotator}) AND ({left})")


RETENTION_STEPS: dict[str, list[RetentionStep]] = {
    kind: [*iterate_retention_steps(kind)] for kind in get_args(RetentionKind)
}


async def refuse_import_without_identifiers(connection: AsyncConnection, campaign: Campaign) -> None:
    """Raise `Conflict` (`identifiers_erased`) if no import can tell any more which answers are stored already."""
    if (await connection.execute(HAS_ERASED_IDENTIFIERS, {"campaign": campaign.id})).scalar_one():
        raise Conflict(
            f"The ids of the annotators of “{campaign.name}” were erased, so Easel cannot tell which answers of a file "
            "it already has. Nothing more was imported.",
            code="identifiers_erased",
        )


async def erase_outdated_data(engine: AsyncEngine, *, now: datetime, max_days: int | None = None) -> None:
    """Erase what is due in all finished campaigns, and raise an alert a week before.

    Args:
        engine: The database.
        now: The present time.
        max_days: The server's limit for identifiers, free text and telemetry; None for no limit.

    """
    async with hold_work_during_block_if_free(engine, RETENTION_WORK) as claim:
        if claim is None:  # another process of the server is at it
            return
        async with engine.connect() as connection:
            rows = await connection.execute(select(campaigns).where(campaigns.c.status == "finished").order_by("id"))
            finished = [Campaign.from_columns(row) for row in rows.mappings()]
        for campaign in finished:
            try:
                await erase_outdated_data_of_campaign(engine, claim, campaign, now=now, max_days=max_days)
            except ClaimLost as problem:
                log.warning("Retention stops here: %s", problem)
                return
            except Exception:
                log.exception("Retention of the campaign %s failed, and is tried again.", campaign.slug)


async def erase_outdated_data_of_campaign(
    engine: AsyncEngine, claim: WorkClaim, campaign: Campaign, *, now: datetime, max_days: int | None
) -> None:
    """Erase what is due in a campaign, and raise alerts about what will be. No campaign is deleted without one.

    Raises ClaimLost.
    """
    for due in list_retention_dues(campaign, max_days):
        if due.due_at - WARNING_TIME > now:
            continue
        if due.period == "everything":
            await store_retention_alert(engine, campaign, due, now=now)
            await delete_campaign_if_still_due(engine, claim, campaign, due, now=now)
        elif due.due_at <= now:
            await erase_data_kind_and_log(engine, claim, campaign, due, now=now, max_days=max_days)
        else:
            await store_retention_alert(engine, campaign, due, now=now)


@asynccontextmanager
async def begin_transaction_holding_claim(engine: AsyncEngine, claim: WorkClaim) -> AsyncIterator[AsyncConnection]:
    """Begin a transaction that no other process's retention can overlap. Raises ClaimLost."""
    async with engine.begin() as connection:
        await claim.hold_until_transaction_ends_or_raise(connection)
        yield connection


async def lock_campaign_returning_if_still_due(
    connection: AsyncConnection, campaign: Campaign, due: RetentionDue, max_days: int | None = None
) -> bool:
    """Lock a campaign, and return whether its data is still due: it may run again, or have other periods meanwhile."""
    statement = select(campaigns).where(campaigns.c.id == campaign.id).with_for_update()
    row = (await connection.execute(statement)).mappings().one_or_none()
    return row is not None and due in list_retention_dues(Campaign.from_columns(row), max_days)


async def delete_campaign_if_still_due(
    engine: AsyncEngine, claim: WorkClaim, campaign: Campaign, due: RetentionDue, *, now: datetime
) -> None:
    """Delete a campaign whose time is over, if its alert is old enough. Rehearsals have no alerts. Raises ClaimLost."""
    if due.due_at > now:
        return
    async with begin_transaction_holding_claim(engine, claim) as connection:
        try:
            await block_answers_until_transaction_ends(connection, campaign.id)
            if not await lock_campaign_returning_if_still_due(connection, campaign, due):
                return
            alert = {"campaign": campaign.id, "occasion": retention_alert_occasion(due), "before": now - WARNING_TIME}
            if not (await connection.execute(HAS_WARNED_BEFORE, alert)).scalar_one():
                return
            await delete_campaign_and_all_its_data_or_refuse(connection, campaign.id)
        except Conflict as refusal:  # nothing was changed; tried again in the next run
            log.warning("campaign %d is not deleted yet: %s", campaign.id, refusal.code)
            return
        before = {"name": campaign.name, "because": PERIOD_TITLES[due.period]}
        await log_change(connection, "campaign.deleted", campaign, old_values=before, actor=SERVER_ACTOR)


async def erase_data_kind_and_log(
    engine: AsyncEngine, claim: WorkClaim, campaign: Campaign, due: RetentionDue, *, now: datetime, max_days: int | None
) -> None:
    """Erase one kind of data of a campaign, and log how many rows that changed.

    The run is committed before the first row is erased, so that no import takes an erased id for a new one, and each
    batch with its counts. A period that is done is looked through again after `TIME_BETWEEN_RUNS` for new rows.
    Raises ClaimLost.
    """
    key: dict[str, Any] = {"campaign": campaign.id, "kind": due.period}
    async with begin_transaction_holding_claim(engine, claim) as connection:
        if not await lock_campaign_returning_if_still_due(connection, campaign, due, max_days):
            return
        last = (await connection.execute(LOAD_LAST_RETENTION_RUN, key)).one_or_none()
        if last is not None and last.finished_at is not None and last.finished_at > now - TIME_BETWEEN_RUNS:
            return
        is_continued = last is not None and last.finished_at is None
        run = key | {"ran_at": last.ran_at if last is not None and is_continued else now}
        counts: dict[str, int] = dict(last.counts) if last is not None and is_continued else {}
        await connection.execute(INSERT_RETENTION_RUN, run)
        if due.period == "identifiers":
            await store_alert_about_ended_import(connection, campaign.id)
    for step in RETENTION_STEPS[due.period]:
        after: Sequence[Any] = ()
        is_left = True
        while is_left:
            async with begin_transaction_holding_claim(engine, claim) as connection:
                changed, after = await step.erase_next_batch_returning_count_and_last_key(
                    connection, campaign.id, after
                )
                if changed:
                    counts[step.table.name] = counts.get(step.table.name, 0) + changed
                    await connection.execute(NOTE_RETENTION_COUNTS, run | {"counts": json.dumps(counts)})
            if is_left := bool(after):
                await asyncio.sleep(BATCH_PAUSE_SECONDS)
    async with begin_transaction_holding_claim(engine, claim) as connection:
        await connection.execute(NOTE_FINISHED_RETENTION, run | {"now": now})
        if not counts:
            await connection.execute(DELETE_EMPTY_RETENTION_RUN, run | {"now": now})
            return
        await log_change(
            connection,
            "people.retention",
            campaign,
            about=PERIOD_TITLES[due.period],
            new_values=counts,
            actor=SERVER_ACTOR,
        )


async def store_alert_about_ended_import(connection: AsyncConnection, campaign_id: int) -> None:
    """Raise an alert if an interrupted import of answers ends, since its file is deleted with the ids."""
    for row in await connection.execute(FIND_UNFINISHED_IMPORT, {"campaign": campaign_id}):
        about, occasion = shorten_echo(row.name), row.started_at.isoformat()
        await store_alert_unless_known(
            connection, campaign_id, "import", occasion, about=about, because=ENDED_IMPORT_TEXT
        )


def retention_alert_occasion(due: RetentionDue) -> str:
    return f"{due.period} {due.due_at.date()}"


async def store_retention_alert(engine: AsyncEngine, campaign: Campaign, due: RetentionDue, *, now: datetime) -> None:
    """Raise an alert that data will be erased, once for each day on which that would happen."""
    day = max(due.due_at, now + WARNING_TIME) if due.period == "everything" else due.due_at
    async with engine.begin() as connection:
        await store_alert_unless_known(
            connection,
            campaign.id,
            "retention",
            retention_alert_occasion(due),
            about=PERIOD_TITLES[due.period],
            because=f"On {day:%Y-%m-%d}, {pluralize(WARNING_TIME.days, 'day')} after this alert at the latest."
            if due.period != "everything"
            else f"On {day:%Y-%m-%d}, at least {pluralize(WARNING_TIME.days, 'day')} after this alert.",
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
