"""The planner knows large new tables at once, and small additions to large tables cost nothing."""

from contextlib import AsyncExitStack

import pytest
from sqlalchemy import text

from tests.annotation.hits.campaigns import execute_sql, fetch_value
from tests.campaigns.drafts import create_launched_campaign, import_results

ADD_AS_MANY_ITEMS = text("""
    INSERT INTO items (campaign_id, number, external_id, shown, fields)
    SELECT campaign_id, number + 1000, 'n' || number, shown, fields FROM items
""")
FEW_ITEMS = "id,text\na,A\nb,B\nc,C\nd,D\ne,E\n"
ITEMS = "id,text\n" + "".join(f"i{k},Text {k}\n" for k in range(300))


async def known_rows(engine, table):
    return await fetch_value(engine, f"SELECT CAST(reltuples AS int) FROM pg_class WHERE oid = '{table}'::regclass")


async def report_changes_of_all_connections(engine):
    """Let each pooled connection report now which rows it has changed: else it may do so up to a second later."""
    async with AsyncExitStack() as stack:
        for _ in range(engine.pool.checkedin()):
            connection = await stack.enter_async_context(engine.connect())
            await connection.execute(text("SELECT pg_stat_force_next_flush()"))


def results(first, count):
    rows = "".join(f"A{k},W{k % 7},i{k % 300},i{(k + 1) % 300},{k % 101},50\n" for k in range(first, first + count))
    return "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n" + rows


async def test_a_launch_gives_a_large_campaign_statistics_and_a_small_one_beside_it_none(engine):
    await create_launched_campaign(engine, ITEMS)
    items = await known_rows(engine, "items")
    assert items >= 300
    await create_launched_campaign(engine, FEW_ITEMS)
    assert await known_rows(engine, "items") == items
    assert await known_rows(engine, "posteriors") >= 300


async def test_rows_of_earlier_transactions_count_too(engine):
    await create_launched_campaign(engine, ITEMS)
    before = await known_rows(engine, "items")
    async with engine.begin() as connection:
        await connection.execute(ADD_AS_MANY_ITEMS)
        await connection.execute(text("SELECT pg_stat_force_next_flush()"))
    await create_launched_campaign(engine, FEW_ITEMS)
    assert await known_rows(engine, "items") >= 2 * before


@pytest.mark.own_database  # where nothing was removed before
async def test_an_import_of_many_answers_gives_the_tables_of_answers_statistics(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    for table in ("responses", "hits", "assignments"):  # PostgreSQL's own daemon could renew them at any moment
        await execute_sql(engine, f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    await execute_sql(engine, "ANALYZE responses, hits, assignments")
    await import_results(engine, campaign, results(0, 200))
    await report_changes_of_all_connections(engine)
    assert [await known_rows(engine, table) >= 200 for table in ("assignments", "hits", "responses")] == [True] * 3
    await import_results(engine, campaign, results(200, 5))
    assert await known_rows(engine, "responses") < 205
