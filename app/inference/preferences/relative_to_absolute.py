"""Conversion of preferences to a scale, where they allow one (Amidei 2020, section 5; Roberts 1985, p. 107)."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.notes import Note, make_mention
from app.inference.observations.comparisons import (
    BooleanArray,
    PairOutcomeCounts,
    count_pair_outcomes,
    uncompared_items_notes_or_empty,
)


@dataclass(frozen=True, slots=True)
class AbsoluteScores:
    """Scores that mirror preferences, or the reason why there are none.

    Attributes:
        score: (n_items,) f(x), a whole number from 0; NaN where not estimable.
        estimable: (n_items,) whether the item has a score.
        cycle: Empty, or three items (a, b, c) that forbid a scale: a is at least as good as b, b as c, and yet c is
            better
        than a.
        notes: Why there is no scale, or for which items.

    """

    score: Array
    estimable: BooleanArray
    cycle: tuple[int, ...]
    notes: tuple[Note, ...]


def fit(
    first: npt.ArrayLike, second: npt.ArrayLike, outcomes: npt.ArrayLike, *, n_items: int | None = None
) -> AbsoluteScores:
    """Score f(x) = the number of other items y with x R y, R = "at least as good as" (Theorem 1).

    Arrays are (J,): item numbers and outcomes +1 (first preferred), 0 (tie), -1 (second preferred), as a rule of one
    annotator; where a pair was judged more than once, the majority decides, and no majority is a tie. f mirrors R (x R
    y if and only if f(x) >= f(y)) just if R is complete and transitive over the items judged. If a pair is missing or
    there is a cycle, no item has a score, and notes and cycle say so. O(J log J). Errors as
    `comparison_arrays_and_item_count_or_raise`.
    """
    comparisons = count_pair_outcomes(first, second, outcomes, n_items=n_items)
    compared_items = np.flatnonzero(comparisons.compared_items_mask)
    notes = uncompared_items_notes_or_empty(comparisons)
    nothing = np.full(comparisons.n_items, np.nan)
    if comparisons.low.size < compared_items.size * (compared_items.size - 1) // 2:
        return AbsoluteScores(
            nothing, np.isfinite(nothing), (), (*notes, _missing_pairs_note(comparisons, compared_items))
        )
    relation = _weak_preference_matrix(comparisons, compared_items)
    f = relation.sum(axis=1) - 1  # each item is as good as itself, which f does not count
    cycle = tuple(int(compared_items[item]) for item in _intransitive_triple_or_empty(relation, f))
    if cycle:
        sentence = (
            "No scale fits these preferences: {0} is at least as good as {1}, {1} as {2}, and yet {2} "
            "is better than {0}."
        )
        reason = Note("cycle", sentence, *(make_mention("item", [item]) for item in cycle))
        return AbsoluteScores(nothing, np.isfinite(nothing), cycle, (*notes, reason))
    score = nothing
    score[compared_items] = f
    return AbsoluteScores(score, comparisons.compared_items_mask, (), notes)


def _missing_pairs_note(comparisons: PairOutcomeCounts, compared_items: Integers) -> Note:
    """Return the note on how many pairs were judged, with one that was not."""
    compared_pairs = set(zip(comparisons.low.tolist(), comparisons.high.tolist(), strict=True))
    items = compared_items.tolist()
    low, high = next(pair for pair in combinations(items, 2) if pair not in compared_pairs)
    n_pairs = len(items) * (len(items) - 1) // 2
    sentence = (
        f"There is no scale: {len(compared_pairs):,} of {n_pairs:,} pairs of items were compared; "
        "a scale needs all of them. Not compared, for example: {0}."
    )
    return Note("pairs_missing", sentence, make_mention("item", [low, high]))


def _weak_preference_matrix(comparisons: PairOutcomeCounts, compared_items: Integers) -> BooleanArray:
    """Return R as a matrix over the compared items; every pair is there."""
    low, high = np.searchsorted(compared_items, comparisons.low), np.searchsorted(compared_items, comparisons.high)
    relation = np.eye(compared_items.size, dtype=np.bool_)
    relation[low, high] = comparisons.low_won >= comparisons.high_won
    relation[high, low] = comparisons.high_won >= comparisons.low_won
    return relation


def _intransitive_triple_or_empty(relation: BooleanArray, scores: Integers) -> tuple[int, ...]:
    """Return three items that break transitivity, or none; R is complete.

    Where f does not mirror R, there are x and y with y R x although f is no higher for y than for x (y better) or lower
    (a tie). Counting the items below each leaves a third item between them, which closes the cycle.
    """
    wrong = np.argwhere(relation != (scores[:, None] >= scores))
    if not wrong.size:
        return ()
    x, y = wrong[0].tolist()
    if relation[x, y] and relation[y, x]:  # as good as each other, and f[x] < f[y]
        return x, y, int(np.argmax(relation[y] & ~relation[x]))
    if relation[x, y]:
        x, y = y, x
    return x, int(np.argmax(relation[x] & ~relation[y])), y  # y is better, and f[x] >= f[y]
