"""Run work in a separate daemon thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

WorkResult = TypeVar("WorkResult")


async def run_in_daemon_thread(work: Callable[[], WorkResult], name: str) -> WorkResult:
    """Return the result of `work`, run in a daemon thread, so that a stop of the server does not wait for it.

    `asyncio.to_thread` shares a few threads with all other work; this function uses none of them, so work that hangs
    for seconds delays nothing else. The caller limits the number of such threads.
    """
    future: Future[WorkResult] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:  # noqa: BLE001  (raised where it is awaited)
            future.set_exception(problem)

    Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)
