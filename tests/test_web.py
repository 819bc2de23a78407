import asyncio
from contextlib import AsyncExitStack

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request

from app import web
from tests.serving.campaigns import running

PROGRAM = Request({"type": "http", "method": "POST", "path": "/api/v1/anything", "query_string": b"", "headers": []})


async def lock_two(engine, first, second, both_have_one):
    async with engine.begin() as connection:
        lock = text("SELECT 1 FROM posteriors WHERE number = :number FOR NO KEY UPDATE")
        await connection.execute(lock, {"number": first})
        await both_have_one.wait()
        await connection.execute(lock, {"number": second})


async def test_who_loses_a_deadlock_is_asked_to_try_again(engine):
    await running(engine)
    both_have_one = asyncio.Barrier(2)
    outcomes = await asyncio.gather(
        lock_two(engine, 0, 1, both_have_one), lock_two(engine, 1, 0, both_have_one), return_exceptions=True
    )
    (error,) = [outcome for outcome in outcomes if isinstance(outcome, DBAPIError)]
    response = web.on_database_error(PROGRAM, error)
    assert response.status_code == 503
    assert b"database_unavailable" in response.body


async def test_who_finds_no_free_connection_is_asked_to_try_again(app, client, monkeypatch):
    pool = app.state.database.pool
    monkeypatch.setattr(pool, "_timeout", 0.05)
    async with AsyncExitStack() as taken:
        for _ in range(pool.size()):
            await taken.enter_async_context(app.state.database.connect())
        reply = await client.get("/health", headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "database_unavailable")
