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

from app.background.state import log_failure
from app.background.tasks import KeyedTasks
from app.errors import Refusal

log = logging.getLogger(__name__)

PAUSE_SECONDS = 3.0  # in which more answers come that the same look sees
TIMES_AS_LONG = 20  # as the last look took, until the next one: so looks take a twentieth of a processor at most
MOST_REMEMBERED = 100  # campaigns, of which the next look needs to see only who has answered since


# Of a database a campaign by its row's id, `now`, and what the `last` look found; None where another process looks.
Look = Callable[..., Awaitable[Any]]


class Looks:
    """The campaigns that this process is to look at, by the row's id; all looks, one of each at a time."""

    def __init__(
        self,
        database: AsyncEngine,
        clock: Callable[[], Awaitable[datetime]],
        looks: Sequence[Look],
        *,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self.database = database
        self.clock = clock
        self.looks = looks
        self.pause = pause
        self.asked: set[int] = set()
        self.tasks = KeyedTasks[int]("looks", retry_seconds=pause or PAUSE_SECONDS)
        self.last: dict[tuple[int, int], Any] = {}

    def ask(self, campaign_id: int) -> None:
        """An answer came. It costs the annotator who waits for the reply nothing."""
        self.asked.add(campaign_id)
        if campaign_id not in self.tasks:
            self.tasks.start(campaign_id, partial(self.follow, campaign_id))

    async def follow(self, campaign_id: int) -> None:
        """Look as long as answers come, with pauses that are long beside a look. Raises what a look raises, once the
        others were made; the answers are then to be looked at again.
        """
        pause = self.pause
        while campaign_id in self.asked:
            await asyncio.sleep(pause)
            self.asked.discard(campaign_id)
            began = time.monotonic()
            problems = [
                problem for place in range(len(self.looks)) if (problem := await self.run_look(campaign_id, place))
            ]
            if problems:
                self.asked.add(campaign_id)
                raise problems[0]
            pause = max(self.pause, TIMES_AS_LONG * (time.monotonic() - began))

    async def run_look(self, campaign_id: int, place: int) -> Exception | None:
        """Make one of the looks; return what it raised."""
        try:
            await self.look(campaign_id, place)
        except Exception as problem:  # noqa: BLE001  (raised by `follow`; the other looks come first)
            return problem
        return None

    async def look(self, campaign_id: int, place: int) -> None:
        """One of the looks. What the last one found is known to the next, also where this one comes to nothing."""
        key = campaign_id, place
        try:
            seen = await self.looks[place](self.database, campaign_id, now=await self.clock(), last=self.last.get(key))
        except Refusal as refusal:
            log_failure(log, f"campaign {campaign_id} was not looked at", refusal)
            return
        except NoResultFound:  # a rehearsal that was removed
            self.last.pop(key, None)
            return
        if seen is None:  # another process looks, which may not see the last answers
            self.asked.add(campaign_id)
            return
        self.last.pop(key, None)  # the newest at the end
        self.last[key] = seen
        while len(self.last) > MOST_REMEMBERED:
            del self.last[next(iter(self.last))]

    async def end(self, campaign_id: int) -> None:
        """Look once more, at once, and then no more."""
        await self.stop()
        for place in range(len(self.looks)):
            await self.look(campaign_id, place)

    async def stop(self) -> None:
        """No more looks; one that is under way is broken off."""
        await self.tasks.stop()
