"""Pauses of the garbage collector."""

import asyncio
import gc

import pytest

from app.background.collection_pause import (
    RARE_COLLECTION_THRESHOLD,
    collect_garbage_rarely,
    pause_garbage_collection,
)
from tests.annotation.hits.campaigns import requests_are_waiting_sql, wait_until
from tests.campaigns.drafts import create_launched_campaign, import_results


@pytest.fixture(autouse=True)
def collector_is_on_again():
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_collections_go_on_after_the_last_of_overlapping_pauses():
    first, second = pause_garbage_collection(), pause_garbage_collection()
    first.__enter__()
    second.__enter__()
    assert not gc.isenabled()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_rare_collections_end_with_the_last_of_overlapping_blocks():
    usual = gc.get_threshold()
    first, second = collect_garbage_rarely(), collect_garbage_rarely()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.isenabled()
    assert gc.get_threshold() == (RARE_COLLECTION_THRESHOLD, *usual[1:])
    second.__exit__(None, None, None)
    assert gc.get_threshold() == usual


def test_a_decorated_function_runs_in_a_pause_each_time_and_ends_it_if_it_fails():
    @pause_garbage_collection()
    def fail() -> None:
        raise ValueError("off" if not gc.isenabled() else "on")

    for _ in range(2):
        with pytest.raises(ValueError, match="off"):
            fail()
        assert gc.isenabled()


async def test_collections_go_on_while_an_import_of_answers_waits_for_posteriors(engine):
    campaign = await create_launched_campaign(engine, judgments_per_item=50)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("SELECT FROM posteriors FOR UPDATE")
        importing = asyncio.create_task(import_results(engine, campaign, "hit,annotator,item,value\nh1,Ann,v1,50\n"))
        await wait_until(engine, requests_are_waiting_sql(1))
        is_enabled_while_waiting = gc.isenabled()
    assert (await importing).responses == 1
    assert is_enabled_while_waiting


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()
