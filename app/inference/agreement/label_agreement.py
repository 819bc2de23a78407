"""Agreement of labels: pairwise agreement, Cohen's kappa, Fleiss' kappa, Gwet's AC1."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from app.inference.agreement.agreement_measure import Agreement, agreement_with_bootstrap_interval
from app.inference.agreement.annotator_pairs import (
    MIN_SHARED_ITEMS,
    AnnotatorPairValues,
    SharedJudgments,
    agreement_as_mean_over_annotator_pairs,
    shared_judgments_of_pairs_or_raise,
)
from app.inference.ground.arrays import Array, divide_or_nan
from app.inference.ground.bootstrap import BOOTSTRAP_DRAWS, WeightedStatistic
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.validation import index_array_and_count_or_raise
from app.inference.observations.judgments import Judgments, judgments_of_shared_items

PAIRWISE_MEANING = (
    "How often two annotators give an item the same label. Part of it is chance, especially if there are few labels or "
    "one of them prevails. It cannot tell which labels are right, because annotators who share a mistake agree as well."
)
COHEN_MEANING = (
    "How far two annotators agree beyond what their own labelling habits would give by chance: 0 is chance and 1 is "
    "complete agreement. It is low if one label prevails, even if both are good, and high if both share a mistake. It "
    "measures consistency, not whether labels are right."
)
FLEISS_MEANING = (
    "How far annotators agree beyond chance: 0 is chance, that is, labels drawn from all that were given, and 1 is "
    "complete agreement. It is low if one label prevails, even if annotators are good, and high if they share a "
    "mistake. It measures consistency, not whether labels are right."
)
AC1_MEANING = (
    "How far annotators agree beyond what occasional guessing would give; 1 is complete agreement. Unlike kappa, it "
    "stays high if one label prevails. Like kappa, it cannot tell which labels are right, because annotators who share "
    "a mistake agree as well."
)


def pairwise_agreement(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Share of pairs of judgments of one item that have the same label, in [0, 1]; not corrected for chance.

    `items`, `annotators` and `labels` are (T,) integers from 0, one entry per judgment. (A of Passonneau & Carpenter
    2014, section 2.1, but over pairs of judgments, so that annotators who share more items count for more.) Raises
    ValueError for invalid arrays, `Inestimable` (`one_annotator`, `no_shared_items`).
    """
    judgments = judgments_of_shared_items(
        items,
        annotators,
        index_array_and_count_or_raise("labels", labels)[0],
        n_items=n_items,
        n_annotators=n_annotators,
    )
    agreeing = _agreeing_pair_count_of_each_item(judgments, _label_count_matrix_by_item(judgments))
    pairs = judgments.per_item * (judgments.per_item - 1) / 2.0

    def share(weights: Array) -> Array:
        return divide_or_nan(weights @ agreeing, weights @ pairs)

    return agreement_with_bootstrap_interval(share, judgments, PAIRWISE_MEANING, draws=draws, level=level, rng=rng)


def cohens_kappa(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    least_shared: int = MIN_SHARED_ITEMS,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Cohen's kappa of two annotators, averaged over all pairs of them, in [-1, 1] (Cohen 1960; the mean: Light 1971).

    (A - C) / (1 - C), where C is the agreement of labels drawn from each one's own labels of the shared items. Pairs
    with fewer than `least_shared` shared items, or where both gave the same single label throughout, are left out; the
    others count by the number of items they share. Arrays and errors as for `pairwise_agreement`; also `Inestimable`
    (`too_few_shared_items`, `all_the_same`). Time and memory grow with the number of pairs of judgments.
    """
    judgments = judgments_of_shared_items(
        items,
        annotators,
        index_array_and_count_or_raise("labels", labels)[0],
        n_items=n_items,
        n_annotators=n_annotators,
    )
    shared = shared_judgments_of_pairs_or_raise(judgments, least_shared)
    firsts, seconds, pair = _label_counts_of_both_and_pair_of_columns(judgments, shared)
    shared_items = shared.sparse_sums_by_item_and_annotator_pair()
    agreeing = shared.sparse_sums_by_item_and_annotator_pair(
        judgments.values[shared.first] == judgments.values[shared.second]
    )

    def kappa(weights: Array) -> AnnotatorPairValues:
        n = weights @ shared_items
        by_chance = ((weights @ firsts) * (weights @ seconds)) @ pair
        # Both multiplied by n^2, so that they are whole numbers and a chance of 1 is exactly that.
        return AnnotatorPairValues(divide_or_nan((weights @ agreeing) * n - by_chance, n * n - by_chance), n)

    return agreement_as_mean_over_annotator_pairs(
        kappa,
        judgments,
        shared,
        COHEN_MEANING,
        undefined_reason="both annotators always gave the same label",
        draws=draws,
        level=level,
        rng=rng,
        cells_per_draw=3 * len(shared.first),
    )


def fleiss_kappa(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Fleiss' kappa, at most 1 (Fleiss 1971): agreement by chance is that of two labels drawn from all labels.

    Missing judgments as in Gwet 2014, "Handbook of Inter-Rater Reliability": agreement is the mean over items with two
    or more judgments, the shares of the labels are means over items with any. Arrays and errors as for
    `pairwise_agreement`; also `Inestimable` (`all_the_same`).
    """
    labels, _ = index_array_and_count_or_raise("labels", labels)
    judgments = judgments_of_shared_items(
        items, annotators, labels, n_items=n_items, n_annotators=n_annotators, min_annotators=1
    )
    statistic = _make_chance_corrected_statistic(judgments, lambda shares: (shares * shares).sum(axis=1))
    return agreement_with_bootstrap_interval(statistic, judgments, FLEISS_MEANING, draws=draws, level=level, rng=rng)


def gwets_ac1(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_labels: int | None = None,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Gwet's AC1, at most 1 (Gwet 2008): agreement by chance happens only where annotators guess.

    It is sum_k pi_k (1 - pi_k) / (K - 1) with pi_k the share of label k, so unlike kappa it stays high where nearly all
    items have one label. `n_labels` is K, the number of labels to choose from, at least 2; default: 1 + the highest
    label given. Missing judgments as for `fleiss_kappa`. Arrays and errors as for `pairwise_agreement`; also
    `Inestimable` (`one_label`) if K is 1.
    """
    labels, choices = index_array_and_count_or_raise("labels", labels, n_labels)
    if choices == 1:
        raise Inestimable("There was only one label to choose, so there is nothing to agree on.", code="one_label")
    judgments = judgments_of_shared_items(
        items, annotators, labels, n_items=n_items, n_annotators=n_annotators, min_annotators=1
    )
    statistic = _make_chance_corrected_statistic(judgments, lambda pi: (pi * (1.0 - pi)).sum(axis=1) / (choices - 1))
    return agreement_with_bootstrap_interval(statistic, judgments, AC1_MEANING, draws=draws, level=level, rng=rng)


def _label_counts_of_both_and_pair_of_columns(
    judgments: Judgments, shared: SharedJudgments
) -> tuple[csr_array, csr_array, csr_array]:
    """Return how often the first, and the second, of each pair of annotators gave each label to each item, sparse (I,
    U).

    Only the U labels that one of a pair used have a column. The third array, (U, P), maps columns to pairs.
    """
    labels = judgments.values.astype(np.intp)
    n_labels, entries = int(labels.max()) + 1, len(shared.first)
    labels_of_both = np.concatenate([labels[shared.first], labels[shared.second]])
    cells, column = np.unique(np.tile(shared.pair, 2) * n_labels + labels_of_both, return_inverse=True)
    ones, shape = np.ones(entries), (judgments.n_items, len(cells))
    firsts, seconds = (csr_array((ones, (shared.items, columns)), shape=shape) for columns in np.split(column, 2))
    pair = csr_array((np.ones(len(cells)), (np.arange(len(cells)), cells // n_labels)))
    return firsts, seconds, pair


def _label_count_matrix_by_item(judgments: Judgments) -> csr_array:
    """Return how often each item got each label, sparse (I, K)."""
    return csr_array((np.ones(len(judgments.items)), (judgments.items, judgments.values.astype(np.intp))))


def _agreeing_pair_count_of_each_item(judgments: Judgments, counts: csr_array) -> Array:
    """Return how many pairs of each item's judgments have the same label, (I,)."""
    agreeing: Array = ((counts * counts).sum(axis=1) - judgments.per_item) / 2.0
    return agreeing


def _make_chance_corrected_statistic(
    judgments: Judgments, chance_agreement: Callable[[Array], Array]
) -> WeightedStatistic:
    """Statistic (A - C) / (1 - C), A the mean agreement of items and C from the mean shares of labels, (D, K) ->
    (D,).
    """
    counts, per_item = _label_count_matrix_by_item(judgments), judgments.per_item
    has_several = (per_item >= 2).astype(np.float64)
    agreement = _agreeing_pair_count_of_each_item(judgments, counts) / np.maximum(per_item * (per_item - 1) / 2.0, 1.0)
    shares = csr_array(counts / per_item[:, None])

    def statistic(weights: Array) -> Array:
        observed = divide_or_nan(weights @ agreement, weights @ has_several)
        chance = chance_agreement((weights @ shares) / weights.sum(axis=1, keepdims=True))
        max_excess = 1.0 - chance
        return divide_or_nan(observed - chance, np.where(max_excess > 1e-12, max_excess, 0.0))

    return statistic
