"""Liveness at `/health` and readiness at `/ready`."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack, suppress

import httpx
import pytest
from pydantic import SecretStr

from app.background.health import CheckResult
from app.background.readiness import ReadinessChecks
from app.main import create_app
from app.settings import Settings
from tests.annotation.hits.campaigns import execute_sql
from tests.conftest import http_client
from tests.database.test_embedded import wait_until
from tests.servers import PATIENT_SECONDS, easel_serving
from tests.test_server import workers_of


async def test_a_process_whose_database_is_away_lives_but_is_not_ready():
    app = create_app(Settings(database_url="postgresql://nobody@127.0.0.1:9/none", secret_key=SecretStr("k" * 32)))
    async with app.router.lifespan_context(app), http_client(app) as client:
        assert (await client.get("/health")).status_code == 200
        reply = await client.get("/ready")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")
    assert reply.json()["status"] == "not_ready"
    assert reply.json()["checks"]["database"]["ok"] is False
    assert reply.json()["error"]["code"] == "not_ready"
    assert "database" in reply.json()["error"]["message"]


async def test_a_process_with_a_database_is_ready(client):
    reply = await client.get("/ready")
    assert reply.status_code == 200
    assert reply.json()["status"] == "ready"
    assert reply.json()["checks"]["database"]["ok"] is True


@pytest.mark.own_database
async def test_a_process_whose_schema_another_version_has_changed_is_not_ready(client, engine):
    assert (await client.get("/ready")).status_code == 200
    await execute_sql(engine, "UPDATE alembic_version SET version_num = '9999_from_the_future'")
    reply = await client.get("/ready")
    assert reply.status_code == 503
    assert "9999_from_the_future" in reply.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_is_told_to_stop_is_not_ready_but_still_answers(demo_data, workers):
    with easel_serving(demo_data, "--workers", workers, EASEL_DRAIN_SECONDS="120") as server:

        def status_of(path: str) -> int:
            return httpx.get(server.base + path, timeout=PATIENT_SECONDS, verify=False).status_code

        assert status_of("/ready") == 200
        for process in (server.process.pid, *workers_of(server.process.pid)):  # as systemd and a terminal do
            os.kill(process, signal.SIGTERM)
        wait_until(lambda: status_of("/ready") == 503, PATIENT_SECONDS)
        assert status_of("/health") == 200
        children = workers_of(server.process.pid)

        def ends_after_another_signal() -> bool:
            for process in (server.process.pid, *children):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
            return server.process.poll() is not None

        wait_until(ends_after_another_signal, 60)


async def test_a_process_without_a_free_serving_connection_is_not_ready(app, client):
    """Annotators would get nothing either, so the check must not have a way of its own to the database."""
    connections = app.state.serving_connections
    async with AsyncExitStack() as taken:
        for campaign in range(app.state.serving_database.pool.size()):
            await taken.enter_async_context(connections.borrow_autocommit_connection(campaign))
        reply = await client.get("/ready")
        assert reply.status_code == 503
        assert "within" in reply.json()["error"]["message"]
    assert (await client.get("/ready")).status_code == 200


async def test_ready_reports_what_other_parts_registered(app, client):
    async def stopped():
        return CheckResult(ok=False, detail="The loop ended.")

    app.state.readiness.register_check("shown only", stopped, is_required=False)
    reply = await client.get("/ready")
    assert reply.status_code == 200
    assert reply.json()["checks"]["shown only"] == {"ok": False, "detail": "The loop ended."}
    app.state.readiness.register_check("needed", stopped)
    reply = await client.get("/ready")
    assert reply.status_code == 503
    assert reply.json()["error"] == {
        "code": "not_ready",
        "message": "needed: The loop ended.",
        "details": {"failed": ["needed"]},
    }


async def test_a_check_that_breaks_or_hangs_fails_alone():
    never = asyncio.Event()

    async def hangs():
        await never.wait()
        return CheckResult(ok=True)

    async def breaks():
        raise ValueError("secret")

    async def works():
        return CheckResult(ok=True)

    readiness = ReadinessChecks(seconds=0.05)
    for name, check in (("hangs", hangs), ("breaks", breaks), ("works", works)):
        readiness.register_check(name, check)
    for _ in range(2):
        results = await readiness.run_and_return_result_by_check()
        assert readiness.names_of_failed_required_checks(results) == ["hangs", "breaks"]
        assert "secret" not in results["breaks"].detail
    never.set()
    await asyncio.sleep(0)
    assert readiness.names_of_failed_required_checks(await readiness.run_and_return_result_by_check()) == ["breaks"]
    await readiness.stop()
