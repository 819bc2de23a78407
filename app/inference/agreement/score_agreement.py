"""Agreement of scores: correlations between annotators, and between two halves of the judgments."""

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.inference.agreement.agreement_measure import Agreement, agreement_with_bootstrap_interval
from app.inference.agreement.annotator_pairs import (
    MIN_SHARED_ITEMS,
    AnnotatorPairValues,
    agreement_as_mean_over_annotator_pairs,
    shared_judgments_of_pairs_or_raise,
)
from app.inference.ground.arrays import Array, Integers, divide_or_nan
from app.inference.ground.bootstrap import BOOTSTRAP_DRAWS
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.weighted_correlation import (
    NUMBERS_PER_ENTRY_AND_DRAW,
    MeanRanks,
    weighted_pearson_of_each_block,
    weighted_spearman_of_each_block,
)
from app.inference.observations.judgments import Judgments, judgments_of_shared_items

MIN_REPORTED_LOSS = 0.01
"""Smallest loss of a correlation that is reported: correlations are shown to two decimals."""

DEFAULT_SPLITS = 20
"""How often the judgments are split: the mean over more splits changes by less than the interval's own error."""

CORRELATION_MEANING = (
    "How far two annotators put items in the same {what}, from 0 (not at all) to 1 (entirely). It ignores strictness "
    "and the use of the scale, and is low if items hardly differ. It cannot tell who is right: annotators who share a "
    "mistake correlate as well."
)
SPLIT_HALF_MEANING = (
    "How far scores from one half of each item's judgments put items in the same order as scores from the other half, "
    "{how}. It estimates whether similar annotators would give the same order again, not whether that order is right."
)
HALF_LENGTH_TEXT = "for half of the judgments"
FULL_LENGTH_TEXT = "extrapolated to all judgments by the Spearman-Brown formula"


def mean_annotator_correlation(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    kind: Literal["spearman", "pearson"] = "spearman",
    n_items: int | None = None,
    n_annotators: int | None = None,
    least_shared: int = MIN_SHARED_ITEMS,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Correlation of two annotators on the items both judged, averaged over all pairs of them, in [-1, 1].

    `items` and `annotators` are (T,) integers from 0, `scores` (T,) finite numbers. Pairs with fewer than
    `least_shared` shared items, or where one annotator gave one score throughout, are left out; the others count by the
    number of items they share. Time and memory grow with the number of pairs of judgments. Raises ValueError for
    invalid arrays, `Inestimable` (`one_annotator`, `no_shared_items`, `too_few_shared_items`, `all_the_same`).
    """
    if least_shared < 2:
        raise ValueError(f"a correlation needs at least 2 shared items, not {least_shared}")
    judgments = judgments_of_shared_items(items, annotators, scores, n_items=n_items, n_annotators=n_annotators)
    shared = shared_judgments_of_pairs_or_raise(judgments, least_shared)
    x, y = judgments.values[shared.first], judgments.values[shared.second]
    first, second = (MeanRanks.from_values(values, shared.pair) for values in (x, y))
    shared_items = shared.sparse_sums_by_item_and_annotator_pair()

    def rank_correlation(weights: Array) -> Array:
        return weighted_spearman_of_each_block(first, second, np.ascontiguousarray(weights.T)[shared.items]).T

    def linear_correlation(weights: Array) -> Array:
        return weighted_pearson_of_each_block(x, y, weights[:, shared.items], shared.starts)

    correlate = rank_correlation if kind == "spearman" else linear_correlation

    def pair_correlations(weights: Array) -> AnnotatorPairValues:
        return AnnotatorPairValues(correlate(weights), weights @ shared_items)

    agreement = agreement_as_mean_over_annotator_pairs(
        pair_correlations,
        judgments,
        shared,
        CORRELATION_MEANING.format(what="order" if kind == "spearman" else "proportions"),
        undefined_reason="one of the two always gave the same score",
        draws=draws,
        level=level,
        rng=rng,
        cells_per_draw=NUMBERS_PER_ENTRY_AND_DRAW * len(x),
    )
    loss = spearman_deficit_from_few_items(agreement.value, np.bincount(shared.pair)) if kind == "spearman" else 0.0
    if loss < MIN_REPORTED_LOSS:
        return agreement
    sentence = (
        f"Rankings of few items correlate less than those of many, here by about {loss:.2f}. The interval does not "
        "account for that."
    )
    return replace(agreement, notes=(*agreement.notes, Note("few_items_a_pair", sentence)))


def spearman_deficit_from_few_items(spearman_value: float, shared_item_counts: npt.ArrayLike) -> float:
    """Expected deficit of Spearman's correlation because pairs of annotators share few items.

    The mean of Spearman's correlation of n items is ((n - 2) rho + 3 tau) / (n + 1) (Moran 1948); tau is that of normal
    scores with this rho, estimated by `spearman_value`.

    Args:
        spearman_value: The correlation found.
        shared_item_counts: The number of items that each pair of annotators shares, (P,); pairs are weighted by it.

    """
    tau = 2 / np.pi * np.arcsin(2 * np.sin(np.pi * spearman_value / 6))
    sizes = np.asarray(shared_item_counts, np.float64)
    return float(np.average(3 * (spearman_value - tau) / (sizes + 1), weights=sizes))


def split_half_reliability(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    spearman_brown: bool = False,
    splits: int = DEFAULT_SPLITS,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Spearman between the items' means over two random halves of their judgments, averaged over splits, in [-1, 1].

    `items` and `annotators` are (T,) integers from 0, `scores` (T,) finite numbers. If an item has an odd number of
    judgments, a random half gets one more. `spearman_brown` steps the correlation r of the halves up to that of all
    judgments, 2 r / (1 + r) (Spearman 1910, Brown 1910); the sentence says which it is. The interval uses the same
    splits as the value. Raises ValueError for invalid arrays, `Inestimable` (`one_annotator`, `no_shared_items`,
    `too_few_shared_items` if fewer than 3 items have two judgments, `all_the_same`).
    """
    if splits < 1:
        raise ValueError(f"there must be at least 1 split, not {splits}")
    judgments = judgments_of_shared_items(items, annotators, scores, n_items=n_items, n_annotators=n_annotators)
    if judgments.n_items < 3:
        raise Inestimable("Fewer than 3 items have two judgments, too few for an order.", code="too_few_shared_items")
    whole = np.zeros(judgments.n_items, dtype=np.intp)
    halves = [
        [MeanRanks.from_values(mean, whole) for mean in item_means_of_two_random_halves(judgments, rng)]
        for _ in range(splits)
    ]

    def half_correlation(weights: Array) -> Array:
        item_weights = np.ascontiguousarray(weights.T)
        r = np.mean(
            [weighted_spearman_of_each_block(first, second, item_weights)[0] for first, second in halves], axis=0
        )
        return divide_or_nan(2.0 * r, 1.0 + r) if spearman_brown else r

    sentence = SPLIT_HALF_MEANING.format(how=FULL_LENGTH_TEXT if spearman_brown else HALF_LENGTH_TEXT)
    undefined = "In one half of the judgments, all items have the same mean, so they have no order."
    # Items drawn twice tie, which costs a correlation near 1 more than its interval is wide.
    return agreement_with_bootstrap_interval(
        half_correlation,
        judgments,
        sentence,
        draws=draws,
        level=level,
        rng=rng,
        undefined_message=undefined,
        cells_per_draw=NUMBERS_PER_ENTRY_AND_DRAW * judgments.n_items,
        recentre_draws=True,
    )


def item_means_of_two_random_halves(judgments: Judgments, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the means of each item's judgments in two random halves, (I,) each."""
    order = np.lexsort((rng.random(len(judgments.items)), judgments.items))
    before = np.cumsum(judgments.per_item) - judgments.per_item
    position_in_item = (
        np.arange(len(order)) - before[judgments.items] + rng.integers(2, size=judgments.n_items)[judgments.items]
    )
    values = judgments.values[order]
    first, second = (
        _item_means_of_masked_values(judgments.items, values, position_in_item % 2 == half, judgments.n_items)
        for half in (0, 1)
    )
    return first, second


def _item_means_of_masked_values(items: Integers, values: Array, mask: npt.NDArray[np.bool_], n_items: int) -> Array:
    total = np.bincount(items[mask], weights=values[mask], minlength=n_items)
    return total / np.bincount(items[mask], minlength=n_items)
