"""Moderated Neyman allocation: a selection rule that spends more judgments on items that annotators disagree on.

The rule is like `scores`, but if variances demonstrably differ between items, the leader is the item whose mean gains
most from another judgment. With s^2 the variance of an item, moderated towards the variance of all items, another
judgment reduces the squared error of its mean by s^2 / (n (n + 1)) (Neyman 1934, one judgment at a time). No item may
fall below .6 of the mean number of judgments. While variances do not differ, or an item is below that floor, the item
with the fewest judgments leads. Companions are always chosen as in `scores`.

Variances differ if their spread beyond chance is above 0 at the 1 % level. With f_i degrees of freedom of k items and F
in total, chance gives the spread a standard error of (2 / F) sqrt(2 k + 12 sum 1 / f_i - 8 k^2 / F), for normal
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
from app.selection.index import AlgorithmOne, ItemNumbers, pick_items_of_highest_worth_and_probabilities
from app.selection.item_sets import ItemSet
from app.selection.open_items import OpenItems
from app.selection.rule import SelectionSettings

MIN_SHARE_OF_MEAN_JUDGMENTS = 0.6
SIGNIFICANCE_LEVEL = 0.01


def tally_of_separate_annotators(judgments: Integers, mean: Array, squares: Array) -> Tally:
    """Return the tally of judgments that each come from a different annotator.

    Args:
        judgments: Number of judgments, (N,).
        mean: Mean score, (N,).
        squares: Sum of squared differences from the mean, (N,).

    """
    total, no_repeats = judgments * mean, AnnotatorItemCounts.empty()
    return Tally(judgments, total, judgments, total, squares + total * mean, judgments, no_repeats, no_repeats)


def variances_differ(tally: Tally) -> bool:
    """Return whether variances differ between items, at the significance level."""
    squares, degrees_of_freedom = sums_of_squares_within_items(tally), np.maximum(tally.annotators - 1, 0)
    if not squares.any():
        return False
    spread_beyond_chance, _ = variance_spread_beyond_and_by_chance(
        squares, degrees_of_freedom, prior_item_variances(tally, squares, degrees_of_freedom, (0.0, 1.0))
    )
    positive_degrees, total_degrees = degrees_of_freedom[degrees_of_freedom > 0], degrees_of_freedom.sum()
    chance_variance = (
        2.0 * len(positive_degrees)
        + 12.0 * (1.0 / positive_degrees).sum()
        - 8.0 * len(positive_degrees) ** 2 / total_degrees
    )
    return bool(spread_beyond_chance > ndtri(1.0 - SIGNIFICANCE_LEVEL) * 2.0 / total_degrees * np.sqrt(chance_variance))


def error_reductions(tally: Tally) -> Array:
    """Return how much another judgment reduces each squared error, s^2 / (n (n + 1)), (N,); NaN without a judgment."""
    reductions: Array = moderated_means_of_tally(tally).standard_error ** 2 / (tally.judgments + 1)
    return reductions


class HighestGainLeaders(LeastJudgedLeaders):
    """Leaders by highest gain, found in a pass over all items."""

    def __init__(self, items: ItemNumbers, open_items: OpenItems) -> None:
        """Start with the items that may lead, by number, and all open items."""
        super().__init__(items, open_items.judgments)
        self._open_items, self._squares = open_items, np.zeros(len(open_items.judgments))

    @property
    def tally(self) -> Tally:
        """Return the tally of all items."""
        return tally_of_separate_annotators(self._open_items.judgments, self._open_items.score, self._squares)

    def record_value_change(self, item: int, score: float, judgments: int, status: int) -> None:  # noqa: ARG002  (interface)
        """Update the item's sum of squares from the change of its mean (Welford 1962)."""
        self._squares[item] += (judgments + 1) * judgments * (self._open_items.score.item(item) - score) ** 2

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return an item with the highest gain among those that are not barred; None if all are barred."""
        candidates = np.array([item for item in self._open_items.open_items() if item not in barred], np.intp)
        tally = self.tally
        is_below_floor = tally.judgments[candidates] < MIN_SHARE_OF_MEAN_JUDGMENTS * tally.judgments.mean()
        if not len(candidates) or is_below_floor.any() or not variances_differ(tally):
            return super().draw_leader_or_none(barred, rng)
        (item,), (probability,) = pick_items_of_highest_worth_and_probabilities(
            error_reductions(tally), candidates, 1, rng
        )
        return Pick(item, probability)


def make_neyman_pools(
    settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[HighestGainLeaders, LeastJudgedCompanions]:
    """Return leaders by gain, and companions as in the rule `scores`."""
    return HighestGainLeaders(items, open_items), LeastJudgedCompanions(items, open_items, settings.gamma)


NEYMAN = AlgorithmOne("neyman", "Moderated Neyman: another judgment gains most", make_pools=make_neyman_pools)
