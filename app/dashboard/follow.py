"""What follows from the responses in order, kept up with for the campaigns that someone looks at through this process.

Responses are read once: what is settled is kept, so each look reads what came since. After a start of the server a long
campaign is caught up with in steps, a part of a second each, and no page waits for the whole of it.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.answers import item_count
from app.analysis.calibrated import UNSETTLED
from app.dashboard import course, precision
from app.dashboard.course import Course
from app.dashboard.precision import Precision
from app.designs.registry import design_of
from app.inference.online.law import Hit
from app.record import replay
from app.record.law import hit_of, law_of
from app.record.stream import Response, responses

MOST_BYTES = 500_000_000  # in memory at once of each kind of past; one campaign is kept whatever it takes
AT_ONCE = 1_000  # responses that are read and followed between two looks at the clock
PATIENCE_SECONDS = 0.3


class Past(Protocol):
    """What follows from a campaign's first responses; answers: how many those are. nbytes: of memory, about."""

    @property
    def answers(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


P = TypeVar("P", bound=Past)


@dataclass(frozen=True)
class Settled(Generic[P]):
    """What follows from the responses up to number `seq` that count in a revision."""

    past: P
    revision: int
    seq: int = 0


@dataclass
class Follower(ABC, Generic[P]):
    """What is settled, by campaign, that which was asked for last at the end."""

    settled: dict[int, Settled[P]] = field(default_factory=dict)

    @abstractmethod
    async def begun(self, connection: AsyncConnection, campaign: Row[Any]) -> P:
        """Of a launched campaign before its first answer."""

    @abstractmethod
    def read(self, campaign: Row[Any], response: Response) -> Hit:
        """An answer as this follows it."""

    @abstractmethod
    def followed(self, past: P, hits: list[Hit], total: int) -> P:
        """After these HITs too, of `total` that there are. A thread runs it; it leaves `past` as it is."""

    def unsettled(self, campaign: Row[Any]) -> int:  # noqa: ARG002  (a course has another answer)
        """How many of the newest responses others may still come before."""
        return UNSETTLED

    async def newest(
        self,
        connection: AsyncConnection,
        campaign: Row[Any],
        answers: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> P:
        """As of now, or as far as patience goes; `answers` is the number of responses there are.

        What is behind has fewer `answers` than that, and the next call goes on with it. Where an answer committed after
        those behind it were settled, as one may while an import stores thousands, it begins anew.
        """
        kept = self.kept(campaign)
        known = kept or Settled(await self.begun(connection, campaign), campaign.revision)
        deadline = clock() + PATIENCE_SECONDS
        unsettled = self.unsettled(campaign)
        while True:
            rows = await responses(connection, campaign.id, after=known.seq, limit=AT_ONCE + UNSETTLED)
            settled = len(rows) - unsettled
            if settled > 0:
                further = await self.further(known.past, campaign, rows[:settled], answers)
                known = Settled(further, campaign.revision, rows[settled - 1].seq)
                self.keep(campaign, known)
            if len(rows) < AT_ONCE + UNSETTLED:
                newest = await self.further(known.past, campaign, rows[max(settled, 0) :], answers)
                if newest.answers >= answers or kept is None:
                    return newest
                self.settled.pop(campaign.id, None)
                kept, known = None, Settled(await self.begun(connection, campaign), campaign.revision)
            if clock() > deadline:
                return known.past

    async def further(self, past: P, campaign: Row[Any], rows: Sequence[Response], answers: int) -> P:
        """After these responses too."""
        hits = [self.read(campaign, row) for row in rows]
        return await asyncio.to_thread(self.followed, past, hits, answers)

    def kept(self, campaign: Row[Any]) -> Settled[P] | None:
        """What is settled of the campaign's revision, now asked for last."""
        known = self.settled.pop(campaign.id, None)
        if known is None or known.revision != campaign.revision:
            return None
        self.settled[campaign.id] = known
        return known

    def keep(self, campaign: Row[Any], known: Settled[P]) -> None:
        """Of two that follow at once, the one that came further counts. Of too much, what nobody has asked for longest
        has to start again.
        """
        before = self.kept(campaign)
        if before is None or before.seq < known.seq:
            self.settled[campaign.id] = known
        room = MOST_BYTES - sum(one.past.nbytes for one in self.settled.values())
        while room < 0 and len(self.settled) > 1:
            room += self.settled.pop(next(iter(self.settled))).past.nbytes


@dataclass
class Precisions(Follower[Precision]):
    """How far annotators agree: the same whatever the law, and fast to follow.

    told: of each campaign, the typical interval that was asked for last, of which revision and after how many answers.
    """

    told: dict[int, tuple[tuple[int, int], float]] = field(default_factory=dict)

    async def typical(
        self, connection: AsyncConnection, campaign: Row[Any], answers: int, *, in_time: bool = True
    ) -> float | None:
        """The typical interval now that there are so many answers; None while they are being read.

        in_time: whether there is time to read what is not known yet.
        """
        known = self.told.get(campaign.id)
        if known is None or known[0] != (campaign.revision, answers):
            past = await self.newest(connection, campaign, answers) if in_time else None
            if past is None or past.answers < answers:
                return None
            now = await asyncio.to_thread(past.now)
            known = self.told[campaign.id] = (campaign.revision, past.answers), now
        return known[1]

    async def begun(self, connection: AsyncConnection, campaign: Row[Any]) -> Precision:
        return precision.begun(await item_count(connection, campaign.id))

    def read(self, campaign: Row[Any], response: Response) -> Hit:
        """Its values on 0 to 1, whatever the law reads."""
        return Hit(response.annotator, response.items, design_of(campaign).shares(response.values))

    def followed(self, past: Precision, hits: list[Hit], total: int) -> Precision:
        """How far annotators agree by then."""
        return precision.followed(past, hits, total=total)


class Courses(Follower[Course]):
    """The posteriors by a replay of the campaign's law, for what they were earlier."""

    async def begun(self, connection: AsyncConnection, campaign: Row[Any]) -> Course:
        """The priors."""
        return course.begun(await replay.begun(connection, campaign))

    def read(self, campaign: Row[Any], response: Response) -> Hit:
        """As the campaign's law takes it."""
        return hit_of(campaign, response)

    def followed(self, past: Course, hits: list[Hit], total: int) -> Course:  # noqa: ARG002  (it depends on no total)
        """The posteriors by then."""
        return course.followed(past, hits)

    def unsettled(self, campaign: Row[Any]) -> int:
        """None under a law that keeps more than posteriors: answers wait for each other."""
        return 0 if law_of(campaign).layout else UNSETTLED


@dataclass(frozen=True)
class Followers:
    """All that is kept up with."""

    precisions: Precisions = field(default_factory=Precisions)
    courses: Courses = field(default_factory=Courses)
