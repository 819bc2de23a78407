"""A server of this version on a database of the last release."""

import asyncio

import httpx
import pytest
from click.testing import CliRunner

from app.cli.commands import easel as command
from tests.annotation.hits.campaigns import fetch_rows
from tests.database.test_migrations import LAST_OF_0_1, restore
from tests.servers import PATIENT_SECONDS, easel_serving

pytestmark = [pytest.mark.slow, pytest.mark.own_database]


async def test_a_database_of_the_last_release_with_answers_of_every_law_starts_and_verifies(
    engine, database_url, tmp_path, monkeypatch
):
    await restore(engine, LAST_OF_0_1)
    answered = await fetch_rows(
        engine,
        "SELECT slug, update_law FROM campaigns c WHERE status <> 'draft' "
        "AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = c.id) ORDER BY slug",
    )
    assert len({law for _, law in answered}) == 6
    await engine.dispose()
    monkeypatch.setenv("DATABASE_URL", database_url)
    with easel_serving(tmp_path, DATABASE_URL=database_url) as server:
        reply = await asyncio.to_thread(httpx.get, f"{server.base}/ready", timeout=PATIENT_SECONDS)
        assert reply.json()["status"] == "ready"
        for slug, _ in answered:
            verified = await asyncio.to_thread(CliRunner().invoke, command, ["verify", slug])
            assert verified.exit_code == 0, verified.output
            assert "are the same" in verified.output
