"""A real server and its own PostgreSQL, both killed without warning while people work."""

import asyncio
import os
import re
import signal
from contextlib import suppress

import httpx
import pytest
from sqlalchemy import text

from app.database import embedded
from app.database.bulk import open_snapshot
from app.database.session import create_engine
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import verify_by_replay_or_refuse
from tests.database.test_embedded import postmaster_pid
from tests.servers import easel_serving
from tests.test_server import answers, assert_ended_in_order

pytestmark = pytest.mark.slow

CLIENTS = 6
SOME_ANSWERS = 30


async def work(link, acknowledged):
    """Answer HITs until the server is gone; a HIT is acknowledged once its reply has been read.

    Who is told that the database is away sends the same answer again.
    """
    # Nothing is encrypted here; six times the authorities' certificates would take a third of a second to read.
    async with httpx.AsyncClient(timeout=60, headers={"accept": "text/html"}, verify=False) as client:
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


async def take_some_answers(acknowledged):
    async with asyncio.timeout(180):
        return [await acknowledged.get() for _ in range(SOME_ANSWERS)]


async def take_remaining_answers(acknowledged, people):
    """Return the answers that are acknowledged until the annotators stop."""
    await asyncio.wait_for(asyncio.gather(*people), 180)
    return [acknowledged.get_nowait() for _ in range(acknowledged.qsize())]


async def kill_under_load(server):
    acknowledged: asyncio.Queue[int] = asyncio.Queue()
    people = [asyncio.create_task(work(server.link, acknowledged)) for _ in range(CLIENTS)]
    hits = await take_some_answers(acknowledged)
    os.kill(postmaster_pid(server.data), signal.SIGKILL)
    server.end(signal.SIGKILL)
    return hits + await take_remaining_answers(acknowledged, people)


async def kill_postgresql_under_load(server):
    """Kill PostgreSQL alone, twice, while people work, let them go on after it, and end the server under them."""
    acknowledged: asyncio.Queue[int] = asyncio.Queue()
    people = [asyncio.create_task(work(server.link, acknowledged)) for _ in range(CLIENTS)]
    hits = await take_some_answers(acknowledged)
    for _ in range(2):
        os.kill(postmaster_pid(server.data), signal.SIGKILL)
        hits += await take_some_answers(acknowledged)
    assert embedded.running_server_url_or_none(server.data) is not None  # as commands look for it
    await asyncio.to_thread(assert_ended_in_order, server, signal.SIGHUP)
    return hits + await take_remaining_answers(acknowledged, people)


async def check_what_is_stored(data, acknowledged):
    """Every acknowledged answer is there, once, and the posteriors follow from what is there."""
    with embedded.run_postgres_and_yield_url(data) as url:
        engine = create_engine(url, pool_size=1)
        async with open_snapshot(engine) as connection:
            hits = list(await connection.scalars(text("SELECT hit_id FROM responses")))
            found = await verify_by_replay_or_refuse(
                connection, await load_campaign_by_slug_or_refuse(connection, "lexical-frequency")
            )
        await engine.dispose()
    assert len(hits) == len(set(hits)) == found.responses
    assert set(acknowledged) <= set(hits)
    assert found.mismatch_count == 0


async def test_after_sigkill_under_load_every_acknowledged_answer_is_there_once_and_the_server_starts_again(demo_data):
    with easel_serving(demo_data) as server:
        acknowledged = await kill_under_load(server)
    with easel_serving(demo_data) as again:
        assert answers(again)
    await check_what_is_stored(demo_data, acknowledged)


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_when_postgresql_alone_is_killed_people_go_on_and_nothing_acknowledged_is_lost(demo_data, workers):
    with easel_serving(demo_data, "--workers", workers) as server:
        acknowledged = await kill_postgresql_under_load(server)
        assert server.rest().count("PostgreSQL ended (SIGKILL). It runs again") == 2
    await check_what_is_stored(demo_data, acknowledged)
