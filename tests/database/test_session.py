"""The serving path's own way to the database."""

import asyncio
from dataclasses import dataclass

import asyncpg
import pytest
from sqlalchemy import text

from app.database.session import (
    LOST_CONNECTION_ERRORS,
    Record,
    ServingConnections,
    SharedParameters,
    borrow_autocommit_driver,
    borrow_driver_in_transaction,
    execute_statement,
    fetch_first_row_or_none,
)
from tests.annotation.hits.campaigns import wait_until

LOST_OR_ENDED = (*LOST_CONNECTION_ERRORS, asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError)

BACKEND = text("SELECT pg_backend_pid() AS backend")


class Backend(Record):
    backend: int


@dataclass
class Addends(SharedParameters):
    first: int
    second: int


async def backend(engine):
    async with borrow_driver_in_transaction(engine) as connection:
        row = await fetch_first_row_or_none(connection, BACKEND, {}, Backend)
    assert row is not None
    return row.backend


@pytest.mark.own_database
@pytest.mark.parametrize("problem", [asyncpg.InterfaceError, asyncpg.InternalClientError])
async def test_a_connection_that_broke_is_not_given_to_anyone_else(engine, problem):
    before = await backend(engine)
    assert await backend(engine) == before
    with pytest.raises(problem):
        async with borrow_driver_in_transaction(engine):
            raise problem("the connection broke")
    assert await backend(engine) != before


@pytest.mark.own_database
async def test_what_a_body_refuses_is_rolled_back_and_the_connection_kept(engine):
    before = await backend(engine)
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with borrow_driver_in_transaction(engine) as connection:
            await connection.execute("CREATE TABLE half_done (); SELECT 1 / 0")
    assert await backend(engine) == before
    async with borrow_driver_in_transaction(engine) as connection:
        assert await connection.fetchval("SELECT to_regclass('half_done')") is None


async def test_a_column_that_is_not_there_is_no_attribute(engine):
    async with borrow_driver_in_transaction(engine) as connection:
        row = await fetch_first_row_or_none(connection, BACKEND, {}, Backend)
    assert not hasattr(row, "frontend")


@pytest.mark.own_database
@pytest.mark.parametrize("way", ["pool", "serving"])
async def test_who_is_cancelled_at_begin_spoils_no_later_transaction(engine, way):
    connections = ServingConnections(engine, 1)

    def connected():
        return connections.borrow_autocommit_connection() if way == "serving" else borrow_autocommit_driver(engine)

    async def write(number):
        async with connected() as connection, connection.transaction():
            await connection.execute(f"INSERT INTO written VALUES ({number})")

    async with connected() as connection:
        await connection.execute("CREATE TABLE written (number int)")
    cancelled = asyncio.create_task(write(1))
    await asyncio.sleep(0)  # it has a connection, has sent BEGIN, and waits
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await write(2)
    async with borrow_driver_in_transaction(engine) as other:
        assert await other.fetch("SELECT number FROM written") == [(2,)]
    await connections.close()


async def ended(engine, pid):
    """Once this connection's server process is gone."""
    async with engine.begin() as connection:
        await connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    await wait_until(engine, f"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid})")


async def test_a_serving_connection_that_breaks_between_two_uses_is_replaced(engine):
    connections = ServingConnections(engine, 1)
    async with connections.borrow_autocommit_connection() as connection:
        before = connection.get_server_pid()
    await ended(engine, before)
    while not connection.is_closed():  # noqa: ASYNC110  (it is about to hear of it)
        await asyncio.sleep(0)
    async with connections.borrow_autocommit_connection() as connection:
        assert await connection.fetchval("SELECT pg_backend_pid()") != before
    await connections.close()


async def test_a_serving_connection_that_breaks_in_use_spoils_that_use_alone(engine):
    connections = ServingConnections(engine, 1)

    async def break_in_a_turn():
        async with connections.borrow_autocommit_connection() as connection:
            await ended(engine, connection.get_server_pid())
            await connection.fetchval("SELECT 1")

    with pytest.raises(LOST_OR_ENDED):
        await break_in_a_turn()
    async with connections.borrow_autocommit_connection() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await connections.close()


async def test_serving_connections_are_given_back_at_the_end(engine):
    connections = ServingConnections(engine, 2)
    async with connections.borrow_autocommit_connection(1), connections.borrow_autocommit_connection(2):
        pass
    assert engine.pool.checkedout() == 2
    await connections.close()
    assert engine.pool.checkedout() == 0


@pytest.mark.parametrize(
    ("parameters", "wrong"),
    [
        ({"number": 1, "numbre": 2}, "numbre"),
        ({"numbre": 2}, "numbre.*number"),
        ({}, "number"),
    ],
)
async def test_parameters_that_a_statement_does_not_name_are_refused(engine, parameters, wrong):
    async with borrow_driver_in_transaction(engine) as connection:
        with pytest.raises(TypeError, match=wrong):
            await execute_statement(connection, text("SELECT CAST(:number AS int)"), parameters)


async def test_statements_of_a_transaction_share_typed_parameters(engine):
    class Sum(Record):
        total: int

    async with borrow_driver_in_transaction(engine) as connection:
        for statement, total in (("SELECT CAST(:first AS int)", 1), ("SELECT :first + CAST(:second AS int)", 3)):
            row = await fetch_first_row_or_none(
                connection, text(f"{statement} AS total"), Addends(first=1, second=2), Sum
            )
            assert row is not None
            assert row.total == total
        with pytest.raises(AttributeError, match="third"):
            await execute_statement(connection, text("SELECT CAST(:third AS int)"), Addends(first=1, second=2))
