"""Engines and transactions. A unit of work is `async with engine.begin()`: it commits, or rolls back if it raises.

The serving path uses `begin_transaction` and `fetch_rows` instead, which bypass SQLAlchemy on asyncpg's own connection:
a statement then takes a third of the processor time, and an answer with the next HIT needs four.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from inspect import get_annotations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar
from weakref import WeakValueDictionary

import asyncpg
from sqlalchemy import AdaptedConnection, Connection, ExceptionContext, NullPool, TextClause, event
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.database.connections import Connector, LimitedConnection, TimeLimits, close_connection_cancelling_statement
from app.text.postgres_address import parse_postgres_address
from app.text.tracing import TRACING, add_statement_span

# Limit for an annotator's request to wait for a lock. Then their browser tries again, and the connection is free.
LOCK_TIMEOUT_SECONDS = 5
LOCK_NOT_AVAILABLE_CODE = "55P03"  # PostgreSQL's code for a lock that was not available in time
DEADLOCK_CODE = "40P01"
LOCK_FAILURE_CODES = (LOCK_NOT_AVAILABLE_CODE, DEADLOCK_CODE)
QUERY_CANCELED_CODE = "57014"
IDLE_IN_TRANSACTION_CODE = "25P03"  # the server ended a transaction in which nothing happened for too long


# For annotators' requests: longer than they wait for a lock.
SERVING_LIMITS = TimeLimits(statement=15.0, idle_in_transaction=15.0)
# For researchers' pages and background work.
PAGE_LIMITS = TimeLimits(statement=120.0, idle_in_transaction=600.0)
# For downloads and analyses, which may sort a whole campaign before the first row comes.
READING_LIMITS = TimeLimits(statement=600.0)
POOL_TIMEOUT_SECONDS = 15.0  # until a request without a free connection fails


# Easel's statements are short and find their rows by an index: planning them each time, or compiling them, would cost
# more than running them. A plan is made once per connection, perhaps while the tables are empty, so it must be right
# whatever the statistics say: PostgreSQL is told to prefer indexes and nested loops.
PLANNER_SETTINGS = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
USUAL_PLANNER_SETTINGS = {
    "plan_cache_mode": "auto",
    "enable_seqscan": "on",
    "enable_hashjoin": "on",
    "enable_mergejoin": "on",
}


# Settings of sessions on a Citus coordinator. Citus finds the shard by the values of parameters, so it needs plans that
# know them. It refuses some transactions that reach several shards over several connections. If it hides the shards in
# the catalogue, the driver waits seconds for the types.
CITUS_SETTINGS = {
    "plan_cache_mode": "auto",
    "citus.multi_shard_modify_mode": "sequential",
    "citus.override_table_visibility": "off",
}


def lock_and_idle_timeout_settings(lock_seconds: float | None, limits: TimeLimits) -> dict[str, str]:
    """Return PostgreSQL's limits, in ms, on the wait for a lock and on the idle time in a transaction; 0 for none."""
    return {
        "lock_timeout": f"{1000 * (lock_seconds or 0):.0f}",
        "idle_in_transaction_session_timeout": f"{math.ceil(1000 * (limits.idle_in_transaction or 0))}",
    }


# Settings of sessions that a pooler lends for a transaction: those for annotators' requests, each of whose statements
# may be a transaction. Longer transactions set what differs.
POOLED_SESSION_SETTINGS = {**PLANNER_SETTINGS, **lock_and_idle_timeout_settings(LOCK_TIMEOUT_SECONDS, SERVING_LIMITS)}


def create_engine(
    url: str, *, pool_size: int, lock_seconds: float | None = None, limits: TimeLimits = TimeLimits()
) -> AsyncEngine:
    """Return an engine on PostgreSQL through asyncpg, whose statements wait at most `lock_seconds` for a lock."""
    settings = PLANNER_SETTINGS | lock_and_idle_timeout_settings(lock_seconds, limits)
    connector = make_connector_to_url(url, settings, limits)
    engine = create_async_engine(
        url,
        async_creator=connector.connect,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        hide_parameters=True,  # messages of errors go into logs, and parameters are names, links, hashes
    )
    tracers = (("before_cursor_execute", remember_start_of_statement), ("after_cursor_execute", add_span_of_statement))
    for name, listener in (
        ("checkout", refuse_dead_connection),
        ("checkin", remember_time_of_connection_use),
        ("handle_error", invalidate_lost_connection),
        *(tracers if TRACING.tracer is not None else ()),
    ):
        if not event.contains(engine.sync_engine, name, listener):
            event.listen(engine.sync_engine, name, listener)
    return engine


def remember_start_of_statement(connection: Connection, *_: object) -> None:
    connection.info["statement_started_at"] = time.perf_counter()


def add_span_of_statement(connection: Connection, _cursor: object, sql: str, *_: object) -> None:
    """Add the span of a statement of SQLAlchemy, which the driver does not log."""
    add_statement_span(sql, time.perf_counter() - connection.info["statement_started_at"])


def create_engine_without_limits(url: str) -> AsyncEngine:
    """Return an engine for migrations and backups: PostgreSQL plans as usual, and no statement has a time limit."""
    limits = TimeLimits(statement=None)
    connector = make_connector_to_url(
        url, USUAL_PLANNER_SETTINGS | lock_and_idle_timeout_settings(None, limits), limits
    )
    return create_async_engine(url, async_creator=connector.connect, poolclass=NullPool, hide_parameters=True)


def make_connector_to_url(url: str, settings: Mapping[str, str], limits: TimeLimits) -> Connector:
    """Return a connector to the database at `url`, with settings of the session or of each transaction."""
    address = parse_postgres_address(url)
    if address.leads_to_citus:
        settings = {**settings, **CITUS_SETTINGS}
    named = {"application_name": address.parameters.get("application_name", "easel")}
    options = {name: value for name, value in address.parameters.items() if name == "options"}
    if address.lends_sessions_for_transactions:
        settings_that_differ = {
            name: value for name, value in settings.items() if POOLED_SESSION_SETTINGS[name] != value
        }
        return Connector(address, {**named, **options}, limits, settings_that_differ)
    return Connector(address, {**named, **settings, **options}, limits)


def refuse_dead_connection(adapted: AdaptedConnection, _record: object, _proxy: object) -> None:
    """Let the pool replace a connection that no longer answers."""
    connection = adapted.driver_connection
    if is_limited_connection(connection) and connection.needs_ping() and not adapted.run_async(ping_connection):
        raise DisconnectionError("the connection does not answer")


def remember_time_of_connection_use(adapted: AdaptedConnection | None, _record: object) -> None:
    """Note when a connection was last used."""
    if adapted is not None and is_limited_connection(adapted.driver_connection):
        adapted.driver_connection.last_used = time.monotonic()


def invalidate_lost_connection(context: ExceptionContext) -> None:
    """Remove a connection from the pool if its statement did not end, or its server no longer takes writes."""
    if context.connection is None or context.connection.closed or context.connection.invalidated:
        return
    connection = context.connection.connection.driver_connection
    if is_limited_connection(connection) and connection.is_connection_ruined_by(context.original_exception):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False  # the others are pinged before their next use


async def ping_connection(connection: LimitedConnection) -> bool:
    return await connection.ping()


DIALECT = dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves its dialects untyped


class Record(asyncpg.Record):
    """A row whose columns are attributes. A subclass for each query declares its columns and their types.

    `items`, `keys`, `values` and `get` are methods of every row, so no column may have these names.
    """

    def __init_subclass__(cls) -> None:
        """Make the declared columns properties in C, since one HIT and its answer read two hundred of them."""
        for name in get_annotations(cls):
            setattr(cls, name, property(itemgetter(name)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return another column, such as a setting of a platform."""
            try:
                return self[name]
            except KeyError:
                raise AttributeError(name) from None


def columns_of_row_class_sql(row_class: type[Record], table: str, **columns: str) -> str:
    """Return SQL for the columns of a row class, read from one table.

    Args:
        row_class: The class, whose attributes have the names of columns.
        table: The name of the table in the statement.
        columns: The columns of attributes with another name.

    """
    names = row_class.__annotations__
    return ", ".join(f"{table}.{columns[name]} AS {name}" if name in columns else f"{table}.{name}" for name in names)


# asyncpg's errors for a broken connection; the second if it notices during an operation.
LOST_CONNECTION_ERRORS = (asyncpg.InterfaceError, asyncpg.InternalClientError)

# Errors of the database, through SQLAlchemy or asyncpg; refused statements are among them.
DATABASE_ERRORS = (DBAPIError, NoFreeConnection, asyncpg.PostgresError, *LOST_CONNECTION_ERRORS, OSError)

DISK_FULL_CODE = "53100"
# First characters of PostgreSQL's codes for temporary problems: a lost connection, no room for another one, starting or
# stopping, a statement cancelled or out of time, disk trouble, a transaction ended by a deadlock or a time limit, a
# held lock, a server that takes no writes because another became the primary.
PASSING_ERROR_CODES = ("08", "53", "57", "58", "40", "25006", "25P03", "25P04", "55P03")

R = TypeVar("R", bound=asyncpg.Record)
Driver: TypeAlias = "asyncpg.Connection[Any]"


class SharedParameters:
    """Base of dataclasses whose fields are parameters of a transaction's statements; each names some of the fields."""

    __slots__ = ()


Parameters: TypeAlias = Mapping[str, Any] | SharedParameters


def sqlstate_of_error_or_empty(error: Exception) -> str:
    """Return PostgreSQL's code of an error; empty if it has none."""
    driver_error = error.orig if isinstance(error, DBAPIError) else error  # the serving path uses asyncpg directly
    return getattr(driver_error, "sqlstate", None) or ""


def is_database_away(error: Exception) -> bool:
    """Return whether one of `DATABASE_ERRORS` is a lost connection, none free, or temporary, and not a bug of Easel."""
    # asyncpg passes on the socket's error when it cannot connect; an OSError with a file name is another problem.
    unreachable = isinstance(error, OSError) and error.filename is None
    broken = isinstance(error, (OperationalError, InterfaceError, NoFreeConnection, *LOST_CONNECTION_ERRORS))
    lost = broken or getattr(error, "connection_invalidated", False)
    return unreachable or lost or sqlstate_of_error_or_empty(error).startswith(PASSING_ERROR_CODES)


def is_database_away_for_all_requests(error: Exception) -> bool:
    """Return whether `is_database_away` for another reason than a lock or a cancelled statement.

    The next request may well get the lock, or take less time.
    """
    codes_of_one_request = (*LOCK_FAILURE_CODES, QUERY_CANCELED_CODE)
    return is_database_away(error) and sqlstate_of_error_or_empty(error) not in codes_of_one_request


def is_time_or_lock_exceeded(error: Exception) -> bool:
    """Return whether a time limit or a lock ended a statement, perhaps because of one of the requests that it serves.

    The connection may be closed then.
    """
    codes = (*LOCK_FAILURE_CODES, QUERY_CANCELED_CODE, IDLE_IN_TRANSACTION_CODE)
    return isinstance(error, TimeoutError) or sqlstate_of_error_or_empty(error) in codes


async def driver_of(connection: AsyncConnection) -> Driver:
    """Return asyncpg's connection below SQLAlchemy's, in the transaction that a statement of the latter has begun."""
    driver: Driver | None = (await connection.get_raw_connection()).driver_connection
    assert driver is not None  # noqa: S101  (a connection in use has one)
    return driver


@asynccontextmanager
async def borrow_driver_in_transaction(engine: AsyncEngine) -> AsyncIterator[Driver]:
    """Borrow a connection of the engine's pool in a transaction; commit at the end, roll back if the body raises."""
    async with borrow_autocommit_driver(engine) as driver, driver.transaction():
        yield driver


@asynccontextmanager
async def borrow_autocommit_driver(engine: AsyncEngine) -> AsyncIterator[Driver]:
    """Borrow a connection of the engine's pool on which every statement is a separate transaction."""
    async with engine.connect() as connection, driver_invalidated_on_failure(connection) as driver:
        yield driver


@asynccontextmanager
async def driver_invalidated_on_failure(connection: AsyncConnection) -> AsyncIterator[Driver]:
    """Yield a connection's driver, and invalidate the connection if the driver must not be used again.

    SQLAlchemy does not see what happens to the driver. A task that is cancelled at BEGIN leaves asyncpg and PostgreSQL
    in disagreement about being in a transaction: later writes on the connection would never be committed.
    """
    driver = await driver_of(connection)
    if await is_connection_dead_after_ping(driver):
        await connection.invalidate()
        driver = await driver_of(connection)
    try:
        yield driver
    except LOST_CONNECTION_ERRORS:
        driver.terminate()
        raise
    except (TimeoutError, asyncio.CancelledError, asyncpg.PostgresError) as problem:
        if isinstance(problem, asyncio.CancelledError) or (
            is_limited_connection(driver) and driver.is_connection_ruined_by(problem)
        ):
            await close_connection_cancelling_statement(driver)
        raise
    finally:
        if is_limited_connection(driver):
            driver.last_used = time.monotonic()
        if driver.is_closed() or driver.is_in_transaction():
            await connection.invalidate()


async def close_driver_if_ruined(driver: Driver, problem: Exception) -> None:
    """Close a connection that must not be used after a problem, for a caller that does not raise it."""
    is_ruined = is_limited_connection(driver) and driver.is_connection_ruined_by(problem)
    if is_ruined or isinstance(problem, LOST_CONNECTION_ERRORS):
        await close_connection_cancelling_statement(driver)


async def is_connection_dead_after_ping(driver: Driver) -> bool:
    """Return whether a connection broke or no longer answers; it is closed then."""
    if is_limited_connection(driver) and driver.needs_ping():
        return not await driver.ping()
    return driver.is_closed()


def is_limited_connection(connection: object) -> TypeGuard[LimitedConnection]:
    """Return whether this is a `LimitedConnection`; asyncpg's `isinstance` is True for all of its connections."""
    return LimitedConnection in type(connection).__mro__


def leads_to_citus(connection: "Driver | AsyncConnection | AsyncEngine") -> bool:
    """Return whether a connection leads to the coordinator of a Citus cluster, which refuses some statements."""
    if isinstance(connection, AsyncConnection):
        connection = connection.engine
    if isinstance(connection, AsyncEngine):
        return connection.url.query.get("cluster") == "citus"
    return is_limited_connection(connection) and connection.leads_to_citus


class ServingConnections:
    """Connections of an engine for many short requests, served in the order in which they come.

    The connections do not return to the pool between requests: borrowing from the pool takes longer than a statement,
    and lets later requests overtake waiting ones.

    One campaign's requests never hold the last of several connections: if all of them wait for a lock, requests of
    other campaigns continue.
    """

    def __init__(self, engine: AsyncEngine, number: int, *, seconds: float = TimeLimits.acquire) -> None:
        self._engine = engine
        self._seconds = seconds
        self._free = asyncio.Semaphore(number)
        self.campaign_limit = max(1, number - 1)
        self._shares: WeakValueDictionary[int | None, asyncio.Semaphore] = WeakValueDictionary()
        self._idle: list[AsyncConnection] = []

    @asynccontextmanager
    async def borrow_autocommit_connection(self, campaign_id: int | None = None) -> AsyncIterator[Driver]:
        """Borrow a connection on which every statement is a separate transaction.

        Raises TimeoutError if none is free or can be opened in time.

        Args:
            campaign_id: Row id of the campaign; None for work that waits for no lock of a campaign.

        """
        # Weakly referenced: it exists as long as a request uses it.
        campaign_share = self._shares.setdefault(campaign_id, asyncio.Semaphore(self.campaign_limit))
        async with asyncio.timeout(self._seconds) as limit, campaign_share, self._free:
            connection = self._idle.pop() if self._idle else await self._engine.connect()
            try:
                async with driver_invalidated_on_failure(connection) as driver:
                    limit.reschedule(None)
                    yield driver
            finally:
                self._idle.append(connection)

    @property
    def borrowed_connection_count(self) -> int:
        """Number of connections that requests hold now."""
        opened: int = self._engine.pool.checkedout()  # type: ignore[attr-defined]  # all of Easel's pools have a size
        return opened - len(self._idle)

    async def close(self) -> None:
        """Close the connections, which must all have been returned."""
        for connection in self._idle:
            await connection.close()


class PrimaryProof:
    """Proof that the database knows all committed data, for addresses that name several servers.

    A primary that hung while another was elected answers reads for some seconds once it goes on. Only a commit tells:
    with synchronous replication it waits for a standby, and that one has left. Concurrent callers share a commit.
    """

    FRESH_SECONDS = 0.5  # so many refusals in a row do not become as many commits

    def __init__(self, connections: ServingConnections) -> None:
        self._connections = connections
        self._proved_at = -math.inf
        self._lock = asyncio.Lock()

    async def require_current_primary(self, driver: "Driver | None" = None) -> None:
        """Return if the database is the current primary. Raises one of `DATABASE_ERRORS` if it may be outdated.

        Args:
            driver: The caller's connection; None: one is borrowed. Callers who wait for the commit of another caller
                hold a connection, so that one must never borrow its own within the lock.

        """
        asked_at = time.monotonic()
        if driver is None:
            if self._proved_at < asked_at - self.FRESH_SECONDS:
                async with self._connections.borrow_autocommit_connection() as borrowed:
                    await self.require_current_primary(borrowed)
            return
        async with self._lock:
            if self._proved_at < asked_at - self.FRESH_SECONDS:
                began = time.monotonic()
                await driver.execute("SELECT pg_logical_emit_message(true, 'easel', '')")
                self._proved_at = began


@cache
def sql_and_parameter_names_of_statement(statement: TextClause) -> tuple[str, tuple[str, ...]]:
    """Return SQL with `$1`, `$2`, ... for its parameters, and their names in that order."""
    sql = statement.compile(dialect=DIALECT)
    return str(sql), tuple(sql.positiontup or ())


def parameter_values_in_order(parameters: Parameters, names: Sequence[str]) -> list[Any]:
    """Return the values of a statement's parameters, in the order of their names.

    Raises:
        TypeError: A mapping has other names than the statement.

    """
    if isinstance(parameters, SharedParameters):
        return [getattr(parameters, name) for name in names]
    if len(parameters) == len(names):
        with suppress(KeyError):
            return [parameters[name] for name in names]
    unknown, missing = sorted(parameters.keys() - {*names}), sorted({*names} - parameters.keys())
    raise TypeError(f"the statement does not name the parameters {unknown}, and misses {missing}")


async def fetch_rows(connection: Driver, statement: TextClause, parameters: Parameters, row_class: type[R]) -> list[R]:
    """Return all rows of a statement as instances of `row_class`. Raises as `parameter_values_in_order` does."""
    sql, names = sql_and_parameter_names_of_statement(statement)
    return await connection.fetch(sql, *parameter_values_in_order(parameters, names), record_class=row_class)


async def fetch_first_row_or_none(
    connection: Driver, statement: TextClause, parameters: Parameters, row_class: type[R]
) -> R | None:
    rows = await fetch_rows(connection, statement, parameters, row_class)
    return rows[0] if rows else None


async def fetch_first_column(connection: Driver, statement: TextClause, parameters: Parameters) -> list[Any]:
    """Return the first column of all rows of a statement."""
    return [row[0] for row in await fetch_rows(connection, statement, parameters, Record)]


async def fetch_first_value_or_none(connection: Driver, statement: TextClause, parameters: Parameters) -> Any:
    """Return the first column of the first row of a statement; None without a row."""
    values = await fetch_first_column(connection, statement, parameters)
    return values[0] if values else None


async def execute_statement(connection: Driver, statement: TextClause, parameters: Parameters) -> None:
    """Run a statement and ignore its rows."""
    await fetch_rows(connection, statement, parameters, Record)


def integers_of_array(array_text: str) -> list[int]:
    """Return the integers of PostgreSQL's text for an array, such as `{1,2}`."""
    return [*map(int, array_text[1:-1].split(","))] if array_text != "{}" else []


def array_text_of_integers(numbers: Iterable[int]) -> str:
    """Return PostgreSQL's text for an array of integers. An array of such texts holds arrays of different lengths."""
    return f"{{{','.join(map(str, numbers))}}}"
