"""An erasure while 32 annotators answer: nobody is refused, and neither the database nor the log names the person."""

import asyncio
import logging
from datetime import timedelta

import pytest

from app.main import open_application
from app.privacy.erasure_work import finish_erasures_that_are_due
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.privacy.people import (
    TRACES,
    WORKER_ID,
    create_answered_campaign,
    dump_database,
    erase_found,
    verification_is_clean,
)

LATER = NOW + timedelta(hours=1)
ANNOTATORS, HITS_EACH = 32, 3


async def test_an_erasure_that_a_killed_process_left_goes_on_when_the_server_starts(database_url, engine, applications):
    campaign, _ = await create_answered_campaign(engine)
    await erase_found(engine, campaign, WORKER_ID, "remove", now=LATER)
    assert await fetch_value(engine, "SELECT count(*) FROM erasures WHERE finished_at IS NULL") == 1
    app = applications(database_url)
    async with open_application(app, app.state.settings):
        await wait_until(engine, "SELECT count(*) = 0 FROM erasures WHERE finished_at IS NULL")
    assert await verification_is_clean(engine, campaign)


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
async def test_no_trace_is_left_while_others_answer(engine, tmp_path, caplog, rule):
    caplog.set_level(logging.DEBUG)
    campaign, _ = await create_answered_campaign(engine, items=60, judgments_per_item=100, hits_per_annotator=10)
    assignments = [await create_annotator(engine, campaign, f"other-{number}") for number in range(ANNOTATORS)]
    before = await fetch_value(engine, "SELECT count(*) FROM responses")
    caplog.clear()

    async def answer(assignment):
        for _ in range(HITS_EACH):
            await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))

    async def erase():
        await erase_found(engine, campaign, WORKER_ID, rule, now=LATER)
        await finish_erasures_that_are_due(engine, now=LATER)

    await asyncio.gather(*map(answer, assignments[::2]), erase(), *map(answer, assignments[1::2]))
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == before + ANNOTATORS * HITS_EACH
    left = await dump_database(engine, tmp_path)
    assert [trace for trace in TRACES if trace in left or trace in caplog.text] == []
    assert "other-7" in left
    assert await fetch_value(engine, "SELECT count(*) FROM erasures WHERE finished_at IS NULL") == 0
    assert await verification_is_clean(engine, campaign)
