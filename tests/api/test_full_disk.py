"""`/ready` shows that the disk of the database is full, which it learns from refused writes."""

import asyncio
import logging

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from app.background.health import DATABASE_DISK, DatabaseDisk, log_background_failure
from tests.annotation.hits.campaigns import execute_sql
from tests.api.conftest import API

REFUSE_AS_A_FULL_DISK_DOES = """
    CREATE FUNCTION refuse_as_a_full_disk_does() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$
"""
REFUSE_NEW_CAMPAIGNS = """
    CREATE TRIGGER full_disk BEFORE INSERT ON campaigns EXECUTE FUNCTION refuse_as_a_full_disk_does()
"""


@pytest.mark.own_database
async def test_a_full_disk_of_the_database_is_shown_but_takes_no_server_out(engine, api_client):
    """All servers share the database, and reading works."""
    assert (await api_client.get("/ready")).json()["checks"]["storing"] == {"ok": True, "detail": ""}
    await execute_sql(engine, REFUSE_AS_A_FULL_DISK_DOES)
    await execute_sql(engine, REFUSE_NEW_CAMPAIGNS)
    assert (await api_client.post(f"{API}/campaigns", json={"name": "A", "question": "Q?"})).status_code == 503
    reply = await api_client.get("/ready")
    assert (reply.status_code, reply.json()["status"]) == (200, "ready")
    assert reply.json()["checks"]["storing"]["ok"] is False
    assert "disk of the database" in reply.json()["checks"]["storing"]["detail"]


async def test_a_full_disk_is_shown_for_a_minute_after_the_last_refused_write():
    seconds = 0.0
    disk = DatabaseDisk(clock=lambda: seconds)
    disk.remember_if_full(asyncpg.DeadlockDetectedError("no full disk"))
    assert (await disk.check()).ok
    disk.remember_if_full(asyncpg.DiskFullError("No space left on device"))
    seconds = 140.0
    disk.remember_if_full(DBAPIError("INSERT", None, asyncpg.DiskFullError("No space left on device")))
    seconds = 199.0
    assert not (await disk.check()).ok
    seconds = 201.0
    assert (await disk.check()).ok


def test_background_work_that_meets_a_full_disk_is_remembered(caplog):
    DATABASE_DISK.forget()
    log_background_failure(logging.getLogger("test"), "erasures", asyncpg.DiskFullError("No space left on device"))
    assert not asyncio.run(DATABASE_DISK.check()).ok
    assert "No space left" in caplog.text
    DATABASE_DISK.forget()
