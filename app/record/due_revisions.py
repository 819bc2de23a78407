"""Revisions of posteriors that miss a decision. The stored decisions are the queue, so none is lost.

The process that stores a decision asks for the revision at once. A background loop makes those that are due but not
under way, because their process was killed or failed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from app.background.health import log_background_failure
from app.errors import Refusal
from app.record.revisions import load_campaign_ids_due_for_revision, switch_revision_if_it_misses_decisions

log = logging.getLogger(__name__)

DUE_REVISIONS_PAUSE_SECONDS = 60.0
# The request that made a younger decision is still acting on it. Right after a start there is no such request.
MIN_DECISION_AGE = timedelta(minutes=2)


class DueRevisions:
    """Revises campaigns whose posteriors do not include all decisions."""

    def __init__(self, database: AsyncEngine, clock: Callable[[], Awaitable[datetime]]) -> None:
        self.database = database
        self.clock = clock
        self._first = True
        self._refused: set[int] = set()
        self._requested: set[asyncio.Task[None]] = set()

    async def start_revision_and_wait(
        self, campaign_id: int, *, now: datetime, wait_seconds: float | None = None
    ) -> None:
        """Start to revise a campaign, and wait until it is done or that many seconds are over; it goes on after that.

        Raises as `switch_revision_if_it_misses_decisions` does, if that fails while the caller waits.
        """
        task = asyncio.create_task(switch_revision_if_it_misses_decisions(self.database, campaign_id, now=now))
        self._requested.add(task)
        task.add_done_callback(self._requested.discard)
        if (await asyncio.wait({task}, timeout=wait_seconds))[0]:
            task.result()

    async def stop(self) -> None:
        """Cancel the revisions that were asked for; they stay due."""
        for task in self._requested:
            task.cancel()
        await asyncio.gather(*self._requested, return_exceptions=True)

    async def revise_due_campaigns(self) -> None:
        """Revise the due campaigns one after another. A failure stops no other campaign; the last one is raised."""
        now = await self.clock()
        failure: Exception | None = None
        for campaign_id in await load_campaign_ids_due_for_revision(
            self.database, decided_before=None if self._first else now - MIN_DECISION_AGE
        ):
            try:
                await switch_revision_if_it_misses_decisions(self.database, campaign_id, now=now)
                self._refused.discard(campaign_id)
            except Refusal as problem:  # the answers cannot be replayed: log it once
                if campaign_id not in self._refused:
                    log_background_failure(
                        log, f"the posteriors of campaign {campaign_id} do not follow all decisions", problem
                    )
                self._refused.add(campaign_id)
            except Exception as problem:  # noqa: BLE001  (raised after the others)
                failure = problem
        if failure is not None:
            raise failure
        self._first = False
