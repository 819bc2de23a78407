"""Watching a long job from outside: what it reports comes out as it goes, its result or refusal at the end."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from app.errors import Refusal

Result = TypeVar("Result")
Job = Callable[[Callable[[int], None]], Awaitable[Result]]


async def watched(job: Job[Result]) -> AsyncGenerator[int | Result | Refusal, None]:
    """The numbers that `job` reports, then its result, or the refusal it raised. Who stops watching ends the job."""
    reports: asyncio.Queue[int | None] = asyncio.Queue()
    task = asyncio.ensure_future(job(reports.put_nowait))
    task.add_done_callback(lambda _: reports.put_nowait(None))
    try:
        while (count := await reports.get()) is not None:
            yield count
        yield await task
    except Refusal as refusal:
        yield refusal
    finally:
        task.cancel()
