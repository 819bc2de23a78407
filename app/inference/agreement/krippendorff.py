"""Krippendorff's alpha: agreement of any number of annotators on labels or numbers, any judgments missing.

Krippendorff 2004, "Content Analysis" (2nd ed.), chapter 11: alpha = 1 - D_o / D_e, the observed disagreement within
items over that of values paired at random. With v of an item's m values, n of all, and delta the distance:

    D_o = sum_items 1 / (m - 1) sum_{v, v'} delta^2(v, v') / n,     D_e = sum_{v, v'} delta^2(v, v') / (n (n - 1))

For intervals both are sums of squares, so neither a table of values by values nor one of items by values is needed.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from app.inference.agreement.agreement_measure import Agreement, agreement_with_bootstrap_interval
from app.inference.ground.arrays import Array, divide_or_nan
from app.inference.ground.bootstrap import BOOTSTRAP_DRAWS, WeightedStatistic
from app.inference.observations.judgments import Judgments, judgment_pairs_within_items, judgments_of_shared_items

MeasurementLevel = Literal["nominal", "ordinal", "interval", "ratio"]

_ROWS_PER_BLOCK = 512  # rows of the values-by-values table that exist at once
_ROUNDING_SHARE = 1e-12  # less disagreement than this part of the squared values is rounding of equal values

_DISTANCE_MEANINGS = {
    "nominal": "any two different labels are equally far apart",
    "ordinal": "labels are as far apart as there are judgments between them",
    "interval": "distances are differences on the scale, squared",
    "ratio": "distances are differences in proportion to the sum, squared",
}


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    metric: MeasurementLevel = "nominal",
    n_items: int | None = None,
    n_annotators: int | None = None,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Krippendorff's alpha, at most 1; 0 is chance, below 0 annotators disagree systematically.

    `items` and `annotators` are (T,) integers from 0; `values` are (T,) finite numbers, labels or scores, at least 0
    for `ratio`. Linear in T in time and memory for `interval` and `nominal`; `ordinal` too, but again for every draw;
    `ratio` takes the pairs of judgments of one item and the square of the number of distinct values in time, not
    memory. Raises ValueError for invalid arrays, `Inestimable` (`one_annotator`, `no_shared_items`, `all_the_same`).
    """
    judgments = judgments_of_shared_items(items, annotators, values, n_items=n_items, n_annotators=n_annotators)
    if metric == "ratio" and judgments.values.min() < 0.0:
        raise ValueError("a ratio scale starts at 0: every value must be at least 0")
    statistic = {
        "nominal": _make_nominal_alpha_statistic,
        "ordinal": _make_ordinal_alpha_statistic,
        "interval": _make_interval_alpha_statistic,
        "ratio": _make_ratio_alpha_statistic,
    }[metric](judgments)
    return agreement_with_bootstrap_interval(
        statistic, judgments, _sentence_on_meaning_of_alpha(metric), draws=draws, level=level, rng=rng
    )


def _sentence_on_meaning_of_alpha(metric: MeasurementLevel) -> str:
    return (
        "How far annotators agree beyond chance: 0 is chance and 1 is complete agreement "
        f"({_DISTANCE_MEANINGS[metric]}). It is low if nearly all judgments are alike, even with good annotators, and "
        "high if annotators share a mistake. It measures whether other annotators would give the same judgments, not "
        "whether these are right."
    )


def _make_interval_alpha_statistic(judgments: Judgments) -> WeightedStatistic:
    x = judgments.values - judgments.values.mean()  # so that little is lost when squares are subtracted
    sums = judgments.sum_of_each_item(x)
    squares_within_items = judgments.sum_of_each_item((x - (sums / judgments.per_item)[judgments.items]) ** 2)
    # sum_{v, v'} (v - v')^2 = 2 m sum (v - mean)^2
    observed = 2.0 * judgments.per_item / (judgments.per_item - 1.0) * squares_within_items
    columns = np.column_stack([observed, judgments.per_item, sums, judgments.sum_of_each_item(x * x)])

    def alpha(weights: Array) -> Array:
        observed, n, total, squares = (weights @ columns).T
        expected = 2.0 * (n * squares - total * total)
        return _alpha_or_nan_from_pair_sums(
            observed, np.where(expected > _ROUNDING_SHARE * n * squares, expected, 0.0), n
        )

    return alpha


def _make_nominal_alpha_statistic(judgments: Judgments) -> WeightedStatistic:
    counts, _ = _value_count_matrix_and_values(judgments)
    m = judgments.per_item
    observed = (m * m - (counts * counts).sum(axis=1)) / (m - 1.0)

    def alpha(weights: Array) -> Array:
        n = weights @ m
        return _alpha_or_nan_from_pair_sums(weights @ observed, n * n - ((weights @ counts) ** 2).sum(axis=1), n)

    return alpha


def _make_ordinal_alpha_statistic(judgments: Judgments) -> WeightedStatistic:
    """Alpha of intervals on ranks: the distance of two labels is that of their mean ranks."""
    counts, _ = _value_count_matrix_and_values(judgments)
    m = judgments.per_item.astype(np.float64)

    def alpha(weights: Array) -> Array:
        totals = weights @ counts
        n = totals.sum(axis=1)
        ranks = np.cumsum(totals, axis=1) - totals / 2.0 - n[:, None] / 2.0
        first, second = ranks @ counts.T, (ranks * ranks) @ counts.T  # sums of each item's ranks, and of their squares
        observed = 2.0 * (m * second - first * first) / (m - 1.0)
        squares, total = (totals * ranks * ranks).sum(axis=1), (totals * ranks).sum(axis=1)
        return _alpha_or_nan_from_pair_sums((weights * observed).sum(axis=1), 2.0 * (n * squares - total * total), n)

    return alpha


def _make_ratio_alpha_statistic(judgments: Judgments) -> WeightedStatistic:
    counts, values = _value_count_matrix_and_values(judgments)
    first, second = judgment_pairs_within_items(judgments)
    distances = _squared_ratio_distance(judgments.values[first], judgments.values[second])
    m = judgments.per_item
    observed = 2.0 / (m - 1.0) * np.bincount(judgments.items[first], weights=distances, minlength=len(m))

    def alpha(weights: Array) -> Array:
        totals = weights @ counts
        expected = np.zeros(len(weights))
        for start in range(0, len(values), _ROWS_PER_BLOCK):
            rows = slice(start, start + _ROWS_PER_BLOCK)
            expected += ((totals[:, rows] @ _squared_ratio_distance(values[rows, None], values)) * totals).sum(axis=1)
        return _alpha_or_nan_from_pair_sums(weights @ observed, expected, weights @ m)

    return alpha


def _squared_ratio_distance(v: Array, w: Array) -> Array:
    """Squared distance on a ratio scale, ((v - w) / (v + w))^2; 0 for two zeros."""
    return np.divide(v - w, v + w, out=np.zeros(np.broadcast(v, w).shape), where=v + w > 0.0) ** 2


def _value_count_matrix_and_values(judgments: Judgments) -> tuple[csr_array, Array]:
    """Return how often each item got each of the V values, sparse (I, V), and the values, sorted, (V,)."""
    values, code = np.unique(judgments.values, return_inverse=True)
    shape = judgments.n_items, len(values)
    return csr_array((np.ones(len(code)), (judgments.items, code)), shape=shape), values


def _alpha_or_nan_from_pair_sums(observed: Array, expected: Array, n: Array) -> Array:
    """Alpha, 1 - D_o / D_e, from the two sums over ordered pairs; NaN where all n values are the same."""
    return 1.0 - (n - 1.0) * divide_or_nan(observed, expected)
