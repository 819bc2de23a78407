"""Background work that finishes erasures. The stored requests are the queue, so none is lost.

The process that stores a request finishes it at once. A background loop finishes those that are due but not under way:
their process was killed, or the time in which the annotator could take the request back has passed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.privacy.erasures import Erasure, erase_identifiers_and_return_erasure, remove_values_of_answers
from app.record.campaign import load_campaign
from app.record.revisions import switch_revision_if_it_misses_decisions

log = logging.getLogger(__name__)

ERASURES_PAUSE_SECONDS = 60.0

FIND_OPEN_ERASURES = text("""
    SELECT * FROM erasures WHERE finished_at IS NULL AND due_at <= :now
    AND campaign_id = coalesce(CAST(:campaign AS bigint), campaign_id) ORDER BY due_at, id
""")


async def finish_erasures_that_are_due(
    engine: AsyncEngine, *, now: datetime, campaign_id: int | None = None, receipt_number: str | None = None
) -> None:
    """Finish all erasures that are due, of one campaign or of all.

    A failure is logged with its receipt and stops no other erasure. Afterwards the first failure is raised, or only
    that of the erasure with this receipt.
    """
    async with engine.connect() as connection:
        rows = (await connection.execute(FIND_OPEN_ERASURES, {"now": now, "campaign": campaign_id})).all()
    failure: Exception | None = None
    for row in rows:
        try:
            await finish_erasure(engine, Erasure.from_erasure_row(row), now=now)
        except Exception as problem:
            log.exception("The erasure with the receipt %s failed, and is tried again.", row.receipt)
            if receipt_number in (None, row.receipt):
                failure = failure or problem
    if failure is not None:
        raise failure


async def finish_erasure(engine: AsyncEngine, erasure: Erasure, *, now: datetime) -> None:
    """Do the steps that an erasure still needs. Each is committed by itself, and can be repeated."""
    async with engine.begin() as connection:
        campaign = await load_campaign(connection, erasure.campaign_id)
        await erase_identifiers_and_return_erasure(connection, campaign, erasure, now=now)
    if erasure.rule == "remove" and campaign.status != "draft":
        await switch_revision_if_it_misses_decisions(engine, erasure.campaign_id, now=now)
    async with engine.begin() as connection:
        await remove_values_of_answers(connection, erasure, now=now)


class ErasureWork:
    """Erasures that this process finishes."""

    def __init__(self, database: AsyncEngine, clock: Callable[[], Awaitable[datetime]]) -> None:
        self.database = database
        self.clock = clock
        self._requested: set[asyncio.Task[None]] = set()

    async def start_and_wait(self, erasure: Erasure, *, now: datetime, wait_seconds: float | None = None) -> None:
        """Start to finish the erasures of a campaign, and wait until that is done or so many seconds are over.

        Raises what stopped this erasure; the background loop tries the others again.
        """
        task = asyncio.create_task(
            finish_erasures_that_are_due(
                self.database, now=now, campaign_id=erasure.campaign_id, receipt_number=erasure.receipt
            )
        )
        self._requested.add(task)
        task.add_done_callback(self._requested.discard)
        if (await asyncio.wait({task}, timeout=wait_seconds))[0]:
            task.result()

    async def finish_due_erasures(self) -> None:
        """Finish all erasures that are due."""
        await finish_erasures_that_are_due(self.database, now=await self.clock())

    async def stop(self) -> None:
        """Cancel the work of this process; the loop of another, or of the next run, continues it."""
        for task in self._requested:
            task.cancel()
        await asyncio.gather(*self._requested, return_exceptions=True)
