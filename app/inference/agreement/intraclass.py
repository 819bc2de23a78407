"""Intraclass correlation: the share of the variance of scores that lies between items (Shrout & Fleiss 1979).

Missing judgments: variances come from the analysis of variance for unequal numbers, one-way, and from Henderson's
method 1 (Henderson 1953; Searle, Casella & McCulloch 1992, section 5.3), two-way. Both are unbiased for any assignment
of annotators to items that is due to chance; both take linear time, and give the figures of Shrout & Fleiss if none is
missing.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from app.inference.agreement.agreement_measure import Agreement, agreement_with_bootstrap_interval
from app.inference.ground.arrays import Array, divide_or_nan
from app.inference.ground.bootstrap import BOOTSTRAP_DRAWS
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.judgments import Judgments, judgments_of_shared_items

ONE_WAY_MEANING = "The share of the differences between scores that comes from the items, not from annotators or noise."
TWO_WAY_MEANING = (
    "The share of the differences between scores that comes from the items, not from generally strict or mild "
    "annotators or from noise."
)
ICC_CAVEAT = (
    "It is low if all items are alike, however careful annotators are. It does not show a bias that all annotators "
    "share, so it cannot tell whether scores are right."
)
NO_VARIATION_MESSAGE = "All scores are the same, so there are no differences to divide between items and annotators."

VarianceComponents = Callable[[Array], tuple[Array, Array]]
"""Function of weights (D, I) to the variance between items, and the rest of the variance of a judgment, (D,) each."""


def one_way_icc(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    judgments_per_mean: float = 1.0,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """ICC(1, k) of Shrout & Fleiss 1979, at most 1: each item judged by its own random annotators.

    `items` and `annotators` are (T,) integers from 0, `scores` (T,) finite numbers. `judgments_per_mean` is k, at least
    1, the number of judgments in the mean whose reliability is wanted; 1 is a single judgment. The estimate of a
    variance may be below 0, and so may this. Raises ValueError for invalid arrays, `Inestimable` (`one_annotator`,
    `no_shared_items`, `all_the_same`, `one_item`).
    """
    judgments = judgments_of_shared_items(items, annotators, scores, n_items=n_items, n_annotators=n_annotators)
    return _estimate_icc(
        _make_one_way_variance_function(judgments),
        judgments,
        ONE_WAY_MEANING,
        judgments_per_mean,
        draws=draws,
        level=level,
        rng=rng,
    )


def two_way_icc(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    judgments_per_mean: float = 1.0,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """ICC(2, k) of Shrout & Fleiss 1979, at most 1: annotators, a random sample, each judge several items.

    Absolute agreement: an annotator who is strict throughout counts against it. As `one_way_icc`, and raises
    `Inestimable` (`annotators_not_shared`) if no annotator judged two items, so that an annotator's strictness cannot
    be told from noise.
    """
    judgments = judgments_of_shared_items(items, annotators, scores, n_items=n_items, n_annotators=n_annotators)
    if judgments.n_annotators == len(judgments.items):
        raise Inestimable(
            "No annotator judged two items, so strict or mild annotators cannot be distinguished from noise.",
            code="annotators_not_shared",
        )
    return _estimate_icc(
        _make_two_way_variance_function(judgments),
        judgments,
        TWO_WAY_MEANING,
        judgments_per_mean,
        draws=draws,
        level=level,
        rng=rng,
    )


def _estimate_icc(
    variances: VarianceComponents,
    judgments: Judgments,
    meaning: str,
    judgments_per_mean: float,
    *,
    draws: int,
    level: float,
    rng: np.random.Generator,
) -> Agreement:
    if not judgments_per_mean >= 1.0:
        raise ValueError(f"a mean is of at least 1 judgment, not {judgments_per_mean}")
    if judgments.n_items < 2:
        raise Inestimable("Only one item has two judgments, so there are no items to tell apart.", code="one_item")

    def share(weights: Array) -> Array:
        between, rest = variances(weights)
        return divide_or_nan(between, between + rest / judgments_per_mean)

    mean_sentence = (
        ""
        if judgments_per_mean == 1.0
        else f" It is the figure for a mean of {judgments_per_mean:g} judgments, not for one."
    )
    sentence = f"{meaning} {ICC_CAVEAT}{mean_sentence}"
    return agreement_with_bootstrap_interval(
        share, judgments, sentence, draws=draws, level=level, rng=rng, undefined_message=NO_VARIATION_MESSAGE
    )


def _make_one_way_variance_function(judgments: Judgments) -> VarianceComponents:
    columns = _five_score_sums_per_item(judgments)

    def variances(weights: Array) -> tuple[Array, Array]:
        n, total, squares, squares_of_items, m_squared = (weights @ columns).T
        items = weights.sum(axis=1)
        within = (squares - squares_of_items) / (n - items)
        between = (squares_of_items - total * total / n) / (items - 1.0)
        typical = (n - m_squared / n) / (items - 1.0)  # how many judgments per item has, where they differ in number
        return (between - within) / typical, within

    return variances


def _make_two_way_variance_function(judgments: Judgments) -> VarianceComponents:
    """Henderson's method 1: the sums of squares T set equal to their expectations, and solved."""
    columns, shape = _five_score_sums_per_item(judgments), (judgments.n_items, judgments.n_annotators)
    judgment_matrix = csr_array((np.ones(len(judgments.items)), (judgments.items, judgments.annotators)), shape=shape)
    score_matrix = csr_array((_centred_scores(judgments), (judgments.items, judgments.annotators)), shape=shape)

    def variances(weights: Array) -> tuple[Array, Array]:
        n, total, squares, squares_of_items, m_squared = (weights @ columns).T
        numbers, sums = np.asarray(weights @ judgment_matrix), np.asarray(weights @ score_matrix)
        squares_of_annotators = (sums * sums / np.maximum(numbers, 1.0)).sum(axis=1)
        # The variance of annotators and noise together, and that of items and noise together.
        within_items = (squares - squares_of_items) / (n - weights.sum(axis=1))
        within_annotators = divide_or_nan(squares - squares_of_annotators, n - (numbers > 0.0).sum(axis=1))
        of_items, of_annotators = n - m_squared / n, n - (numbers * numbers).sum(axis=1) / n
        noise = divide_or_nan(
            of_items * within_annotators + of_annotators * within_items - (squares - total * total / n),
            of_items + of_annotators + 1.0 - n,
        )
        return within_annotators - noise, within_items

    return variances


def _five_score_sums_per_item(judgments: Judgments) -> Array:
    """Return per item: judgments m, sum of scores, sum of their squares, (sum of scores)^2 / m, and m^2, (I, 5)."""
    y, m = _centred_scores(judgments), judgments.per_item
    sums = judgments.sum_of_each_item(y)
    return np.column_stack([m, sums, judgments.sum_of_each_item(y * y), sums * sums / m, m * m])


def _centred_scores(judgments: Judgments) -> Array:
    """Return scores minus their mean, so that subtracting sums of squares loses little precision."""
    centred: Array = judgments.values - judgments.values.mean()
    return centred
