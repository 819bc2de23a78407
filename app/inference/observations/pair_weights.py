"""Weights of the pairs of one answer: several items that are ordered at once give fewer independent pairs than pairs.

If an annotator orders n items at random, the number of pairs that agree with any fixed order minus those that do not
has the variance (n (n - 1) (2 n + 5) - sum of t (t - 1) (2 t + 5) over groups of t equal items) / 18 (Kendall 1970).
Independent pairs would have the variance 1 each. The weight is the ratio: with it, an order is as strong evidence on
whether someone answers at random as that number of independent pairs. It is 1 for two items and 9 / (2 n + 5) for n.
"""

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
    sum_values_of_each_number,
)


def independent_pair_weights(hits: npt.ArrayLike, scores: npt.ArrayLike) -> Array:
    """Return the weight of a pair of each HIT, (H,), above 0 and at most 1; 1 for a HIT without a pair.

    Args:
        hits: The HIT in which each score was given, (R,).
        scores: Scores, (R,); equal ones of a HIT are tied.

    """
    hits, hit_count = index_array_and_count_or_raise("hits", hits)
    values = finite_vector_or_raise("scores", scores)
    refuse_columns_of_unequal_length(hits=hits, scores=values)
    groups, sizes = np.unique(np.column_stack([hits, values]), axis=0, return_counts=True)
    hit_of_group = groups[:, 0].astype(np.intp)
    shown = np.bincount(hits, minlength=hit_count).astype(np.float64)
    pairs, variances = (
        formula(shown) - sum_values_of_each_number(hit_of_group, formula(sizes.astype(np.float64)), hit_count)
        for formula in (_pair_count, _kendall_order_variance)
    )
    # All equal: what counts is how many items there are.
    all_tied = pairs < 0.5
    pairs, variances = (
        np.where(all_tied, formula(shown), sums)
        for formula, sums in ((_pair_count, pairs), (_kendall_order_variance, variances))
    )
    return np.where(shown > 1, pairs / np.where(shown > 1, variances, 1.0), 1.0)


def _pair_count(n: Array) -> Array:
    return n * (n - 1.0) / 2.0


def _kendall_order_variance(tied_count: Array) -> Array:
    return tied_count * (tied_count - 1.0) * (2.0 * tied_count + 5.0) / 18.0
