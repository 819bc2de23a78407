"""Halo: how far judgments by one criterion are judgments by another (Thorndike 1920, "A constant error in psychological
ratings"; Cooper 1981, "Ubiquitous halo").

Items that are good by two criteria make the means of the items correlate, and that is no error. Comparing each judgment
with the mean of its own item removes the items. With d the deviation of a judgment from the mean of the judgments of
the same item by the same criterion,

    (1)  halo = sum d d' / sqrt(sum d^2 sum d'^2),

over all judgments of items that have two or more, with d by the one criterion and d' by the other in the same answer.
An annotator who judges two criteria separately errs independently in each, and (1) is 0; an annotator who gives one
impression twice makes it 1. Annotators who are strict by all criteria raise it, too: an impression of the item cannot
be told from a habit.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.agreement.agreement_measure import missing_interval_or_draws_notes
from app.inference.ground import weighted_correlation
from app.inference.ground.arrays import Array, Integers, divide_or_nan
from app.inference.ground.bootstrap import (
    BOOTSTRAP_DRAWS,
    WeightedStatistic,
    bootstrap_percentile_interval,
    evaluate_without_resampling,
)
from app.inference.ground.notes import Note
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
    sum_values_of_each_number,
)

STRONG_HALO = 0.5
"""Smallest value of (1) that deserves a warning: at least a quarter of the variance of deviations is shared."""

MIN_HALO_JUDGMENTS = 30
"""Fewest judgments for a halo: 95 % of what chance gives for 30 judgments lies within .36 of 0."""

_ROUNDING_SHARE = 1e-12  # less variance than this part of the squares is rounding of equal scores


@dataclass(frozen=True, slots=True)
class HaloEstimate:
    """A correlation with its bootstrap interval over items, NaN where there is none.

    Attributes:
        items: Number of items that it rests on.
        judgments: Number of judgments that it rests on.
        notes: What is missing, and why.

    """

    value: float
    low: float
    high: float
    items: int
    judgments: int
    notes: tuple[Note, ...] = ()


def is_strong_halo(halo: float, judgment_count: int) -> bool:
    """Return whether (1), resting on this many judgments, deserves a warning: the two criteria were hardly judged
    apart.
    """
    return judgment_count >= MIN_HALO_JUDGMENTS and halo >= STRONG_HALO


def correlate_item_means(
    items: npt.ArrayLike,
    first_scores: npt.ArrayLike,
    second_scores: npt.ArrayLike,
    *,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> HaloEstimate:
    """Correlation of the items' means by two criteria.

    Args:
        items: (T,) integers from 0.
        first_scores: (T,) finite scores by the first criterion, on a scale of its own.
        second_scores: (T,) finite scores of the same judgments by the second criterion.
        draws: Number of bootstrap draws.
        level: Level of the interval.
        rng: Source of the draws.

    Raises:
        ValueError: The arrays are not as above.

    """
    items, first_scores, second_scores = _validated_item_and_score_columns(items, first_scores, second_scores)
    judgments = np.bincount(items)
    is_judged = judgments > 0
    x, y = (
        sum_values_of_each_number(items, scores, len(judgments))[is_judged] / judgments[is_judged]
        for scores in (first_scores, second_scores)
    )
    all_items = np.zeros(1, np.intp)

    def correlation(weights: Array) -> Array:
        return weighted_correlation.weighted_pearson_of_each_block(x, y, weights, all_items)[:, 0]

    return _make_halo_estimate(correlation, len(x), len(items), draws=draws, level=level, rng=rng)


def measure_halo(
    items: npt.ArrayLike,
    first_scores: npt.ArrayLike,
    second_scores: npt.ArrayLike,
    *,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> HaloEstimate:
    """Halo (1) of two criteria.

    Judgments with the same number in `items` must differ in nothing but their annotator. Otherwise as
    `correlate_item_means`.
    """
    items, first_scores, second_scores = _validated_item_and_score_columns(items, first_scores, second_scores)
    is_shared = np.bincount(items)[items] > 1
    _, item = np.unique(items[is_shared], return_inverse=True)
    n = int(item.max(initial=-1)) + 1
    dx, dy = (
        _deviation_of_each_score_from_item_mean(item, scores[is_shared], n) for scores in (first_scores, second_scores)
    )
    xy, xx, yy = (sum_values_of_each_number(item, products, n) for products in (dx * dy, dx * dx, dy * dy))

    def correlation(weights: Array) -> Array:
        return np.clip(divide_or_nan(weights @ xy, np.sqrt((weights @ xx) * (weights @ yy))), -1.0, 1.0)

    return _make_halo_estimate(correlation, n, len(item), draws=draws, level=level, rng=rng)


def _validated_item_and_score_columns(
    items: npt.ArrayLike, first_scores: npt.ArrayLike, second_scores: npt.ArrayLike
) -> tuple[Integers, Array, Array]:
    items, _ = index_array_and_count_or_raise("items", items)
    first_scores, second_scores = (
        finite_vector_or_raise("one", first_scores),
        finite_vector_or_raise("other", second_scores),
    )
    refuse_columns_of_unequal_length(items=items, one=first_scores, other=second_scores)
    return items, first_scores, second_scores


def _deviation_of_each_score_from_item_mean(item: Integers, scores: Array, item_count: int) -> Array:
    """Return deviations from the mean of each item; exactly 0 where all of an item are equal up to rounding."""
    deviations = (
        scores - (sum_values_of_each_number(item, scores, item_count) / np.bincount(item, minlength=item_count))[item]
    )
    varies = sum_values_of_each_number(item, deviations**2, item_count) > _ROUNDING_SHARE * sum_values_of_each_number(
        item, scores**2, item_count
    )
    return np.where(varies[item], deviations, 0.0)


def _make_halo_estimate(
    correlation: WeightedStatistic,
    item_count: int,
    judgment_count: int,
    *,
    draws: int,
    level: float,
    rng: np.random.Generator,
) -> HaloEstimate:
    value = evaluate_without_resampling(correlation, item_count) if item_count else np.nan
    if not np.isfinite(value):
        return HaloEstimate(np.nan, np.nan, np.nan, item_count, judgment_count)
    interval = bootstrap_percentile_interval(correlation, item_count, draws=draws, level=level, rng=rng)
    return HaloEstimate(
        value, interval.low, interval.high, item_count, judgment_count, missing_interval_or_draws_notes(interval, draws)
    )


# The same as answers come in


@dataclass(frozen=True, slots=True, eq=False)
class HaloSums:
    """Sums over the judgments of N items by K criteria.

    Attributes:
        judgments: (N,).
        totals: (K, N).
        products: (K, K).

    """

    judgments: Integers
    totals: Array
    products: Array

    @classmethod
    def empty(cls, n_items: int, n_criteria: int) -> "HaloSums":
        """Return the sums before the first judgment."""
        none = np.zeros(n_items, np.intp)
        return cls(none, np.zeros((n_criteria, n_items)), np.zeros((n_criteria, n_criteria)))

    def with_judgments_added(self, items: npt.ArrayLike, scores: npt.ArrayLike) -> "HaloSums":
        """Return the sums with these judgments added; items: (T,) from 0 to N - 1; scores: (K, T). It validates
        nothing.
        """
        items, scores = np.asarray(items, np.intp), np.asarray(scores, np.float64)
        judgments, totals = self.judgments.copy(), self.totals.copy()
        np.add.at(judgments, items, 1)
        for criterion_totals, criterion_scores in zip(totals, scores, strict=True):
            np.add.at(criterion_totals, items, criterion_scores)
        return HaloSums(judgments, totals, self.products + scores @ scores.T)

    @property
    def nbytes(self) -> int:
        """Memory of the sums, in bytes."""
        return self.judgments.nbytes + self.totals.nbytes + self.products.nbytes

    @property
    def shared_judgment_count(self) -> int:
        """Number of judgments of items with two or more judgments, on which the halo (1) rests."""
        return int(self.judgments[self.judgments > 1].sum())

    @property
    def halo_matrix(self) -> Array:
        """Halo (1) of each two criteria, (K, K); NaN where one of them does not vary."""
        is_judged = self.judgments > 0
        totals = self.totals[:, is_judged]
        deviation_products = self.products - (totals / self.judgments[is_judged]) @ totals.T
        return _correlation_matrix(deviation_products, np.diag(self.products))

    @property
    def mean_correlation_matrix(self) -> Array:
        """Correlation of the items' means by each two criteria, (K, K); NaN where one of them does not vary."""
        is_judged = self.judgments > 0
        means = self.totals[:, is_judged] / self.judgments[is_judged]
        centred = means - means.mean(axis=1, keepdims=True) if is_judged.any() else means
        return _correlation_matrix(centred @ centred.T, (means**2).sum(axis=1))


def _correlation_matrix(products: Array, squares: Array) -> Array:
    """Return correlations from products of deviations, (K, K), NaN where only rounding varies; squares: of the scores,
    (K,).
    """
    variances = np.where(np.diag(products) > _ROUNDING_SHARE * squares, np.diag(products), 0.0)
    return np.clip(divide_or_nan(products, np.sqrt(np.outer(variances, variances))), -1.0, 1.0)
