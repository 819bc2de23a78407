"""Tasks by key: one that fails is logged and shown, and the next one of its key starts as any other."""

import asyncio
from functools import partial

import pytest

from app.background.process import run_in_daemon_thread
from app.background.tasks import KeyedTasks
from app.errors import Conflict


async def fail(problem):
    raise problem


async def do_well():
    """Do nothing."""


async def test_a_task_that_fails_is_logged_and_does_not_keep_the_next_one_from_starting(caplog):
    tasks = KeyedTasks[int]("comparisons")
    tasks.start(7, partial(fail, TypeError("about a secret")))
    assert 7 in tasks
    await tasks.wait()
    assert 7 not in tasks
    assert "comparisons: failed for 7" in caplog.text
    assert tasks.health_check_result() == (False, "1 failed lately (TypeError).")
    tasks.start(7, do_well)
    await tasks.wait()
    assert tasks.health_check_result() == (True, "")


async def test_a_refusal_is_logged_and_nothing_is_wrong(caplog):
    tasks = KeyedTasks[int]("comparisons", retry_seconds=0.001)
    tasks.start(7, partial(fail, Conflict("It is a draft.")))
    assert tasks.health_check_result() == (True, "1 under way.")
    await tasks.wait()
    assert tasks.health_check_result() == (True, "")
    assert "It is a draft." in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_task_is_tried_again_until_it_goes_well_where_that_is_wanted():
    problems = [ValueError(), OSError(), KeyError()]

    async def work():
        if problems:
            raise problems.pop()

    tasks = KeyedTasks[int]("looks", retry_seconds=0.001)
    await tasks.start(7, work)
    assert (problems, tasks.health_check_result().ok) == ([], True)


async def test_tasks_are_broken_off_one_by_one_or_all_also_before_they_began():
    never, ended = asyncio.Event(), []

    async def work(key):
        try:
            await never.wait()
        finally:
            ended.append(key)

    tasks = KeyedTasks[int]("rehearsals")
    for key in range(3):
        tasks.start(key, partial(work, key))
    await asyncio.sleep(0)
    await tasks.cancel(1)
    assert (ended, [*tasks]) == ([1], [0, 2])
    tasks.start(3, partial(work, 3))
    await tasks.cancel(3)
    await tasks.stop()
    assert (sorted(ended), len(tasks)) == ([0, 1, 2], 0)
    await tasks.cancel(1)


async def test_a_thread_gives_its_result_or_raises_what_the_work_raised():
    assert await run_in_daemon_thread(lambda: 5, "five") == 5
    with pytest.raises(ZeroDivisionError):
        await run_in_daemon_thread(lambda: 1 / 0, "nothing")
