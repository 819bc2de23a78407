"""Placement of the tables on a Citus cluster: rows of a campaign on one server, campaigns on different servers.

A statement that names one campaign for each table runs where that campaign is, whole. What lists campaigns, or waits
for the server to send it, stays on the coordinator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ForeignKeyConstraint, Table, text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import AddConstraint

from app.database import (  # noqa: F401  (parts of the metadata)
    account_tables,
    content_tables,
    payment_tables,
    privacy_tables,
    quality_tables,
    sharing_tables,
    tables,
    visit_tables,
)
from app.database.schema import metadata
from app.database.session import DIALECT
from app.errors import Conflict, pluralize

MIN_CITUS_VERSION = (13, 2)

# Tables of campaigns that stay on the coordinator: lists and outboxes that statements read across campaigns, counts by
# network address, files, and settings of a campaign that have tables of their own.
COORDINATOR_TABLES = frozenset({
    "alert_messages", "alerts", "campaign_links", "campaign_members", "consent_texts", "crowds",
    "media", "media_pieces", "payment_accounts", "retention_runs", "service_notices", "undone_withdrawals",
    "visit_allowances", "visit_refusals",
})  # fmt: skip

# Read with the rows of any campaign.
TABLES_ON_EVERY_SERVER = ("campaigns", "experiment_arms")

# Citus cannot make it: no action follows a change of the distributing column.
IMPOSSIBLE_FOREIGN_KEYS = frozenset({"item_versions_item_fkey"})

INSPECT_CITUS = text("""
    SELECT (SELECT extversion FROM pg_extension WHERE extname = 'citus') AS citus_version,
           EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass('responses')
                   AND tgname = 'responses_transaction_id') AS is_distributed,
           (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND backend_type = 'client backend' AND application_name NOT LIKE 'citus%') AS other_sessions
""")
HAS_PAYMENTS = text("SELECT EXISTS (SELECT FROM payment_accounts)")
COUNT_WORKERS = text("SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards")

# Each server numbers its own transactions, and shows what they wrote by these numbers, so an answer gets its number
# where it is stored. Answers from before the distribution are older than all of them; 3 is the first number.
NUMBER_TRANSACTIONS_WHERE_STORED = (
    "UPDATE responses SET transaction_id = '3'",
    """
    CREATE FUNCTION easel_set_transaction_id() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.transaction_id := pg_current_xact_id();
        RETURN NEW;
    END $$
    """,
    "SET LOCAL citus.enable_unsafe_triggers = on",
    """
    CREATE TRIGGER responses_transaction_id BEFORE INSERT ON responses
    FOR EACH ROW EXECUTE FUNCTION easel_set_transaction_id()
    """,
)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the tables of a cluster are, and the foreign keys that the database no longer checks."""

    by_campaign: Sequence[str]
    on_every_server: Sequence[str]
    on_coordinator: Sequence[str]
    unchecked_foreign_keys: Sequence[str]


def distributed_tables() -> list[Table]:
    """Return the tables whose rows are stored by campaign, those first to which foreign keys of others lead."""
    return [
        table
        for table in metadata.sorted_tables
        if next(iter(table.primary_key.columns)).name == "campaign_id" and table.name not in COORDINATOR_TABLES
    ]


def placement_of_tables() -> Placement:
    """Return where `distribute_tables` puts each table."""
    by_campaign = [table.name for table in distributed_tables()]
    return Placement(
        by_campaign=sorted(by_campaign),
        on_every_server=TABLES_ON_EVERY_SERVER,
        on_coordinator=sorted(metadata.tables.keys() - {*TABLES_ON_EVERY_SERVER, *by_campaign}),
        unchecked_foreign_keys=sorted(
            str(key.name) for key in foreign_keys_to_drop() if not is_foreign_key_recreated(key)
        ),
    )


def foreign_keys_to_drop() -> list[ForeignKeyConstraint]:
    """Return the foreign keys that distributed tables have, or that lead to them or to campaigns."""
    moved = {*TABLES_ON_EVERY_SERVER, *(table.name for table in distributed_tables())}
    return [
        key
        for table in metadata.sorted_tables
        for key in sorted(table.foreign_key_constraints, key=lambda key: str(key.name))
        if table.name in moved or key.referred_table.name in moved
    ]


def coordinator_tables_of_campaigns() -> list[Table]:
    """Return the tables whose rows the database of a cluster does not delete with their campaign."""
    keys = [key for key in foreign_keys_to_drop() if not is_foreign_key_recreated(key)]
    return [key.table for key in keys if key.referred_table.name == "campaigns" and key.table.name != "campaigns"]


def is_foreign_key_recreated(key: ForeignKeyConstraint) -> bool:
    has_possible_place = key.table in distributed_tables() or key.table.name == "experiment_arms"
    return has_possible_place and key.name not in IMPOSSIBLE_FOREIGN_KEYS


async def has_citus(connection: AsyncConnection) -> bool:
    return (await connection.execute(INSPECT_CITUS)).one().citus_version is not None


async def are_tables_distributed(connection: AsyncConnection) -> bool:
    return bool((await connection.execute(INSPECT_CITUS)).one().is_distributed)


async def refuse_unusable_cluster(connection: AsyncConnection) -> None:
    """Raise Conflict (`citus_missing`, `citus_too_old` or `citus_without_workers`) if tables cannot be distributed."""
    row = (await connection.execute(INSPECT_CITUS)).one()
    if row.citus_version is None:
        raise Conflict(
            "This database has no Citus. Let its administrator run CREATE EXTENSION citus on the coordinator and on "
            "each worker, and name the coordinator in DATABASE_URL. Nothing was changed.",
            code="citus_missing",
        )
    least = ".".join(map(str, MIN_CITUS_VERSION))
    if tuple(int(part) for part in row.citus_version.split("-")[0].split(".")) < MIN_CITUS_VERSION:
        raise Conflict(
            f"Citus {row.citus_version} is older than {least}, the oldest that Easel was tried with. Nothing was "
            "changed.",
            code="citus_too_old",
        )
    if not await connection.scalar(COUNT_WORKERS):
        raise Conflict(
            "This Citus cluster has no worker. Add one with citus_add_node. Nothing was changed.",
            code="citus_without_workers",
        )


async def refuse_database_in_use(connection: AsyncConnection) -> None:
    """Raise Conflict (`database_in_use`) if other sessions use the database."""
    others = (await connection.execute(INSPECT_CITUS)).one().other_sessions
    if others:
        raise Conflict(
            f"{pluralize(others, 'other session')} of this database {'is' if others == 1 else 'are'} open. Stop all "
            "servers and commands of Easel and end other sessions first. Nothing was changed.",
            code="database_in_use",
        )


async def refuse_cluster_with_payments(connection: AsyncConnection) -> None:
    """Raise Conflict (`cluster_without_payments`) if a campaign has a budget for payments."""
    if await connection.scalar(HAS_PAYMENTS):
        raise Conflict(
            "A campaign of this database has a budget for payments, and campaigns on a Citus cluster cannot have "
            "payments. Nothing was changed.",
            code="cluster_without_payments",
        )


async def distribute_tables(connection: AsyncConnection) -> None:
    """Distribute the tables in the connection's transaction, so that all are, or none is.

    Answers that are there afterwards count as read by nobody: call it while no server runs.
    """
    moved = distributed_tables()
    await connection.exec_driver_sql("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
    for key in foreign_keys_to_drop():
        await connection.exec_driver_sql(f"ALTER TABLE {key.table.name} DROP CONSTRAINT {key.name}")
    # Citus has neither triggers on such tables nor keys without the campaign; `record.deletion` deletes what they did.
    await connection.exec_driver_sql("DROP TRIGGER campaigns_delete_record ON campaigns")
    await connection.exec_driver_sql(
        "ALTER TABLE erasures DROP CONSTRAINT erasures_receipt_key, ADD UNIQUE (campaign_id, receipt)"
    )
    for name in TABLES_ON_EVERY_SERVER:
        await connection.exec_driver_sql(f"SELECT create_reference_table('{name}')")
    for table in moved:
        others = "none" if table is moved[0] else moved[0].name
        await connection.exec_driver_sql(
            f"SELECT create_distributed_table('{table.name}', 'campaign_id', colocate_with := '{others}')"
        )
    for key in foreign_keys_to_drop():
        if is_foreign_key_recreated(key):
            await connection.exec_driver_sql(str(AddConstraint(key).compile(dialect=DIALECT)))
    for statement in NUMBER_TRANSACTIONS_WHERE_STORED:
        await connection.exec_driver_sql(statement)
