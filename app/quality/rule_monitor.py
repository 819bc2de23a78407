"""Looks at campaigns in the background, after answers came, for as long as this process runs."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy.exc import NoResultFound
from sqlalchemy.ext.asyncio import AsyncEngine

from app.background.health import log_background_failure
from app.background.tasks import KeyedTasks
from app.errors import Refusal

log = logging.getLogger(__name__)

MIN_SCAN_PAUSE_SECONDS = 3.0  # in which more answers come that the same look sees
SCAN_PAUSE_FACTOR = 20  # as the last look took, until the next one: so looks take a twentieth of a processor at most
MAX_REMEMBERED_SCANS = 100  # campaigns, of which the next look needs to see only who has answered since


# Of a database a campaign by its row's id, `now`, and what the `last` look found; None where another process looks.
CampaignScan = Callable[..., Awaitable[Any]]


class CampaignMonitor:
    """The campaigns that this process is to look at, by the row's id; all looks, one of each at a time."""

    def __init__(
        self,
        database: AsyncEngine,
        clock: Callable[[], Awaitable[datetime]],
        scans: Sequence[CampaignScan],
        *,
        pause: float = MIN_SCAN_PAUSE_SECONDS,
    ) -> None:
        self.database = database
        self.clock = clock
        self.scans = scans
        self.pause = pause
        self.requested: set[int] = set()
        self.tasks = KeyedTasks[int]("looks", retry_seconds=pause or MIN_SCAN_PAUSE_SECONDS)
        self.positions: dict[tuple[int, int], Any] = {}

    def request_scan(self, campaign_id: int) -> None:
        """An answer came. It costs the annotator who waits for the reply nothing."""
        self.requested.add(campaign_id)
        if campaign_id not in self.tasks:
            self.tasks.start(campaign_id, partial(self.scan_while_requested, campaign_id))

    async def scan_while_requested(self, campaign_id: int) -> None:
        """Look as long as answers come, with pauses that are long beside a look. Raises what a look raises, once the
        others were made; the answers are then to be looked at again.
        """
        pause = self.pause
        while campaign_id in self.requested:
            await asyncio.sleep(pause)
            self.requested.discard(campaign_id)
            began = time.monotonic()
            errors = [
                problem for place in range(len(self.scans)) if (problem := await self.try_scan(campaign_id, place))
            ]
            if errors:
                self.requested.add(campaign_id)
                raise errors[0]
            pause = max(self.pause, SCAN_PAUSE_FACTOR * (time.monotonic() - began))

    async def try_scan(self, campaign_id: int, scan_index: int) -> Exception | None:
        """Make one of the looks; return what it raised."""
        try:
            await self.run_scan(campaign_id, scan_index)
        except Exception as problem:  # noqa: BLE001  (raised by `follow`; the other looks come first)
            return problem
        return None

    async def run_scan(self, campaign_id: int, scan_index: int) -> None:
        """One of the looks. What the last one found is known to the next, also where this one comes to nothing."""
        key = campaign_id, scan_index
        try:
            position = await self.scans[scan_index](
                self.database, campaign_id, now=await self.clock(), last=self.positions.get(key)
            )
        except Refusal as refusal:
            log_background_failure(log, f"campaign {campaign_id} was not looked at", refusal)
            return
        except NoResultFound:  # a rehearsal that was removed
            self.positions.pop(key, None)
            return
        if position is None:  # another process looks, which may not see the last answers
            self.requested.add(campaign_id)
            return
        self.positions.pop(key, None)  # the newest at the end
        self.positions[key] = position
        while len(self.positions) > MAX_REMEMBERED_SCANS:
            del self.positions[next(iter(self.positions))]

    async def finish(self, campaign_id: int) -> None:
        """Look once more, at once, and then no more."""
        await self.stop()
        for place in range(len(self.scans)):
            await self.run_scan(campaign_id, place)

    async def stop(self) -> None:
        """No more looks; one that is under way is broken off."""
        await self.tasks.stop()
