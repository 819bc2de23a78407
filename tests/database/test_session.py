"""The serving path's own way to the database."""

import asyncpg
import pytest
from sqlalchemy import text

from app.database.session import fetch_one, transaction

BACKEND = text("SELECT pg_backend_pid() AS backend")


async def backend(engine):
    async with transaction(engine) as connection:
        row = await fetch_one(connection, BACKEND, {})
    assert row is not None
    return row.backend


@pytest.mark.parametrize("problem", [asyncpg.InterfaceError, asyncpg.InternalClientError])
async def test_a_connection_that_broke_is_not_given_to_anyone_else(engine, problem):
    before = await backend(engine)
    assert await backend(engine) == before
    with pytest.raises(problem):
        async with transaction(engine):
            raise problem("the connection broke")
    assert await backend(engine) != before


async def test_what_a_body_refuses_is_rolled_back_and_the_connection_kept(engine):
    before = await backend(engine)
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with transaction(engine) as connection:
            await connection.execute("CREATE TABLE half_done (); SELECT 1 / 0")
    assert await backend(engine) == before
    async with transaction(engine) as connection:
        assert await connection.fetchval("SELECT to_regclass('half_done')") is None


async def test_a_column_that_is_not_there_is_no_attribute(engine):
    async with transaction(engine) as connection:
        row = await fetch_one(connection, BACKEND, {})
    assert not hasattr(row, "frontend")
