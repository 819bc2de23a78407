"""Easel behind a pooler that lends a session for one transaction, such as PgBouncer: nothing may stay in a session.

The tests of other modules that are named below run through such a pooler as well.
"""

import pytest
import pytest_asyncio
from sqlalchemy import text

from app.database.server_database import load_database_state_or_raise
from app.database.session import (
    LOCK_TIMEOUT_SECONDS,
    PAGE_LIMITS,
    SERVING_LIMITS,
    create_engine,
    create_engine_without_limits,
)
from app.errors import StartupProblem
from tests.annotation.hits.test_concurrency import (  # noqa: F401
    test_32_clients_finish_a_campaign_with_every_wanted_judgment_once,
)
from tests.api.conftest import api_client  # noqa: F401
from tests.api.test_api import (  # noqa: F401
    test_a_whole_campaign_over_the_api,
    test_answers_of_any_design_become_responses_and_an_export_of_them_counts_nothing_twice,
)
from tests.imports.test_item_changes import test_goals_new_revisions_and_reopening_keep_it_retired  # noqa: F401
from tests.privacy.test_retention import (  # noqa: F401
    test_more_rows_than_a_batch_are_all_erased_and_counted,
    test_two_processes_at_once_delete_and_log_once,
)
from tests.proxies import TransactionPooler
from tests.record.test_revisions import decide, test_two_processes_that_revise_at_once_take_turns  # noqa: F401
from tests.record.test_revisions_under_load import exclude_under_load, roomy  # noqa: F401

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def direct_url(emptied_database):
    return await emptied_database()


@pytest_asyncio.fixture
async def database_url(direct_url):
    """The test's database behind a pooler."""
    async with TransactionPooler(direct_url) as pooler:
        yield pooler.url


@pytest.mark.parametrize(("law", "excluded", "most"), [("easl", 2, 120), ("easl-aware", 1, 120)])
async def test_exclusions_under_load_are_as_without_a_pooler(roomy, law, excluded, most):  # noqa: F811
    await exclude_under_load(roomy, law, excluded=excluded, most=most, decide=decide)


async def test_a_pooler_that_is_set_up_is_accepted(database_url):
    assert (await load_database_state_or_raise(database_url)).has_tables


@pytest.mark.parametrize(
    ("make_engine", "settings"),
    [
        (
            lambda url: create_engine(
                url, pool_size=1, lock_seconds=LOCK_TIMEOUT_SECONDS, limits=SERVING_LIMITS
            ),
            {"lock_timeout": "5s", "idle_in_transaction_session_timeout": "15s", "enable_seqscan": "off"},
        ),
        (
            lambda url: create_engine(url, pool_size=1, limits=PAGE_LIMITS),
            {"lock_timeout": "0", "idle_in_transaction_session_timeout": "10min", "enable_seqscan": "off"},
        ),
        (
            create_engine_without_limits,
            {"lock_timeout": "0", "idle_in_transaction_session_timeout": "0", "enable_seqscan": "on"},
        ),
    ],
)  # fmt: skip
async def test_each_transaction_has_the_settings_of_its_engine(database_url, make_engine, settings):
    engine = make_engine(database_url)
    async with engine.connect() as connection:
        assert {name: await connection.scalar(text(f"SHOW {name}")) for name in settings} == settings
    await engine.dispose()


@pytest.mark.parametrize(
    ("setup", "changed_url", "advice"),
    [
        ({"sessions": 1}, ("&pool_mode=transaction", ""), "Add pool_mode=transaction to DATABASE_URL"),
        ({"settings": {}}, ("", ""), "lack the settings jit, plan_cache_mode, .* connect_query='SET jit = off; "),
        ({"keeps_statements": False}, ("", ""), "max_prepared_statements above 0"),
    ],
)
async def test_a_pooler_that_is_not_set_up_is_refused_with_advice(direct_url, setup, changed_url, advice):
    async with TransactionPooler(direct_url, **setup) as pooler:
        with pytest.raises(StartupProblem, match=advice):
            await load_database_state_or_raise(pooler.url.replace(*changed_url))
