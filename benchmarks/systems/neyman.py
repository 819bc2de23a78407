"""Moderated Neyman allocation, beside the rule `scores`: where items demonstrably differ in how far annotators disagree
on them, the item leads whose mean gains most by another judgment.

With s^2 the variance of an item, moderated towards what all items say (`moderated`), another judgment takes
s^2 / (n (n + 1)) off the squared error of its mean (Neyman 1934, one judgment at a time). No item is left below .6 of
the judgments that items have on average. Until variances differ, and below that floor, whoever was asked about least
leads, and companions are those of `scores` throughout.

Variances differ where their spread beyond chance is above 0 at the level of 1 %. With f_i degrees of freedom of k items
and F together, chance gives the spread a standard error of (2 / F) sqrt(2 k + 12 sum 1 / f_i - 8 k^2 / F), for normal
judgments and many items (the delta method).
"""

import numpy as np
from scipy.special import ndtri

from app.inference.ground.arrays import Array, Integers
from app.inference.observations.tally import AnnotatorItemCounts, Tally
from app.inference.ratings.moderated_means import (
    moderated_means_of_tally,
    prior_item_variances,
    sums_of_squares_within_items,
    variance_spread_beyond_and_by_chance,
)
from app.selection.buckets import Pick
from app.selection.even_rule import LeastJudgedCompanions, LeastJudgedLeaders
from app.selection.index import AlgorithmOne, ItemNumbers, pick_highest_items_and_probabilities
from app.selection.item_sets import ItemSet
from app.selection.open_items import OpenItems
from app.selection.rule import SelectionSettings

FLOOR = 0.6  # of the mean number of judgments
LEVEL = 0.01


def tally_of(judgments: Integers, mean: Array, squares: Array) -> Tally:
    """As if each judgment were by somebody else. squares: around the mean; (N,) each."""
    total, nobody = judgments * mean, AnnotatorItemCounts.empty()
    return Tally(judgments, total, judgments, total, squares + total * mean, judgments, nobody, nobody)


def variances_differ(tally: Tally) -> bool:
    """Return whether items do, at the level."""
    squares, freedom = sums_of_squares_within_items(tally), np.maximum(tally.annotators - 1, 0)
    if not squares.any():
        return False
    beyond, _ = variance_spread_beyond_and_by_chance(
        squares, freedom, prior_item_variances(tally, squares, freedom, (0.0, 1.0))
    )
    known, together = freedom[freedom > 0], freedom.sum()
    by_chance = 2.0 * len(known) + 12.0 * (1.0 / known).sum() - 8.0 * len(known) ** 2 / together
    return bool(beyond > ndtri(1.0 - LEVEL) * 2.0 / together * np.sqrt(by_chance))


def gains(tally: Tally) -> Array:
    """s^2 / (n (n + 1)), (N,); NaN without a judgment."""
    found: Array = moderated_means_of_tally(tally).standard_error ** 2 / (tally.judgments + 1)
    return found


class GainsMost(LeastJudgedLeaders):
    """Leaders, found by a pass over all items."""

    def __init__(self, items: ItemNumbers, known: OpenItems) -> None:
        """`items`: numbers of those that may lead."""
        super().__init__(items, known.judgments)
        self._known, self._squares = known, np.zeros(len(known.judgments))

    @property
    def tally(self) -> Tally:
        """Values of all items."""
        return tally_of(self._known.judgments, self._known.score, self._squares)

    def record_value_change(self, item: int, score: float, judgments: int, status: int) -> None:  # noqa: ARG002  (others ask)
        """By a judgment; of its sum of squares it is told by how far the mean moved (Welford 1962)."""
        self._squares[item] += (judgments + 1) * judgments * (self._known.score.item(item) - score) ** 2

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """An item of the highest gain, of those that are not barred; None if all are."""
        free = np.array([item for item in self._known.open_items() if item not in barred], np.intp)
        tally = self.tally
        behind = tally.judgments[free] < FLOOR * tally.judgments.mean()
        if not len(free) or behind.any() or not variances_differ(tally):
            return super().draw_leader_or_none(barred, rng)
        (item,), (probability,) = pick_highest_items_and_probabilities(gains(tally), free, 1, rng)
        return Pick(item, probability)


def gains_most(
    asking: SelectionSettings, items: ItemNumbers, known: OpenItems
) -> tuple[GainsMost, LeastJudgedCompanions]:
    """Items that lead by gain, with companions as `scores` draws them."""
    return GainsMost(items, known), LeastJudgedCompanions(items, known, asking.gamma)


NEYMAN = AlgorithmOne("neyman", "Moderated Neyman: another judgment gains most", make_pools=gains_most)
