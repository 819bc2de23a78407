"""The rule for the whole scale: all items get the same number of judgments, and similar items share HITs.

Asking about some items more than about others does not order all of them better, on simulated and on real scores
(`python -m benchmarks.goals`): the items that annotators differ on most are seldom the ones with the least certain
rank. Asking more about those saves few judgments, and orders real scores worse while there are few (`python -m
benchmarks.neyman`).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from app.selection.buckets import Bucket, Buckets, Pick, make_empty_bucket
from app.selection.companions import Companions, ItemPlaces
from app.selection.index import AlgorithmOne, ItemNumbers, pick_items_of_highest_worth_and_probabilities
from app.selection.item_sets import ItemSet
from app.selection.leaders import iterate_bucket_in_random_order
from app.selection.open_items import OpenItems
from app.selection.rule import Counts, Draw, ItemValues, SelectionSettings, make_draw_in_random_order

FEWEST_JUDGMENTS = "fewest_judgments"


class LeastJudgedLeaders:
    """Items by number of judgments: an item with the fewest leads, ties uniformly at random."""

    def __init__(self, items: ItemNumbers, judgments: Counts) -> None:
        """Arrange `items`, the numbers that may lead; `judgments` is (N,), shared with the caller."""
        self._judgments, self._bags, self._size = judgments, Buckets(len(judgments)), len(items)
        items = items[np.argsort(judgments[items], kind="stable")]
        counts, starts = np.unique(judgments[items], return_index=True)
        self._alike: dict[int, Bucket] = dict(
            zip(counts.tolist(), self._bags.make_bucket_of_each_run(items, starts), strict=True)
        )

    def __len__(self) -> int:
        """Number of items that may lead."""
        return self._size

    def add(self, item: int) -> None:
        """Allow an item to lead."""
        self._bags.add_item(item, self._alike.setdefault(self._judgments.item(item), make_empty_bucket()))
        self._size += 1

    def remove(self, item: int) -> None:
        """Stop an item from leading."""
        count = self._judgments.item(item)
        self._bags.remove_item(item, self._alike[count])
        if not self._alike[count]:
            del self._alike[count]
        self._size -= 1

    def record_value_change(self, item: int, old_score: float, old_judgments: int, old_status: int) -> None:
        """Do nothing: the order does not depend on previous values."""

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return an item with the fewest judgments among those not barred, None if all are barred."""
        for count in sorted(self._alike):
            if (item := self._bags.pick_item_or_none(self._alike[count], barred, rng)) is not None:
                return Pick(item, 1.0 / self._bags.count_items_not_barred(self._alike[count], barred))
        return None

    def iterate_free_leaders_by_gain(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all items that are not barred, in the order of `draw_leader_or_none`.

        The caller bars each item before the next one.
        """
        for count in sorted(self._alike):
            yield from iterate_bucket_in_random_order(self._bags, self._alike[count], barred, rng)

    def require_consistency(self, items: ItemNumbers) -> None:
        """Raise ValueError unless just these items may lead, each in the bucket of its judgments. For tests."""
        expected = sorted((self._judgments.item(item), item) for item in items.tolist())
        held = sorted((count, item) for count, bag in self._alike.items() for item in bag)
        if held != expected or self._size != len(expected):
            raise ValueError(f"found {held}, not {expected}")


class LeastJudgedCompanions:
    """Companions by match quality, first from the items with the fewest judgments."""

    def __init__(self, items: ItemNumbers, index: OpenItems, gamma: float) -> None:
        """Arrange `items`, the numbers that may be drawn."""
        self._known, self._gamma = index, gamma
        self._places = ItemPlaces(len(index.score))
        judgments = index.judgments[items]
        self._alike = {
            count: self._make_companions_drawn_by_match_quality(items[judgments == count])
            for count in np.unique(judgments).tolist()
        }

    def add(self, item: int) -> None:
        """Allow an item to be drawn."""
        count = self._known.judgments.item(item)
        if count not in self._alike:
            self._alike[count] = self._make_companions_drawn_by_match_quality(np.empty(0, np.intp))
        self._alike[count].add(item)

    def remove(self, item: int) -> None:
        """Stop an item from being drawn."""
        count = self._known.judgments.item(item)
        self._alike[count].remove(item)
        if not len(self._alike[count]):
            del self._alike[count]

    def draw_companions(
        self, leader: int, count: int, barred: ItemSet, rng: np.random.Generator, *, chosen_items: Collection[int] = ()
    ) -> list[int]:
        """Return companions with the fewest judgments, drawn as `Companions.draw_companions` does."""
        drawn: list[int] = []
        for judgments in sorted(self._alike):
            if len(drawn) < count:
                others = (*chosen_items, *drawn, leader)
                drawn += self._alike[judgments].draw_companions(
                    leader, count - len(drawn), barred, rng, chosen_items=others
                )
        return drawn

    def require_consistency(self, items: ItemNumbers) -> None:
        """Raise ValueError unless just these items may be drawn. For tests."""
        judgments = self._known.judgments[items]
        if sorted(self._alike) != np.unique(judgments).tolist():
            raise ValueError(f"there are companions with {sorted(self._alike)} judgments")
        for count, companions in self._alike.items():
            companions.require_consistency(items[judgments == count])

    def _make_companions_drawn_by_match_quality(self, items: ItemNumbers) -> Companions:
        return Companions(items, self._known.score, self._known.variance, self._gamma, places=self._places)


def make_least_judged_leaders_and_companions(
    settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[LeastJudgedLeaders, LeastJudgedCompanions]:
    """Make pools in which the least judged item leads, with similar items as companions."""
    return LeastJudgedLeaders(items, open_items.judgments), LeastJudgedCompanions(items, open_items, settings.gamma)


@dataclass(frozen=True, slots=True)
class EvenRule(AlgorithmOne):
    """Rule whose iterations ask about every item once, or about the least judged items."""

    def schedule_hits_of_iteration(
        self, values: ItemValues, settings: SelectionSettings, *, iteration: int, rng: np.random.Generator
    ) -> list[Draw]:
        if iteration == 0:
            return AlgorithmOne.schedule_hits_of_iteration(self, values, settings, iteration=0, rng=rng)
        judgments = values.judgments_with_undrawn_items_as_full(settings)
        room = np.flatnonzero(judgments < settings.judgments_per_item)
        most = (
            len(room) if settings.hits_per_iteration is None else settings.hits_per_iteration * settings.items_per_hit
        )
        chosen, probabilities = pick_items_of_highest_worth_and_probabilities(
            -judgments.astype(np.float64), room, most, rng
        )
        probability_by_item = dict(zip(chosen, probabilities, strict=True))
        hits = partition_into_hits_of_similar_items(chosen, values, settings, rng)
        return [
            make_draw_in_random_order(hit, rng, (FEWEST_JUDGMENTS, probability_by_item[hit[0]]))
            for hit in hits
            if len(hit) >= settings.min_items
        ]


def partition_into_hits_of_similar_items(
    items: list[int], values: ItemValues, settings: SelectionSettings, rng: np.random.Generator
) -> list[list[int]]:
    """Return HITs that show each of these items once, led by the first item that is in no HIT yet.

    No item is alone if there are two.
    """
    companions = Companions(np.array(items, np.intp), values.score, values.variance, settings.gamma)
    sizes = iter(sizes_of_fewest_hits(len(items), settings.items_per_hit))
    hits: list[list[int]] = []
    shown: set[int] = set()
    for leader in items:
        if leader not in shown:
            companions.remove(leader)
            others = companions.draw_companions(leader, next(sizes) - 1, set(), rng)
            for item in others:
                companions.remove(item)
            shown.update(others)
            hits.append([leader, *others])
    return hits


def sizes_of_fewest_hits(count: int, items_per_hit: int) -> list[int]:
    """Return the sizes of the HITs, at most `items_per_hit`, if `count` items are shown in as few HITs as possible."""
    hits = -(-count // items_per_hit)
    return [count // hits + (k < count % hits) for k in range(hits)]


EVEN_RULE = EvenRule(
    "scores",
    "Whole scale: ask about all items equally often, together with similar ones",
    needs_ordered_scores=True,
    make_pools=make_least_judged_leaders_and_companions,
    reason=FEWEST_JUDGMENTS,
)
