"""How PostgreSQL finds the rows of the serving path, when it plans before there is anything to find."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import TextClause, text
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.ext.asyncio import AsyncEngine

from app.accounts import tokens
from app.annotation.hits import (
    answer_leases,
    assignment_sql,
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
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, try_to_lease_hit

# Plans depend on the statistics and the sizes of tables and indexes that other tests leave behind.
pytestmark = pytest.mark.own_database

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
    assignment_sql,
)
STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": statement
    for module in (*MODULES, submission)
    for name, statement in vars(module).items()
    if isinstance(statement, TextClause)
} | {
    "answer_leases.LOCK_ANSWERS_AND_SELECT_ASSIGNMENTS": answer_leases.LOCK_ANSWERS_AND_SELECT_ASSIGNMENTS,
    "lease_sql.INSERT_LEASE": text(lease_sql.INSERT_LEASE),
    "lease_sql.COUNT_ROOM_OF_ITEMS": text(lease_sql.COUNT_ROOM_OF_ITEMS),
    **{
        f"lease_sql.NEW_HIT_CONDITIONS {place}": text(f"SELECT 1 WHERE {condition}")
        for place, (_, condition) in enumerate(lease_sql.NEW_HIT_CONDITIONS)
    },
    "tokens.FIND_TOKEN": tokens.FIND_TOKEN,
    "tokens.NOTE_TOKEN_USE": tokens.NOTE_TOKEN_USE,
}
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

# What came in since a watermark is found by transaction; the end of it, for the campaign's last transaction.
WATERMARK = "responses_changes_idx"
# The end of it, for the campaign's last response.
ONE_ROW = "responses_pkey"
# What people said besides their answers: who flags something looks who else did, and nobody else.
REMARKED = "responses_remarks_idx"
# What is left to ask of a campaign, once there is nothing to draw.
WHOLE_CAMPAIGN_AT_TIMES = {
    "campaign.FIND_SETTINGS_IF_COMPLETE",
    "leases.SELECT_OPEN_ITEMS",
}
STANDINGS = [
    "assignment_sql.SELECT_ASSIGNMENTS",
    "assignment_sql.SELECT_EXTENDED_ASSIGNMENTS",
    "assignment_sql.SELECT_CHANGES",
    "assignment_sql.SELECT_EXTENDED_CHANGES",
    "answer_leases.LOCK_ANSWERS_AND_SELECT_ASSIGNMENTS",
]
# What all open HITs hold is read for some draws, once a second where they are many.
WANT_ALL_OPEN = {"leases.SELECT_ANY_OPEN_HIT", "iteration_schedule.SELECT_ITEMS_OF_OPEN_HITS", *STANDINGS}
WHERE_FEW_ARE_OPEN = {
    "lease_sql.COUNT_ROOM_OF_ITEMS",
    "lease_sql.RENEW_LEASE",
    "submission.SELECT_IF_LATE_ANSWER_FITS",
}
ALL_OPEN = "hits_open_idx"
HELD = "hits_held_idx"
WITH_CLOSED_OUT = {HELD: "items", "hits_one_open_idx": "assignment_id"}
# How often these look for the open HITs of an assignment: for its own, and for those of the annotator's other visits.
OPEN_HITS_OF_ASSIGNMENT = {
    "assignment_sql.SELECT_ASSIGNMENTS": 2,
    "assignment_sql.SELECT_EXTENDED_ASSIGNMENTS": 2,
    "answer_leases.LOCK_ANSWERS_AND_SELECT_ASSIGNMENTS": 2,
    "lease_sql.INSERT_LEASE": 1,
}
WITHOUT_CAMPAIGN = {"program_annotators.SELECT_PROGRAM_HIT"}  # a program answers a HIT by its number alone

# PostgreSQL takes a table of less than 10 pages for one of 10, in which it matters little how rows are found. So it may
# find a row by its id alone, but no plan may go through a campaign: it is used until statistics are collected.
BY_ID = "hits_id_idx"
GROWN = text("""
    INSERT INTO hits OVERRIDING SYSTEM VALUE SELECT another.* FROM hits, generate_series(1, 2000) AS n,
        jsonb_populate_record(hits, jsonb_build_object('id', hits.id + n, 'closed_at', now())) AS another
""")
ANNOTATORS_GROWN = text("""
    INSERT INTO annotators OVERRIDING SYSTEM VALUE SELECT another.* FROM annotators, generate_series(1, 2000) AS n,
        jsonb_populate_record(annotators, jsonb_build_object(
            'id', annotators.id + n, 'worker_id', 'w' || n, 'pseudonym', 'p' || n)) AS another
""")


@pytest_asyncio.fixture
async def hits_and_annotators_have_pages(engine):
    """As on a server on which people have worked."""
    campaign = await create_running_campaign(engine)
    await try_to_lease_hit(engine, await create_annotator(engine, campaign))
    async with engine.begin() as connection:
        await connection.execute(GROWN)
        await connection.execute(ANNOTATORS_GROWN)


@dataclass
class PlanNode:
    """A step of the plan of a statement."""

    statement: str
    kind: str
    index: str
    condition: str


def plan_nodes(statement: str, plan: dict[str, Any]) -> Iterator[PlanNode]:
    yield PlanNode(statement, plan["Node Type"], plan.get("Index Name", ""), plan.get("Index Cond", ""))
    for child in plan.get("Plans", ()):
        yield from plan_nodes(statement, child)


async def plan_of(driver: Any, name: str) -> list[PlanNode]:
    """Return the steps of PostgreSQL's plan of a statement, made without knowing its parameters."""
    sql = str(STATEMENTS[name].compile(dialect=dialect()))
    nulls = ", ".join(["NULL"] * max(map(int, re.findall(r"\$(\d+)", sql)), default=0))
    await driver.execute(f"PREPARE ours AS {sql}")
    ((plan,),) = await driver.fetch(f"EXPLAIN (FORMAT JSON) EXECUTE ours {f'({nulls})' if nulls else ''}")
    await driver.execute("DEALLOCATE ours")
    return list(plan_nodes(name, plan[0]["Plan"]))


@pytest_asyncio.fixture
async def plans(engine, hits_and_annotators_have_pages) -> dict[str, list[PlanNode]]:
    """The plan of every statement, by its name."""
    return await plan_by_statement(engine)


async def plan_by_statement(engine: AsyncEngine) -> dict[str, list[PlanNode]]:
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        return {name: await plan_of(driver, name) for name in sorted(STATEMENTS)}


def nodes_of(plans: dict[str, list[PlanNode]], *, but: Collection[str] = ()) -> list[PlanNode]:
    return [node for name, nodes in plans.items() if name not in but for node in nodes]


async def test_the_serving_path_finds_rows_by_indexes_that_lead_with_the_campaign(plans, subtests):
    with subtests.test("no statement goes through a whole table"):
        whole = {"Seq Scan", "Hash Join", "Merge Join"}
        assert [node for node in nodes_of(plans, but=WHOLE_CAMPAIGN) if node.kind in whole] == []
    with subtests.test("every statement names its campaign"):
        hot = [node for node in nodes_of(plans, but=WITHOUT_CAMPAIGN) if node.index.startswith(HOT)]
        assert [node for node in hot if "campaign_id" not in node.condition] == []
    with subtests.test("posteriors are found by their subject"):
        posteriors = [
            node
            for node in nodes_of(plans, but=WITHOUT_CAMPAIGN | WHOLE_CAMPAIGN_AT_TIMES)
            if node.index == "posteriors_pkey"
        ]
        assert [node for node in posteriors if "subject" not in node.condition] == []


async def test_rows_are_found_by_more_than_their_campaign(plans, subtests):
    nodes = nodes_of(plans, but=WHOLE_CAMPAIGN | WHOLE_CAMPAIGN_AT_TIMES)
    hot = [node for node in nodes if node.index.startswith(HOT) and node.statement not in WITHOUT_CAMPAIGN]
    with subtests.test("by two columns at least"):
        narrow = [node for node in hot if node.index not in (WATERMARK, ONE_ROW, REMARKED)]
        assert [node for node in narrow if " AND " not in node.condition] == []
    with subtests.test("items by their number"):
        assert [node for node in nodes if node.index.startswith("items") and "number" not in node.condition] == []


async def test_plans_made_on_a_new_server_go_through_no_campaign_and_no_earlier_hits_of_an_annotator(engine, subtests):
    plans = await plan_by_statement(engine)
    nodes = nodes_of(plans, but=WHOLE_CAMPAIGN | WHOLE_CAMPAIGN_AT_TIMES)
    with subtests.test("rows are found by more than their campaign"):
        hot = [node for node in nodes if node.index.startswith(HOT)]
        narrow = [node for node in hot if node.index not in (WATERMARK, ONE_ROW, REMARKED, BY_ID)]
        assert [node for node in narrow if " AND " not in node.condition] == []
    with subtests.test("the open HITs of an assignment are found without its answered ones"):
        used = {name: Counter(node.index for node in plans[name]) for name in OPEN_HITS_OF_ASSIGNMENT}
        found = {name: indexes["hits_one_open_idx"] for name, indexes in used.items()}
        assert found == OPEN_HITS_OF_ASSIGNMENT


async def test_who_holds_an_item_is_found_by_the_item_and_open_hits_are_read_by_few(plans, subtests):
    with subtests.test("the holders of an item"):
        indexes = {name: {node.index for node in plans[name]} for name in WHERE_FEW_ARE_OPEN}
        assert [name for name, used in indexes.items() if HELD not in used] == []
    with subtests.test("all open HITs"):
        nodes = nodes_of(plans, but=WANT_ALL_OPEN | WHERE_FEW_ARE_OPEN)
        assert [node for node in nodes if node.index == ALL_OPEN] == []
    with subtests.test("closed HITs are left out"):
        nodes = [node for node in nodes_of(plans) if node.index in WITH_CLOSED_OUT]
        assert [node for node in nodes if WITH_CLOSED_OUT[node.index] not in node.condition] == []


async def test_changes_are_found_by_transaction_not_among_all_responses_of_the_campaign(plans):
    polled = ["changes.FIND_POSTERIOR_CHANGES", "changes.POLL_CHANGES", *STANDINGS]
    indexes = {name: {node.index for node in plans[name]} for name in polled}
    assert [name for name, used in indexes.items() if WATERMARK not in used or "responses_pkey" in used] == []
