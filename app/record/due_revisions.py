"""Background loop for revisions that are due but not under way because their server was killed or failed."""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from app.background.health import log_background_failure
from app.errors import Refusal
from app.record.revisions import find_campaigns_due_for_revision, revise_posteriors

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

    async def revise_due_campaigns(self) -> None:
        """Revise the due campaigns one after another. A failure stops no other campaign; the last one is raised."""
        now = await self.clock()
        failure: Exception | None = None
        for campaign_id in await find_campaigns_due_for_revision(
            self.database, before=None if self._first else now - MIN_DECISION_AGE
        ):
            try:
                await revise_posteriors(self.database, campaign_id, now=now)
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
