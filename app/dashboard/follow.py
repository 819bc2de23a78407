"""What follows from the responses in order, kept up with for the campaigns that someone looks at through this process.

Each response is read once: what is settled is kept, so each look reads what came since. After a start of the server a
long campaign is caught up with in steps, a part of a second each, and no page waits for the whole of it.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.answers import item_count
from app.dashboard import course, halo, implied, precision
from app.dashboard.course import Course
from app.dashboard.halo import HaloSoFar
from app.dashboard.implied import Implied
from app.dashboard.precision import Precision
from app.designs.criteria import criteria_of, key_of, number_of
from app.designs.registry import design_of
from app.inference.agreement.halo import HaloSums
from app.inference.online.law import Hit
from app.record import replay
from app.record.law import hit_of, law_of
from app.record.news import Watermark, look
from app.record.stream import Response, count, responses

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
    """What follows from the responses that count: those written before the watermark `since`, and of those written
    between it and `until` the ones with numbers up to `seq`. total: how many there are before `until`, once it is
    known.

    So a response may follow one with a higher number, but none that it shares an item with, nor any under a law that
    keeps more than posteriors: these wait for each other. The order of others makes no difference to any item, to the
    last bit; a point of a curve may count one of them for the other.
    """

    past: P
    since: Watermark | None
    until: Watermark
    seq: int = 0
    total: int = 0

    @property
    def done(self) -> bool:
        """Whether nothing is left of what was found at the last look."""
        return self.since == self.until

    @property
    def behind(self) -> int:
        """How many responses are left of that."""
        return max(0, self.total - self.past.answers)


@dataclass
class Follower(ABC, Generic[P]):
    """What is settled, by campaign and criterion, that which was asked for last at the end."""

    settled: dict[tuple[int, int], Settled[P]] = field(default_factory=dict)

    @abstractmethod
    async def begun(self, connection: AsyncConnection, campaign: Any) -> P:
        """Of a launched campaign before its first answer."""

    async def answers(self, connection: AsyncConnection, campaign: Any, **which: Any) -> list[tuple[int, Hit]]:
        """Numbers of such responses, and how this follows them; which: see `stream.responses`."""
        found = await responses(connection, campaign.id, criterion=number_of(campaign), **which)
        return [(one.seq, self.read(campaign, one)) for one in found]

    def read(self, campaign: Any, response: Response) -> Hit:
        """A response as this follows it: its values on 0 to 1, whatever the law reads."""
        return Hit(response.annotator, response.items, design_of(campaign).shares(response.values))

    @abstractmethod
    def followed(self, past: P, hits: list[Hit], total: int) -> P:
        """After these HITs too, of `total` that there are. A thread runs it; it leaves `past` as it is."""

    async def newest(
        self, connection: AsyncConnection, campaign: Any, *, clock: Callable[[], float] = time.monotonic
    ) -> Settled[P]:
        """As of now, or as far as patience goes; the next call goes on with it."""
        deadline = clock() + PATIENCE_SECONDS
        known, looked = self.kept(campaign), False
        while known is None or not (known.done and looked):
            if known is None or known.done:
                known, looked = await self.looked(connection, campaign, known), True
            else:
                known = await self.further(connection, campaign, known)
                if clock() > deadline and not known.done:
                    break
        return known

    async def looked(self, connection: AsyncConnection, campaign: Any, known: Settled[P] | None) -> Settled[P]:
        """With what is new to be followed; from the beginning where nothing is known, or worth anything any more."""
        now, first, since = await look(connection, campaign.id, known.since if known else None)
        if known is None or since is None:
            self.settled.pop(key_of(campaign), None)
            return Settled(await self.begun(connection, campaign), None, now)
        found = Settled(known.past, now, now) if first is None else Settled(known.past, since, now, first - 1)
        return self.keep(campaign, found)

    async def further(self, connection: AsyncConnection, campaign: Any, known: Settled[P]) -> Settled[P]:
        """After some more of these responses."""
        after, since, until = known.seq, known.since, known.until
        rows = await self.answers(connection, campaign, after=after, since=since, until=until, limit=AT_ONCE)
        answers = known.past.answers + len(rows)
        total = known.total or answers
        if not known.total and len(rows) == AT_ONCE:
            total += await count(connection, campaign.id, after=rows[-1][0], since=since, until=until)
        past = await asyncio.to_thread(self.followed, known.past, [hit for _, hit in rows], total)
        last = len(rows) < AT_ONCE or answers == total
        further = Settled(past, until, until) if last else Settled(past, since, until, rows[-1][0], total)
        return self.keep(campaign, further)

    def kept(self, campaign: Any) -> Settled[P] | None:
        """What is settled of the campaign's revision, now asked for last."""
        known = self.settled.pop(key_of(campaign), None)
        if known is None or known.until.revision != campaign.revision:
            return None
        self.settled[key_of(campaign)] = known
        return known

    def keep(self, campaign: Any, known: Settled[P]) -> Settled[P]:
        """Of two that follow at once, the one that came further counts. Of too much, what nobody has asked for longest
        has to start again.
        """
        before = self.kept(campaign)
        if before is None or before.past.answers <= known.past.answers:
            self.settled[key_of(campaign)] = known
        room = MOST_BYTES - sum(one.past.nbytes for one in self.settled.values())
        while room < 0 and len(self.settled) > 1:
            room += self.settled.pop(next(iter(self.settled))).past.nbytes
        return known


@dataclass
class Precisions(Follower[Precision]):
    """How far annotators agree: the same whatever the law, and fast to follow.

    told: of each campaign and criterion, the typical interval that was asked for last, and as of which watermark.
    """

    told: dict[tuple[int, int], tuple[Watermark, float]] = field(default_factory=dict)

    async def typical(self, connection: AsyncConnection, campaign: Any, *, in_time: bool = True) -> float | None:
        """The typical interval as of now; None while the answers are being read.

        in_time: whether there is time to read what is not known yet.
        """
        since, interval = self.told.get(key_of(campaign), (None, 0.0))
        now, first, _ = await look(connection, campaign.id, since)
        if first is not None:
            known = await self.newest(connection, campaign) if in_time else None
            if known is None or known.behind:
                return None
            now, interval = known.until, await asyncio.to_thread(known.past.now)
        self.told[key_of(campaign)] = now, interval
        return interval

    async def begun(self, connection: AsyncConnection, campaign: Any) -> Precision:
        return precision.begun(law_of(campaign), await item_count(connection, campaign.id))

    def read(self, campaign: Any, response: Response) -> Hit:
        """None of its values where they have no order, and so no mean."""
        return super().read(campaign, response) if design_of(campaign).ordered else Hit(response.annotator, [], [])

    def followed(self, past: Precision, hits: list[Hit], total: int) -> Precision:
        """How far annotators agree by then."""
        return precision.followed(past, hits, total=total)


class Courses(Follower[Course]):
    """The posteriors by a replay of the campaign's law, for what they were earlier."""

    async def begun(self, connection: AsyncConnection, campaign: Any) -> Course:
        """The priors."""
        return course.begun(await replay.begun(connection, campaign))

    def read(self, campaign: Any, response: Response) -> Hit:
        """As the campaign's law takes it."""
        return hit_of(campaign, response)

    def followed(self, past: Course, hits: list[Hit], total: int) -> Course:  # noqa: ARG002  (it depends on no total)
        """The posteriors by then."""
        return course.followed(past, hits)


class ImpliedPairs(Follower[Implied]):
    """What annotators' own answers imply, of designs that compare pairs."""

    async def begun(self, connection: AsyncConnection, campaign: Any) -> Implied:  # noqa: ARG002  (nothing)
        """Nothing."""
        return Implied()

    def followed(self, past: Implied, hits: list[Hit], total: int) -> Implied:  # noqa: ARG002  (it depends on no total)
        """What they imply by then."""
        return implied.followed(past, hits)


class Halos(Follower[HaloSoFar]):
    """How far criteria are judged apart; ask for it by the first of them."""

    async def begun(self, connection: AsyncConnection, campaign: Any) -> HaloSoFar:
        count = await item_count(connection, campaign.id)
        return HaloSoFar(HaloSums.nothing(count, len(campaign.criteria)))

    async def answers(self, connection: AsyncConnection, campaign: Any, **which: Any) -> list[tuple[int, Hit]]:
        """By all criteria together."""
        parts = [await super(Halos, self).answers(connection, one, **which) for one in criteria_of(campaign)]
        return [(said[0][0], halo.in_one([hit for _, hit in said])) for said in zip(*parts, strict=True)]

    def followed(self, past: HaloSoFar, hits: list[Hit], total: int) -> HaloSoFar:  # noqa: ARG002  (of no total)
        """What they add up to by then."""
        return halo.followed(past, hits)


@dataclass(frozen=True)
class Followers:
    """All that is kept up with."""

    precisions: Precisions = field(default_factory=Precisions)
    courses: Courses = field(default_factory=Courses)
    implied: ImpliedPairs = field(default_factory=ImpliedPairs)
    halos: Halos = field(default_factory=Halos)
