"""The migrations, forwards and backwards, and databases that Easel 0.1 left."""

import asyncio
import gzip
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits.lease_functions_sql import LEASE_HITS_FUNCTION
from app.annotation.hits.locked_answers import LOCK_ANSWERS_FUNCTION
from app.annotation.hits.shown_items_sql import SHOWN_ITEMS_FUNCTION, SHOWN_OUTPUTS_FUNCTION
from app.annotation.hits.store_answers_sql import STORE_ANSWERS_FUNCTION
from app.campaigns.lifecycle import unchecked_settings_with_deliverable_emails
from app.database import migrate
from app.database.migrate import alembic_configuration, newest_schema_revision, upgrade_schema
from app.database.schema import metadata
from app.database.session import borrow_autocommit_driver, driver_of
from app.errors import StartupProblem
from app.inference.online.laws import ONLINE_LAWS
from app.record.campaign import load_campaign
from tests.annotation.hits.campaigns import execute_sql, fetch_rows
from tests.campaigns.drafts import replay_is_clean

# By pg_dump. Revision 0003: campaigns of four laws, and a draft. The last revision of 0.1: campaigns of every law,
# answered by `easel simulate`, with criteria, pairs, checks, iterations, a goal and decisions, and a draft.
STORED = Path(__file__).parent / "stored"
FIRST_VERSION = (STORED / "first_version.sql.gz").read_bytes()
LAST_OF_0_1 = (STORED / "revision_0061.sql.gz").read_bytes()

TABLE_FACTS = r"""
    WITH relations AS (SELECT oid, relname, relkind, reloptions FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relname NOT LIKE 'alembic%')
    SELECT relname, format('options %s', reloptions) FROM relations WHERE relkind = 'r'
    UNION ALL
    SELECT relname, format('column %s %s not null %s identity %s default %s', attname, format_type(atttypid, atttypmod),
        attnotnull, attidentity, regexp_replace(pg_get_expr(adbin, adrelid), '^''([-.0-9]+)''::[a-z ]+$', '\1'))
    FROM relations JOIN pg_attribute ON attrelid = relations.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE relkind = 'r'
    UNION ALL
    SELECT relname, format('constraint %s %s', conname, pg_get_constraintdef(pg_constraint.oid))
    FROM relations JOIN pg_constraint ON conrelid = relations.oid
    WHERE contype <> 'n'  -- PostgreSQL 18 names NOT NULL, and keeps the name when the column is renamed
    UNION ALL
    SELECT relname, format('index %s', pg_get_indexdef(indexrelid)) FROM relations JOIN pg_index ON indrelid = oid
"""
OTHER_FACTS = r"""
    WITH relations AS (SELECT oid, relname, relkind FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relname NOT LIKE 'alembic%')
    SELECT relname, format('columns %s', array_agg(attname ORDER BY attnum)) FROM relations
    JOIN pg_attribute ON attrelid = oid AND attnum > 0 AND NOT attisdropped WHERE relkind = 'r' GROUP BY relname
    UNION ALL
    SELECT relname, pg_get_viewdef(oid) FROM relations WHERE relkind = 'v'
    UNION ALL
    SELECT relname, pg_get_triggerdef(pg_trigger.oid) FROM relations JOIN pg_trigger ON tgrelid = relations.oid
    WHERE NOT tgisinternal
    UNION ALL
    SELECT proname, regexp_replace(pg_get_functiondef(oid), '\s+', ' ', 'g') FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace
"""


async def facts(engine: AsyncEngine, *statements: str) -> set[str]:
    """Return the facts of the catalogue about the schema that comes first on the search path."""
    found = [f"{name}: {fact}" for statement in statements for name, fact in await fetch_rows(engine, statement)]
    assert len(found) == len(set(found)) > 0
    return set(found)


async def restore(engine: AsyncEngine, dump: bytes) -> None:
    async with borrow_autocommit_driver(engine) as connection:
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await connection.execute(gzip.decompress(dump).decode() + "SET search_path = public")
    await engine.dispose()


# The settings that had a column of their own; later ones began in a section.
NAMES_IN_COLUMNS = [name for _, name, _ in import_module("migrations.versions.0003_settings_sections").COLUMNS]
ODD_SETTINGS = r"""
    UPDATE campaigns SET goal_within = 0.1 + 0.2, goal_width = 50, false_alarms = 1e-17, consent = E'«"Yes"» \\ 😀\n',
        quality_rules = '{"gold: exclude","a, {b}"}', questions = '{}', return_completed = '', welcome = true
    WHERE id = (SELECT max(id) FROM campaigns)
"""


async def settings_of_all(engine: AsyncEngine) -> str:
    """All settings as Python writes them, so that 5 and 5.0 differ."""
    async with engine.connect() as connection:
        ids = await connection.scalars(text("SELECT id FROM campaigns ORDER BY id"))
        stored = [
            unchecked_settings_with_deliverable_emails(await load_campaign(connection, campaign))
            for campaign in ids.all()
        ]
    return repr([[getattr(settings, name) for name in NAMES_IN_COLUMNS] for settings in stored])


async def settings_in_columns(engine: AsyncEngine) -> str:
    """The same from a database in which each setting has a column."""
    rows = await fetch_rows(engine, f"SELECT {', '.join(NAMES_IN_COLUMNS)} FROM campaigns ORDER BY id")
    return repr([[*row] for row in rows])


async def stored_data(engine: AsyncEngine) -> list[tuple[object, ...]]:
    """How many items, annotators, HITs and answers each campaign has, and all posteriors."""
    counts = [
        f"(SELECT count(*) FROM {table} WHERE campaign_id = campaigns.id)"
        for table in ("items", "annotators", "hits", "responses", "decisions", "states", "check_answers")
        if (await fetch_rows(engine, f"SELECT to_regclass('{table}')"))[0][0]
    ]
    return [
        *await fetch_rows(engine, f"SELECT id, {', '.join(counts)} FROM campaigns ORDER BY id"),
        *await fetch_rows(engine, "SELECT to_jsonb(posteriors)::text FROM posteriors ORDER BY 1"),
    ]


@pytest.mark.own_database
async def test_the_migrations_make_the_tables_the_code_knows(engine, database_url):
    migrated = await facts(engine, TABLE_FACTS)
    await engine.dispose()
    await asyncio.to_thread(command.check, alembic_configuration(database_url))
    async with engine.begin() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
        await connection.run_sync(metadata.create_all)
    assert await facts(engine, TABLE_FACTS) == migrated


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("easel_lease_hits", LEASE_HITS_FUNCTION),
        ("easel_shown_items", SHOWN_ITEMS_FUNCTION),
        ("easel_shown_outputs", SHOWN_OUTPUTS_FUNCTION),
        ("easel_lock_answers", LOCK_ANSWERS_FUNCTION),
        ("easel_store_answers", STORE_ANSWERS_FUNCTION),
    ],
)
async def test_the_stored_functions_of_leases_are_those_of_the_code(engine, name, function):
    """If this fails, the code has changed a function, and needs a migration that replaces the stored one."""
    async with engine.connect() as connection:
        driver = await driver_of(connection)
        await driver.execute(function.replace(name, f"pg_temp.{name}"))
        functions = await driver.fetch(
            "SELECT pg_get_function_arguments(oid), prosrc FROM pg_proc WHERE proname = $1", name
        )
        await connection.invalidate()
    assert len(functions) == 2
    assert len({(arguments, " ".join(body.split())) for arguments, body in functions}) == 1


@pytest.mark.own_database
async def test_down_leaves_nothing_and_up_again_makes_the_same(engine, database_url):
    before = await facts(engine, TABLE_FACTS, OTHER_FACTS)
    await engine.dispose()
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "base")
    assert [
        name
        for (name,) in await fetch_rows(
            engine,
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v', 'S') AND relnamespace = 'public'::regnamespace",
        )
    ] == ["alembic_version"]
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    assert await facts(engine, TABLE_FACTS, OTHER_FACTS) == before


def test_a_second_upgrade_changes_nothing(database_url):
    upgrade_schema(database_url)


def test_a_revision_is_the_name_of_its_file():
    scripts = ScriptDirectory.from_config(alembic_configuration(""))
    assert [script.revision for script in scripts.walk_revisions()] == [
        Path(script.path).stem for script in scripts.walk_revisions()
    ]
    assert scripts.get_heads() == [newest_schema_revision()]


@pytest.mark.own_database
async def test_the_last_revision_of_0_1_has_the_present_schema_keeps_its_data_and_verifies_clean(engine, database_url):
    schema = await facts(engine, TABLE_FACTS, OTHER_FACTS)
    await restore(engine, LAST_OF_0_1)
    await execute_sql(engine, ODD_SETTINGS)
    before, settings = await stored_data(engine), await settings_in_columns(engine)
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    assert await fetch_rows(engine, "SELECT version_num FROM alembic_version") == [(newest_schema_revision(),)]
    assert await facts(engine, TABLE_FACTS, OTHER_FACTS) == schema
    assert await stored_data(engine) == before
    assert await settings_of_all(engine) == settings
    campaigns = await fetch_rows(engine, "SELECT slug, update_law FROM campaigns WHERE status <> 'draft'")
    laws_of_0_1 = {"easl", "ra", "trueskill", "easl-aware", "dirichlet", "log-normal"}
    assert {law for _, law in campaigns} == laws_of_0_1 <= set(ONLINE_LAWS)
    assert [slug for slug, _ in campaigns if not await replay_is_clean(engine, slug)] == []


@pytest.mark.own_database
async def test_settings_stay_when_they_return_from_sections_to_columns(engine, database_url):
    await restore(engine, LAST_OF_0_1)
    await execute_sql(engine, ODD_SETTINGS)
    settings = await settings_in_columns(engine)
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "0002_lease_function")
    assert await settings_in_columns(engine) == settings


@pytest.mark.own_database
async def test_two_servers_that_start_together_adopt_the_last_revision_of_0_1_once(engine, database_url):
    await restore(engine, LAST_OF_0_1)
    environment = {**os.environ, "DATABASE_URL": database_url}
    command_line = (sys.executable, "-m", "app.cli", "migrate")
    servers = [await asyncio.create_subprocess_exec(*command_line, env=environment) for _ in range(2)]
    assert [await server.wait() for server in servers] == [0, 0]
    assert await fetch_rows(engine, "SELECT version_num FROM alembic_version") == [(newest_schema_revision(),)]


@pytest.mark.own_database
async def test_tables_in_use_are_a_clear_refusal_and_stay_as_they_are(engine, database_url, monkeypatch):
    monkeypatch.setattr(migrate, "MIGRATION_LOCK_SECONDS", 1)
    await restore(engine, LAST_OF_0_1)
    async with engine.begin() as connection:
        await connection.execute(text("SELECT FROM campaigns"))
        with pytest.raises(StartupProblem, match=r"Stop all other servers.* Nothing was changed") as said:
            await asyncio.to_thread(upgrade_schema, database_url)
    assert said.value.code == "schema_in_use"
    assert await fetch_rows(engine, "SELECT version_num FROM alembic_version") == [("0061",)]


@pytest.mark.own_database
async def test_a_database_of_an_earlier_revision_is_sent_to_0_1_and_left_as_it_is(engine, database_url):
    await restore(engine, FIRST_VERSION)
    before = await stored_data(engine), await facts(engine, TABLE_FACTS)
    await engine.dispose()
    with pytest.raises(StartupProblem, match=r"Upgrade it to the last 0\.1 release first.* Nothing was") as said:
        await asyncio.to_thread(upgrade_schema, database_url)
    assert said.value.code == "schema_too_old"
    assert (await stored_data(engine), await facts(engine, TABLE_FACTS)) == before
    assert await fetch_rows(engine, "SELECT version_num FROM alembic_version") == [("0003",)]
