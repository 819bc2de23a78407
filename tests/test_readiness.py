"""Liveness at `/health` and readiness at `/ready`."""

import asyncio
from contextlib import AsyncExitStack

from pydantic import SecretStr

from app.background.health import CheckResult
from app.background.readiness import ReadinessChecks
from app.main import create_app
from app.settings import Settings
from tests.conftest import http_client


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

    app.state.readiness.register_check("shown only", stopped, required=False)
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
        assert readiness.failed_required_checks(results) == ["hangs", "breaks"]
        assert "secret" not in results["breaks"].detail
    never.set()
    await asyncio.sleep(0)
    assert readiness.failed_required_checks(await readiness.run_and_return_result_by_check()) == ["breaks"]
    await readiness.stop()
