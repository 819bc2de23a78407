"""The database that Easel works on: the operator's, which DATABASE_URL names, or one of its own."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.database import embedded
from app.database.migrate import upgrade
from app.database.session import TROUBLE, create_engine
from app.errors import StartupProblem
from app.postgres_address import parse_address
from app.settings import Settings, easel_command

LOOK = text("""
    SELECT to_regclass('campaigns') IS NOT NULL, has_database_privilege(current_database(), 'TEMPORARY'),
           current_database(), current_user
""")


@contextmanager
def own_database(settings: Settings, lost: Callable[[], None] = lambda: None) -> Iterator[str]:
    """The URL of the database of a server: the operator's, or an embedded one that ends with this block.

    `lost` is called, from another thread, when the embedded one ended and could not be started again.
    """
    if settings.database_url is None:
        with embedded.start(settings.data_dir, lost=lost) as url:
            yield url
    else:
        asyncio.run(reach(settings.database_url))
        yield settings.database_url


@contextmanager
def any_database(settings: Settings) -> Iterator[str]:
    """The URL of the database of a command: the operator's, or the embedded one, which a server may be running."""
    if settings.database_url is None:
        with embedded.attach_or_start(settings.data_dir) as url:
            upgrade(url)
            yield url
    else:
        if not asyncio.run(reach(settings.database_url)):
            raise StartupProblem(f"This database has no tables of Easel yet. Run `{easel_command()} migrate` first.")
        yield settings.database_url


async def reach(url: str) -> bool:
    """Whether a database that answers has Easel's tables.

    Raises StartupProblem if it does not answer, or lets its user make no temporary objects: each connection makes the
    function by which it leases HITs (`serving/races.py`).
    """
    engine = create_engine(url, pool_size=1)
    try:
        async with engine.connect() as connection:
            has_tables, may_lease, name, user = (await connection.execute(LOOK)).one()
            if not may_lease:
                raise StartupProblem(
                    f"The user of DATABASE_URL may not make temporary objects, which handing out work needs. "
                    f'Let the owner of the database run: GRANT TEMPORARY ON DATABASE "{name}" TO "{user}"'
                )
            return bool(has_tables)
    except TROUBLE as problem:
        # SQLAlchemy wraps what asyncpg says in words for programmers.
        cause = (
            (problem.orig and problem.orig.__cause__) or problem.orig if isinstance(problem, DBAPIError) else problem
        )
        reason = " ".join(str(cause).split()) or type(cause).__name__
        place = parse_address(url).in_words()
        raise StartupProblem(f"The database at {place} does not answer: {reason}. Check DATABASE_URL.") from None
    finally:
        await engine.dispose()
