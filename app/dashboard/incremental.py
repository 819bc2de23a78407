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

from app.analysis.load_answers import count_items_of_campaign
from app.dashboard import halo, history, implied, precision
from app.dashboard.halo import HaloState
from app.dashboard.history import PosteriorHistory
from app.dashboard.implied import ImpliedState
from app.dashboard.precision import Precision
from app.designs.criteria import criterion_key, criterion_number, criterion_views
from app.designs.registry import design_of
from app.inference.agreement.halo import HaloSums
from app.inference.online.law import AnsweredHit
from app.record import replay
from app.record.campaign_law import law_hit, law_of
from app.record.changes import Watermark, poll_changes
from app.record.responses import Response, count_responses, load_responses

MAX_REPLAY_BYTES = 500_000_000  # in memory at once of each kind of past; one campaign is kept whatever it takes
RESPONSES_PER_REPLAY_BATCH = 1_000  # responses that are read and followed between two looks at the clock
REPLAY_BUDGET_SECONDS = 0.3


class ReplayedState(Protocol):
    """What follows from a campaign's first responses; answers: how many those are. nbytes: of memory, about."""

    @property
    def answers(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


P = TypeVar("P", bound=ReplayedState)


@dataclass(frozen=True)
class ReplayPosition(Generic[P]):
    """What follows from the responses that count: those written before the watermark `since`, and of those written
    between it and `until` the ones with numbers up to `seq`. total: how many there are before `until`, once it is
    known.

    So a response may follow one with a higher number, but none that it shares an item with, nor any under a law that
    keeps more than posteriors: these wait for each other. The order of others makes no difference to any item, to the
    last bit; a point of a curve may count one of them for the other.
    """

    state: P
    since: Watermark | None
    until: Watermark
    seq: int = 0
    total: int = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left of what was found at the last look."""
        return self.since == self.until

    @property
    def remaining(self) -> int:
        """How many responses are left of that."""
        return max(0, self.total - self.state.answers)


@dataclass
class IncrementalReplay(ABC, Generic[P]):
    """What is settled, by campaign and criterion, that which was asked for last at the end."""

    positions: dict[tuple[int, int], ReplayPosition[P]] = field(default_factory=dict)

    @abstractmethod
    async def initial_state(self, connection: AsyncConnection, campaign: Any) -> P:
        """Of a launched campaign before its first answer."""

    async def load_hits(
        self, connection: AsyncConnection, campaign: Any, **filters: Any
    ) -> list[tuple[int, AnsweredHit]]:
        """Numbers of such responses, and how this follows them; which: see `stream.responses`."""
        found_responses = await load_responses(connection, campaign.id, criterion=criterion_number(campaign), **filters)
        return [(one.seq, self.response_to_hit(campaign, one)) for one in found_responses]

    def response_to_hit(self, campaign: Any, response: Response) -> AnsweredHit:
        """A response as this follows it: its values on 0 to 1, whatever the law reads."""
        return AnsweredHit(response.annotator, response.items, design_of(campaign).to_shares(response.values))

    @abstractmethod
    def extend_state(self, state: P, hits: list[AnsweredHit], total: int) -> P:
        """After these HITs too, of `total` that there are. A thread runs it; it leaves `past` as it is."""

    async def load_newest(
        self, connection: AsyncConnection, campaign: Any, *, clock: Callable[[], float] = time.monotonic
    ) -> ReplayPosition[P]:
        """As of now, or as far as patience goes; the next call goes on with it."""
        deadline = clock() + REPLAY_BUDGET_SECONDS
        position, has_looked = self.cached_position(campaign), False
        while position is None or not (position.is_done and has_looked):
            if position is None or position.is_done:
                position, has_looked = await self.find_new_responses(connection, campaign, position), True
            else:
                position = await self.replay_batch(connection, campaign, position)
                if clock() > deadline and not position.is_done:
                    break
        return position

    async def find_new_responses(
        self, connection: AsyncConnection, campaign: Any, position: ReplayPosition[P] | None
    ) -> ReplayPosition[P]:
        """With what is new to be followed; from the beginning where nothing is known, or worth anything any more."""
        watermark, first_new_seq, since = await poll_changes(
            connection, campaign.id, position.since if position else None
        )
        if position is None or since is None:
            self.positions.pop(criterion_key(campaign), None)
            return ReplayPosition(await self.initial_state(connection, campaign), None, watermark)
        new_position = (
            ReplayPosition(position.state, watermark, watermark)
            if first_new_seq is None
            else ReplayPosition(position.state, since, watermark, first_new_seq - 1)
        )
        return self.cache_position(campaign, new_position)

    async def replay_batch(
        self, connection: AsyncConnection, campaign: Any, position: ReplayPosition[P]
    ) -> ReplayPosition[P]:
        """After some more of these responses."""
        after, since, until = position.seq, position.since, position.until
        rows = await self.load_hits(
            connection, campaign, after=after, since=since, until=until, limit=RESPONSES_PER_REPLAY_BATCH
        )
        answers = position.state.answers + len(rows)
        total = position.total or answers
        if not position.total and len(rows) == RESPONSES_PER_REPLAY_BATCH:
            total += await count_responses(connection, campaign.id, after=rows[-1][0], since=since, until=until)
        state = await asyncio.to_thread(self.extend_state, position.state, [hit for _, hit in rows], total)
        is_last_batch = len(rows) < RESPONSES_PER_REPLAY_BATCH or answers == total
        new_position = (
            ReplayPosition(state, until, until)
            if is_last_batch
            else ReplayPosition(state, since, until, rows[-1][0], total)
        )
        return self.cache_position(campaign, new_position)

    def cached_position(self, campaign: Any) -> ReplayPosition[P] | None:
        """What is settled of the campaign's revision, now asked for last."""
        position = self.positions.pop(criterion_key(campaign), None)
        if position is None or position.until.revision != campaign.revision:
            return None
        self.positions[criterion_key(campaign)] = position
        return position

    def cache_position(self, campaign: Any, position: ReplayPosition[P]) -> ReplayPosition[P]:
        """Of two that follow at once, the one that came further counts. Of too much, what nobody has asked for longest
        has to start again.
        """
        cached = self.cached_position(campaign)
        if cached is None or cached.state.answers <= position.state.answers:
            self.positions[criterion_key(campaign)] = position
        free_bytes = MAX_REPLAY_BYTES - sum(one.state.nbytes for one in self.positions.values())
        while free_bytes < 0 and len(self.positions) > 1:
            free_bytes += self.positions.pop(next(iter(self.positions))).state.nbytes
        return position


@dataclass
class PrecisionReplay(IncrementalReplay[Precision]):
    """How far annotators agree: the same whatever the law, and fast to follow.

    told: of each campaign and criterion, the typical interval that was asked for last, and as of which watermark.
    """

    typical_intervals: dict[tuple[int, int], tuple[Watermark, float]] = field(default_factory=dict)

    async def load_typical_interval(
        self, connection: AsyncConnection, campaign: Any, *, in_time: bool = True
    ) -> float | None:
        """The typical interval as of now; None while the answers are being read.

        in_time: whether there is time to read what is not known yet.
        """
        since, interval = self.typical_intervals.get(criterion_key(campaign), (None, 0.0))
        watermark, first_new_seq, _ = await poll_changes(connection, campaign.id, since)
        if first_new_seq is not None:
            position = await self.load_newest(connection, campaign) if in_time else None
            if position is None or position.remaining:
                return None
            watermark, interval = position.until, await asyncio.to_thread(position.state.newest_typical_interval)
        self.typical_intervals[criterion_key(campaign)] = watermark, interval
        return interval

    async def initial_state(self, connection: AsyncConnection, campaign: Any) -> Precision:
        return precision.initial_precision(law_of(campaign), await count_items_of_campaign(connection, campaign.id))

    def response_to_hit(self, campaign: Any, response: Response) -> AnsweredHit:
        """None of its values where they have no order, and so no mean."""
        return (
            super().response_to_hit(campaign, response)
            if design_of(campaign).is_ordered
            else AnsweredHit(response.annotator, [], [])
        )

    def extend_state(self, state: Precision, hits: list[AnsweredHit], total: int) -> Precision:
        """How far annotators agree by then."""
        return precision.extend_precision(state, hits, total=total)


class HistoryReplay(IncrementalReplay[PosteriorHistory]):
    """The posteriors by a replay of the campaign's law, for what they were earlier."""

    async def initial_state(self, connection: AsyncConnection, campaign: Any) -> PosteriorHistory:
        """The priors."""
        return history.initial_history(await replay.initial_beliefs(connection, campaign))

    def response_to_hit(self, campaign: Any, response: Response) -> AnsweredHit:
        """As the campaign's law takes it."""
        return law_hit(campaign, response)

    def extend_state(self, state: PosteriorHistory, hits: list[AnsweredHit], total: int) -> PosteriorHistory:  # noqa: ARG002  (it depends on no total)
        """The posteriors by then."""
        return history.extend_history(state, hits)


class ImpliedPairsReplay(IncrementalReplay[ImpliedState]):
    """What annotators' own answers imply, of designs that compare pairs."""

    async def initial_state(self, connection: AsyncConnection, campaign: Any) -> ImpliedState:  # noqa: ARG002  (nothing)
        """Nothing."""
        return ImpliedState()

    def extend_state(self, state: ImpliedState, hits: list[AnsweredHit], total: int) -> ImpliedState:  # noqa: ARG002  (it depends on no total)
        """What they imply by then."""
        return implied.extend_implied(state, hits)


class HaloReplay(IncrementalReplay[HaloState]):
    """How far criteria are judged apart; ask for it by the first of them."""

    async def initial_state(self, connection: AsyncConnection, campaign: Any) -> HaloState:
        count = await count_items_of_campaign(connection, campaign.id)
        return HaloState(HaloSums.empty(count, len(campaign.criteria)))

    async def load_hits(
        self, connection: AsyncConnection, campaign: Any, **filters: Any
    ) -> list[tuple[int, AnsweredHit]]:
        """By all criteria together."""
        hits_by_criterion = [
            await super(HaloReplay, self).load_hits(connection, criterion_view, **filters)
            for criterion_view in criterion_views(campaign)
        ]
        return [
            (numbered_hits[0][0], halo.merge_criteria_hits([hit for _, hit in numbered_hits]))
            for numbered_hits in zip(*hits_by_criterion, strict=True)
        ]

    def extend_state(self, state: HaloState, hits: list[AnsweredHit], total: int) -> HaloState:  # noqa: ARG002  (of no total)
        """What they add up to by then."""
        return halo.extend_halo(state, hits)


@dataclass(frozen=True)
class IncrementalReplays:
    """All that is kept up with."""

    precisions: PrecisionReplay = field(default_factory=PrecisionReplay)
    histories: HistoryReplay = field(default_factory=HistoryReplay)
    implied: ImpliedPairsReplay = field(default_factory=ImpliedPairsReplay)
    halos: HaloReplay = field(default_factory=HaloReplay)
