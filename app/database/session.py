"""The engine. A unit of work is `async with engine.begin()`: committed when it ends, rolled back when it raises.

The serving path has `transaction` and `fetch` instead, which pass SQLAlchemy by on asyncpg's own connection: a
statement then takes a third of the processor time, and a HIT and its answer need six.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from inspect import get_annotations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar
from weakref import WeakValueDictionary

import asyncpg
from sqlalchemy import AdaptedConnection, ExceptionContext, NullPool, TextClause, event
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.database.connections import Connector, LimitedConnection, TimeLimits, abandon_connection
from app.text.postgres_address import parse_postgres_address

# How long an annotator's request waits for a lock. Then their browser tries again, and others have the connection.
LOCK_TIMEOUT_SECONDS = 5


# For annotators' requests: longer than they wait for a lock.
SERVING_LIMITS = TimeLimits(statement=15.0, idle_in_transaction=15.0)
# For pages of researchers and for what runs in the background.
PAGE_LIMITS = TimeLimits(statement=120.0, idle_in_transaction=600.0)
# For downloads and analyses, which may sort a whole campaign before the first row comes.
READING_LIMITS = TimeLimits(statement=600.0)
POOL_TIMEOUT_SECONDS = 15.0  # until a request that finds no free connection is told so


def create_engine(
    url: str, *, pool_size: int, lock_seconds: int | None = None, limits: TimeLimits = TimeLimits()
) -> AsyncEngine:
    """An engine on PostgreSQL through asyncpg, whose statements wait for a lock no longer than `lock_seconds`.

    Every statement here is short and finds its rows by an index: planning it anew each time, or compiling it, would
    cost more than running it. A plan is made once per connection, perhaps when its tables were still empty, so it must
    be the right one whatever the statistics say: PostgreSQL is told to prefer indexes and nested loops.
    """
    settings = {
        "jit": "off",
        "plan_cache_mode": "force_generic_plan",
        "enable_seqscan": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
    }
    if lock_seconds is not None:
        settings["lock_timeout"] = f"{lock_seconds}s"
    if limits.idle_in_transaction is not None:
        settings["idle_in_transaction_session_timeout"] = f"{math.ceil(1000 * limits.idle_in_transaction)}ms"
    connector = connector_for(url, settings, limits)
    engine = create_async_engine(
        url,
        async_creator=connector.connect,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        hide_parameters=True,  # messages of errors go into logs, and parameters are names, links, hashes
    )
    for name, listener in (
        ("checkout", refuse_dead_connection),
        ("checkin", note_connection_use),
        ("handle_error", invalidate_lost_connection),
    ):
        if not event.contains(engine.sync_engine, name, listener):
            event.listen(engine.sync_engine, name, listener)
    return engine


def create_migrating_engine(url: str) -> AsyncEngine:
    """Return an engine for migrations: PostgreSQL plans as usual, and a statement takes as long as it needs."""
    connector = connector_for(url, {}, TimeLimits(statement=None))
    return create_async_engine(url, async_creator=connector.connect, poolclass=NullPool, hide_parameters=True)


def connector_for(url: str, settings: Mapping[str, str], limits: TimeLimits) -> Connector:
    """Return what opens connections to the database at `url`, with settings of the session."""
    address = parse_postgres_address(url)
    named = {"application_name": address.parameters.get("application_name", "easel")}
    options = {name: value for name, value in address.parameters.items() if name == "options"}
    return Connector(address, {**named, **settings, **options}, limits)


def refuse_dead_connection(adapted: AdaptedConnection, _record: object, _proxy: object) -> None:
    """Let the pool open another connection in the place of one that does not answer any more."""
    connection = adapted.driver_connection
    if is_limited_connection(connection) and connection.needs_ping() and not adapted.run_async(ping_connection):
        raise DisconnectionError("the connection does not answer")


def note_connection_use(adapted: AdaptedConnection | None, _record: object) -> None:
    """Note when a connection was last used."""
    if adapted is not None and is_limited_connection(adapted.driver_connection):
        adapted.driver_connection.last_used = time.monotonic()


def invalidate_lost_connection(context: ExceptionContext) -> None:
    """Take a connection out of the pool whose statement came to no end, or whose server takes no writes any more."""
    if context.connection is None or context.connection.closed or context.connection.invalidated:
        return
    connection = context.connection.connection.driver_connection
    if is_limited_connection(connection) and connection.is_ruined_by(context.original_exception):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False  # the others are asked for a sign of life


async def ping_connection(connection: LimitedConnection) -> bool:
    return await connection.ping()


DIALECT = dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves its dialects untyped


class Record(asyncpg.Record):
    """A row whose columns are attributes: a class for each question says which there are, and of what type.

    `items`, `keys`, `values` and `get` are methods of every row, so no column is called so.
    """

    def __init_subclass__(cls) -> None:
        """Columns that a class names are read without a call of Python's: of one HIT and its answer, two hundred."""
        for name in get_annotations(cls):
            setattr(cls, name, property(itemgetter(name)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Of other columns, such as the platforms' settings."""
            try:
                return self[name]
            except KeyError:
                raise AttributeError(name) from None


class IdRow(Record):
    """A row of which only the key is asked."""

    id: int


def row_columns_sql(row_class: type[Record], table: str) -> str:
    """SQL for the columns of a row that are those of one table."""
    return ", ".join(f"{table}.{name}" for name in row_class.__annotations__)


# What asyncpg raises when a connection broke, the second when it notices in the middle of something.
LOST_CONNECTION_ERRORS = (asyncpg.InterfaceError, asyncpg.InternalClientError)

# What is raised when the database is away, through SQLAlchemy or past it; refused statements are among it.
DATABASE_ERRORS = (DBAPIError, NoFreeConnection, asyncpg.PostgresError, *LOST_CONNECTION_ERRORS, OSError)

# How PostgreSQL's codes begin for what passes: a lost connection, no room for another one, starting or stopping, a
# statement cancelled or out of time, its disk in trouble, a transaction ended to resolve a deadlock or because it took
# too long, a lock that others hold, a server that takes no writes because another became the primary.
PASSING_ERROR_CODES = ("08", "53", "57", "58", "40", "25006", "25P03", "25P04", "55P03")

R = TypeVar("R", bound=asyncpg.Record)
Driver: TypeAlias = "asyncpg.Connection[Any]"


def sqlstate_of(error: Exception) -> str:
    """PostgreSQL's code of what went wrong; empty if it said none."""
    driver_error = error.orig if isinstance(error, DBAPIError) else error  # the serving path speaks with asyncpg itself
    return getattr(driver_error, "sqlstate", None) or ""


def is_database_away(error: Exception) -> bool:
    """Whether `TROUBLE` is a lost connection, none free, or what passes, and not a mistake of ours."""
    # asyncpg passes on what the socket says when it cannot connect; an OSError about a file is another matter.
    unreachable = isinstance(error, OSError) and error.filename is None
    broken = isinstance(error, (OperationalError, InterfaceError, NoFreeConnection, *LOST_CONNECTION_ERRORS))
    lost = broken or getattr(error, "connection_invalidated", False)
    return unreachable or lost or sqlstate_of(error).startswith(PASSING_ERROR_CODES)


async def driver_of(connection: AsyncConnection) -> Driver:
    """Asyncpg's own connection below SQLAlchemy's, in the transaction that a statement of the latter has begun."""
    driver: Driver | None = (await connection.get_raw_connection()).driver_connection
    assert driver is not None  # noqa: S101  (a connection in use has one)
    return driver


@asynccontextmanager
async def begin_transaction(engine: AsyncEngine) -> AsyncIterator[Driver]:
    """A connection of the engine's pool in a transaction: committed at the end, rolled back when the body raises."""
    async with borrow_autocommit_driver(engine) as driver, driver.transaction():
        yield driver


@asynccontextmanager
async def borrow_autocommit_driver(engine: AsyncEngine) -> AsyncIterator[Driver]:
    """A connection of the engine's pool on which every statement is a transaction of its own."""
    async with engine.connect() as connection, use_driver(connection) as driver:
        yield driver


@asynccontextmanager
async def use_driver(connection: AsyncConnection) -> AsyncIterator[Driver]:
    """Its driver. SQLAlchemy sees nothing of what happens to it; once invalidated, the next use gets another one.

    Who is cancelled at BEGIN leaves asyncpg and PostgreSQL at odds about being in a transaction: what others then wrote
    would never be committed.
    """
    driver = await driver_of(connection)
    if await is_connection_dead(driver):
        await connection.invalidate()
        driver = await driver_of(connection)
    try:
        yield driver
    except LOST_CONNECTION_ERRORS:
        driver.terminate()
        raise
    except (TimeoutError, asyncio.CancelledError, asyncpg.PostgresError) as problem:
        if isinstance(problem, asyncio.CancelledError) or (
            is_limited_connection(driver) and driver.is_ruined_by(problem)
        ):
            await abandon_connection(driver)
        raise
    finally:
        if is_limited_connection(driver):
            driver.last_used = time.monotonic()
        if driver.is_closed() or driver.is_in_transaction():
            await connection.invalidate()


async def is_connection_dead(driver: Driver) -> bool:
    """Return whether a connection broke, or does not answer any more; it is closed then."""
    if is_limited_connection(driver) and driver.needs_ping():
        return not await driver.ping()
    return driver.is_closed()


def is_limited_connection(connection: object) -> TypeGuard[LimitedConnection]:
    """Return whether this is a connection of ours; asyncpg's own `isinstance` says so of all its connections."""
    return LimitedConnection in type(connection).__mro__


class ServingConnections:
    """Some of an engine's connections, for requests that are many and short; who comes first is served first.

    These connections do not go back to the pool. To get one from it and give it back takes longer than a
    statement, and it lets whoever comes last overtake those who wait.

    One campaign's requests never have the last of several connections: should all of them wait for a lock, those of
    other campaigns go on.
    """

    def __init__(self, engine: AsyncEngine, number: int, *, seconds: float = TimeLimits.acquire) -> None:
        self._engine = engine
        self._seconds = seconds
        self._free = asyncio.Semaphore(number)
        self.campaign_limit = max(1, number - 1)
        self._shares: WeakValueDictionary[int | None, asyncio.Semaphore] = WeakValueDictionary()
        self._idle: list[AsyncConnection] = []

    @asynccontextmanager
    async def borrow(self, campaign_id: int | None = None) -> AsyncIterator[Driver]:
        """A connection on which every statement is a transaction of its own, for a campaign, by its row's id; None for
        what waits for no lock of a campaign. Raises TimeoutError when none is free or can be opened in time.
        """
        campaign_share = self._shares.setdefault(
            campaign_id, asyncio.Semaphore(self.campaign_limit)
        )  # there as long as somebody uses it
        async with asyncio.timeout(self._seconds) as limit, campaign_share, self._free:
            connection = self._idle.pop() if self._idle else await self._engine.connect()
            try:
                async with use_driver(connection) as driver:
                    limit.reschedule(None)
                    yield driver
            finally:
                self._idle.append(connection)

    async def close(self) -> None:
        """Give the connections back; nobody has one any more."""
        for connection in self._idle:
            await connection.close()


@cache
def compile_statement(statement: TextClause) -> tuple[str, tuple[str, ...]]:
    """SQL with `$1`, `$2` for its parameters, and their names in that order."""
    sql = statement.compile(dialect=DIALECT)
    return str(sql), tuple(sql.positiontup or ())


async def fetch_rows(
    connection: Driver, statement: TextClause, parameters: Mapping[str, Any], row_class: type[R]
) -> list[R]:
    """All rows of a statement, as the class of its rows; of `parameters` it takes those that it names."""
    sql, names = compile_statement(statement)
    return await connection.fetch(sql, *[parameters[name] for name in names], record_class=row_class)


async def fetch_first_row(
    connection: Driver, statement: TextClause, parameters: Mapping[str, Any], row_class: type[R]
) -> R | None:
    """The first row of a statement, if it has one."""
    rows = await fetch_rows(connection, statement, parameters, row_class)
    return rows[0] if rows else None


async def execute_statement(connection: Driver, statement: TextClause, parameters: Mapping[str, Any]) -> None:
    """A statement whose rows nobody reads."""
    await fetch_rows(connection, statement, parameters, Record)
