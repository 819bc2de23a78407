"""How PostgreSQL finds the rows of the serving path, when it plans before there is anything to find."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import TextClause, text
from sqlalchemy.dialects.postgresql.asyncpg import dialect

from app.accounts import tokens
from app.annotation.hits import (
    assignment,
    campaign_index,
    iteration_schedule,
    lease_sql,
    leases,
    program_annotators,
    remarks,
    submission,
)
from app.annotation.platforms import assignments
from app.database import campaign
from app.record import changes, law_storage, posterior_storage
from tests.annotation.hits.campaigns import annotator, hit_of, running

MODULES = (
    assignments,
    campaign,
    changes,
    law_storage,
    posterior_storage,
    leases,
    program_annotators,
    campaign_index,
    iteration_schedule,
    lease_sql,
    remarks,
    assignment,
)
STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": statement
    for module in (*MODULES, submission)
    for name, statement in vars(module).items()
    if isinstance(statement, TextClause)
} | {
    "lease_sql.INSERT_LEASE": text(lease_sql.INSERT_LEASE),
    "tokens.FIND_TOKEN": tokens.FIND_TOKEN,
    "tokens.NOTE_TOKEN_USE": tokens.NOTE_TOKEN_USE,
}
for elsewhere in ("lease_sql.LOCK_AND_LEASE", "lease_sql.LOCK_AND_LEASE_OUTPUTS"):
    del STATEMENTS[elsewhere]
WHOLE_CAMPAIGN = {"law_storage.FIND_ALL_STATES"}  # of verification

# How the names of their indexes begin.
HOT = (
    "annotators",
    "assignments",
    "hits",
    "items",
    "outputs",
    "planned_hits",
    "posteriors",
    "responses",
    "segments",
    "states",
)

# What came in since a watermark is found by transaction, whatever the campaign.
WATERMARK = "responses_transaction_id_idx"
# The end of it, for the campaign's last response.
ONE_ROW = "responses_pkey"
# What people said besides their answers: who flags something looks who else did, and nobody else.
REMARKED = "responses_remarks_idx"
# What is left to ask of a campaign, once there is nothing to draw.
WHOLE_CAMPAIGN_AT_TIMES = {
    "campaign.FINISH_IF_COMPLETE",
    "leases.FINISH_IF_COMPLETE",
    "submission.FINISH_IF_COMPLETE",
    "leases.SELECT_OPEN_ITEMS",
}
STANDINGS = [
    "assignment.SELECT_ASSIGNMENT_BY_ID",
    "assignment.SELECT_EXTENDED_ASSIGNMENT_BY_ID",
    "program_annotators.SELECT_ASSIGNMENT_BY_NAME",
    "program_annotators.SELECT_EXTENDED_ASSIGNMENT_BY_NAME",
]
# What all open HITs hold is read for some draws, once a second where they are many.
WANT_ALL_OPEN = {"leases.SELECT_ANY_OPEN_HIT", "iteration_schedule.SELECT_ITEMS_OF_OPEN_HITS", *STANDINGS}
WHERE_FEW_ARE_OPEN = {"lease_sql.INSERT_LEASE", "lease_sql.RENEW_LEASE", "submission.CLOSE_EXPIRED_HIT"}
ALL_OPEN = "hits_open_idx"
HELD = "hits_held_idx"
WITH_CLOSED_OUT = {HELD: "items", "hits_one_open_idx": "assignment_id"}
WITHOUT_CAMPAIGN = {"program_annotators.SELECT_PROGRAM_HIT"}  # a program answers a HIT by its number alone

# PostgreSQL takes a table of less than 10 pages for one of 10, in which it matters little how rows are found.
GROWN = text("""
    INSERT INTO hits OVERRIDING SYSTEM VALUE SELECT another.* FROM hits, generate_series(1, 2000) AS n,
        jsonb_populate_record(hits, jsonb_build_object('id', hits.id + n, 'closed_at', now())) AS another
""")
HAS_PAGES = text("SELECT pg_relation_size('hits') > 10 * CAST(current_setting('block_size') AS int)")


@pytest_asyncio.fixture(autouse=True)
async def hits_have_pages(engine):
    """As on a server on which people have worked. Pages stay when their rows are deleted, so they are made once; but a
    test before may have truncated the table.
    """
    async with engine.begin() as connection:
        if await connection.scalar(HAS_PAGES):
            return
    campaign = await running(engine)
    await hit_of(engine, await annotator(engine, campaign))
    async with engine.begin() as connection:
        await connection.execute(GROWN)


async def explained(engine, statement, how: str) -> list[Any]:
    sql = str(statement.compile(dialect=dialect()))
    nulls = ", ".join(["NULL"] * max(map(int, re.findall(r"\$(\d+)", sql)), default=0))
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        await driver.execute(f"PREPARE ours AS {sql}")
        plan = await driver.fetch(f"EXPLAIN ({how}) EXECUTE ours {f'({nulls})' if nulls else ''}")
        await driver.execute("DEALLOCATE ours")
    return [row[0] for row in plan]


async def plan_of(engine, statement) -> str:
    return "\n".join(await explained(engine, statement, "COSTS OFF"))


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - WHOLE_CAMPAIGN))
async def test_no_statement_of_the_serving_path_goes_through_a_whole_table(engine, name):
    plan = await plan_of(engine, STATEMENTS[name])
    assert "Seq Scan" not in plan
    assert "Hash Join" not in plan
    assert "Merge Join" not in plan


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - WITHOUT_CAMPAIGN))
async def test_every_statement_of_the_serving_path_names_its_campaign(engine, name):
    (plan,) = await explained(engine, STATEMENTS[name], "FORMAT JSON")
    for node in nodes(plan[0]["Plan"]):
        index = node.get("Index Name", "")
        if index.startswith(HOT) and index != WATERMARK:
            assert "campaign_id" in node["Index Cond"], node
        if index == "posteriors_pkey" and name not in WHOLE_CAMPAIGN_AT_TIMES:
            assert "subject" in node["Index Cond"], node


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - WHOLE_CAMPAIGN - WHOLE_CAMPAIGN_AT_TIMES))
async def test_rows_are_found_by_more_than_their_campaign(engine, name):
    (plan,) = await explained(engine, STATEMENTS[name], "FORMAT JSON")
    for node in nodes(plan[0]["Plan"]):
        index = node.get("Index Name", "")
        if index.startswith(HOT) and index not in (WATERMARK, ONE_ROW, REMARKED) and name not in WITHOUT_CAMPAIGN:
            assert " AND " in node["Index Cond"], node
        if index.startswith("items"):
            assert "number" in node["Index Cond"], node


@pytest.mark.parametrize("name", sorted(WHERE_FEW_ARE_OPEN))
async def test_who_holds_an_item_is_found_by_the_item(engine, name):
    assert HELD in await plan_of(engine, STATEMENTS[name])


@pytest.mark.parametrize("name", sorted(STATEMENTS))
async def test_nothing_else_goes_through_all_open_hits(engine, name):
    (plan,) = await explained(engine, STATEMENTS[name], "FORMAT JSON")
    for node in nodes(plan[0]["Plan"]):
        index = node.get("Index Name")
        assert index != ALL_OPEN or name in WANT_ALL_OPEN | WHERE_FEW_ARE_OPEN, node
        if index in WITH_CLOSED_OUT:
            assert WITH_CLOSED_OUT[index] in node["Index Cond"], node


@pytest.mark.parametrize("name", ["changes.FIND_POSTERIOR_CHANGES", "changes.POLL_CHANGES", *STANDINGS])
async def test_changes_are_found_by_transaction_not_among_all_responses_of_the_campaign(engine, name):
    plan = await plan_of(engine, STATEMENTS[name])
    assert WATERMARK in plan
    assert "responses_pkey" not in plan
