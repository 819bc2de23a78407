"""How PostgreSQL finds the rows of the serving path, when it plans before there is anything to find."""

import re

import pytest
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import dialect

from app.auth import users
from app.database import learned
from app.serving import leases, outside, posterior_cache, races, standing, submission

STATEMENTS = {
    "standing": standing.STANDING_BY_ID,
    "standing of a program's annotator": outside.STANDING_BY_NAME,
    "changes": posterior_cache.CHANGES,
    "lock posteriors": races.LOCK_POSTERIORS,
    "lease": text(races.LEASE),
    "shown": leases.HELD,
    "close": submission.CLOSE,
    "close late": submission.CLOSE_LATE,
    "store": submission.STORE,
    "lock learned": submission.LOCKED_LEARNED,
    "whose token": users.FIND_TOKEN,
    "note a token's use": users.NOTE_USE,
    "whose token and HIT": outside.THEIRS,
    "learned": learned.STATES,
    "priors": learned.PRIORS,
    "keep learned": learned.KEEP,
}


async def plan_of(engine, statement) -> str:
    sql = str(statement.compile(dialect=dialect()))
    nulls = ", ".join(["NULL"] * max(int(number) for number in re.findall(r"\$(\d+)", sql)))
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        await driver.execute(f"PREPARE ours AS {sql}")
        plan = await driver.fetch(f"EXPLAIN EXECUTE ours ({nulls})")
        await driver.execute("DEALLOCATE ours")
    return "\n".join(row[0] for row in plan)


@pytest.mark.parametrize("name", STATEMENTS)
async def test_no_statement_of_the_serving_path_goes_through_a_whole_table(engine, name):
    plan = await plan_of(engine, STATEMENTS[name])
    assert "Seq Scan" not in plan
    assert "Hash Join" not in plan
    assert "Merge Join" not in plan


@pytest.mark.parametrize("name", ["changes", "standing", "standing of a program's annotator"])
async def test_changes_are_found_by_transaction_not_among_all_responses_of_the_campaign(engine, name):
    plan = await plan_of(engine, STATEMENTS[name])
    assert "responses_transaction_id_idx" in plan
    assert "responses_campaign_id_seq_idx" not in plan
