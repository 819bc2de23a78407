"""Algorithm 1 of Sakaguchi & Van Durme 2018, one HIT at a time or an iteration at once.

The least certain item (highest variance) leads a HIT; its companions are drawn without replacement with probability
proportional to their match quality with it. Pure: arrays and small sets in, item numbers out. Nothing here is an
approximation; `companions` explains how a draw is exact and yet costs the same at every number of items.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.buckets import Pick
from app.selection.companions import Companions
from app.selection.item_sets import ItemSet
from app.selection.leaders import HighestVarianceLeaders, LeaderPool
from app.selection.open_items import OpenItems
from app.selection.rule import (
    BEGUN_HIT,
    Counts,
    Draw,
    DrawReason,
    ItemValues,
    PairFilter,
    SelectionSettings,
    make_draw_in_random_order,
    read_only_union_of_sets,
)

ItemNumbers = npt.NDArray[np.intp]

LEAST_CERTAIN = "least_certain"
FIRST_ROUND = "first_round"
MAX_LEADER_TRIES = (
    100  # leaders that a draw tries; the waiting annotator polls again, and leaders without companions are known then
)


class CompanionPool(Protocol):
    """Items that may be drawn as companions of a leader; see `Companions` for the methods."""

    def add(self, item: int) -> None: ...

    def remove(self, item: int) -> None: ...

    def draw_companions(
        self, leader: int, count: int, barred: ItemSet, rng: np.random.Generator, *, chosen_items: Collection[int] = ()
    ) -> list[int]: ...

    def require_consistency(self, items: ItemNumbers) -> None:
        """Raise ValueError unless just these items may be drawn. For tests."""


MakePools = Callable[[SelectionSettings, ItemNumbers, OpenItems], tuple[LeaderPool, CompanionPool]]


def make_highest_variance_leaders_and_companions(
    settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[LeaderPool, CompanionPool]:
    """Make pools in which the item of highest variance leads, with companions by match quality."""
    return HighestVarianceLeaders(items, open_items.variance), Companions(
        items, open_items.score, open_items.variance, settings.gamma
    )


class SelectionIndex(OpenItems):
    """One campaign's newest scores, variances and judgments, arranged so that draws are exact and fast.

    A draw costs the same at every number of items. Items that have all judgments they want are kept in the arrays
    alone, so a campaign near its end is fast too. The index may lag behind the database: it decides what to ask,
    nothing else.
    """

    def __init__(
        self,
        values: ItemValues,
        settings: SelectionSettings,
        *,
        make_pools: MakePools = make_highest_variance_leaders_and_companions,
        reason: str = LEAST_CERTAIN,
    ) -> None:
        """Arrange a campaign's items.

        `make_pools` makes the pools of leaders and companions from the items that want judgments. `reason` is why
        leaders lead.
        """
        super().__init__(values, settings)
        self.leaders, self.companions = make_pools(settings, self.open_item_numbers(), self)
        self._reason = reason

    @property
    def reason(self) -> str:
        """Reason why leaders lead, as HITs store it."""
        return self._reason

    @property
    def open_item_count(self) -> int:
        """Number of items that want judgments."""
        return len(self.leaders)

    def draw_hit_or_none(
        self,
        n: int,
        *,
        seen: set[int],
        full: ItemSet,
        leaders_to_avoid: set[int],
        seen_as_last_resort: bool,
        initial_items: Sequence[int] = (),
        pair_filter: PairFilter | None = None,
        rng: np.random.Generator,
    ) -> Draw | None:
        """Draw the next HIT of n >= 1 items for one annotator, shorter if fewer can be asked.

        Arguments and result are those of `rule.Index.draw_hit_or_none`.
        """
        exclusions = (
            (read_only_union_of_sets(seen, full), full)
            if seen_as_last_resort
            else (read_only_union_of_sets(seen, full),)
        )
        if pair_filter is not None:
            return self._draw_hit_of_first_leader_with_companion_or_none(
                n, exclusions, leaders_to_avoid, pair_filter, rng
            )
        chosen = [*initial_items]
        reason: DrawReason = BEGUN_HIT
        for barred in exclusions:
            if not chosen and (leader := self._draw_leader_or_none(barred, leaders_to_avoid, rng)):
                chosen, reason = [leader.item], (self.reason, leader.probability)
            if 0 < len(chosen) < n:
                chosen += self.companions.draw_companions(chosen[0], n - len(chosen), barred, rng, chosen_items=chosen)
        return make_draw_in_random_order(chosen, rng, reason) if chosen and len(chosen) >= self._fewest else None

    def require_consistency(self) -> None:
        """Raise ValueError unless the arrangement is that of the arrays. For tests."""
        wanted = self.open_item_numbers()
        self.leaders.require_consistency(wanted)
        self.companions.require_consistency(wanted)

    def _draw_hit_of_first_leader_with_companion_or_none(
        self,
        n: int,
        exclusions: Sequence[ItemSet],
        leaders_to_avoid: set[int],
        pair_filter: PairFilter,
        rng: np.random.Generator,
    ) -> Draw | None:
        """Draw the first leader who has a companion. Leaders without one are remembered and not tried again."""
        tried: set[int] = set()
        for barred in exclusions:
            for leader in self._iterate_leaders(barred | pair_filter.exhausted_leaders | tried, leaders_to_avoid, rng):
                excluded = pair_filter.items_never_asked_together_with(leader) | {leader}
                for barred_companions in exclusions:
                    if others := self.companions.draw_companions(leader, n - 1, barred_companions | excluded, rng):
                        return make_draw_in_random_order([leader, *others], rng, (self.reason, None))
                if not self.companions.draw_companions(leader, 1, excluded, rng):
                    pair_filter.exhausted_leaders.add(leader)
                tried.add(leader)
                if len(tried) == MAX_LEADER_TRIES:
                    return None
        return None

    def _iterate_leaders(self, barred: ItemSet, leaders_to_avoid: set[int], rng: np.random.Generator) -> Iterator[int]:
        """Yield leaders from the highest variance down; those that lead an open HIT come last."""
        tried: set[int] = set()
        for kept_back in (leaders_to_avoid, set()):
            excluded = barred | kept_back | tried
            for leader in self.leaders.iterate_free_leaders_by_gain(excluded, rng):
                tried.add(leader)
                excluded.add(leader)
                yield leader

    def _draw_leader_or_none(
        self, barred: ItemSet, leaders_to_avoid: set[int], rng: np.random.Generator
    ) -> Pick | None:
        leader = self.leaders.draw_leader_or_none(read_only_union_of_sets(barred, leaders_to_avoid), rng)
        return self.leaders.draw_leader_or_none(barred, rng) if leader is None and leaders_to_avoid else leader

    def _update_item(self, item: int, score: float, variance: float, judgments: int, status: int) -> None:
        if self._wants_judgments(item):
            self.leaders.remove(item)
            self.companions.remove(item)
        before = self.score.item(item), self.judgments.item(item), self.status.item(item)
        self._store_values(item, score, variance, judgments, status)
        self.leaders.record_value_change(item, *before)
        if self._wants_judgments(item):
            self.leaders.add(item)
            self.companions.add(item)


def draw_hits_of_first_iteration(
    judgments: npt.ArrayLike, *, judgments_per_item: int, items_per_hit: int, rng: np.random.Generator
) -> list[Draw]:
    """Cover every item that still wants judgments once: a random partition into HITs of `items_per_hit`.

    A short last HIT is filled with random others that want one judgment more than this iteration gives them; without
    such, HITs are as equal as possible. Judgments: (N,).
    """
    room = judgments_per_item - np.asarray(judgments, dtype=np.int64)
    order = rng.permutation(np.flatnonzero(room > 0))
    hits = [order[start : start + items_per_hit].tolist() for start in range(0, len(order), items_per_hit)]
    if hits:
        before = order[: -len(hits[-1])]
        spare = rng.permutation(before[room[before] > 1])
        hits[-1] += spare[: items_per_hit - len(hits[-1])].tolist()
        if len(spare) == 0:
            hits = [hit.tolist() for hit in np.array_split(order, len(hits))]
    return [make_draw_in_random_order(hit, rng, (FIRST_ROUND, 1.0)) for hit in hits]


def draw_hits_of_later_iteration(
    score: npt.ArrayLike,
    variance: npt.ArrayLike,
    judgments: npt.ArrayLike,
    *,
    judgments_per_item: int,
    items_per_hit: int,
    hits: int | None = None,
    gamma: float,
    leaders_as_companions: bool = False,
    leader_worth: npt.ArrayLike | None = None,
    reason: str = LEAST_CERTAIN,
    rng: np.random.Generator,
) -> list[Draw]:
    """Schedule an iteration led by the items of highest variance, or of highest `leader_worth` (Algorithm 1, lines 9 to
    21).

    The arrays are (N,). `hits` is the number of HITs, by default N / items_per_hit rounded down and at least 1, which
    gives about one judgment per item. Leaders are items that still want judgments, ties at random. Companions come from
    the items that lead no HIT of this iteration, with `leaders_as_companions` from all others. No item is scheduled
    beyond the judgments it wants; where that leaves too few companions, fewer items lead and HITs are shorter, but no
    item is asked alone if another one is wanted.
    """
    score, variance = np.asarray(score, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    room = judgments_per_item - np.asarray(judgments, dtype=np.int64)
    hits = max(1, len(room) // items_per_hit) if hits is None else hits
    hits = _count_items_that_can_lead(room[room > 0], hits, items_per_hit, leaders_as_companions=leaders_as_companions)
    leaders, probabilities = pick_items_of_highest_worth_and_probabilities(
        variance if leader_worth is None else np.asarray(leader_worth, np.float64), np.flatnonzero(room > 0), hits, rng
    )
    room[leaders] -= 1
    free = room > 0
    if not leaders_as_companions:
        free[leaders] = False
    companions = Companions(np.flatnonzero(free), score, variance, gamma)
    scheduled = [
        [leader, *_draw_companions_and_remove_full_ones(companions, leader, items_per_hit - 1, room, rng)]
        for leader in leaders
    ]
    _move_companions_to_lone_leaders(scheduled)
    return [make_draw_in_random_order(hit, rng, (reason, p)) for hit, p in zip(scheduled, probabilities, strict=True)]


def _count_items_that_can_lead(room: Counts, hits: int, n: int, *, leaders_as_companions: bool) -> int:
    """Return how many of the open items, which want `room` >= 1 judgments each, can lead a HIT of two items or more.

    At most `hits`, and no more than it takes to ask everything once. Where HITs are of one item, it leads.
    """
    if n == 1:
        return max(1, min(hits, len(room)))
    slots = int(np.minimum(room, hits).sum())
    max_hits = min(hits, math.ceil(slots / n), slots // 2)
    return max(1, max_hits if leaders_as_companions else min(max_hits, len(room) // 2))


def _move_companions_to_lone_leaders(hits: list[list[int]]) -> None:
    """Move the last companion of the longest HIT to each leader without a companion."""
    for hit in hits:
        if len(hit) == 1:
            longest = max(hits, key=len)
            if len(longest) > 2 and longest[-1] not in hit:
                hit.append(longest.pop())


def pick_items_of_highest_worth_and_probabilities(
    worth: Array, items: ItemNumbers, count: int, rng: np.random.Generator
) -> tuple[list[int], list[float]]:
    """Return the `count` items of highest worth, (N,), ties at random, and each one's probability of being picked."""
    order = np.lexsort((rng.random(len(items)), -worth[items]))
    chosen = items[order[:count]]
    last: npt.NDArray[np.bool_] = worth[chosen] == worth[chosen[-1:]]
    tied_count = int(np.count_nonzero(worth[items] == worth[chosen[-1:]]))
    return chosen.tolist(), np.where(last, np.count_nonzero(last) / max(tied_count, 1), 1.0).tolist()


def _draw_companions_and_remove_full_ones(
    companions: Companions, leader: int, count: int, room: Counts, rng: np.random.Generator
) -> list[int]:
    """Draw companions for one HIT; those without room for another judgment are removed from the pool."""
    drawn = companions.draw_companions(leader, count, {leader}, rng) if count else []
    room[drawn] -= 1
    for item in drawn:
        if room.item(item) == 0:
            companions.remove(item)
    return drawn


INDEX_BYTES_PER_ITEM = 60  # at most, under a rule whose index keeps its items in arrays of numbers


@dataclass(frozen=True, slots=True)
class AlgorithmOne:
    """Algorithm 1: the first iteration shows every item once, later ones are led by the items of highest variance; or,
    for another goal, by other items.

    Attributes:
        make_pools: As in `SelectionIndex`.
        leader_worth: Function of the items' values that returns (N,); items with the highest worth lead first.
        reason: Why leaders lead.

    """

    name: str = "easl"
    title: str = "Algorithm 1: start with the least certain item and add well-matched ones"
    reads_labels: bool = False
    reads_comparisons: bool = False
    needs_ordered_scores: bool = False
    needs_bounded_scores: bool = False
    for_systems_only: bool = False
    matches_by_score: bool = True
    index_bytes_per_item: int = INDEX_BYTES_PER_ITEM
    make_pools: MakePools = make_highest_variance_leaders_and_companions
    leader_worth: Callable[[SelectionSettings, ItemValues], Array] | None = None
    reason: str = LEAST_CERTAIN

    def make_selection_index(self, values: ItemValues, settings: SelectionSettings) -> SelectionIndex:
        """Return the index for drawing one HIT at a time."""
        return SelectionIndex(values, settings, make_pools=self.make_pools, reason=self.reason)

    def schedule_hits_of_iteration(
        self, values: ItemValues, settings: SelectionSettings, *, iteration: int, rng: np.random.Generator
    ) -> list[Draw]:
        judgments = values.judgments_with_undrawn_items_as_full(settings)
        if iteration == 0:
            hits = draw_hits_of_first_iteration(
                judgments, judgments_per_item=settings.judgments_per_item, items_per_hit=settings.items_per_hit, rng=rng
            )
        else:
            hits = draw_hits_of_later_iteration(
                values.score,
                values.variance,
                judgments,
                judgments_per_item=settings.judgments_per_item,
                items_per_hit=settings.items_per_hit,
                hits=settings.hits_per_iteration,
                gamma=settings.gamma,
                leaders_as_companions=settings.leaders_as_companions,
                leader_worth=self.leader_worth and self.leader_worth(settings, values),
                reason=self.reason,
                rng=rng,
            )
        return [hit for hit in hits if len(hit.items) >= settings.min_items]
