"""A real server and its own PostgreSQL, both killed without warning while people work."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from app.database import embedded
from app.database.session import create_engine

EASEL = [sys.executable, "-m", "app.cli"]
CLIENTS = 6
SOME_ANSWERS = 60


@contextmanager
def server(environment, *options):
    """A demo server on a free port; yields the process and the annotators' address."""
    process = subprocess.Popen(
        [*EASEL, "serve", "--demo", "--port", "0", *options], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        said = ""
        while "Annotators" not in said:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"the server ended: {said}"
            said += line
        yield process, re.findall(r"http://\S+/link/\S+", said)[0]
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.communicate(timeout=60)


async def work(link, acknowledged):
    """Answer HITs until the server is gone; a HIT is acknowledged once its reply has been read.

    Who is told that the database is away sends the same answer again.
    """
    async with httpx.AsyncClient(timeout=60, headers={"accept": "text/html"}) as client:
        with suppress(httpx.HTTPError):
            page = await client.post(link, follow_redirects=True)
            while found := re.findall(r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', page.text, re.DOTALL):
                ((token, hit),) = found
                form = {"token": token, "hit": hit}
                form |= {f"score-{item}": "50" for item in re.findall(r'name="score-(\d+)"', page.text)}
                page = await client.post(link, data=form)
                while page.status_code == 503:
                    assert page.headers["retry-after"]
                    await asyncio.sleep(0.1)
                    page = await client.post(link, data=form)
                assert page.status_code == 200
                acknowledged.put_nowait(int(hit))


async def some(acknowledged):
    async with asyncio.timeout(180):
        return [await acknowledged.get() for _ in range(SOME_ANSWERS)]


async def rest(acknowledged, people):
    """What is acknowledged until the people stop."""
    await asyncio.wait_for(asyncio.gather(*people), 180)
    return [acknowledged.get_nowait() for _ in range(acknowledged.qsize())]


def postmaster_of(data_dir):
    (pid_file,) = data_dir.rglob("postmaster.pid")
    return int(pid_file.read_text().split()[0])


async def kill_under_load(process, link, postmaster):
    acknowledged: asyncio.Queue[int] = asyncio.Queue()
    people = [asyncio.create_task(work(link, acknowledged)) for _ in range(CLIENTS)]
    hits = await some(acknowledged)
    os.kill(postmaster, signal.SIGKILL)
    process.kill()
    return hits + await rest(acknowledged, people)


async def kill_postgresql_under_load(process, link, data_dir):
    """Kill PostgreSQL alone, twice, while people work, and let them go on after it."""
    acknowledged: asyncio.Queue[int] = asyncio.Queue()
    people = [asyncio.create_task(work(link, acknowledged)) for _ in range(CLIENTS)]
    hits = await some(acknowledged)
    for _ in range(2):
        os.kill(postmaster_of(data_dir), signal.SIGKILL)
        hits += await some(acknowledged)
    process.terminate()
    return hits + await rest(acknowledged, people)


async def stored_hits(data_dir):
    url = embedded.running_url(data_dir)
    assert url is not None
    engine = create_engine(url, pool_size=1)
    async with engine.connect() as connection:
        hits = list(await connection.scalars(text("SELECT hit_id FROM responses")))
    await engine.dispose()
    return hits


async def check_what_is_stored(environment, acknowledged):
    """Every acknowledged answer is there, once, and the posteriors follow from what is there."""
    with server(environment):
        hits = await stored_hits(Path(environment["EASEL_DATA_DIR"]))
        verified = await asyncio.create_subprocess_exec(
            *EASEL, "verify", "lexical-frequency", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = await verified.communicate()
    assert len(hits) == len(set(hits))
    assert set(acknowledged) <= set(hits)
    assert verified.returncode == 0, said


@pytest.fixture
def environment(tmp_path):
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return inherited | {"EASEL_DATA_DIR": str(tmp_path / "data")}


async def test_after_sigkill_under_load_every_acknowledged_answer_is_there_once(environment, tmp_path):
    with server(environment) as (process, link):
        acknowledged = await kill_under_load(process, link, postmaster_of(tmp_path / "data"))
    await check_what_is_stored(environment, acknowledged)


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_when_postgresql_alone_is_killed_people_go_on_and_nothing_acknowledged_is_lost(
    environment, tmp_path, workers
):
    with server(environment, "--workers", workers) as (process, link):
        acknowledged = await kill_postgresql_under_load(process, link, tmp_path / "data")
    await check_what_is_stored(environment, acknowledged)
