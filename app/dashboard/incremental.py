"""Incremental replays: results of all responses, updated with each new one, for the campaigns that this process shows.

Each response is read once: settled results are kept, so each poll reads only the new responses. After a start of the
server, a long campaign is caught up with in steps of a part of a second, and no page waits for the whole of it.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.calibrated_intervals import load_goal_item_numbers_and_scores
from app.analysis.load_answers import count_items_of_campaign
from app.dashboard import halo, history, implied, precision
from app.dashboard.halo import HaloState
from app.dashboard.history import PosteriorHistory
from app.dashboard.implied import ImpliedState
from app.dashboard.precision import Precision, can_measure_goal_quickly
from app.designs.campaign import Campaign, campaign_id_and_criterion_number
from app.designs.criteria import Criterion
from app.goals.progress import Progress, goal_progress_or_none, text_that_identifies_goal
from app.goals.settings import NO_GOAL
from app.inference.agreement.halo import HaloSums
from app.inference.online.law import AnsweredHit
from app.record import replay
from app.record.campaign_law import convert_response_to_hit_of_law
from app.record.changes import Watermark, poll_changes, poll_changes_of_campaigns
from app.record.responses import Response, count_responses_that_count, load_counted_responses

MAX_REPLAY_BYTES = 500_000_000  # for each kind of replay; one campaign is kept however large it is
RESPONSES_PER_REPLAY_BATCH = 1_000  # responses read between two checks of the clock
REPLAY_BUDGET_SECONDS = 0.3


class ReplayedState(Protocol):
    """Result of a campaign's first `answers` responses.

    Attributes:
        answers: Number of these responses.
        nbytes: Approximate memory, in bytes.

    """

    @property
    def answers(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


P = TypeVar("P", bound=ReplayedState)


@dataclass(frozen=True)
class ReplayPosition(Generic[P]):
    """Result of the counting responses that were read so far.

    These are the responses written before the watermark `since` and, of those written between `since` and `until`, the
    ones with numbers up to `seq`.

    So a response may be replayed after one with a higher number, but never after one that shares an item with it, nor
    under a law that keeps more than posteriors: such responses wait for each other when they are written. The order of
    others makes no difference to any item, to the last bit; a point of a curve may count one of them for the other.

    Attributes:
        state: Result of these responses.
        since: Watermark before which everything is read; None at the beginning.
        until: Watermark of the last poll.
        seq: Number of the last response read between the two watermarks.
        total: Number of responses before `until`, 0 until it is known.

    """

    state: P
    since: Watermark | None
    until: Watermark
    seq: int = 0
    total: int = 0

    @property
    def is_done(self) -> bool:
        """True if all responses of the last poll are read."""
        return self.since == self.until

    @property
    def remaining_response_count(self) -> int:
        """Number of responses of the last poll that are not read yet."""
        return max(0, self.total - self.state.answers)


@dataclass
class IncrementalReplay(ABC, Generic[P]):
    """Positions of one kind of replay, by campaign and criterion; the position used last is at the end."""

    positions: LRUCache[tuple[int, int], ReplayPosition[P]] = field(
        default_factory=lambda: LRUCache(
            MAX_REPLAY_BYTES, lambda position: min(position.state.nbytes, MAX_REPLAY_BYTES)
        )
    )

    @abstractmethod
    async def initial_state(self, connection: AsyncConnection, criterion: Criterion[Campaign]) -> P:
        """Return the state of a launched campaign before its first answer."""

    async def load_numbered_hits(
        self, connection: AsyncConnection, criterion: Criterion[Campaign], **filters: Any
    ) -> list[tuple[int, AnsweredHit]]:
        """Load responses as numbered HITs for this replay; for `filters` see `load_counted_responses`."""
        responses = await load_counted_responses(
            connection, criterion.campaign.id, criterion=criterion.number, **filters
        )
        return [(response.seq, self.response_to_hit(criterion, response)) for response in responses]

    def response_to_hit(self, criterion: Criterion[Campaign], response: Response) -> AnsweredHit:
        """Return a response as a HIT for this replay: its values on 0 to 1, whatever the law reads."""
        return AnsweredHit(response.annotator, response.items, criterion.design.values_to_scale_shares(response.values))

    @abstractmethod
    def state_after_hits(self, state: P, hits: list[AnsweredHit], total: int) -> P:
        """Return the state after these HITs too, out of `total`. Runs in a thread and must not change `state`."""

    async def replay_new_answers_and_return_position(
        self,
        connection: AsyncConnection,
        criterion: Criterion[Campaign],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> ReplayPosition[P]:
        """Return the position as of now, or as far as `REPLAY_BUDGET_SECONDS` allow; the next call continues from
        there.
        """
        deadline = clock() + REPLAY_BUDGET_SECONDS
        position, has_polled = self.cached_position_of_revision_or_none(criterion), False
        while position is None or not (position.is_done and has_polled):
            if position is None or position.is_done:
                position, has_polled = await self.load_position_after_polling(connection, criterion, position), True
            else:
                position = await self.load_position_after_next_batch(connection, criterion, position)
                if clock() > deadline and not position.is_done:
                    break
        return position

    async def load_position_after_polling(
        self, connection: AsyncConnection, criterion: Criterion[Campaign], position: ReplayPosition[P] | None
    ) -> ReplayPosition[P]:
        """Poll for new responses; start from the beginning where there is no position, or the position is stale."""
        watermark, first_new_seq, since = await poll_changes(
            connection, criterion.campaign.id, position.since if position else None
        )
        if position is None or since is None:
            self.positions.pop(campaign_id_and_criterion_number(criterion), None)
            return ReplayPosition(await self.initial_state(connection, criterion), None, watermark)
        new_position = (
            ReplayPosition(position.state, watermark, watermark)
            if first_new_seq is None
            else ReplayPosition(position.state, since, watermark, first_new_seq - 1)
        )
        return self.cache_position_unless_behind(criterion, new_position)

    async def load_position_after_next_batch(
        self, connection: AsyncConnection, criterion: Criterion[Campaign], position: ReplayPosition[P]
    ) -> ReplayPosition[P]:
        """Replay the next batch of the responses found."""
        after, since, until = position.seq, position.since, position.until
        rows = await self.load_numbered_hits(
            connection, criterion, after=after, since=since, until=until, limit=RESPONSES_PER_REPLAY_BATCH
        )
        answers = position.state.answers + len(rows)
        total = position.total or answers
        if not position.total and len(rows) == RESPONSES_PER_REPLAY_BATCH:
            total += await count_responses_that_count(
                connection, criterion.campaign.id, after_seq=rows[-1][0], since=since, until=until
            )
        state = await asyncio.to_thread(self.state_after_hits, position.state, [hit for _, hit in rows], total)
        is_last_batch = len(rows) < RESPONSES_PER_REPLAY_BATCH or answers == total
        new_position = (
            ReplayPosition(state, until, until)
            if is_last_batch
            else ReplayPosition(state, since, until, rows[-1][0], total)
        )
        return self.cache_position_unless_behind(criterion, new_position)

    def cached_position_of_revision_or_none(self, criterion: Criterion[Campaign]) -> ReplayPosition[P] | None:
        """Return the cached position if it is of the campaign's revision."""
        position = self.positions.get(campaign_id_and_criterion_number(criterion))
        return position if position is not None and position.until.revision == criterion.campaign.revision else None

    def cache_position_unless_behind(
        self, criterion: Criterion[Campaign], position: ReplayPosition[P]
    ) -> ReplayPosition[P]:
        """Cache the position unless a concurrent replay has read more answers; return the position either way."""
        cached = self.cached_position_of_revision_or_none(criterion)
        if cached is None or cached.state.answers <= position.state.answers:
            self.positions[campaign_id_and_criterion_number(criterion)] = position
        return position


@dataclass
class PrecisionReplay(IncrementalReplay[Precision]):
    """Replay of how far annotators agree: the same whatever the law, and fast.

    Attributes:
        typical_intervals: Last typical interval by campaign and criterion, with the watermark at which it was computed.
        goal_progress: Last progress towards the goal by campaign, with the goal as it is stored; None if it would take
            too long to compute.

    """

    typical_intervals: dict[tuple[int, int], tuple[Watermark, float]] = field(default_factory=dict)
    goal_progress: dict[int, tuple[str, Progress | None]] = field(default_factory=dict)

    async def load_typical_half_widths(
        self,
        connection: AsyncConnection,
        criteria: Sequence[Criterion[Campaign]],
        *,
        may_read_new_answers: Callable[[], bool] = lambda: True,
    ) -> list[float | None]:
        """Return the median half width of the items' intervals by each criterion as of now.

        None while answers are being read. One statement finds all criteria with new answers, and only those are read.

        Args:
            connection: An open connection.
            criteria: Criteria of any campaigns.
            may_read_new_answers: Returns False when there is no time to read more new answers.

        """
        known_intervals = [
            self.typical_intervals.get(campaign_id_and_criterion_number(criterion), (None, 0.0))
            for criterion in criteria
        ]
        watermarks = [
            (criterion.campaign.id, watermark)
            for criterion, (watermark, _) in zip(criteria, known_intervals, strict=True)
        ]
        polls = await poll_changes_of_campaigns(connection, watermarks)
        half_widths: list[float | None] = []
        for criterion, poll, (_, interval) in zip(criteria, polls, known_intervals, strict=True):
            if poll is not None and poll.first_new_seq is None:
                self.typical_intervals[campaign_id_and_criterion_number(criterion)] = poll.watermark, interval
                half_widths.append(interval)
            elif poll is not None and may_read_new_answers():
                half_widths.append(await self.read_new_answers_and_return_half_width_or_none(connection, criterion))
            else:
                half_widths.append(None)
        return half_widths

    async def read_new_answers_and_return_half_width_or_none(
        self, connection: AsyncConnection, criterion: Criterion[Campaign]
    ) -> float | None:
        """Return the median half width after the new answers; None if there is no time to read all of them."""
        position = await self.replay_new_answers_and_return_position(connection, criterion)
        if position.remaining_response_count:
            return None
        interval = await asyncio.to_thread(position.state.newest_median_half_width)
        if criterion.campaign.goal != NO_GOAL and criterion.number == criterion.campaign.goal_criterion.number:
            await self.recompute_and_cache_goal_progress(connection, criterion.campaign, position.state)
        self.typical_intervals[campaign_id_and_criterion_number(criterion)] = position.until, interval
        return interval

    async def recompute_and_cache_goal_progress(
        self, connection: AsyncConnection, campaign: Campaign, current_precision: Precision
    ) -> None:
        """Compute the progress towards a campaign's goal again, after new answers."""
        progress = None
        if can_measure_goal_quickly(current_precision.evidence):
            items, scores = await load_goal_item_numbers_and_scores(connection, campaign)
            estimates = current_precision.evidence.goal_estimates(campaign, current_precision.intervals)
            progress = await asyncio.to_thread(
                goal_progress_or_none, campaign, estimates.estimates.select_items(items), scores, estimates.source
            )
        self.goal_progress[campaign.id] = text_that_identifies_goal(campaign), progress

    def cached_goal_progress_or_none(self, campaign: Campaign) -> Progress | None:
        """Return the progress at the last answers that were read; None if it is unknown, or the goal has changed."""
        goal_text, progress = self.goal_progress.get(campaign.id, ("", None))
        return progress if campaign.goal != NO_GOAL and goal_text == text_that_identifies_goal(campaign) else None

    async def initial_state(self, connection: AsyncConnection, criterion: Criterion[Campaign]) -> Precision:
        return precision.initial_precision(
            criterion.law, await count_items_of_campaign(connection, criterion.campaign.id)
        )

    def response_to_hit(self, criterion: Criterion[Campaign], response: Response) -> AnsweredHit:
        """Drop values of unordered designs: they have no mean."""
        return (
            super().response_to_hit(criterion, response)
            if criterion.design.is_ordered
            else AnsweredHit(response.annotator, [], [])
        )

    def state_after_hits(self, state: Precision, hits: list[AnsweredHit], total: int) -> Precision:
        return precision.precision_after_hits(state, hits, total=total)


class HistoryReplay(IncrementalReplay[PosteriorHistory]):
    """Replay of the campaign's law, which also tells earlier posteriors."""

    async def initial_state(self, connection: AsyncConnection, criterion: Criterion[Campaign]) -> PosteriorHistory:
        return history.initial_history(await replay.load_initial_beliefs(connection, criterion))

    def response_to_hit(self, criterion: Criterion[Campaign], response: Response) -> AnsweredHit:
        """Return the response as the campaign's law reads it."""
        return convert_response_to_hit_of_law(criterion, response)

    def state_after_hits(self, state: PosteriorHistory, hits: list[AnsweredHit], total: int) -> PosteriorHistory:  # noqa: ARG002  (it depends on no total)
        return history.posterior_history_after_hits(state, hits)


class ImpliedPairsReplay(IncrementalReplay[ImpliedState]):
    """Replay of the pairs that annotators' own answers imply, for designs that compare pairs."""

    async def initial_state(self, connection: AsyncConnection, criterion: Criterion[Campaign]) -> ImpliedState:  # noqa: ARG002  (nothing depends on them)
        return ImpliedState()

    def state_after_hits(self, state: ImpliedState, hits: list[AnsweredHit], total: int) -> ImpliedState:  # noqa: ARG002  (it depends on no total)
        return implied.implied_state_after_hits(state, hits)


class HaloReplay(IncrementalReplay[HaloState]):
    """Replay of how far criteria are judged apart; callers pass the first criterion."""

    async def initial_state(self, connection: AsyncConnection, criterion: Criterion[Campaign]) -> HaloState:
        count = await count_items_of_campaign(connection, criterion.campaign.id)
        return HaloState(HaloSums.empty(count, len(criterion.campaign.criteria)))

    async def load_numbered_hits(
        self, connection: AsyncConnection, criterion: Criterion[Campaign], **filters: Any
    ) -> list[tuple[int, AnsweredHit]]:
        """Load HITs with the values of all criteria together."""
        hits_by_criterion = [
            await super(HaloReplay, self).load_numbered_hits(connection, part, **filters)
            for part in criterion.campaign.criteria
        ]
        return [
            (numbered_hits[0][0], halo.merge_criteria_hits([hit for _, hit in numbered_hits]))
            for numbered_hits in zip(*hits_by_criterion, strict=True)
        ]

    def state_after_hits(self, state: HaloState, hits: list[AnsweredHit], total: int) -> HaloState:  # noqa: ARG002  (it depends on no total)
        return halo.halo_state_after_hits(state, hits)


@dataclass(frozen=True)
class IncrementalReplays:
    precisions: PrecisionReplay = field(default_factory=PrecisionReplay)
    histories: HistoryReplay = field(default_factory=HistoryReplay)
    implied: ImpliedPairsReplay = field(default_factory=ImpliedPairsReplay)
    halos: HaloReplay = field(default_factory=HaloReplay)
