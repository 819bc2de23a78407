"""Bulk transfer: COPY rows in, COPY columns of numbers out, read from one snapshot, prefetch the next piece."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, TypeVar

import asyncpg
import numpy as np
import numpy.typing as npt
from sqlalchemy import Column, Executable, Table, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.connections import close_connection_cancelling_statement
from app.database.session import Driver, driver_of
from app.text.table_formats import EXPORT_ROWS_PER_BATCH, RowCells, TableStream

T = TypeVar("T")
U = TypeVar("U")
NumberColumn = npt.NDArray[Any]

COPY_TIMEOUT_SECONDS = 3600.0  # for a whole COPY; replaces the connection's limit for statements
COPY_SILENCE_SECONDS = 60.0  # without a byte of a COPY to this process: then the connection counts as lost

# PostgreSQL's binary COPY format: a head, for each row the number of its values and then each value after its length
# in bytes, and an end; everything big-endian.
FLOAT8_TYPE_OID = 701
NULL_IN_COPY = r"\N"  # in COPY's text format
COPY_HEAD, COPY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


async def insert_rows_by_copy(
    connection: AsyncConnection, table: Table, rows: Iterable[Sequence[Any]], *columns: str
) -> None:
    """Insert rows by PostgreSQL's COPY, many times faster than INSERT; part of the connection's open transaction.

    Pass JSON as text. Identity columns take the values given, so get them from `reserve_next_ids_of_column`.
    """
    driver = await begin_transaction_returning_driver(connection)
    async with closing_connection_if_copy_fails(driver):
        await driver.copy_records_to_table(table.name, records=rows, columns=columns, timeout=COPY_TIMEOUT_SECONDS)


async def insert_text_lines_by_copy(
    connection: AsyncConnection, table: Table, lines: Iterable[str], *columns: str
) -> None:
    """Insert rows as `insert_rows_by_copy` does, from lines that `format_copy_line` made, perhaps in another thread."""
    driver = await begin_transaction_returning_driver(connection)
    # Closed at once: the driver leaves it in a cycle of references, so that the lines of many calls would be kept.
    with BytesIO("".join(lines).encode()) as source:
        async with closing_connection_if_copy_fails(driver):
            await driver.copy_to_table(table.name, source=source, columns=columns, timeout=COPY_TIMEOUT_SECONDS)


def format_copy_line(cells: Iterable[str | float | None]) -> str:
    """Return a row in COPY's text format."""
    return "\t".join([NULL_IN_COPY if cell is None else format_copy_cell(cell) for cell in cells]) + "\n"


def format_copy_cell(cell: str | float) -> str:
    if not isinstance(cell, str):
        return repr(cell)
    # Several times faster than `str.translate`.
    return cell.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")


def format_array_for_copy(numbers: Iterable[float] | None) -> str:
    """Return numbers as COPY's text format writes an array, with all bits of floats; NULL for None."""
    return NULL_IN_COPY if numbers is None else f"{{{','.join(map(str, numbers))}}}"


def array_text_of_texts(texts: Iterable[str]) -> str:
    """Return PostgreSQL's text for an array of texts: the driver takes many times as long for a list of thousands."""
    cells = ['"' + text.replace("\\", r"\\").replace('"', r"\"") + '"' for text in texts]
    return f"{{{','.join(cells)}}}"


async def insert_number_arrays_as_rows_by_copy(
    connection: AsyncConnection, table: Table, columns: Mapping[str, NumberColumn]
) -> None:
    """Insert rows by COPY from number arrays of equal length; a float64 array (n, k) becomes n PostgreSQL arrays."""
    driver = await begin_transaction_returning_driver(connection)
    layout = np.dtype(
        [("values", ">i2")]
        + [
            part
            for name, values in columns.items()
            for part in dtype_fields_of_binary_column(name, values.dtype, *values.shape[1:])
        ]
    )
    rows = np.zeros(len(next(iter(columns.values()))), layout)
    rows["values"] = len(columns)
    for name, values in columns.items():
        if values.ndim == 1:
            rows[f"{name} bytes"], rows[name] = values.itemsize, values
        else:
            rows[name] = encode_float8_arrays(values)
    names = list(columns)
    with BytesIO(COPY_HEAD + rows.tobytes() + COPY_END) as source:
        async with closing_connection_if_copy_fails(driver):
            await driver.copy_to_table(
                table.name, source=source, columns=names, format="binary", timeout=COPY_TIMEOUT_SECONDS
            )


async def fetch_array_by_column(
    connection: AsyncConnection, query: str, arguments: Sequence[Any], **columns: str
) -> dict[str, NumberColumn]:
    """Run `fetch_array_by_column_on_driver` in the connection's transaction."""
    return await fetch_array_by_column_on_driver(
        await begin_transaction_returning_driver(connection), query, arguments, **columns
    )


async def fetch_array_by_column_on_driver(
    driver: Driver, query: str, arguments: Sequence[Any], **columns: str
) -> dict[str, NumberColumn]:
    """Return the columns of a query as arrays, one per keyword.

    No Python object is made for a number, so a million of them take no longer than PostgreSQL needs.

    Args:
        driver: A connection of asyncpg.
        query: SQL with `$1`, `$2`, ... whose columns have no NULLs.
        arguments: Values of these parameters.
        **columns: Type of each column, in order, as PostgreSQL stores it: `i2`, `i4`, `i8` or `f8`.

    """
    received = bytearray()
    loop = asyncio.get_running_loop()
    async with closing_connection_if_copy_fails(driver), asyncio.timeout(COPY_SILENCE_SECONDS) as limit:

        async def receive(data: bytes) -> None:
            received.extend(data)
            limit.reschedule(loop.time() + COPY_SILENCE_SECONDS)

        await driver.copy_from_query(query, *arguments, output=receive, format="binary", timeout=COPY_TIMEOUT_SECONDS)
    layout = numpy_dtype_of_binary_row({name: np.dtype(kind) for name, kind in columns.items()})
    count = (len(received) - len(COPY_HEAD) - len(COPY_END)) // layout.itemsize
    rows = np.frombuffer(received, layout, count, len(COPY_HEAD))
    return {name: rows[name].astype(kind) for name, kind in columns.items()}


def numpy_dtype_of_binary_row(columns: Mapping[str, np.dtype[Any]]) -> np.dtype[Any]:
    """Return the layout of a row of numbers in binary COPY."""
    parts = [part for name, kind in columns.items() for part in dtype_fields_of_binary_column(name, kind)]
    return np.dtype([("values", ">i2"), *parts])


def dtype_fields_of_binary_column(name: str, kind: np.dtype[Any], length: int | None = None) -> list[tuple[str, Any]]:
    """Return the fields of a number, after its length in bytes; or of an array of `length` float64."""
    if length is None:
        return [(f"{name} bytes", ">i4"), (name, kind.newbyteorder(">"))]
    return [(name, [("head", ">i4", 6), ("elements", [("bytes", ">i4"), ("value", ">f8")], length)])]


def encode_float8_arrays(values: NumberColumn) -> NumberColumn:
    """Encode an (n, k) array as n values of the type float8[].

    The head of each has: bytes, dimensions, a flag for NULLs, type, length, first index.
    """
    length = values.shape[1]
    ((_, kind),) = dtype_fields_of_binary_column("", values.dtype, length)
    arrays = np.zeros(len(values), kind)
    arrays["head"] = 20 + 12 * length, 1, 0, FLOAT8_TYPE_OID, length, 1
    arrays["elements"]["bytes"], arrays["elements"]["value"] = 8, values
    return arrays


@asynccontextmanager
async def closing_connection_if_copy_fails(driver: Driver) -> AsyncIterator[None]:
    """Close the connection if a COPY was cancelled or timed out: it may never confirm that it stopped.

    Raises:
        asyncpg.InterfaceError: The connection was lost, and uvloop noticed it before the driver.

    """
    try:
        yield
    except (TimeoutError, asyncio.CancelledError):
        await close_connection_cancelling_statement(driver)
        raise
    except RuntimeError as problem:
        await asyncio.sleep(0)  # now the driver is told
        if not driver.is_closed():
            raise
        raise asyncpg.InterfaceError("The connection was lost during a COPY.") from problem


async def begin_transaction_returning_driver(connection: AsyncConnection) -> Driver:
    """Return the driver, in a transaction: SQLAlchemy sends BEGIN with its first statement, and COPY bypasses it."""
    await connection.execute(text("SELECT 1"))
    return await driver_of(connection)


async def iterate_prefetching_next(produce: Callable[[], Awaitable[T | None]]) -> AsyncGenerator[T, None]:
    """Yield the results of `produce` until it returns None; make each while the caller uses the one before.

    Close the generator (`aclosing`).
    """
    next_piece = asyncio.ensure_future(produce())
    try:
        while (piece := await next_piece) is not None:
            next_piece = asyncio.ensure_future(produce())
            yield piece
    finally:
        if next_piece.cancel():
            with suppress(asyncio.CancelledError):
                await next_piece


async def wait_for_both(first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """Return the results of two awaitables that run at the same time.

    If one of them fails, the other one ends first, so that the connection of either is free afterwards.
    """
    first_result, second_result = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(first_result, BaseException):
        raise first_result
    if isinstance(second_result, BaseException):
        raise second_result
    return first_result, second_result


async def reserve_next_ids_of_column(connection: AsyncConnection, column: Column[int], count: int) -> list[int]:
    """Reserve the next `count` numbers of an identity column, ascending, perhaps with gaps."""
    numbers = await connection.scalar(
        # The subquery looks the sequence up once: for each number, that takes ten times as long as the rest.
        text(
            "SELECT array_agg(nextval((SELECT CAST(pg_get_serial_sequence(CAST(:table AS text), CAST(:column AS text)) "
            "AS regclass)))) FROM generate_series(1, CAST(:count AS int))"
        ),
        {"table": column.table.name, "column": column.name, "count": count},
    )
    return sorted(numbers or ())


async def reserve_next_record_numbers(connection: AsyncConnection, count: int) -> list[int]:
    """Reserve the next `count` numbers of the record, ascending, perhaps with gaps."""
    statement = text("SELECT array_agg(nextval('record_seq')) FROM generate_series(1, CAST(:count AS int))")
    return sorted(await connection.scalar(statement, {"count": count}) or ())


@asynccontextmanager
async def open_snapshot(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a read-only connection that sees the database as of its first statement, however long it reads."""
    async with engine.connect() as connection:
        yield await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


@dataclass(frozen=True)
class StatementTable:
    """Table of the rows of a statement, with the columns that the statement names.

    Attributes:
        format_cell: Function from a stored cell to that of the table, by column; other cells are not changed.

    """

    statement: Executable
    format_cell: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    async def open(self, connection: AsyncConnection, parameters: Mapping[str, Any] | None = None) -> TableStream:
        """Return the columns, and the rows as they are read."""
        result = await connection.stream(self.statement, parameters)
        columns = tuple(result.keys())
        formatted = [(columns.index(name), format_cell) for name, format_cell in self.format_cell.items()]

        def format_row(row: Sequence[Any]) -> RowCells:
            cells = list(row)
            for place, format_cell in formatted:
                cells[place] = format_cell(cells[place])
            return cells

        async def chunks() -> AsyncIterator[list[RowCells]]:
            async for rows in result.partitions(EXPORT_ROWS_PER_BATCH):
                yield list(map(format_row, rows))

        return TableStream(columns, chunks())
