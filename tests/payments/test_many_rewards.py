"""Rewards of many new submissions are written quickly, also where PostgreSQL has no statistics yet."""

import pytest
from sqlalchemy import text

from app.payments.rewards import LOCK_ANNOTATORS_OF_SUBMISSIONS
from tests.annotation.hits.campaigns import execute_sql, fetch_value
from tests.payments.studies import create_study

MORE_PEOPLE = """
    INSERT INTO annotators OVERRIDING SYSTEM VALUE SELECT another.* FROM annotators a, generate_series(1, 400) AS n,
        jsonb_populate_record(a, jsonb_build_object('id', a.id + n, 'worker_id', n, 'pseudonym', n)) AS another
"""
MORE_SUBMISSIONS = """
    INSERT INTO submissions SELECT another.* FROM submissions u, generate_series(1, 400) AS n,
        jsonb_populate_record(u, jsonb_build_object('annotator_id', annotator_id + n, 'external_id', n)) AS another
"""


@pytest.mark.own_database  # whose tables nobody has analysed before
async def test_without_statistics_too_the_work_grows_no_faster_than_the_submissions(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    await study.work_again(minutes=10)
    for statement in (MORE_PEOPLE, MORE_SUBMISSIONS):
        await execute_sql(engine, statement)
    async with engine.begin() as connection:
        explained = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {LOCK_ANNOTATORS_OF_SUBMISSIONS.text}")
        (plan,) = await connection.scalar(explained, {"campaign": study.campaign.id})
    assert count_rows_of_plan(plan["Plan"]) < 10 * 400


@pytest.mark.own_database
async def test_many_new_submissions_get_statistics_before_their_rewards_are_written(engine, prolific):
    study = await create_study(engine, prolific, people=1)
    for number in range(2, 202):
        prolific.add(f"s{number}", person=f"p{number}")
    await execute_sql(engine, "ANALYZE submissions, payments")
    await study.work_again(minutes=10)
    assert await fetch_value(engine, "SELECT reltuples FROM pg_class WHERE oid = 'submissions'::regclass") == 201


def count_rows_of_plan(node):
    """Return how many rows the nodes of a plan returned or left out, in all loops."""
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
    return own * node["Actual Loops"] + sum(count_rows_of_plan(child) for child in node.get("Plans", ()))
