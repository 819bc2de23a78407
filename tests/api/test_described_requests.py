"""No request that the API's description allows, and none that it forbids, is an error of the server."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

from app.accounts.tokens import issue_token_or_refuse
from app.accounts.users import find_oldest_user_or_create_admin
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.servers import ENVIRONMENT, serving

pytestmark = pytest.mark.slow

REQUESTS_PER_CALL = 4  # of each mode
MODES = {"allowed": GenerationMode.POSITIVE, "forbidden": GenerationMode.NEGATIVE}
# Known values, so that requests reach what is behind the first refusal.
KNOWN_PARAMETERS = {"slug": "verbs", "annotator": "A1", "hit_id": "1", "answer": "1", "person": "1"}


@pytest.fixture
def server_address(database_url: str, tmp_path: Path) -> Iterator[str]:
    with serving(ENVIRONMENT | {"DATABASE_URL": database_url}, tmp_path / "said") as (_, address):
        yield address


async def create_campaign_and_token(engine) -> str:
    campaign = await create_running_campaign(engine, name="Verbs")
    annotator = await create_annotator(engine, campaign)
    await submit_scores(engine, annotator, await try_to_lease_hit(engine, annotator))
    now = datetime.now(UTC)
    async with engine.begin() as connection:
        owner = await find_oldest_user_or_create_admin(connection, now=now)
        return await issue_token_or_refuse(connection, owner.id, "fuzz", now=now)


async def test_no_request_by_the_description_is_an_error_of_the_server(engine, server_address, subtests):
    headers = {"Authorization": f"Bearer {await create_campaign_and_token(engine)}"}
    description = schemathesis.openapi.from_url(f"{server_address}/api/v1/openapi.json")
    for result in description.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        named = {parameter.name for parameter in operation.path_parameters}
        known = {name: value for name, value in KNOWN_PARAMETERS.items() if name in named}
        for kind, mode in MODES.items():

            @settings(
                max_examples=REQUESTS_PER_CALL,
                phases=[Phase.generate],
                suppress_health_check=[*HealthCheck],
            )
            @given(case=operation.as_strategy(mode, path_parameters=known or None))
            def send(case):
                reply = case.call(headers=headers, timeout=60)
                assert reply.status_code < 500, (case.as_curl_command(), reply.text[:500])

            with subtests.test(method=operation.method, path=operation.path, kind=kind):
                send()
