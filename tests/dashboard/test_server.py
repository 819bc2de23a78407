"""The stream from a real server in a process of its own."""

import asyncio
from datetime import UTC, datetime

import httpx
import pytest

from app.accounts import login
from app.accounts.secrets import load_or_create_installation_key, session_cookie_name
from app.accounts.users import find_oldest_user_or_create_admin
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.servers import PATIENT_SECONDS, easel_serving

pytestmark = pytest.mark.slow

PATIENT = PATIENT_SECONDS


@pytest.fixture
def server(database_url, tmp_path):
    """Run a server on an explicit database URL, without its own data."""
    with easel_serving(tmp_path / "none", DATABASE_URL=database_url) as server:
        yield server
    assert not (tmp_path / "none").exists()


async def test_a_server_that_is_told_to_stop_ends_its_streams_and_stops(engine, server):
    campaign = await create_running_campaign(engine)
    now = datetime.now(UTC)
    async with engine.begin() as connection:
        name = session_cookie_name(await load_or_create_installation_key(connection))
        cookie = await login.start_session_and_return_secret(
            connection, (await find_oldest_user_or_create_admin(connection, now=now)).id, now=now, hours=1
        )
    url = f"{server.base}/admin/campaigns/{campaign.slug}/events"
    async with (
        httpx.AsyncClient(cookies={name: cookie}, timeout=PATIENT) as client,
        client.stream("GET", url) as reply,
    ):
        lines = reply.aiter_lines()
        while not (await anext(lines)).startswith("data: "):
            pass
        me = await create_annotator(engine, campaign)
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
        async with asyncio.timeout(PATIENT):
            while '"hits":"1 task"' not in (await anext(lines)):
                pass
        server.process.terminate()
        async with asyncio.timeout(PATIENT):
            assert [line async for line in lines if line.startswith("data: ")] == []
    assert await asyncio.to_thread(server.process.wait, PATIENT) == 0
