import asyncio

import pytest

from app.background.progress_stream import iterate_progress_then_outcome
from app.errors import Conflict


async def test_reports_come_as_they_are_made_and_the_result_last():
    async def job(report):
        for count in (1, 2):
            report(count)
            await asyncio.sleep(0)
        return 3

    assert [told async for told in iterate_progress_then_outcome(job)] == [1, 2, 3]


async def test_a_refusal_comes_out_as_a_value():
    refusal = Conflict("no")

    async def job(report):
        report(1)
        raise refusal

    assert [told async for told in iterate_progress_then_outcome(job)] == [1, refusal]


async def test_a_crash_is_not_hidden():
    async def job(_report):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        assert [told async for told in iterate_progress_then_outcome(job)] == []


async def test_who_stops_watching_ends_the_job():
    ended = asyncio.Event()

    async def job(report):
        try:
            report(1)
            await asyncio.sleep(60)
        finally:
            ended.set()
        return 2

    watching = iterate_progress_then_outcome(job)
    assert await anext(watching) == 1
    await watching.aclose()
    await asyncio.wait_for(ended.wait(), 60)
