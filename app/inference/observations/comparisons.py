"""Counts of pairwise judgments: which items were compared, how often, and which groups they form."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, make_mention
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    outcome_vector_or_raise,
    refuse_columns_of_unequal_length,
)

BooleanArray = npt.NDArray[np.bool_]

_CELLS_PER_JUDGMENT = 8
# The screen's 55 and 50 are 0.55 - 0.50 = 0.050000000000000044 as floats, more than a margin of 0.05.
# The slack is far above such rounding and far below any step a slider can make.
TIE_SLACK = 1e-9


def is_tie(score_i: float, score_j: float, tie_margin: float) -> bool:
    """Return whether two scores in [0, 1] count as equal: they differ by no more than tie_margin, up to rounding."""
    return abs(score_i - score_j) <= tie_margin + TIE_SLACK


@dataclass(frozen=True, slots=True)
class PairOutcomeCounts:
    """Number of judgments of each pair of items, by outcome.

    Attributes:
        low: (P,) item numbers, low < high, in order of (low, high), no pair twice.
        high: (P,).
        low_won: (P,) counts as floats, as high_won and tied; at least one of the three is above 0.
        n_items: Items are numbered 0 to n_items - 1; some may be in no pair.

    """

    low: Integers
    high: Integers
    low_won: Array
    high_won: Array
    tied: Array
    n_items: int

    @property
    def judgment_counts(self) -> Array:
        """Number of judgments of each pair, (P,)."""
        return self.low_won + self.high_won + self.tied

    @property
    def compared_items_mask(self) -> BooleanArray:
        """Return whether each item was compared with any other, (n_items,)."""
        compared = np.zeros(self.n_items, dtype=np.bool_)
        compared[self.low] = compared[self.high] = True
        return compared

    def select_pairs(self, mask: BooleanArray) -> "PairOutcomeCounts":
        """Return the pairs where the mask, (P,), is true; items keep their numbers."""
        return PairOutcomeCounts(
            low=self.low[mask],
            high=self.high[mask],
            low_won=self.low_won[mask],
            high_won=self.high_won[mask],
            tied=self.tied[mask],
            n_items=self.n_items,
        )


def comparison_arrays_and_item_count_or_raise(
    first: npt.ArrayLike, second: npt.ArrayLike, outcomes: npt.ArrayLike, n_items: int | None = None
) -> tuple[Integers, Integers, Integers, int]:
    """Return the three arrays of judgments as integers, and the number of items (default: 1 + the highest number).

    The arrays are (J,); outcomes are +1 (first preferred), 0 (tie), -1 (second preferred). Raises ValueError as the
    checks in `validation` do and for an item compared with itself; Inestimable if J is 0 (code "no_judgments").
    """
    first, n_first = index_array_and_count_or_raise("first", first, n_items)
    second, n_second = index_array_and_count_or_raise("second", second, n_items)
    outcomes = outcome_vector_or_raise(outcomes)
    refuse_columns_of_unequal_length(first=first, second=second, outcomes=outcomes)
    if not first.size:
        raise Inestimable("There are no comparisons yet, so there is nothing to estimate.", code="no_judgments")
    if (first == second).any():
        raise ValueError(f"item {first[first == second][0]} was compared with itself")
    return first, second, outcomes, max(n_first, n_second)


def count_pair_outcomes(
    first: npt.ArrayLike, second: npt.ArrayLike, outcomes: npt.ArrayLike, *, n_items: int | None = None
) -> PairOutcomeCounts:
    """Count long-form judgments per pair; arguments and errors as `comparison_arrays_and_item_count_or_raise`. O(J log
    J), memory O(J).
    """
    first, second, outcomes, n_items = comparison_arrays_and_item_count_or_raise(first, second, outcomes, n_items)
    is_reversed = first > second
    low, high = np.where(is_reversed, second, first), np.where(is_reversed, first, second)
    # The outcome is the last digit of the key, so that plain integers are counted and nothing is looked up.
    keys = (low * n_items + high) * 3 + np.where(is_reversed, -outcomes, outcomes) + 1
    keys, key_counts = _distinct_keys_and_counts_sorting_in_place(keys, 3 * n_items**2)
    pairs, outcome = np.divmod(keys, 3)
    starts_pair = np.diff(pairs, prepend=-1) > 0
    counts = np.zeros((3, int(starts_pair.sum())))
    counts[outcome, np.cumsum(starts_pair) - 1] = key_counts
    low, high = np.divmod(pairs[starts_pair], n_items)
    return PairOutcomeCounts(low, high, low_won=counts[2], high_won=counts[0], tied=counts[1], n_items=n_items)


def _distinct_keys_and_counts_sorting_in_place(keys: Integers, n_keys: int) -> tuple[Integers, Integers]:
    """Return the distinct keys in ascending order, and how often each occurs. Sorts the keys in place."""
    if n_keys <= _CELLS_PER_JUDGMENT * keys.size:  # ten times as fast as sorting, in memory still linear
        occurrences = np.bincount(keys)
        distinct = np.flatnonzero(occurrences)
        return distinct, occurrences[distinct]
    keys.sort()
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.diff(starts, append=keys.size)


def pair_outcome_columns_from_hits(
    hits: npt.ArrayLike, items: npt.ArrayLike, scores: npt.ArrayLike, *, tie_margin: float = 0.0, ties: bool = True
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return all pairs that were scored side by side: first, second, outcomes and the HIT of each pair.

    A HIT of n items gives its n (n - 1) / 2 pairs, in the order of `combinations`. HITs are returned in numerical
    order. Raises ValueError as the checks in `validation` do.

    Args:
        hits: The HIT in which each score was given, (R,).
        items: The scored item, (R,).
        scores: The score in [0, 1], (R,).
        tie_margin: Scores no further apart than this, at least 0, are a tie.
        ties: If False, such pairs are left out instead, so that a best and a worst of n give 2 n - 3 pairs.

    """
    hits, _ = index_array_and_count_or_raise("hits", hits)
    items, _ = index_array_and_count_or_raise("items", items)
    scores = finite_vector_or_raise("scores", scores)
    refuse_columns_of_unequal_length(hits=hits, items=items, scores=scores)
    order = np.argsort(hits, kind="stable")
    hits, items, scores = hits[order], items[order], scores[order]
    i, j = position_pairs_of_all_equal_keys(hits)
    difference = scores[i] - scores[j]
    outcomes = np.where(np.abs(difference) <= tie_margin + TIE_SLACK, 0, np.sign(difference)).astype(np.intp)
    if not ties:
        decided = outcomes != 0
        i, j, outcomes = i[decided], j[decided], outcomes[decided]
    return items[i], items[j], outcomes, hits[i]


def position_pairs_of_all_equal_keys(sorted_keys: Integers) -> tuple[Integers, Integers]:
    """Return the positions i < j of all pairs of equal neighbours: [7, 7, 7, 8, 8] -> (0, 0, 1, 3), (1, 2, 2, 4)."""
    return follower_position_pairs(equal_follower_count_of_each_key(sorted_keys), 0, sorted_keys.size)


def equal_follower_count_of_each_key(sorted_keys: Integers) -> Integers:
    """Return how many equal keys follow each key: [7, 7, 7, 8, 8] -> [2, 1, 0, 1, 0]."""
    return np.searchsorted(sorted_keys, sorted_keys, side="right") - 1 - np.arange(sorted_keys.size)


def follower_position_pairs(follower_counts: Integers, start: int, stop: int) -> tuple[Integers, Integers]:
    """Return positions start <= i < stop, each with the `follower_counts[i]` positions j after it.

    This is a slice of `position_pairs_of_all_equal_keys`.
    """
    repeats = follower_counts[start:stop]
    i = np.repeat(np.arange(start, stop), repeats)
    return i, i + 1 + np.arange(i.size) - np.repeat(np.cumsum(repeats) - repeats, repeats)


def connected_group_number_of_each_item(comparisons: PairOutcomeCounts, *, strongly_connected: bool) -> Integers:
    """Return the group of each item, (n_items,).

    0 is the largest group (of equally large ones the one with the lowest item), -1 an item that is in no group of two.

    Args:
        comparisons: The pairs that were compared.
        strongly_connected: False: items are together if a chain of comparisons joins them. True: only if in such a
        chain, walked in either direction, each item at least tied with the next (the strongly connected components,
        in which a maximum likelihood is finite: Ford 1957).

    """
    from scipy.sparse.csgraph import connected_components  # slow to import, and most processes need no graph

    won = comparisons.low_won + comparisons.tied > 0
    lost = comparisons.high_won + comparisons.tied > 0
    winner = np.concatenate([comparisons.low[won], comparisons.high[lost]])
    loser = np.concatenate([comparisons.high[won], comparisons.low[lost]])
    shape = (comparisons.n_items, comparisons.n_items)
    graph = scipy.sparse.coo_array((np.ones(winner.size, dtype=np.int8), (winner, loser)), shape=shape).tocsr()
    _, label = connected_components(graph, directed=strongly_connected, connection="strong")
    _, lowest_item, size = np.unique(label, return_index=True, return_counts=True)
    rank = np.empty(size.size, dtype=np.intp)
    rank[np.lexsort((lowest_item, -size))] = np.arange(size.size)
    return np.where(size[label] > 1, rank[label], -1)


def uncompared_items_notes_or_empty(comparisons: PairOutcomeCounts) -> tuple[Note, ...]:
    """Return a note about the items that are in no pair, if there are any."""
    uncompared = np.flatnonzero(~comparisons.compared_items_mask)
    sentence = "Nothing is known about {0}: no comparisons with other items."
    return (Note("never_compared", sentence, make_mention("item", uncompared)),) if uncompared.size else ()
