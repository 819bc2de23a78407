"""Much at once: rows in by COPY, rows out from one snapshot."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Column, Table, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


async def copy(connection: AsyncConnection, table: Table, rows: Iterable[Sequence[Any]], *columns: str) -> None:
    """Insert rows by PostgreSQL's COPY, many times faster than INSERT; part of the connection's open transaction.

    JSON goes in as text. Identity columns take the values given, so get them from `reserve`.
    """
    # SQLAlchemy sends BEGIN with its first statement, and COPY goes past it.
    await connection.execute(text("SELECT 1"))
    raw: Any = (await connection.get_raw_connection()).driver_connection
    await raw.copy_records_to_table(table.name, records=rows, columns=columns)


async def reserve(connection: AsyncConnection, column: Column[int], count: int) -> list[int]:
    """The next `count` numbers of an identity column, ascending. Others may take numbers in between."""
    numbers = await connection.execute(
        text(
            "SELECT nextval(pg_get_serial_sequence(CAST(:table AS text), CAST(:column AS text))) "
            "FROM generate_series(1, CAST(:count AS int))"
        ),
        {"table": column.table.name, "column": column.name, "count": count},
    )
    return sorted(numbers.scalars())


@asynccontextmanager
async def snapshot(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection that sees the database as it was at its first statement, however long it reads; it cannot write."""
    async with engine.connect() as connection:
        yield await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
