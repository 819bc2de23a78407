"""Pairs of annotators who judged the same items, and means over all such pairs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from app.errors import pluralize
from app.inference.agreement.agreement_measure import Agreement, agreement_with_bootstrap_interval
from app.inference.ground.arrays import Array, Integers, divide_or_nan
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.judgments import Judgments, judgment_pairs_within_items

MIN_SHARED_ITEMS = 5
"""Fewest shared items of a pair of annotators: with fewer, a figure says next to nothing about them."""


@dataclass(frozen=True, slots=True)
class SharedJudgments:
    """E pairs of judgments of one item, by P pairs of annotators who share enough items, sorted by pair of annotators.

    Attributes:
        first: Position of the first of the two judgments, (E,), as second.
        items: The item of both, (E,).
        starts: Where each pair of annotators begins, (P,).
        pair: The pair of annotators of each entry, (E,).
        n_items: I, the number of items.

    """

    first: Integers
    second: Integers
    items: Integers
    starts: Integers
    pair: Integers
    n_items: int
    notes: tuple[Note, ...]

    def sparse_sums_by_item_and_annotator_pair(self, values: npt.ArrayLike = 1.0) -> csr_array:
        """Return the sums of `values` of each entry, (E,), by item and pair of annotators, sparse (I, P).

        Weights (D, I) times it are the sums of draws.
        """
        entries = np.broadcast_to(np.asarray(values, dtype=np.float64), self.items.shape)
        return csr_array((entries, (self.items, self.pair)), shape=(self.n_items, len(self.starts)))


@dataclass(frozen=True, slots=True)
class AnnotatorPairValues:
    """A value per draw and pair of annotators, and the number of items that it rests on, (D, P) each."""

    values: Array
    shared_items: Array

    def weighted_mean(self) -> Array:
        """Mean over the pairs of annotators that have a value, each weighted by its shared items, (D,)."""
        # In one order in memory, for sums round by it.
        values, shared_items = np.ascontiguousarray(self.values), np.ascontiguousarray(self.shared_items)
        defined = np.isfinite(values)
        weighted = np.where(defined, values, 0.0) * shared_items
        return divide_or_nan(weighted.sum(axis=1), (shared_items * defined).sum(axis=1))


def shared_judgments_of_pairs_or_raise(judgments: Judgments, least_shared: int) -> SharedJudgments:
    """Return the pairs of annotators who can be compared. Raises `Inestimable` (`too_few_shared_items`) if there are
    none.
    """
    first, second = judgment_pairs_within_items(judgments)
    key = judgments.annotators[first] * judgments.n_annotators + judgments.annotators[second]
    order = np.argsort(key, kind="stable")
    sizes = np.unique(key, return_counts=True)[1]
    is_large_enough = sizes >= least_shared
    kept_sizes = sizes[is_large_enough]
    if not len(kept_sizes):
        raise Inestimable(
            f"No two annotators judged {least_shared} or more of the same items, so no two of them can be compared.",
            code="too_few_shared_items",
        )
    order = order[np.repeat(is_large_enough, sizes)]
    first, second = first[order], second[order]
    pair, starts = np.repeat(np.arange(len(kept_sizes)), kept_sizes), np.cumsum(kept_sizes) - kept_sizes
    median = int(np.median(kept_sizes))
    weighting_text = f"each weighted by the number of items they share (half of the pairs share {median:,} or fewer)"
    notes = [
        Note(
            "mean_over_pairs",
            f"The value is the mean over {pluralize(len(kept_sizes), 'pair')} of annotators, {weighting_text}.",
        )
    ]
    if dropped_pairs := len(sizes) - len(kept_sizes):
        sentence = (
            f"{pluralize(dropped_pairs, 'pair')} of annotators shared fewer than {least_shared} items and do not count."
        )
        notes.append(Note("few_items_shared", sentence))
    return SharedJudgments(first, second, judgments.items[first], starts, pair, judgments.n_items, tuple(notes))


def agreement_as_mean_over_annotator_pairs(
    values_per_pair: Callable[[Array], AnnotatorPairValues],
    judgments: Judgments,
    shared: SharedJudgments,
    sentence: str,
    *,
    undefined_reason: str,
    draws: int,
    level: float,
    rng: np.random.Generator,
    cells_per_draw: int,
) -> Agreement:
    """Mean of a value over pairs of annotators; `undefined_reason` says when a pair has none.

    Raises `Inestimable` (`all_the_same`) if no pair has a value.
    """
    missing = int(np.isnan(values_per_pair(np.ones((1, judgments.n_items))).values).sum())
    notes = shared.notes
    if missing:
        sentence = (
            f"{pluralize(missing, 'pair')} of annotators have no value, because {undefined_reason}, and do not count."
        )
        notes += (Note("pairs_without_value", sentence),)
    return agreement_with_bootstrap_interval(
        lambda weights: values_per_pair(weights).weighted_mean(),
        judgments,
        sentence,
        draws=draws,
        level=level,
        rng=rng,
        n_pairs=len(shared.first),
        notes=notes,
        undefined_message=f"No pair of annotators has a value, because {undefined_reason}.",
        cells_per_draw=cells_per_draw,
        # An item drawn twice leaves a pair of annotators one different item fewer, and fewer items agree less by chance
        # corrections and correlations: the draws lie a little lower than the value they are to surround.
        recentre_draws=True,
    )
