"""Work in a thread of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

WorkResult = TypeVar("WorkResult")


async def run_in_daemon_thread(work: Callable[[], WorkResult], name: str) -> WorkResult:
    """Return what `work` returns, done in a thread that ends with the process: a stop of the server does not wait.

    `asyncio.to_thread` shares a few threads with everything else; this takes none of them, so work that may hang for
    seconds keeps nothing waiting. The caller limits how many there are.
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
