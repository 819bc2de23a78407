"""A loop goes on whatever its work raises, says so in the log, and shows its state."""

import asyncio

import pytest

from app.background.loop import BackgroundLoop


class Rounds:
    """Work that raises these exceptions in turn and then succeeds."""

    def __init__(self, *problems):
        self.problems = [*problems]
        self.number = 0
        self.well = asyncio.Event()

    async def work(self):
        self.number += 1
        if self.problems:
            raise self.problems.pop(0)
        self.well.set()


PROBLEMS = [ValueError("=?utf-8?"), AttributeError("x"), OSError(5, "lost"), RecursionError(), asyncio.CancelledError()]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
async def test_a_loop_goes_on_after_any_exception_and_is_well_again(problem, caplog):
    rounds = Rounds(problem, problem)
    loop = BackgroundLoop("alerts", rounds.work, pause_seconds=0.001)
    loop.start()
    await asyncio.wait_for(rounds.well.wait(), 60)
    assert rounds.number >= 3
    assert loop.health_check_result() == (True, "")
    await loop.stop()
    said = [record.getMessage() for record in caplog.records]
    assert sum("alerts: failed, next try in" in line for line in said) == 2
    assert any("alerts: works again after 2 failures" in line for line in said)


async def test_the_traceback_of_the_same_failure_is_logged_once(caplog):
    rounds = Rounds(*[ValueError("one")] * 3, KeyError("other"))
    loop = BackgroundLoop("alerts", rounds.work, pause_seconds=0.001)
    loop.start()
    await asyncio.wait_for(rounds.well.wait(), 60)
    await loop.stop()
    failures = [record for record in caplog.records if "failed" in record.getMessage()]
    traces = [bool(record.exc_info or record.exc_text) for record in failures]
    assert traces == [True, False, False, True]


async def test_a_loop_that_fails_shows_how_often_and_a_stopped_one_that_it_does_not_run():
    again = asyncio.Event()

    async def fails():
        if loop.failures == 2:
            again.set()
        raise ValueError("a secret")

    loop = BackgroundLoop("alerts", fails, pause_seconds=0.001)
    loop.start()
    await again.wait()
    ok, detail = loop.health_check_result()
    assert not ok
    assert "times in a row (ValueError)" in detail
    assert "secret" not in detail
    await loop.stop()
    assert loop.health_check_result() == (False, "It is not running.")


async def test_pauses_double_after_failures_up_to_a_limit(monkeypatch):
    pauses, enough, sleep = [], asyncio.Event(), asyncio.sleep

    async def noted(seconds):
        pauses.append(seconds)
        if len(pauses) == 8:
            enough.set()
        await sleep(0)

    async def fails():
        raise ValueError

    loop = BackgroundLoop("alerts", fails, pause_seconds=5.0, wait_first=True)
    monkeypatch.setattr("app.background.loop.asyncio.sleep", noted)
    loop.start()
    await enough.wait()
    await loop.stop()
    assert pauses[:8] == [5, 10, 20, 40, 60, 60, 60, 60]


async def test_a_round_that_does_not_end_is_shown(monkeypatch):
    monkeypatch.setattr("app.background.loop.MAX_ROUND_SECONDS", 0.0)
    began, never = asyncio.Event(), asyncio.Event()

    async def hangs():
        began.set()
        await never.wait()

    loop = BackgroundLoop("alerts", hangs, pause_seconds=1)
    loop.start()
    await began.wait()
    ok, detail = loop.health_check_result()
    assert (ok, detail[:12]) == (False, "A round has ")
    await loop.stop()
