"""Selection of the database: the operator's, named by DATABASE_URL, or the embedded one."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database import embedded
from app.database.migrate import load_schema_revision_on_connection_or_none, require_newest_schema, upgrade_schema
from app.database.session import (
    DATABASE_ERRORS,
    LOCK_TIMEOUT_SECONDS,
    POOLED_SESSION_SETTINGS,
    SERVING_LIMITS,
    create_engine,
    leads_to_citus,
    sqlstate_of_error_or_empty,
)
from app.errors import StartupProblem
from app.settings import Settings, easel_command_to_type
from app.text.postgres_address import parse_postgres_address

INSPECT_DATABASE = text("""
    SELECT to_regclass('campaigns') IS NOT NULL AS has_tables,
           current_setting('transaction_read_only') = 'on' AS read_only,
           pg_backend_pid() AS session,
           EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass('responses')
                   AND tgname = 'responses_transaction_id') AS is_distributed
""")
# A restored database holds ids that its own transactions have yet to reach; 3 is PostgreSQL's first transaction id.
RESET_RESTORED_TRANSACTION_IDS = text("""
    UPDATE responses SET transaction_id = '3' FROM campaigns
    WHERE campaign_id = campaigns.id AND transaction_id > (SELECT pg_current_xact_id())
""")
FIND_BACKEND_PID = text("SELECT pg_backend_pid()")
CHECK_POOLED_SETTINGS = text("""
    SELECT given.name FROM unnest(CAST(:names AS text[]), CAST(:settings AS text[])) AS given (name, value)
    JOIN pg_settings actual ON actual.name = given.name
    WHERE actual.setting <> given.value
""")
POOLER_PROBLEM_MESSAGE = (
    "DATABASE_URL leads to a pooler in transaction mode. Add pool_mode=transaction to "
    "DATABASE_URL, and see “PgBouncer” in docs/operators/postgresql.md. Or set PgBouncer's pool_mode to session for "
    "this database."
)
PREPARED_STATEMENTS_MESSAGE = (
    "The pooler at DATABASE_URL does not keep prepared statements apart. Easel needs PgBouncer 1.21 or newer with "
    "max_prepared_statements above 0."
)
# PostgreSQL's codes for a prepared statement that is there already, or is not: another client used the session.
SHARED_SESSION_CODES = ("42P05", "26000")


@dataclass(frozen=True)
class DatabaseState:
    """A database that answers.

    Attributes:
        has_tables: Whether it has Easel's tables.
        takes_writes: Whether it is no standby.
        revision: The revision of its schema.
        is_distributed: Whether its tables are distributed over a Citus cluster.

    """

    has_tables: bool
    takes_writes: bool
    revision: str | None
    is_distributed: bool


@contextmanager
def open_server_database_and_yield_url(settings: Settings, on_lost: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield the URL of a server's database: the operator's, or an embedded one that ends with this block.

    Args:
        settings: The server's settings.
        on_lost: Called from another thread if the embedded PostgreSQL ended and could not be started again.

    """
    if settings.database_url is None:
        with embedded.run_postgres_and_yield_url(settings.data_dir, on_lost=on_lost) as url:
            yield url
    else:
        database = asyncio.run(load_database_state_or_raise(settings.database_url))
        require_address_and_database_agree_on_citus(settings.database_url, database)
        if not database.takes_writes:
            url = parse_postgres_address(settings.database_url).url_without_secrets()
            raise StartupProblem(
                f"The database at {url} accepts no writes: it is a standby, or set to be read-only. "
                "Let DATABASE_URL name the primary, or all servers with commas between them."
            )
        yield settings.database_url


@contextmanager
def open_command_database_and_yield_url(settings: Settings) -> Iterator[str]:
    """Yield the URL of a command's database: the operator's, or the embedded one, which a server may be running."""
    if settings.database_url is None:
        with embedded.attach_or_start_postgres(settings.data_dir) as url:
            upgrade_schema(url)
            yield url
    else:
        database = asyncio.run(load_database_state_or_raise(settings.database_url))
        require_address_and_database_agree_on_citus(settings.database_url, database)
        if not database.has_tables:
            raise StartupProblem(
                f"This database has no tables of Easel yet. Run `{easel_command_to_type()} migrate` first."
            )
        require_newest_schema(database.revision)
        yield settings.database_url


@contextmanager
def open_database_in_any_state_and_yield_url(settings: Settings) -> Iterator[str]:
    """Yield the URL of a database that answers, with its schema as it is: an old one, or none."""
    if settings.database_url is None:
        with embedded.attach_or_start_postgres(settings.data_dir) as url:
            yield url
    else:
        asyncio.run(load_database_state_or_raise(settings.database_url))
        yield settings.database_url


def require_address_and_database_agree_on_citus(url: str, database: DatabaseState) -> None:
    """Raise StartupProblem if an address and its database disagree on whether there is a Citus cluster.

    The codes are `cluster_not_named` and `cluster_not_distributed`. With an address of a cluster, one PostgreSQL would
    not be told that restored answers are old.
    """
    is_named = parse_postgres_address(url).leads_to_citus
    if database.is_distributed and not is_named:
        raise StartupProblem(
            "The tables of this database are distributed over a Citus cluster. Add cluster=citus to DATABASE_URL.",
            code="cluster_not_named",
        )
    if is_named and not database.is_distributed:
        raise StartupProblem(
            "DATABASE_URL has cluster=citus, but the tables of this database are not distributed. Remove it, or run "
            f"`{easel_command_to_type()} cluster distribute` after the schema was upgraded without it.",
            code="cluster_not_distributed",
        )


async def load_database_state_or_raise(url: str) -> DatabaseState:
    """Return the state of the database at `url`.

    Raises StartupProblem if it does not answer, or is behind a pooler that shares sessions and is not set up for that.
    """
    engine = create_engine(url, pool_size=2, lock_seconds=LOCK_TIMEOUT_SECONDS, limits=SERVING_LIMITS)
    is_pooled = parse_postgres_address(url).lends_sessions_for_transactions
    try:
        async with engine.connect() as connection:
            row = (await connection.execute(INSPECT_DATABASE)).one()
            revision = await load_schema_revision_on_connection_or_none(connection)
            await connection.commit()
            if is_pooled:
                await require_settings_of_pooled_sessions(connection)
                await connection.commit()
                async with engine.connect() as other:  # lends the session that the statement was prepared in
                    await other.scalar(FIND_BACKEND_PID)
                    await connection.execute(INSPECT_DATABASE)
            elif await is_session_shared(engine, row.session):
                raise StartupProblem(POOLER_PROBLEM_MESSAGE)
            return DatabaseState(row.has_tables, not row.read_only, revision, row.is_distributed)
    except DATABASE_ERRORS as problem:
        if sqlstate_of_error_or_empty(problem) in SHARED_SESSION_CODES:
            raise StartupProblem(PREPARED_STATEMENTS_MESSAGE if is_pooled else POOLER_PROBLEM_MESSAGE) from None
        # SQLAlchemy wraps asyncpg's message in words for programmers.
        cause = (
            (problem.orig and problem.orig.__cause__) or problem.orig if isinstance(problem, DBAPIError) else problem
        )
        reason = " ".join(str(cause).split()) or type(cause).__name__
        place = parse_postgres_address(url).url_without_secrets()
        raise StartupProblem(f"The database at {place} does not answer: {reason}. Check DATABASE_URL.") from None
    finally:
        await engine.dispose()


async def require_settings_of_pooled_sessions(connection: AsyncConnection) -> None:
    """Raise StartupProblem if the sessions that a pooler lends lack a setting that each statement needs."""
    settings = POOLED_SESSION_SETTINGS
    parameters = {"names": [*settings], "settings": [*settings.values()]}
    different = {*await connection.scalars(CHECK_POOLED_SETTINGS, parameters)}
    if missing := [name for name in settings if name in different]:
        statements = "; ".join(f"SET {name} = {value}" for name, value in settings.items())
        raise StartupProblem(
            f"The sessions of the pooler at DATABASE_URL lack the settings {', '.join(missing)}. Let PgBouncer make "
            f"them: add connect_query='{statements}' to the database in pgbouncer.ini."
        )


async def is_session_shared(engine: AsyncEngine, backend_pid: int) -> bool:
    """Return whether another connection gets the session of an idle one, as from a pooler in transaction mode."""
    try:
        async with engine.connect() as other:
            return bool(await other.scalar(FIND_BACKEND_PID) == backend_pid)
    except DATABASE_ERRORS as problem:  # other errors, such as no room for another connection, are no sign of a pooler
        return sqlstate_of_error_or_empty(problem) in SHARED_SESSION_CODES


async def reset_restored_transaction_ids(connection: AsyncConnection) -> None:
    """Mark restored responses as older than everything that this database will write. Call before serving.

    On a Citus cluster each server has ids of its own, and `database.cluster` has marked what was there before.
    """
    if not leads_to_citus(connection):
        await connection.execute(RESET_RESTORED_TRANSACTION_IDS)
