"""What follows from the responses in order, kept up with for the campaigns that someone looks at through this process.

Responses are read once: what is settled is kept, so each look reads what came since. After a start of the server a long
campaign is caught up with in steps, a part of a second each, and no page waits for the whole of it.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.answers import item_count
from app.analysis.calibrated import UNSETTLED
from app.dashboard import course, precision
from app.dashboard.course import Course
from app.dashboard.precision import Precision
from app.database.session import driver_of
from app.designs.registry import design_of
from app.inference.online.laws import Hit
from app.record import states
from app.record.law import law_of, parameters_of
from app.record.stream import Response, responses

MOST_BYTES = 500_000_000  # in memory at once of each kind of past; one campaign is kept whatever it takes
AT_ONCE = 1_000  # responses that are read and followed between two looks at the clock
PATIENCE_SECONDS = 0.3

PRIORS = text("""
    SELECT coalesce(array_agg(a ORDER BY number), '{}') AS a, coalesce(array_agg(b ORDER BY number), '{}') AS b
    FROM priors WHERE campaign_id = :campaign
""")


class Past(Protocol):
    """What follows from a campaign's first responses; answers: how many those are. nbytes: of memory, about."""

    @property
    def answers(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


P = TypeVar("P", bound=Past)


@dataclass(frozen=True)
class Settled(Generic[P]):
    """What follows from the responses up to number `seq`."""

    past: P
    seq: int = 0


@dataclass
class Follower(ABC, Generic[P]):
    """What is settled, by campaign, that which was asked for last at the end."""

    settled: dict[int, Settled[P]] = field(default_factory=dict)

    @abstractmethod
    async def begun(self, connection: AsyncConnection, campaign: Row[Any]) -> P:
        """Of a launched campaign before its first answer."""

    @abstractmethod
    def followed(self, past: P, campaign: Row[Any], hits: list[Hit], annotators: list[int], total: int) -> P:
        """After these HITs too, of `total` that there are. A thread runs it; it leaves `past` as it is."""

    def unsettled(self, past: P) -> int:  # noqa: ARG002  (a course has another answer)
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
        kept = self.kept(campaign.id)
        known = kept or Settled(await self.begun(connection, campaign))
        deadline = clock() + PATIENCE_SECONDS
        unsettled = self.unsettled(known.past)
        while True:
            rows = await responses(connection, campaign.id, after=known.seq, limit=AT_ONCE + UNSETTLED)
            settled = len(rows) - unsettled
            if settled > 0:
                further = await self.further(known.past, campaign, rows[:settled], answers)
                known = Settled(further, rows[settled - 1].seq)
                self.keep(campaign.id, known)
            if len(rows) < AT_ONCE + UNSETTLED:
                newest = await self.further(known.past, campaign, rows[max(settled, 0) :], answers)
                if newest.answers >= answers or kept is None:
                    return newest
                self.settled.pop(campaign.id, None)
                kept, known = None, Settled(await self.begun(connection, campaign))
            if clock() > deadline:
                return known.past

    async def further(self, past: P, campaign: Row[Any], rows: Sequence[Response], answers: int) -> P:
        """After these responses too."""
        design = design_of(campaign)
        hits, annotators = [row.hit(design) for row in rows], [row.annotator for row in rows]
        return await asyncio.to_thread(self.followed, past, campaign, hits, annotators, answers)

    def kept(self, campaign_id: int) -> Settled[P] | None:
        """What is settled, now asked for last."""
        if (known := self.settled.pop(campaign_id, None)) is not None:
            self.settled[campaign_id] = known
        return known

    def keep(self, campaign_id: int, known: Settled[P]) -> None:
        """Of two that follow at once, the one that came further counts. Of too much, what nobody has asked for longest
        has to start again.
        """
        before = self.kept(campaign_id)
        if before is None or before.seq < known.seq:
            self.settled[campaign_id] = known
        room = MOST_BYTES - sum(one.past.nbytes for one in self.settled.values())
        while room < 0 and len(self.settled) > 1:
            room += self.settled.pop(next(iter(self.settled))).past.nbytes


@dataclass
class Precisions(Follower[Precision]):
    """How far annotators agree: the same whatever the law, and fast to follow.

    told: of each campaign, the typical interval that was asked for last, and after how many answers it was that.
    """

    told: dict[int, tuple[int, float]] = field(default_factory=dict)

    async def typical(
        self, connection: AsyncConnection, campaign: Row[Any], answers: int, *, in_time: bool = True
    ) -> float | None:
        """The typical interval now that there are so many answers; None while they are being read.

        in_time: whether there is time to read what is not known yet.
        """
        known = self.told.get(campaign.id)
        if known is None or known[0] != answers:
            past = await self.newest(connection, campaign, answers) if in_time else None
            if past is None or past.answers < answers:
                return None
            known = self.told[campaign.id] = past.answers, await asyncio.to_thread(past.now)
        return known[1]

    async def begun(self, connection: AsyncConnection, campaign: Row[Any]) -> Precision:
        return precision.begun(await item_count(connection, campaign.id))

    def followed(
        self,
        past: Precision,
        campaign: Row[Any],  # noqa: ARG002  (all campaigns are alike here)
        hits: list[Hit],
        annotators: list[int],
        total: int,
    ) -> Precision:
        return precision.followed(past, hits, annotators, total=total)


class Courses(Follower[Course]):
    """The posteriors by a replay of the campaign's law, for what they were earlier."""

    async def begun(self, connection: AsyncConnection, campaign: Row[Any]) -> Course:
        priors = (await connection.execute(PRIORS, {"campaign": campaign.id})).one()
        begun = course.begun(law_of(campaign), np.array(priors.a, float), np.array(priors.b, float))
        if begun.learned is None:
            return begun
        totals = await states.of_campaign(await driver_of(connection), campaign.id)
        return replace(begun, learned=begun.learned.begun_like(totals))

    def followed(
        self,
        past: Course,
        campaign: Row[Any],
        hits: list[Hit],
        annotators: list[int],
        total: int,  # noqa: ARG002  (a course keeps nothing that depends on it)
    ) -> Course:
        law = law_of(campaign)
        return course.followed(past, law, hits, parameters_of(campaign), annotators=annotators)

    def unsettled(self, past: Course) -> int:
        """None under a law that learns about annotators, whose answers wait for each other."""
        return UNSETTLED if past.learned is None else 0


@dataclass(frozen=True)
class Followers:
    """All that is kept up with."""

    precisions: Precisions = field(default_factory=Precisions)
    courses: Courses = field(default_factory=Courses)
