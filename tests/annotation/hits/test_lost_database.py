"""Annotators and researchers while connections to the database are lost without a word."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from app import main
from app.database.connections import TimeLimits
from app.main import create_app
from app.settings import Settings
from tests.annotation.hits.campaigns import create_running_campaign
from tests.conftest import http_client
from tests.proxies import Proxy

PATIENCE = 60  # seconds in which anything that ends at all has ended
AT_ONCE = 12  # requests, which are more than connections


@asynccontextmanager
async def served_through_a_proxy(database_url, monkeypatch):
    short = TimeLimits(statement=1, ping=1, connect=1, acquire=5)
    monkeypatch.setattr(main, "SERVING_LIMITS", short, raising=False)
    monkeypatch.setattr(main, "PAGE_LIMITS", short, raising=False)
    async with Proxy(database_url) as proxy:
        app = create_app(Settings(database_url=proxy.url, secret_key=SecretStr("k" * 32)))
        async with asyncio.timeout(PATIENCE), app.router.lifespan_context(app), http_client(app) as client:
            yield proxy, client


async def codes(client, address):
    replies = await asyncio.gather(*(client.get(address) for _ in range(AT_ONCE)))
    return {reply.status_code for reply in replies}


async def served_to_all(client, address):
    """On a busy machine the short limits let requests fail also while the database answers."""
    while await codes(client, address) != {200}:
        pass


async def test_annotators_go_on_after_all_connections_fell_silent(engine, database_url, monkeypatch):
    campaign = await create_running_campaign(engine)
    async with served_through_a_proxy(database_url, monkeypatch) as (proxy, client):
        await served_to_all(client, f"/link/{campaign.link_key}")
        proxy.silence()
        assert await codes(client, f"/link/{campaign.link_key}") <= {200, 503}
        await served_to_all(client, f"/link/{campaign.link_key}")
        await served_to_all(client, "/ready")


async def test_a_silent_database_is_a_503_for_everybody_until_it_speaks_again(engine, database_url, monkeypatch):
    campaign = await create_running_campaign(engine)
    token = {"name": "admin", "password": "none"}
    async with served_through_a_proxy(database_url, monkeypatch) as (proxy, client):
        await served_to_all(client, f"/link/{campaign.link_key}")
        proxy.silence()
        proxy.silent = True
        for _ in range(2):
            assert await codes(client, f"/link/{campaign.link_key}") == {503}
        assert (await client.post("/api/v1/tokens", json=token)).status_code == 503
        assert (await client.get("/health")).status_code == 200
        reply = await client.get("/ready")
        assert reply.status_code == 503
        assert reply.json()["error"]["message"].startswith("database: ")
        proxy.silent = False
        await served_to_all(client, f"/link/{campaign.link_key}")
        await served_to_all(client, "/ready")
        while (await client.post("/api/v1/tokens", json=token)).status_code != 401:
            pass


@pytest.mark.parametrize("at_once", [1, AT_ONCE])
async def test_a_server_stops_while_its_connections_are_silent(engine, database_url, monkeypatch, at_once):
    campaign = await create_running_campaign(engine)
    async with served_through_a_proxy(database_url, monkeypatch) as (proxy, client):
        await asyncio.gather(*(client.get(f"/link/{campaign.link_key}") for _ in range(at_once)))
        proxy.silence()
        proxy.silent = True
