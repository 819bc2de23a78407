"""Secrets and caches that all processes of one installation share."""

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.main import create_app, create_server_app, load_operator_or_installation_key
from app.settings import Settings
from tests.conftest import http_client

ROOT = Path(__file__).resolve().parents[1]


async def test_processes_share_a_key_that_the_first_of_them_made(engine):
    first, second = [await load_operator_or_installation_key(engine, Settings()) for _ in range(2)]
    assert first == second
    assert len(first) == 64


async def test_the_operators_key_is_used_as_it_is(engine):
    assert await load_operator_or_installation_key(engine, Settings(secret_key=SecretStr("k" * 32))) == "k" * 32


async def test_the_processes_of_a_server_draw_from_different_seeds(database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    seeds = []
    for app in (create_server_app(), create_server_app()):
        async with app.router.lifespan_context(app):
            seeds.append(app.state.posterior_cache.draw_seed)
    assert len({*seeds}) == 2


async def test_a_process_opens_as_many_connections_as_the_documentation_says(app):
    state = app.state
    engines = (state.database, state.serving_database, state.reading_database)
    more = sum(engine.pool.size() for engine in engines) - state.settings.pool_size
    operators = (ROOT / "docs/operators/scaling.md").read_text()
    assert re.findall(r"half of them reserved for annotators, plus (\d+):", operators) == [str(more)]
    assert f"Each process opens {more} more." in (Settings.model_fields["pool_size"].description or "")


@pytest.mark.parametrize(
    ("public_url", "told"),
    [("https://scale.example.org", "max-age=31536000"), ("http://scale.example.org", None), (None, None)],
)
async def test_browsers_remember_that_a_server_is_reached_by_https(database_url, public_url, told):
    app = create_app(Settings(database_url=database_url, public_url=public_url))
    async with app.router.lifespan_context(app), http_client(app) as client:
        for path in ("/login", "/static/easel.css", "/health", "/nothing"):
            assert (await client.get(path)).headers.get("strict-transport-security") == told
