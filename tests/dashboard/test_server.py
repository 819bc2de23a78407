"""The stream from a real server in a process of its own."""

import asyncio
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from app.auth import login
from app.auth.guards import COOKIE
from app.auth.users import first_user
from tests.serving.campaigns import annotator, hit_of, running, submit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def process(database_url):
    """A server and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--factory", "app.main:create_app", "--port", str(port)]
    environment = os.environ | {"DATABASE_URL": database_url}
    with subprocess.Popen([*command, "--log-level", "warning"], cwd=ROOT, env=environment) as process:
        yield process, f"http://127.0.0.1:{port}"
        process.kill()


@pytest.fixture
async def server(process):
    """The same, once it answers."""
    async with httpx.AsyncClient(base_url=process[1]) as client, asyncio.timeout(30):
        while True:
            try:
                (await client.get("/health")).raise_for_status()
            except httpx.TransportError:
                await asyncio.sleep(0.05)
            else:
                return process


async def test_a_server_that_is_told_to_stop_ends_its_streams_and_stops(engine, server):
    process, address = server
    campaign = await running(engine)
    now = datetime.now(UTC)
    async with engine.begin() as connection:
        cookie = await login.log_in(connection, (await first_user(connection, now=now)).id, now=now, hours=1)
    url = f"{address}/admin/campaigns/{campaign.slug}/events"
    async with httpx.AsyncClient(cookies={COOKIE: cookie}, timeout=10) as client, client.stream("GET", url) as reply:
        lines = reply.aiter_lines()
        while not (await anext(lines)).startswith("data: "):
            pass
        me = await annotator(engine, campaign)
        await submit(engine, me, await hit_of(engine, me))
        async with asyncio.timeout(3):
            while '"hits":"1 HIT"' not in (await anext(lines)):
                pass
        process.terminate()
        async with asyncio.timeout(5):
            assert [line async for line in lines if line.startswith("data: ")] == []
    await asyncio.to_thread(process.wait, 10)
