"""The migrations, forwards and backwards, on the server the app runs on."""

import asyncio

import pytest
from alembic import command
from sqlalchemy import NullPool, inspect
from sqlalchemy.ext.asyncio import create_async_engine

from app.database.migrate import configuration, upgrade
from app.database.tables import metadata


def tables(url: str) -> set[str]:
    async def look() -> set[str]:
        engine = create_async_engine(url, poolclass=NullPool)
        async with engine.connect() as connection:
            names = await connection.run_sync(lambda it: set(inspect(it).get_table_names()))
        await engine.dispose()
        return names - {"alembic_version"}

    return asyncio.run(look())


def test_the_migrations_make_the_tables_the_code_knows(database_url):
    assert tables(database_url) == set(metadata.tables)
    command.check(configuration(database_url))  # raises when a column, index or default differs


@pytest.mark.own_database
def test_down_leaves_nothing_and_up_again_makes_the_same(database_url):
    command.downgrade(configuration(database_url), "base")
    assert tables(database_url) == set()
    upgrade(database_url)
    command.check(configuration(database_url))


def test_a_second_upgrade_changes_nothing(database_url):
    upgrade(database_url)
    assert tables(database_url) == set(metadata.tables)
