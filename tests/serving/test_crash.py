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
from sqlalchemy import text

from app.database import embedded
from app.database.session import create_engine

EASEL = [sys.executable, "-m", "app.cli"]
CLIENTS = 6
ANSWERS_BEFORE_THE_KILL = 60


@contextmanager
def server(environment):
    """A demo server on a free port; yields the process and the annotators' address."""
    process = subprocess.Popen(
        [*EASEL, "serve", "--demo", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True
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
        process.communicate(timeout=30)


async def work(link, acknowledged, enough):
    """Answer HITs until the server is gone; a HIT is acknowledged once its reply has been read."""
    async with httpx.AsyncClient(timeout=10, headers={"accept": "text/html"}) as client:
        with suppress(httpx.HTTPError):
            page = await client.post(link, follow_redirects=True)
            while True:
                ((token, hit),) = re.findall(
                    r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', page.text, re.DOTALL
                )
                scores = {f"score-{item}": "50" for item in re.findall(r'name="score-(\d+)"', page.text)}
                page = await client.post(link, data={"token": token, "hit": hit} | scores)
                assert page.status_code in (200, 503)
                if page.status_code == 200:
                    acknowledged.append(int(hit))
                if len(acknowledged) >= ANSWERS_BEFORE_THE_KILL:
                    enough.set()


def postmaster_of(data_dir):
    (pid_file,) = data_dir.rglob("postmaster.pid")
    return int(pid_file.read_text().split()[0])


async def kill_under_load(process, link, postmaster):
    acknowledged: list[int] = []
    enough = asyncio.Event()
    people = [asyncio.create_task(work(link, acknowledged, enough)) for _ in range(CLIENTS)]
    await asyncio.wait_for(enough.wait(), 60)
    os.kill(postmaster, signal.SIGKILL)
    process.kill()
    await asyncio.wait_for(asyncio.gather(*people), 60)
    return acknowledged


async def stored_hits(data_dir):
    url = embedded.running_url(data_dir)
    assert url is not None
    engine = create_engine(url, pool_size=1)
    async with engine.connect() as connection:
        hits = list(await connection.scalars(text("SELECT hit_id FROM responses")))
    await engine.dispose()
    return hits


async def test_after_sigkill_under_load_every_acknowledged_answer_is_there_once(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"EASEL_DATA_DIR": str(tmp_path / "data")}
    data_dir = Path(environment["EASEL_DATA_DIR"])
    with server(environment) as (process, link):
        acknowledged = await kill_under_load(process, link, postmaster_of(data_dir))
    with server(environment):
        hits = await stored_hits(data_dir)
        verified = await asyncio.create_subprocess_exec(
            *EASEL, "verify", "lexical-frequency", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = await verified.communicate()
    assert len(acknowledged) >= ANSWERS_BEFORE_THE_KILL
    assert len(hits) == len(set(hits))
    assert set(acknowledged) <= set(hits)
    assert verified.returncode == 0, said
