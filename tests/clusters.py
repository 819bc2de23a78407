"""Clusters that are made once in a run and copied for each test: the fewer files, the sooner they are copied."""

import asyncio
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.database.embedded import run_postgres_and_yield_url


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a data folder that the first process of the run to ask for it makes; the others wait for it."""
    run = factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()
    folder = run / name
    with (run / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = factory.mktemp(name)
            make(unfinished)
            slim(unfinished)
            unfinished.rename(folder)
    return folder


def slim(data: Path) -> None:
    """Make the cluster in this data folder, if there is none, and leave in it only what a copy needs.

    Nothing is made from the template databases here, which are two thirds of its files. No test cuts the power.
    """
    with run_postgres_and_yield_url(data, {"fsync": "off", "autovacuum": "off"}) as url:
        asyncio.run(_slimmed(url))


async def _slimmed(url: str) -> None:
    engine = create_async_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text("ALTER SYSTEM SET fsync = off"))
        await connection.execute(text("UPDATE pg_database SET datistemplate = false"))
        for template in ("template0", "template1"):
            await connection.execute(text(f"DROP DATABASE {template}"))
    await engine.dispose()
