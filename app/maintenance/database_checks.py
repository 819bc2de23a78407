"""Checks of PostgreSQL: its version and settings, the schema, indexes, connections, and the newest campaigns."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

import app.database.account_tables
import app.database.content_tables
import app.database.payment_tables
import app.database.privacy_tables
import app.database.quality_tables
import app.database.sharing_tables
import app.database.tables
import app.database.visit_tables  # noqa: F401  (parts of the metadata)
from app.database.bulk import open_snapshot
from app.database.migrate import (
    load_schema_revision_on_connection_or_none,
    newest_schema_revision,
    require_newest_schema,
)
from app.database.schema import metadata
from app.errors import StartupProblem, join_names, pluralize
from app.maintenance.finding import InstallationFinding, Severity
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import verify_by_replay_or_refuse
from app.settings import Settings

MIN_POSTGRESQL_VERSION = 15
EXTRA_CONNECTIONS_PER_PROCESS = 3  # see `EASEL_POOL_SIZE`
CONNECTIONS_FOR_COMMANDS = 5  # commands, backups and replays, each of them in a process of its own
MAX_CLOCK_DIFFERENCE = timedelta(seconds=5)
MAX_TRANSACTION_HOURS = 1
MAX_TRANSACTION_AGE = 1_000_000_000  # PostgreSQL stops taking writes at about 2,000,000,000
MAX_DEAD_SHARE = 0.5
MIN_DEAD_ROWS = 100_000
CAMPAIGNS_TO_VERIFY = 3
MAX_RESPONSES_TO_VERIFY = 20_000  # a replay of these takes seconds

SELECT_SERVER_FACTS = text("""
    SELECT current_setting('server_version_num')::int / 10000 AS version,
           current_setting('server_version') AS full_version,
           current_setting('fsync')::bool AS fsync,
           current_setting('full_page_writes')::bool AS full_page_writes,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('wal_level') AS wal_level,
           current_setting('autovacuum')::bool AS autovacuum,
           current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int AS connections,
           clock_timestamp() AS now,
           age(d.datfrozenxid) AS transaction_age,
           d.datcollversion AS collation_version,
           pg_database_collation_actual_version(d.oid) AS actual_collation_version,
           d.datname AS database_name,
           (SELECT max(extract(epoch FROM clock_timestamp() - a.xact_start)) / 3600 FROM pg_stat_activity a
            WHERE a.datname = d.datname AND a.pid <> pg_backend_pid()) AS transaction_hours
    FROM pg_database d WHERE d.datname = current_database()
""")
LIST_INVALID_INDEXES = text("""
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE NOT (i.indisvalid AND i.indisready) AND c.relnamespace = current_schema()::regnamespace ORDER BY 1
""")
LIST_INDEXES = text("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")
LIST_TABLES_WITH_DEAD_ROWS = text("""
    SELECT relname FROM pg_stat_user_tables
    WHERE n_dead_tup > :min_dead AND n_dead_tup > :max_share * (n_live_tup + n_dead_tup) ORDER BY 1
""")
LIST_NEWEST_CAMPAIGNS = text("""
    SELECT c.id, c.slug FROM campaigns c WHERE c.status <> 'draft' ORDER BY c.id DESC LIMIT :campaigns
""")
COUNT_RESPONSES_UP_TO_LIMIT = text("""
    SELECT count(*) FROM (SELECT FROM responses r WHERE r.campaign_id = :campaign LIMIT :limit) AS counted
""")
COUNT_UNSENT_MESSAGES = text("SELECT count(*) FROM alert_messages WHERE sent_at IS NULL AND problem IS NOT NULL")


async def list_findings_about_database(
    engine: AsyncEngine, settings: Settings, *, now: datetime
) -> list[InstallationFinding]:
    """Run all checks of a database that answers.

    Args:
        engine: An engine that plans as usual, without limits.
        settings: The server's settings.
        now: The time of this machine.

    """
    async with engine.connect() as connection:
        before = now
        facts = (await connection.execute(SELECT_SERVER_FACTS)).one()
        findings = [*iterate_server_check_results(facts, settings), finding_about_clock(facts.now, before)]
        schema = await load_finding_about_schema(connection)
        findings.append(schema)
        if schema.severity is not Severity.OK:
            return findings  # the other checks read tables that may not exist
        findings += [
            *await list_findings_about_indexes(connection),
            await load_finding_about_dead_rows(connection),
            await load_finding_about_alert_messages(connection),
        ]
    findings += await list_findings_about_newest_campaigns(engine)
    return findings


def iterate_server_check_results(facts: Row[Any], settings: Settings) -> Iterator[InstallationFinding]:
    """Check the server's version and settings, and the number of connections that it allows."""
    yield finding_or_ok_without_severity(
        "PostgreSQL version",
        f"PostgreSQL {facts.full_version}.",
        Severity.FAULT if facts.version < MIN_POSTGRESQL_VERSION else None,
        f"Upgrade PostgreSQL to version {MIN_POSTGRESQL_VERSION} or newer.",
    )
    for name, is_on in (("fsync", facts.fsync), ("full_page_writes", facts.full_page_writes)):
        yield finding_or_ok_without_severity(
            name,
            f"{name} is {'on' if is_on else 'off: a power cut can destroy the database'}.",
            None if is_on else Severity.FAULT,
            f"Run `ALTER SYSTEM SET {name} = on`, then `SELECT pg_reload_conf()`.",
        )
    is_committed_later = facts.synchronous_commit == "off"
    yield finding_or_ok_without_severity(
        "synchronous_commit",
        f"synchronous_commit is {facts.synchronous_commit}"
        f"{': a crash can lose answers that annotators saw accepted' if is_committed_later else ''}.",
        Severity.FAULT if is_committed_later else None,
        "Run `ALTER SYSTEM SET synchronous_commit = on`, then `SELECT pg_reload_conf()`; look for another value in "
        "`ALTER DATABASE` and `ALTER ROLE`, too.",
    )
    yield finding_or_ok_without_severity(
        "wal_level",
        f"wal_level is {facts.wal_level}.",
        Severity.WARNING if facts.wal_level == "minimal" else None,
        "Set it to replica and restart PostgreSQL: otherwise there is no standby and no recovery to a point in time.",
    )
    yield finding_or_ok_without_severity(
        "autovacuum",
        f"autovacuum is {'on' if facts.autovacuum else 'off: tables grow, and plans become slow'}.",
        None if facts.autovacuum else Severity.WARNING,
        "Run `ALTER SYSTEM SET autovacuum = on`, then `SELECT pg_reload_conf()`.",
    )
    yield finding_about_connection_count(facts.connections, settings)
    yield finding_or_ok_without_severity(
        "transaction ids",
        f"The oldest transaction id is {facts.transaction_age:,} transactions old.",
        Severity.WARNING if facts.transaction_age > MAX_TRANSACTION_AGE else None,
        f"Run `VACUUM FREEZE` in the database {facts.database_name}: without it, writes stop when ids run out.",
    )
    hours = float(facts.transaction_hours or 0)
    is_old = hours > MAX_TRANSACTION_HOURS
    yield finding_or_ok_without_severity(
        "long transactions",
        f"The oldest transaction is {hours:.1f} hours old." if is_old else "No transaction has been open for long.",
        Severity.WARNING if is_old else None,
        "Find it in pg_stat_activity and end it: while it runs, PostgreSQL cannot reuse the space of old rows.",
    )
    is_collation_new = facts.collation_version != facts.actual_collation_version
    yield finding_or_ok_without_severity(
        "collation",
        "The operating system sorts text differently than when the database was made."
        if is_collation_new
        else "Text is sorted as when the database was made.",
        Severity.WARNING if is_collation_new else None,
        f"Run `REINDEX DATABASE {facts.database_name}`, then `ALTER DATABASE {facts.database_name} REFRESH COLLATION "
        "VERSION`.",
    )


def finding_or_ok_without_severity(
    check: str, message: str, severity: Severity | None, remedy: str
) -> InstallationFinding:
    """Return a finding with its remedy, or one that all is well if the severity is None."""
    return (
        InstallationFinding(check, Severity.OK, message)
        if severity is None
        else InstallationFinding(check, severity, message, remedy)
    )


def finding_about_connection_count(allowed: int, settings: Settings) -> InstallationFinding:
    """Check that PostgreSQL allows as many connections as all server processes and some commands open."""
    needed = settings.workers * (settings.pool_size + EXTRA_CONNECTIONS_PER_PROCESS) + CONNECTIONS_FOR_COMMANDS
    return finding_or_ok_without_severity(
        "connections",
        f"Easel opens up to {needed} connections, and PostgreSQL allows {allowed}.",
        Severity.FAULT if needed > allowed else None,
        "Raise max_connections and restart PostgreSQL, or lower EASEL_WORKERS or EASEL_POOL_SIZE.",
    )


def finding_about_clock(database_time: datetime, machine_time: datetime) -> InstallationFinding:
    """Check that this machine's clock agrees with the database's, which decides when a lease ends."""
    difference = abs(database_time - machine_time)
    return finding_or_ok_without_severity(
        "clock",
        f"The clocks of this machine and of the database differ by {difference.total_seconds():,.0f} s.",
        Severity.WARNING if difference > MAX_CLOCK_DIFFERENCE else None,
        "Synchronise both clocks, for example with chrony: logins and one-time links would end too early or too late.",
    )


MIGRATE_REMEDY = "Run `easel migrate` after a backup."
SCHEMA_REMEDIES = {  # by the code of the problem; docs/operators/upgrading.md lists them, too
    "schema_too_new": "Install the newer version on this server, or restore a backup from before that upgrade.",
    "schema_too_old": "Upgrade to the last 0.1 release first: docs/operators/upgrading.md shows how.",
    "schema_unknown": "Check DATABASE_URL, or restore a backup.",
}


async def load_finding_about_schema(connection: AsyncConnection) -> InstallationFinding:
    try:
        require_newest_schema(await load_schema_revision_on_connection_or_none(connection))
    except StartupProblem as problem:
        remedy = SCHEMA_REMEDIES.get(problem.code, MIGRATE_REMEDY)
        return InstallationFinding("schema", Severity.FAULT, str(problem), remedy)
    return InstallationFinding("schema", Severity.OK, f"The schema is at {newest_schema_revision()}.")


async def list_findings_about_indexes(connection: AsyncConnection) -> list[InstallationFinding]:
    """Check that all indexes exist and can be used."""
    invalid = list((await connection.scalars(LIST_INVALID_INDEXES)).all())
    existing = set((await connection.scalars(LIST_INDEXES)).all())
    expected = {str(index.name) for table in metadata.tables.values() for index in table.indexes}
    missing = sorted(expected - existing)
    return [
        finding_or_ok_without_severity(
            "invalid indexes",
            f"Invalid indexes: {join_names(invalid)}." if invalid else "All indexes are valid.",
            Severity.FAULT if invalid else None,
            f"Run {'; '.join(f'`REINDEX INDEX CONCURRENTLY {name}`' for name in invalid)}.",
        ),
        finding_or_ok_without_severity(
            "missing indexes",
            f"Missing indexes: {join_names(missing)}." if missing else "No index is missing.",
            Severity.FAULT if missing else None,
            "Create them again as in the migrations, or restore a backup: statements that need them take minutes.",
        ),
    ]


async def load_finding_about_dead_rows(connection: AsyncConnection) -> InstallationFinding:
    """Check that autovacuum keeps up with the rows that updates leave behind."""
    tables = list(
        await connection.scalars(LIST_TABLES_WITH_DEAD_ROWS, {"min_dead": MIN_DEAD_ROWS, "max_share": MAX_DEAD_SHARE})
    )
    return finding_or_ok_without_severity(
        "dead rows",
        f"More dead rows than live ones: {join_names(tables)}." if tables else "Autovacuum keeps up.",
        Severity.WARNING if tables else None,
        f"Run {'; '.join(f'`VACUUM ANALYZE {name}`' for name in tables)}, and end long transactions.",
    )


async def load_finding_about_alert_messages(connection: AsyncConnection) -> InstallationFinding:
    """Check that mails and webhooks of alerts arrive."""
    count = await connection.scalar(COUNT_UNSENT_MESSAGES)
    return finding_or_ok_without_severity(
        "alert messages",
        f"{pluralize(count, 'message')} of alerts could not be sent." if count else "All messages of alerts were sent.",
        Severity.WARNING if count else None,
        "The page All alerts says why: correct the addresses in the campaigns' settings, or EASEL_SMTP_URL.",
    )


async def list_findings_about_newest_campaigns(engine: AsyncEngine) -> list[InstallationFinding]:
    """Replay the newest campaigns that are not too large, and compare their posteriors."""
    async with open_snapshot(engine) as connection:
        campaigns = (await connection.execute(LIST_NEWEST_CAMPAIGNS, {"campaigns": CAMPAIGNS_TO_VERIFY})).all()
        verified, differing = [], []
        for campaign in campaigns:
            parameters = {"campaign": campaign.id, "limit": MAX_RESPONSES_TO_VERIFY + 1}
            if await connection.scalar(COUNT_RESPONSES_UP_TO_LIMIT, parameters) <= MAX_RESPONSES_TO_VERIFY:
                verified.append(campaign.slug)
        for slug in verified:
            verification = await verify_by_replay_or_refuse(
                connection, await load_campaign_by_slug_or_refuse(connection, slug)
            )
            if not verification.has_no_mismatches and not verification.has_only_rounding_mismatches:
                differing.append(slug)
    return [
        finding_or_ok_without_severity(
            "posteriors",
            f"The posteriors of {join_names(differing)} differ from a replay of their answers."
            if differing
            else f"{pluralize(len(verified), 'campaign')} replayed, the newest ones: all posteriors are the same."
            if verified
            else "Nothing was replayed: no campaign is launched, or the newest ones have too many responses.",
            Severity.FAULT if differing else None,
            f"Run {'; '.join(f'`easel verify {slug}`' for slug in differing)}, which says where they differ.",
        )
    ]
