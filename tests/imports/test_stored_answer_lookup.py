"""Answers of a file that are stored already are found by their ids, whatever these are and however many are stored."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest

from app.database.bulk import array_text_of_texts
from app.database.session import sql_and_parameter_names_of_statement
from app.errors import Conflict
from app.imports.imported_hits import IDS_PER_LOOKUP
from app.imports.imported_hits_store import FIND_ANSWERS_BY_ASSIGNMENT
from tests.annotation.hits.campaigns import execute_sql, fetch_value
from tests.campaigns.drafts import create_launched_campaign, import_results

MTURK = ["AssignmentId", "WorkerId", "Input.id1", "Input.id2", "Answer.range1", "Answer.range2"]
# So many that a plan which reads all of them is worse than one that looks each id up, whatever PostgreSQL expects.
GROW_ASSIGNMENTS = """
    INSERT INTO assignments (campaign_id, annotator_id, external_id, arrival, arrived_at)
    SELECT campaign_id, id, 'C' || id || '-' || n, '{}', now() FROM annotators, generate_series(1, 200) AS n
"""
ODD_IDS = ['a"b', "a\\b", "{a,b}", "NULL", " a b ", '\\"', "a'b", "ä", "a,b"]


def table(*rows: list[str]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def results_of_mturk(ids: list[str], workers: list[str]) -> str:
    return table(MTURK, *([one, other, "v0", "v1", "70", "30"] for one, other in zip(ids, workers, strict=True)))


def results_in_rows(ids: list[str], workers: list[str]) -> str:
    rows = [
        [one, other, item, value]
        for one, other in zip(ids, workers, strict=True)
        for item, value in (("v0", "70"), ("v1", "30"))
    ]
    return table(["hit", "annotator", "item", "value"], *rows)


@pytest.mark.parametrize("results", [results_of_mturk, results_in_rows])
async def test_no_character_of_an_id_hides_that_its_answer_is_stored(engine, results):
    campaign = await create_launched_campaign(engine)
    file = results(ODD_IDS, ODD_IDS[::-1])
    await import_results(engine, campaign, file)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == len(ODD_IDS)
    with pytest.raises(Conflict) as problem:
        await import_results(engine, campaign, file)
    assert problem.value.code == "assignment_known"
    grown = results([*ODD_IDS, "new"], [*ODD_IDS[::-1], "new"])
    assert (await import_results(engine, campaign, grown)).responses == 1


def rows_of_relation(plan: dict[str, Any], relation: str) -> Iterator[float]:
    """Yield how many rows each step of a plan read from a table, those that it left out included."""
    if plan.get("Relation Name") == relation:
        yield (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    for child in plan.get("Plans", ()):
        yield from rows_of_relation(child, relation)


@pytest.mark.own_database  # plans depend on statistics, and on what other tests leave in the tables
async def test_a_lookup_reads_the_assignments_and_annotators_that_it_asks_for_and_no_others(engine):
    campaign = await create_launched_campaign(engine)
    ids = [f"A{k}" for k in range(100)]
    await import_results(engine, campaign, results_of_mturk(ids, [f"W{k}" for k in range(100)]))
    await execute_sql(engine, GROW_ASSIGNMENTS)
    asked_ids = [*ids[:50], *(f"B{k}" for k in range(IDS_PER_LOOKUP - 50))]
    asked = {"workers": array_text_of_texts(["W1"] * IDS_PER_LOOKUP), "ids": array_text_of_texts(asked_ids)}
    sql, names = sql_and_parameter_names_of_statement(FIND_ANSWERS_BY_ASSIGNMENT)
    values = asked | {"campaign": campaign.id, "platform": "mturk"}
    arguments = [values[name] for name in names]
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        ((plan,),) = await driver.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *arguments)
        found = await driver.fetch(sql, *arguments)
    assert [row["id"] for row in found] == ["A1"]
    assert sum(rows_of_relation(plan[0]["Plan"], "assignments")) == 50
    assert sum(rows_of_relation(plan[0]["Plan"], "annotators")) == 50
