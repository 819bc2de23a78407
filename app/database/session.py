"""The engine. A unit of work is `async with engine.begin()`: committed when it ends, rolled back when it raises.

The serving path has `transaction` and `fetch` instead, which pass SQLAlchemy by on asyncpg's own connection: a
statement then takes a third of the processor time, and a HIT and its answer need six.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from inspect import get_annotations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import asyncpg
from sqlalchemy import TextClause
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

# How long an annotator's request waits for a lock. Then their browser tries again, and others have the connection.
LOCK_SECONDS = 5


def create_engine(url: str, *, pool_size: int, lock_seconds: int | None = None) -> AsyncEngine:
    """An engine on PostgreSQL through asyncpg, whose statements wait for a lock no longer than `lock_seconds`.

    Every statement here is short and finds its rows by an index: planning it anew each time, or compiling it, would
    cost more than running it. A plan is made once per connection, perhaps when its tables were still empty, so it must
    be the right one whatever the statistics say: PostgreSQL is told to prefer indexes and nested loops.
    """
    return create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        hide_parameters=True,  # messages of errors go into logs, and parameters are names, links, hashes
        connect_args={
            "server_settings": {
                "application_name": "easel",
                "jit": "off",
                "plan_cache_mode": "force_generic_plan",
                "enable_seqscan": "off",
                "enable_hashjoin": "off",
                "enable_mergejoin": "off",
            }
            | ({} if lock_seconds is None else {"lock_timeout": f"{lock_seconds}s"})
        },
    )


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


class Id(Record):
    """A row of which only the key is asked."""

    id: int


def columns(row: type[Record], table: str) -> str:
    """SQL for the columns of a row that are those of one table."""
    return ", ".join(f"{table}.{name}" for name in row.__annotations__)


# What asyncpg raises when a connection broke, the second when it notices in the middle of something.
LOST = (asyncpg.InterfaceError, asyncpg.InternalClientError)

# What is raised when the database is away, through SQLAlchemy or past it; refused statements are among it.
TROUBLE = (DBAPIError, NoFreeConnection, asyncpg.PostgresError, *LOST, OSError)

# How PostgreSQL's codes begin for what passes: a lost connection, no room for another one, starting or stopping, a
# statement cancelled or out of time, a transaction ended to resolve a deadlock or because it took too long, a lock that
# others hold.
PASSING = ("08", "53", "57", "40", "25P03", "25P04", "55P03")

R = TypeVar("R", bound=asyncpg.Record)
Driver: TypeAlias = "asyncpg.Connection[Any]"


def sqlstate_of(trouble: Exception) -> str:
    """PostgreSQL's code of what went wrong; empty if it said none."""
    told = trouble.orig if isinstance(trouble, DBAPIError) else trouble  # the serving path speaks with asyncpg itself
    return getattr(told, "sqlstate", None) or ""


def is_away(trouble: Exception) -> bool:
    """Whether `TROUBLE` is a lost connection, none free, or what passes, and not a mistake of ours."""
    # asyncpg passes on what the socket says when it cannot connect; an OSError about a file is another matter.
    unreachable = isinstance(trouble, OSError) and trouble.filename is None
    broken = isinstance(trouble, (OperationalError, InterfaceError, NoFreeConnection, *LOST))
    lost = broken or getattr(trouble, "connection_invalidated", False)
    return unreachable or lost or sqlstate_of(trouble).startswith(PASSING)


async def driver_of(connection: AsyncConnection) -> Driver:
    """Asyncpg's own connection below SQLAlchemy's, in the transaction that a statement of the latter has begun."""
    driver: Driver | None = (await connection.get_raw_connection()).driver_connection
    assert driver is not None  # noqa: S101  (a connection in use has one)
    return driver


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[Driver]:
    """A connection of the engine's pool in a transaction: committed at the end, rolled back when the body raises."""
    async with statements(engine) as driver, driver.transaction():
        yield driver


@asynccontextmanager
async def statements(engine: AsyncEngine) -> AsyncIterator[Driver]:
    """A connection of the engine's pool on which every statement is a transaction of its own."""
    async with engine.connect() as connection, used(connection) as driver:
        yield driver


@asynccontextmanager
async def used(connection: AsyncConnection) -> AsyncIterator[Driver]:
    """Its driver. SQLAlchemy sees nothing of what happens to it; once invalidated, the next use gets another one.

    Who is cancelled at BEGIN leaves asyncpg and PostgreSQL at odds about being in a transaction: what others then wrote
    would never be committed.
    """
    driver = await driver_of(connection)
    if driver.is_closed():  # it broke while nobody used it
        await connection.invalidate()
        driver = await driver_of(connection)
    try:
        yield driver
    except LOST:
        driver.terminate()
        raise
    except asyncio.CancelledError:
        await connection.invalidate()
        raise
    finally:
        if driver.is_closed() or driver.is_in_transaction():
            await connection.invalidate()


class ServingConnections:
    """Some of an engine's connections, for requests that are many and short; who comes first is served first.

    These connections do not go back to the pool. To get one from it and give it back takes longer than a
    statement, and it lets whoever comes last overtake those who wait.

    One campaign's requests never have the last of several connections: should all of them wait for a lock, those of
    other campaigns go on.
    """

    def __init__(self, engine: AsyncEngine, number: int) -> None:
        self._engine = engine
        self._free = asyncio.Semaphore(number)
        self._share = max(1, number - 1)
        self._shares: WeakValueDictionary[int | None, asyncio.Semaphore] = WeakValueDictionary()
        self._idle: list[AsyncConnection] = []

    @asynccontextmanager
    async def borrow(self, campaign: int | None = None) -> AsyncIterator[Driver]:
        """A connection on which every statement is a transaction of its own, for a campaign, by its row's id; None for
        what waits for no lock of a campaign.
        """
        share = self._shares.setdefault(campaign, asyncio.Semaphore(self._share))  # there as long as somebody uses it
        async with share, self._free:
            connection = self._idle.pop() if self._idle else await self._engine.connect()
            try:
                async with used(connection) as driver:
                    yield driver
            finally:
                self._idle.append(connection)

    async def close(self) -> None:
        """Give the connections back; nobody has one any more."""
        for connection in self._idle:
            await connection.close()


@cache
def compiled(statement: TextClause) -> tuple[str, tuple[str, ...]]:
    """SQL with `$1`, `$2` for its parameters, and their names in that order."""
    sql = statement.compile(dialect=DIALECT)
    return str(sql), tuple(sql.positiontup or ())


async def fetch(connection: Driver, statement: TextClause, parameters: Mapping[str, Any], row: type[R]) -> list[R]:
    """All rows of a statement, as the class of its rows; of `parameters` it takes those that it names."""
    sql, names = compiled(statement)
    return await connection.fetch(sql, *[parameters[name] for name in names], record_class=row)


async def fetch_one(connection: Driver, statement: TextClause, parameters: Mapping[str, Any], row: type[R]) -> R | None:
    """The first row of a statement, if it has one."""
    rows = await fetch(connection, statement, parameters, row)
    return rows[0] if rows else None


async def execute(connection: Driver, statement: TextClause, parameters: Mapping[str, Any]) -> None:
    """A statement whose rows nobody reads."""
    await fetch(connection, statement, parameters, Record)
