"""Revisions of long campaigns, made in a process of their own; and decisions that come at once."""

import asyncio
import multiprocessing
import os
import sys

import pytest
from sqlalchemy import make_url, text

from app.background.process import report_progress, run_in_process
from app.database.session import create_engine, driver_of
from app.errors import Conflict
from app.record import revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.record.test_revisions import POSTERIORS, answered, decided, verified


@pytest.fixture
def long(monkeypatch):
    """Treat every campaign as one that takes long."""
    monkeypatch.setattr(revisions, "MIN_ANSWERS_FOR_PROCESS", 1)
    monkeypatch.setattr(revisions, "MIN_ANSWERS_FOR_PROCESS_BY_SLOW_LAW", 1)


async def left_out(engine, campaign, who) -> None:
    async with engine.begin() as connection:
        await decided(connection, campaign, annotator=who)


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_another_process_makes_the_same_revision(engine, long, law):
    campaign, (first, *_) = await answered(engine, update_law=law)
    before = await fetch_rows(engine, POSTERIORS)
    await left_out(engine, campaign, first)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await fetch_rows(engine, POSTERIORS) != before
    assert await revisions.load_campaign_ids_due_for_revision(engine) == []
    assert (await verified(engine, campaign)).has_no_mismatches


async def test_another_process_gets_the_password_of_the_database(database_url, engine, long, monkeypatch):
    campaign, (first, *_) = await answered(engine)
    await left_out(engine, campaign, first)
    urls = []

    async def note_url(_work, url, *_arguments):
        urls.append(make_url(url))

    monkeypatch.setattr(revisions, "run_in_process", note_url)
    with_password = make_url(database_url).set(password="open sesame").render_as_string(hide_password=False)
    engine_with_password = create_engine(with_password, pool_size=1)
    await revisions.switch_revision_if_it_misses_decisions(engine_with_password, campaign.id, now=NOW)
    await engine_with_password.dispose()
    assert [url.password for url in urls] == ["open sesame"]


async def test_whoever_stops_waiting_ends_the_process_and_leaves_all_as_it_was(engine, long):
    campaign, (first, *_) = await answered(engine)
    await left_out(engine, campaign, first)
    async with engine.connect() as holding:  # an answer that is being stored: the switch waits
        await holding.execute(text("SELECT FROM campaigns FOR KEY SHARE"))
        attempt = asyncio.create_task(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW))
        await wait_until(engine, requests_are_waiting_sql(1))
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    assert await revisions.load_campaign_ids_due_for_revision(engine) == [campaign.id]
    # The killed process held the revision for half a minute, which is over.
    assert await fetch_value(engine, "SELECT count(*) FROM exclusive_work WHERE deadline > clock_timestamp()") == 1
    await execute_sql(engine, "UPDATE exclusive_work SET deadline = clock_timestamp() - interval '1 s'")
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    assert await fetch_rows(engine, "SELECT DISTINCT revision FROM posteriors") == [(1,)]
    assert (await verified(engine, campaign)).has_no_mismatches


async def refuse() -> None:
    raise Conflict("Not now.", code="not_now", again=3)


async def fail() -> None:
    raise ZeroDivisionError("by nothing")


async def lose_the_database() -> None:
    raise ConnectionResetError("gone")


async def test_what_another_process_raises_is_raised_here():
    with pytest.raises(Conflict, match="Not now") as refusal:
        await run_in_process(refuse)
    assert (refusal.value.code, refusal.value.details) == ("not_now", {"again": 3})
    with pytest.raises(RuntimeError, match="by nothing"):
        await run_in_process(fail)
    with pytest.raises(ConnectionError, match="gone"):
        await run_in_process(lose_the_database)


async def count(last: int) -> str:
    for k in range(last):
        report_progress(k)
    return "done"


async def test_work_apart_tells_how_far_it_is():
    heard: list[int] = []
    assert await run_in_process(count, 3, on_progress=heard.append) == "done"
    assert heard == [0, 1, 2]


async def working(*, beside: bool) -> None:
    """Wait until another process works besides this one, or until none does."""
    while True:
        if bool(multiprocessing.active_children()) is beside:
            return
        await asyncio.sleep(0)


async def test_work_that_nobody_waits_for_any_more_while_its_process_starts_ends_with_its_start():
    work = asyncio.create_task(run_in_process(asyncio.sleep, 600))
    await asyncio.sleep(0)
    work.cancel()
    async with asyncio.timeout(20):
        await working(beside=True)
        await working(beside=False)
    assert work.cancelled()


WORKS_APART = """
import asyncio, multiprocessing
from app.background.process import FORK_SERVER, run_in_process

async def main():
    work = asyncio.create_task(run_in_process(asyncio.sleep, 600))
    while not (children := multiprocessing.active_children()):
        await asyncio.sleep(0.01)
    print(children[0].pid, flush=True)
    await work

FORK_SERVER.set_forkserver_preload([])  # that takes a second
asyncio.run(main())
"""


async def alive(process: int) -> None:
    """Wait until a process ends, which raises `ProcessLookupError`."""
    async with asyncio.timeout(10):
        while True:
            os.kill(process, 0)
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_the_end_of_a_server_that_is_killed_is_the_end_of_what_works_beside_it():
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKS_APART, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    beside = int(await server.stdout.readline())
    server.kill()
    await server.wait()
    with pytest.raises(ProcessLookupError):
        await alive(beside)


async def test_decisions_that_come_at_once_are_acted_on_together(engine):
    campaign, people = await answered(engine, people=6, hits=1)
    for who in people:
        await left_out(engine, campaign, who)
    await asyncio.gather(
        *(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW) for _ in people)
    )
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 1
    assert await revisions.load_campaign_ids_due_for_revision(engine) == []


async def test_the_switch_does_not_keep_others_waiting_for_somebody_who_takes_long(engine):
    campaign, (first, *_) = await answered(engine)
    quick = await create_annotator(engine, campaign, "quick")
    hit = await try_to_lease_hit(engine, quick)
    await left_out(engine, campaign, first)
    async with engine.connect() as slow:  # who stores something that takes long
        driver = await driver_of(slow)
        storing = driver.transaction()
        await storing.start()
        await driver.execute(f"SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), {campaign.id})")
        revising = asyncio.create_task(revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW))
        await wait_until(engine, requests_are_waiting_sql(1))
        await submit_scores(engine, quick, hit)  # it would wait for the switch, which would wait for the slow one
        assert not revising.done()
        await storing.rollback()
    await revising
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 1
    assert (await verified(engine, campaign)).has_no_mismatches
