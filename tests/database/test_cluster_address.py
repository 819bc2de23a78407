"""Tests of other modules at an address that names a cluster. Easel sends the statements for Citus, which work on
PostgreSQL, too.
"""

# ruff: noqa: F401 (tests and fixtures are imported, and asked for by name)

import pytest_asyncio
from sqlalchemy import make_url

from tests.alerts.test_outbox import (
    test_each_silence_of_a_running_campaign_is_one_alert,
    test_silence_counts_from_the_resumption,
)
from tests.api.conftest import api_client
from tests.api.test_api import test_campaigns_are_listed_newest_first
from tests.api.test_campaigns_side_by_side import test_two_campaigns_annotated_at_once_share_nothing
from tests.server_calls.conftest import calls_without_tls_are_allowed, no_calls_of_the_application, platform
from tests.server_calls.test_call_work import (
    test_a_burst_is_called_for_in_one_turn_four_at_a_time,
    test_a_call_that_has_to_wait_is_not_made_before,
    test_after_a_completion_no_call_of_another_outcome_is_made,
    test_two_processes_make_one_call,
)


@pytest_asyncio.fixture
async def database_url(database_url):
    return make_url(database_url).update_query_dict({"cluster": "citus"}).render_as_string(hide_password=False)
