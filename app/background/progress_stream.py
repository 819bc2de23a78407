"""Progress of a long job: the numbers it reports as it runs, and its result or refusal at the end."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from app.errors import Refusal

JobResult = TypeVar("JobResult")
ReportRowCount = Callable[[int], None]
ReportingJob = Callable[[ReportRowCount], Awaitable[JobResult]]


async def iterate_progress_then_outcome(
    job: ReportingJob[JobResult],
) -> AsyncGenerator[int | JobResult | Refusal, None]:
    """Yield the numbers that `job` reports, then its result or its refusal. Closing the generator cancels the job."""
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


async def stream_job_progress_as_json_lines(job: ReportingJob[str]) -> AsyncIterator[str]:
    """Yield JSON lines: {"rows": n} now and then, at the end {"done": address} or {"error": {code, message}}.

    The error has a `proposal` of columns if the refusal has one.
    """
    async with aclosing(iterate_progress_then_outcome(job)) as reports:
        async for report in reports:
            yield json.dumps(progress_report_as_dict(report)) + "\n"


def progress_report_as_dict(report: int | str | Refusal) -> dict[str, Any]:
    if isinstance(report, Refusal):
        proposal = {"proposal": report.details["proposal"]} if "proposal" in report.details else {}
        return {"error": {"code": report.code, "message": report.message} | proposal}
    return {"done": report} if isinstance(report, str) else {"rows": report}
