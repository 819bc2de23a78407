"""Background scans of campaigns after new answers, for as long as this process runs."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from cachetools import LRUCache
from sqlalchemy.exc import NoResultFound
from sqlalchemy.ext.asyncio import AsyncEngine

from app.background.health import log_background_failure
from app.background.tasks import KeyedTasks
from app.errors import Refusal

log = logging.getLogger(__name__)

MIN_SCAN_PAUSE_SECONDS = 3.0  # one scan covers the answers that come meanwhile
# Times the duration of the last scan and the number of processes, because each process scans after its own answers. So
# all scans of a campaign use at most a twentieth of a processor.
SCAN_PAUSE_FACTOR = 20
MAX_REMEMBERED_SCANS = 100  # scan positions kept; a scan with one ends at once if there are no new answers


class CampaignScan(Protocol):
    """Scans a campaign from the last position on; returns the new position, None if another process scans.

    If the position has a true `has_stopped_campaign`, all scans are run once more.
    """

    def __call__(
        self, engine: AsyncEngine, campaign_id: int, /, *, now: datetime, last_position: Any
    ) -> Awaitable[Any]: ...


class CampaignMonitor:
    """Schedules scans of campaigns by id, and runs each kind of scan of a campaign once at a time."""

    def __init__(
        self,
        database: AsyncEngine,
        clock: Callable[[], Awaitable[datetime]],
        scans: Sequence[CampaignScan],
        *,
        pause: float = MIN_SCAN_PAUSE_SECONDS,
        processes: int = 1,
    ) -> None:
        """Make a monitor.

        Args:
            database: The database.
            clock: Returns the time.
            scans: The scans, in the order in which they run.
            pause: Shortest time between two scans of a campaign, in seconds.
            processes: Number of processes of this server, each with a monitor.

        """
        self.database = database
        self.clock = clock
        self.scans = scans
        self.pause = pause
        self.pause_factor = SCAN_PAUSE_FACTOR * processes
        self.requested: set[int] = set()
        self.tasks = KeyedTasks[int]("scans", retry_seconds=pause or MIN_SCAN_PAUSE_SECONDS)
        self.positions: LRUCache[tuple[int, int], Any] = LRUCache(MAX_REMEMBERED_SCANS)

    def request_scan(self, campaign_id: int) -> None:
        """Ask for a scan after an answer, or after the campaign was stopped. The request does not wait for it."""
        self.requested.add(campaign_id)
        if campaign_id not in self.tasks:
            self.tasks.start(campaign_id, partial(self.scan_repeatedly_while_answers_come, campaign_id))

    async def scan_repeatedly_while_answers_come(self, campaign_id: int) -> None:
        """Scan as long as answers come, with pauses much longer than a scan. Raise the first error of a scan after all
        other scans were run; the campaign is then scanned again.
        """
        pause = self.pause
        while campaign_id in self.requested:
            await asyncio.sleep(pause)
            self.requested.discard(campaign_id)
            began = time.monotonic()
            errors = [
                problem
                for index in range(len(self.scans))
                if (problem := await self.run_scan_and_return_exception_or_none(campaign_id, index))
            ]
            if errors:
                self.requested.add(campaign_id)
                raise errors[0]
            pause = max(self.pause, self.pause_factor * (time.monotonic() - began))

    async def run_scan_and_return_exception_or_none(self, campaign_id: int, scan_index: int) -> Exception | None:
        """Run one of the scans; return what it raised."""
        try:
            await self.run_scan(campaign_id, scan_index)
        except Exception as problem:  # noqa: BLE001  (`scan_repeatedly_while_answers_come` raises it after the other scans)
            return problem
        return None

    async def run_scan(self, campaign_id: int, scan_index: int) -> None:
        """Run one of the scans. It gets the position of its last run, even if it fails this time."""
        key = campaign_id, scan_index
        try:
            position = await self.scans[scan_index](
                self.database, campaign_id, now=await self.clock(), last_position=self.positions.get(key)
            )
        except Refusal as refusal:
            log_background_failure(log, f"campaign {campaign_id} was not scanned", refusal)
            return
        except NoResultFound:  # a rehearsal that was removed
            self.positions.pop(key, None)
            return
        if position is None:  # another process scans, which may not see the last answers
            self.requested.add(campaign_id)
            return
        self.positions[key] = position
        if getattr(position, "has_stopped_campaign", False):
            self.requested.add(campaign_id)

    async def stop_after_last_scan(self, campaign_id: int) -> None:
        """Stop, and scan the campaign a last time."""
        await self.stop()
        for index in range(len(self.scans)):
            await self.run_scan(campaign_id, index)

    async def stop(self) -> None:
        """Stop scanning, and cancel running scans."""
        await self.tasks.stop()
