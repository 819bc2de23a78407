"""The rule for comparisons whose reliability is measured: items equally often, each time with other items.

It never looks at scores. The HITs are those of a `BalancedPlan`; where an annotator cannot be asked a HIT of the plan
as a whole, the least judged items are drawn at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.selection.balanced_plan import BalancedPlan
from app.selection.companions import Companions
from app.selection.even_rule import FEWEST_JUDGMENTS, LeastJudgedCompanions, LeastJudgedLeaders, sizes_of_fewest_hits
from app.selection.index import AlgorithmOne, ItemNumbers, SelectionIndex
from app.selection.item_sets import ItemSet
from app.selection.open_items import OpenItems
from app.selection.rule import (
    Counts,
    Draw,
    ItemValues,
    PairFilter,
    SelectionSettings,
    make_draw_in_random_order,
    read_only_union_of_sets,
)

MAX_PLANNED_TRIES = 200  # leaders whose planned HIT is examined for one draw
FIRST_PLAN_REASON = (FEWEST_JUDGMENTS, 1.0)  # HITs of a plan are not drawn


class RandomCompanions(LeastJudgedCompanions):
    """Companions uniformly at random, first from the items with the fewest judgments."""

    def _make_companions_drawn_by_match_quality(self, items: ItemNumbers) -> Companions:
        count = len(self._known.score)  # all items are alike, and so the arrays take no memory
        score, variance = np.broadcast_to(0.0, count), np.broadcast_to(1.0, count)
        return Companions(items, score, variance, 1.0, places=self._places)


def make_leaders_and_random_companions(
    _settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[LeastJudgedLeaders, RandomCompanions]:
    """Make pools in which the least judged item leads, with random companions among the least judged."""
    return LeastJudgedLeaders(items, open_items.judgments), RandomCompanions(items, open_items, gamma=1.0)


class BalancedIndex(SelectionIndex):
    """Draws the HIT of the plan that the least judged leader leads in the round of its number of judgments."""

    def __init__(self, values: ItemValues, settings: SelectionSettings) -> None:
        super().__init__(values, settings, make_pools=make_leaders_and_random_companions, reason=FEWEST_JUDGMENTS)
        self._plan = BalancedPlan(len(values.score), settings.items_per_hit)

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
        """Draw a HIT of the plan if the annotator has seen none of its items, else one of the least judged items."""
        if n == self._plan.size and not initial_items and pair_filter is None:
            hit = self._draw_planned_hit_or_none(read_only_union_of_sets(seen, full), leaders_to_avoid, rng)
            if hit is not None:
                return make_draw_in_random_order(hit, rng, (FEWEST_JUDGMENTS, None))
        return super().draw_hit_or_none(
            n,
            seen=seen,
            full=full,
            leaders_to_avoid=leaders_to_avoid,
            seen_as_last_resort=seen_as_last_resort,
            initial_items=initial_items,
            pair_filter=pair_filter,
            rng=rng,
        )

    def _draw_planned_hit_or_none(
        self, barred: ItemSet, leaders_to_avoid: set[int], rng: np.random.Generator
    ) -> list[int] | None:
        excluded = barred | leaders_to_avoid
        for tries, leader in enumerate(self.leaders.iterate_free_leaders_by_gain(excluded, rng)):
            excluded.add(leader)
            hit = self._plan.planned_hit_of_leader_or_none(leader, self.judgments.item(leader))
            if hit is not None and all(self._wants_judgments(item) and item not in barred for item in hit):
                missing = self._plan.size - len(hit)
                hit += (
                    self.companions.draw_companions(leader, missing, barred, rng, chosen_items=hit) if missing else []
                )
                if len(hit) == self._plan.size:
                    return hit
            if tries == MAX_PLANNED_TRIES:
                break
        return None


@dataclass(frozen=True, slots=True)
class BalancedRule(AlgorithmOne):
    """Rule whose iterations are the rounds of the plan."""

    def make_selection_index(self, values: ItemValues, settings: SelectionSettings) -> BalancedIndex:
        return BalancedIndex(values, settings)

    def schedule_hits_of_iteration(
        self, values: ItemValues, settings: SelectionSettings, *, iteration: int, rng: np.random.Generator
    ) -> list[Draw]:
        room = settings.judgments_per_item - values.judgments_with_undrawn_items_as_full(settings)
        plan = BalancedPlan(len(room), settings.items_per_hit)
        hits = hits_without_full_items(planned_hits_of_iteration(plan, settings, iteration), room)
        if not hits:  # the plan has passed the items that fell behind
            hits = [[item] for item in np.flatnonzero(room > 0).tolist()]
        hits = full_hits_and_regrouped_short_hits(hits, settings.items_per_hit, rng)[: settings.hits_per_iteration]
        return [
            make_draw_in_random_order(hit, rng, FIRST_PLAN_REASON) for hit in hits if len(hit) >= settings.min_items
        ]


def planned_hits_of_iteration(plan: BalancedPlan, settings: SelectionSettings, iteration: int) -> list[list[int]]:
    """Return the HITs of an iteration: a round, or the next `hits_per_iteration` HITs of the plan."""
    if settings.hits_per_iteration is None:
        return plan.hits_of_round(iteration)
    start = iteration * settings.hits_per_iteration
    per_round = len(plan.hits_of_round(0))
    places = [divmod(place, per_round) for place in range(start, start + settings.hits_per_iteration)]
    rounds = {number: plan.hits_of_round(number) for number, _ in places}
    return [rounds[number][row] for number, row in places]


def hits_without_full_items(hits: list[list[int]], room: Counts) -> list[list[int]]:
    """Return the HITs with the items that want more judgments than earlier HITs give them; `room` is (N,)."""
    left = room.copy()
    kept_hits = []
    for hit in hits:
        kept = [item for item in hit if left[item] > 0]
        left[kept] -= 1
        kept_hits += [kept] if kept else []
    return kept_hits


def full_hits_and_regrouped_short_hits(hits: list[list[int]], size: int, rng: np.random.Generator) -> list[list[int]]:
    """Return the full HITs, and HITs about as long as each other of the items in short ones."""
    full = [hit for hit in hits if len(hit) == size]
    rest = [item for hit in hits if len(hit) < size for item in hit]
    distinct = rng.permutation(list(dict.fromkeys(rest))).tolist()
    ends = np.cumsum([0, *sizes_of_fewest_hits(len(distinct), size)]) if distinct else np.zeros(1, np.intp)
    return full + [distinct[start:stop] for start, stop in pairwise(ends.tolist())]


BALANCED_RULE = BalancedRule(
    "balanced",
    "Balanced: ask about all items equally often, each time with other items",
    make_pools=make_leaders_and_random_companions,
    matches_by_score=False,
    reason=FEWEST_JUDGMENTS,
)
