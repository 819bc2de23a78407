"""Runs the migrations over asyncpg, one process at a time: several servers may start together."""

import asyncio
import os

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.dialects.postgresql.base import ischema_names

import app.database.account_tables
import app.database.content_tables
import app.database.payment_tables
import app.database.privacy_tables
import app.database.quality_tables
import app.database.sharing_tables
import app.database.tables
import app.database.visit_tables  # noqa: F401  (parts of the metadata)
from app.database.migrate import INITIAL_REVISION, LAST_REVISION_OF_0_1, MIGRATION_LOCK_SECONDS
from app.database.schema import TransactionId, metadata
from app.database.session import create_engine_without_limits

ischema_names["xid8"] = TransactionId  # so that `alembic check` can compare it

ONE_AT_A_TIME = 0x4561_7365_6C  # "Easel"; any constant does, as long as it stays


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ONE_AT_A_TIME})
        connection.execute(text(f"SET LOCAL lock_timeout = '{MIGRATION_LOCK_SECONDS}s'"))
        adopt_last_revision_of_0_1(connection)
        context.run_migrations()


def adopt_last_revision_of_0_1(connection: Connection) -> None:
    """Mark a database at the last revision of Easel 0.1 as one that has the initial migration, which equals it."""
    if connection.scalar(text("SELECT to_regclass('alembic_version')")) is not None:
        connection.execute(
            text("UPDATE alembic_version SET version_num = :initial WHERE version_num = :last"),
            {"initial": INITIAL_REVISION, "last": LAST_REVISION_OF_0_1},
        )


async def connect_and_run(url: str) -> None:
    engine = create_engine_without_limits(url)
    async with engine.connect() as connection:
        await connection.run_sync(run)
        await connection.commit()
    await engine.dispose()


def database_url() -> str:
    url = context.config.attributes.get("url") or os.environ.get("DATABASE_URL")
    if not url:
        raise SystemExit("Set DATABASE_URL, or run `easel migrate`, which knows the embedded database.")
    return str(url)


asyncio.run(connect_and_run(database_url()))
