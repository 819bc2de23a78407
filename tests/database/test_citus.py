"""Tests of other modules on a Citus cluster. They run if EASEL_CITUS_URL names a database on its coordinator.

They replace the schema `easel_trial` there before each test.
"""

# ruff: noqa: F401 (tests and fixtures are imported, and asked for by name)

import asyncio
import os
import secrets

import pytest
import pytest_asyncio
from click.testing import CliRunner
from sqlalchemy import make_url, text

from app.cli.commands import easel
from app.database.cluster import distribute_tables
from app.database.migrate import upgrade_schema
from app.database.session import create_engine, create_engine_without_limits
from app.text.postgres_address import parse_postgres_address
from tests.api.conftest import api_client
from tests.api.test_api import (
    test_a_whole_campaign_over_the_api,
    test_answers_of_any_design_become_responses_and_an_export_of_them_counts_nothing_twice,
)
from tests.api.test_campaigns_side_by_side import test_two_campaigns_annotated_at_once_share_nothing
from tests.chaos.run import Plan, run_chaos
from tests.record.test_news import test_each_answer_is_found_once_in_whatever_order_transactions_end
from tests.record.test_revisions import test_two_processes_that_revise_at_once_take_turns
from tests.record.test_revisions_under_load import (
    roomy,
    test_exclusions_under_load_lose_no_answer_and_leave_every_bit_as_a_replay_has_it,
)

ADDRESS = os.environ.get("EASEL_CITUS_URL", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not ADDRESS, reason="EASEL_CITUS_URL names no Citus cluster; PostgreSQL is tested without it"),
]
MIN_ACKNOWLEDGED = 20
# A test that failed may have left some.
END_SESSIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'easel'
"""


@pytest_asyncio.fixture
async def migrated_url():
    """An address of the cluster, whose database has Easel's tables, on the coordinator alone."""
    parameters = {"cluster": "citus", "options": "-c search_path=easel_trial"}
    address = make_url(parse_postgres_address(ADDRESS).sqlalchemy_url_text()).update_query_dict(parameters)
    url = address.render_as_string(hide_password=False)
    engine = create_engine_without_limits(url)
    async with engine.begin() as connection:
        for statement in (END_SESSIONS, "DROP SCHEMA IF EXISTS easel_trial CASCADE", "CREATE SCHEMA easel_trial"):
            await connection.execute(text(statement))
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, url)
    return url


@pytest_asyncio.fixture
async def database_url(migrated_url):
    engine = create_engine(migrated_url, pool_size=1)
    async with engine.begin() as connection:
        await distribute_tables(connection)
    await engine.dispose()
    return migrated_url


def test_citus_refuses_no_statement_but_those_of_payments(migrated_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    result = CliRunner().invoke(easel, ["cluster", "distribute", "--dry-run"])
    assert result.exit_code == 0
    refused = result.output.partition("Refused by Citus: ")[2].partition("Campaigns on a cluster")[0]
    assert [line for line in refused.splitlines()[1:] if not line.startswith("  payments.")] == []


def test_a_database_is_distributed_once(migrated_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    first, second = (CliRunner().invoke(easel, ["cluster", "distribute"]) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "The tables are distributed. Add cluster=citus" in first.output
    assert "The tables are distributed already. Nothing was changed." in second.output


async def test_two_servers_lose_and_invent_no_answer_of_any_design(database_url):
    report = await run_chaos(Plan(60, secrets.randbelow(10**9), injects=False, database_url=database_url))
    print("\n".join(report.lines()))  # noqa: T201  (shown with a failure: the seed is in it)
    assert report.violations == []
    assert report.acknowledged >= MIN_ACKNOWLEDGED
