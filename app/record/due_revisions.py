"""Revisions that are due and not under way, because their server was killed or failed: each process looks for them."""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from app.background.health import log_background_failure
from app.errors import Refusal
from app.record.revisions import find_campaigns_due_for_revision, revise_posteriors

log = logging.getLogger(__name__)

DUE_REVISIONS_PAUSE_SECONDS = 60.0
# Younger decisions are being acted on, by the request that made them. After a start there is no such request.
MIN_DECISION_AGE = timedelta(minutes=2)


class DueRevisions:
    """Makes the revisions of campaigns whose posteriors do not know all decisions; `round` is one round of a loop."""

    def __init__(self, database: AsyncEngine, clock: Callable[[], Awaitable[datetime]]) -> None:
        self.database = database
        self.clock = clock
        self._first = True
        self._refused: set[int] = set()

    async def revise_due_campaigns(self) -> None:
        """Make them, one after another. One that cannot be made stops no other. Raises the last failure."""
        now = await self.clock()
        failure: Exception | None = None
        for campaign_id in await find_campaigns_due_for_revision(
            self.database, before=None if self._first else now - MIN_DECISION_AGE
        ):
            try:
                await revise_posteriors(self.database, campaign_id, now=now)
                self._refused.discard(campaign_id)
            except Refusal as problem:  # the answers cannot be replayed: it is said once, and stays so until a change
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
