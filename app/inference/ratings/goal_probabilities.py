"""Probability that a goal is reached, given the beliefs about items' true means: best items, sides of a line, an order.

The belief about an item's true mean is a t distribution with the moderated error of `moderated_means`, in two versions:
around its mean shrunk towards that of all items, as far as their spread says (a Normal prior, Efron & Morris 1975), and
around its mean as it is. A probability that follows from a prior may be read after every answer and acted on at any
time: stopping once it is p is right in p of all cases, as far as the prior is that of the items (Berger & Wolpert 1988,
the stopping rule principle). Where items pile up, it is not: then it shrinks distant items too much. So the smaller of
the two probabilities counts. `python -m benchmarks.stopping` measures the remaining error.

Differences of up to `margin` do not matter: two equal items could otherwise be asked about forever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit

from app.inference.ground.arrays import Array, Integers
from app.inference.ratings.moderated_means import (
    ModeratedMeans,
    mean_kept_shares_and_shrunken_means,
    variance_between_items,
)

_PLACE_COUNT = 200  # at which the highest of some items may lie
_MAX_PLACE_HALVINGS, _MAX_ROUGHNESS = (
    20,
    3e-4,
)  # of the range in which the best of the others may lie, and of a probability
_ITEMS_PER_BLOCK = 10_000  # items, in memory
_TAIL_PROBABILITY, _NEGLIGIBLE_PROBABILITY = 1e-6, 1e-9  # of a probability; the smaller one even a million times
_MIN_SIZE_FOR_TABLE, _MAX_TABLES, _TABLE_SIZE, _TABLE_END = (
    20_000,
    100,
    2**14 + 1,
    15.0,
)  # when shares are read off tables, and what these are
_ORDER_DRAWS, _ORDER_SEED = 4_000, 2018  # of orders
MIN_ITEMS_FOR_SPREAD = 3  # items whose spread says something


@dataclass(frozen=True, slots=True, eq=False)
class BelievedMeans:
    """Beliefs about the true means of N items, (N,) each.

    Attributes:
        centre: The centre of each t distribution.
        error: Its scale.
        freedom: Its degrees of freedom.

    """

    centre: Array
    error: Array
    freedom: Array

    def probability_below(self, place: Array | float) -> Array:
        """Return the probability that each true mean is below a place; places that broadcast with (N,)."""
        errors = (place - self.centre) / self.error
        if errors.size >= _MIN_SIZE_FOR_TABLE and self.freedom.min() == self.freedom.max():
            return _interpolate_table(errors, _t_distribution_table(float(self.freedom[0])))
        return np.asarray(stdtr(self.freedom, errors), np.float64)

    def quantile(self, probability: float) -> Array:
        """Return the value that each true mean is below with this probability."""
        distinct_freedom, which = np.unique(self.freedom, return_inverse=True)  # few, and each takes its time
        quantiles = np.asarray(stdtrit(distinct_freedom, probability), np.float64)
        place: Array = self.centre + self.error * quantiles[which]
        return place

    def select_items(self, items: Integers) -> "BelievedMeans":
        """Return the beliefs about some items."""
        return BelievedMeans(self.centre[items], self.error[items], self.freedom[items])

    @property
    def mirror_image(self) -> "BelievedMeans":
        """Return the beliefs on the reversed scale."""
        return BelievedMeans(-self.centre, self.error, self.freedom)


@lru_cache(maxsize=_MAX_TABLES)
def _t_distribution_table(freedom: float) -> Array:
    """Return the distribution function of a t distribution at places whose inverse hyperbolic sines are evenly
    spaced.
    """
    return np.asarray(stdtr(freedom, np.sinh(np.linspace(-_TABLE_END, _TABLE_END, _TABLE_SIZE))), np.float64)


def _interpolate_table(standardised_places: Array, table: Array) -> Array:
    """Interpolate the table: takes a tenth of the time, and is right to a thousandth of the tail."""
    table_position = (np.arcsinh(standardised_places).clip(-_TABLE_END, _TABLE_END) + _TABLE_END) * (
        (_TABLE_SIZE - 1) / (2 * _TABLE_END)
    )
    lower_position = np.minimum(table_position.astype(np.intp), _TABLE_SIZE - 2)
    probabilities: Array = table[lower_position] + (table_position - lower_position) * (
        table[lower_position + 1] - table[lower_position]
    )
    return probabilities


def beliefs_about_means_with_and_without_prior(moderated_means: ModeratedMeans) -> tuple[BelievedMeans, ...]:
    """Return the beliefs about all items, with the prior and without; unjudged items are distributed as the others.

    Empty where the judgments do not tell how far annotators differ, or how far items do.
    """
    has_error = np.isfinite(moderated_means.standard_error)
    if has_error.sum() < MIN_ITEMS_FOR_SPREAD:
        return ()
    mean, noise = moderated_means.mean[has_error], moderated_means.standard_error[has_error] ** 2
    if (between := variance_between_items(mean, noise)) <= 0:
        return ()
    middle, kept_share, shrunk_means = mean_kept_shares_and_shrunken_means(mean, noise)
    freedom = np.where(has_error, moderated_means.freedom, moderated_means.freedom[has_error].min())
    errors = [np.full(len(has_error), np.sqrt(between)) for _ in range(2)]
    centres = [np.full(len(has_error), middle) for _ in range(2)]
    centres[0][has_error], errors[0][has_error] = shrunk_means, np.sqrt(kept_share * noise)
    centres[1][has_error], errors[1][has_error] = mean, np.sqrt(noise)
    return tuple(BelievedMeans(centre, error, freedom) for centre, error in zip(centres, errors, strict=True))


def chance_best_are_highest(believed: BelievedMeans, score: Array, best_count: int, margin: float) -> float:
    """Probability that no other item is better than one of the `best_count` highest by score, (N,), by more than
    `margin`.

    It integrates over the value of the best of the others: all of the best must be above that value.
    """
    order = _best_and_other_item_numbers(score, best_count)
    if not len(order[1]):
        return 1.0
    best_items, others = map(believed.select_items, order)
    low, high = (
        others.quantile(_TAIL_PROBABILITY).max(),
        others.quantile(1 - _TAIL_PROBABILITY / len(others.centre)).max(),
    )
    near = others.select_items(np.flatnonzero(others.quantile(1 - _NEGLIGIBLE_PROBABILITY) > low))
    near = near.select_items(np.argsort(near.freedom, kind="stable"))  # alike in pieces

    def chances(places: Array) -> Array:
        """Return the chances that all others are below these places, and all of the best above them minus `margin`, (2,
        P).
        """
        below = _log_joint_probabilities(near, lambda some: some.probability_below(places[:, None]))
        above = _log_joint_probabilities(best_items, lambda some: 1 - some.probability_below(places[:, None] - margin))
        return np.exp([below, above])

    highest, above = _chances_at_places_and_between(chances, np.array([low, high]))
    return min(1.0, float(np.diff(highest, prepend=0.0) @ _means_with_previous_value_keeping_first(above)))


def _chances_at_places_and_between(chances_at: Callable[[Array], Array], places: Array) -> Array:
    """Return the chances at the places and at more between them, in order, (2, P).

    Both are monotone, so the error between two places is at most the product of both differences; where that is
    negligible, no place is added.
    """
    refined_chances = chances_at(places)
    for _ in range(_MAX_PLACE_HALVINGS):
        rough_gaps = np.flatnonzero(np.abs(np.diff(refined_chances)).prod(axis=0) > _MAX_ROUGHNESS)
        if not len(rough_gaps):
            break
        new_places = (places[rough_gaps] + places[rough_gaps + 1]) / 2
        places = np.insert(places, rough_gaps + 1, new_places)
        refined_chances = np.insert(refined_chances, rough_gaps + 1, chances_at(new_places), axis=1)
    return refined_chances


def item_chances_of_right_side_of_best(believed: BelievedMeans, score: Array, best_count: int, margin: float) -> Array:
    """Return each item's probability of being on the right side of the best, (N,), except for differences of `margin`.

    For one of the `best_count` highest by score this is the probability that all of the others are below it; for
    another item, that all of the best are above it. Either is sufficient for the item to be on the right side, and not
    necessary: the true probability is no smaller.
    """
    best_items, others = _best_and_other_item_numbers(score, best_count)
    chances = np.ones(len(score))
    if len(others):
        chances[best_items] = _chance_above_all_others_of_each_item(
            believed.select_items(best_items), believed.select_items(others), margin
        )
        chances[others] = _chance_above_all_others_of_each_item(
            believed.select_items(others).mirror_image, believed.select_items(best_items).mirror_image, margin
        )
    return chances


def _best_and_other_item_numbers(score: Array, best_count: int) -> tuple[Integers, Integers]:
    """Return the numbers of the `best_count` highest items, and of the others."""
    order = np.argsort(-score, kind="stable")
    return order[:best_count], order[best_count:]


def _values_and_probabilities_of_highest(believed: BelievedMeans) -> tuple[Array, Array]:
    """Return possible values of the highest item, and the probability that it lies between each and the previous one.

    (P,) each; the first probability is that of lying below the first value.
    """
    low, high = (
        believed.quantile(_TAIL_PROBABILITY).max(),
        believed.quantile(1 - _TAIL_PROBABILITY / len(believed.centre)).max(),
    )
    contenders = believed.select_items(np.flatnonzero(believed.probability_below(low) < 1 - _NEGLIGIBLE_PROBABILITY))
    places = np.linspace(low, high, _PLACE_COUNT)
    highest = np.exp(_log_joint_probabilities(contenders, lambda some: some.probability_below(places[:, None])))
    return places, np.diff(highest, prepend=0.0)


def _means_with_previous_value_keeping_first(at_places: Array) -> Array:
    """Return the means of neighbouring values, (P,) or (P, n), halfway between each place and the previous one."""
    return np.concatenate((at_places[:1], (at_places[1:] + at_places[:-1]) / 2))


def _chance_above_all_others_of_each_item(believed: BelievedMeans, other_items: BelievedMeans, margin: float) -> Array:
    """Return the probability that all of the others are below each item, (n,), except for differences of `margin`."""
    places, steps = _values_and_probabilities_of_highest(other_items)
    chances = 1 - believed.probability_below(places[-1] - margin)  # right for those that are above all places, or below
    undecided_items = np.flatnonzero(
        (believed.probability_below(places[0] - margin) < 1 - _NEGLIGIBLE_PROBABILITY)
        & (chances < 1 - _NEGLIGIBLE_PROBABILITY)
    )
    for start in range(0, len(undecided_items), _ITEMS_PER_BLOCK):
        item_block = undecided_items[start : start + _ITEMS_PER_BLOCK]
        chances[item_block] = steps @ _means_with_previous_value_keeping_first(
            1 - believed.select_items(item_block).probability_below(places[:, None] - margin)
        )
    return np.minimum(chances, 1.0)


def _log_joint_probabilities(believed: BelievedMeans, probability: Callable[[BelievedMeans], Array]) -> Array:
    """Return the logarithm of the product of items' probabilities, (n,), in blocks of items."""
    total = np.zeros(1)
    with np.errstate(divide="ignore"):
        for start in range(0, len(believed.centre), _ITEMS_PER_BLOCK):
            item_block = believed.select_items(np.arange(start, min(start + _ITEMS_PER_BLOCK, len(believed.centre))))
            total = total + np.log(probability(item_block)).sum(axis=1)
    return total


def chance_all_on_believed_side(believed: BelievedMeans, threshold: float, ignored_distance: float) -> float:
    """Probability that all items are on the side of the line on which they are believed to be.

    Items that are no farther than `ignored_distance` from the line do not count.
    """
    return float(np.prod(item_chances_of_believed_side(believed, threshold, ignored_distance)))


def item_chances_of_believed_side(believed: BelievedMeans, threshold: float, margin: float) -> Array:
    """Return the same probability for each item, (N,)."""
    wrong = np.where(
        believed.centre > threshold,
        believed.probability_below(threshold - margin),
        1 - believed.probability_below(threshold + margin),
    )
    return 1 - wrong


def chance_order_is_right(believed: BelievedMeans, score: Array, margin: float) -> float:
    """Probability that no item is better than one of a higher score, (N,), by more than `margin`.

    It is the share of drawn orders, with a seed of its own.
    """
    in_order = believed.select_items(np.argsort(-score, kind="stable"))
    rng = np.random.default_rng(_ORDER_SEED)
    drawn = in_order.centre + in_order.error * rng.standard_t(in_order.freedom, (_ORDER_DRAWS, len(score)))
    lowest = np.minimum.accumulate(drawn, axis=1)[:, :-1]
    return float(np.all(drawn[:, 1:] - lowest <= margin, axis=1).mean())


def expected_split_half_correlation(moderated_means: ModeratedMeans) -> float:
    """Expected Spearman correlation between the means of two random halves of the judgments, 0 to 1.

    0 where an item has no judgment. For Normal scores it follows from Pearson's correlation (Pearson 1907).
    """
    noise = moderated_means.standard_error**2
    if len(noise) < MIN_ITEMS_FOR_SPREAD or not np.isfinite(noise).all():
        return 0.0
    between = max(variance_between_items(moderated_means.mean, noise), 0.0)
    pearson = between / (between + 2 * float(noise.mean()))  # a half has half of the judgments, so twice the noise
    return float(6 / np.pi * np.arcsin(pearson / 2))
