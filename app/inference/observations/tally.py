"""Sums over the judgments of each item, updated as judgments arrive: enough to estimate how much annotators differ.

Judgments of one item by the same annotator are not independent, so the annotators of each item are kept too.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers

Numbers = TypeVar("Numbers", Integers, Array)

# Recent pairs are merged into the others once they are an eighth of them, and so many: inserting a few into millions
# would copy the millions every time.
MERGE_FRACTION, MIN_MERGED_PAIRS = 8, 20_000


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorItemCounts:
    """Number of judgments by annotator and item: sorted pair numbers and their counts, (P,) each."""

    numbers: Integers
    counts: Integers

    @classmethod
    def empty(cls) -> "AnnotatorItemCounts":
        """Return the counts before any judgment."""
        return cls(np.zeros(0, np.intp), np.zeros(0, np.intp))

    def select_items(self, items: Integers, n_items: int) -> "AnnotatorItemCounts":
        """Return the counts of some of N items, given by number in ascending order; the items are renumbered."""
        annotator, item = np.divmod(self.numbers, n_items)
        positions = np.searchsorted(items, item)
        is_selected = items.take(positions, mode="clip") == item
        return AnnotatorItemCounts(
            annotator[is_selected] * len(items) + positions[is_selected], self.counts[is_selected]
        )

    def counts_or_zero_of_pair_numbers(self, pair_numbers: Integers) -> Integers:
        """Return the count of each of these pair numbers, (n,)."""
        if not len(self.numbers):
            return np.zeros(len(pair_numbers), np.intp)
        positions = np.searchsorted(self.numbers, pair_numbers)
        is_present = self.numbers.take(positions, mode="clip") == pair_numbers
        return np.where(is_present, self.counts.take(positions, mode="clip"), 0)

    def with_sorted_counts_merged(self, new_numbers: Integers, new_counts: Integers) -> "AnnotatorItemCounts":
        """Return the counts with new ones added, sorted and without duplicates."""
        is_known = self.counts_or_zero_of_pair_numbers(new_numbers) > 0
        updated_counts = self.counts.copy()
        updated_counts[np.searchsorted(self.numbers, new_numbers[is_known])] += new_counts[is_known]
        place = np.searchsorted(self.numbers, new_numbers[~is_known])
        return AnnotatorItemCounts(
            np.insert(self.numbers, place, new_numbers[~is_known]),
            np.insert(updated_counts, place, new_counts[~is_known]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Sums over the judgments of N items, (N,) each.

    Attributes:
        judgments: Number of judgments.
        total: Sum of their scores.
        annotators: Number of annotators who gave them.
        first_total: Sum of the first score of each annotator.
        first_squares: Sum of the squares of these first scores.
        repeats: Sum of the squared numbers of judgments by the same annotator, so `judgments` where no annotator judged
        the item twice.
        settled: Counts by annotator and item; the number of a pair is annotator * N + item.
        recent: The newest of these counts, merged into `settled` from time to time.

    """

    judgments: Integers
    total: Array
    annotators: Integers
    first_total: Array
    first_squares: Array
    repeats: Integers
    settled: AnnotatorItemCounts
    recent: AnnotatorItemCounts

    @classmethod
    def empty(cls, n_items: int) -> "Tally":
        """Return the tally before the first judgment."""
        none, zero = np.zeros(n_items, np.intp), np.zeros(n_items)
        return cls(none, zero, none, zero, zero, none, AnnotatorItemCounts.empty(), AnnotatorItemCounts.empty())

    def with_judgments_added(self, items: npt.ArrayLike, annotators: npt.ArrayLike, scores: npt.ArrayLike) -> "Tally":
        """Return the tally with these judgments added in order; the same sums, to the last bit, in any batches.

        It validates nothing. Time and memory grow with T and N; with all judgments so far only now and then.

        Args:
            items: (T,) from 0 to N - 1.
            annotators: (T,) whole numbers from 0, below 2^63 / N.
            scores: (T,).

        """
        items, scores = np.asarray(items, np.intp), np.asarray(scores, np.float64)
        numbers = np.asarray(annotators, np.intp) * len(self.judgments) + items
        pairs, first, added_counts = np.unique(numbers, return_index=True, return_counts=True)
        earlier_counts = self.settled.counts_or_zero_of_pair_numbers(
            pairs
        ) + self.recent.counts_or_zero_of_pair_numbers(pairs)
        first_judgments = np.sort(first[earlier_counts == 0])
        settled, recent = _settled_and_recent_counts_merged_if_large(
            self.settled, self.recent.with_sorted_counts_merged(pairs, added_counts)
        )
        return Tally(
            _item_totals_with_values_added(self.judgments, items, 1),
            _item_totals_with_values_added(self.total, items, scores),
            _item_totals_with_values_added(self.annotators, items[first_judgments], 1),
            _item_totals_with_values_added(self.first_total, items[first_judgments], scores[first_judgments]),
            _item_totals_with_values_added(self.first_squares, items[first_judgments], scores[first_judgments] ** 2),
            _item_totals_with_values_added(
                self.repeats, items[first], added_counts * (2 * earlier_counts + added_counts)
            ),
            settled,
            recent,
        )

    def select_items(self, items: Integers) -> "Tally":
        """Return the tally of some items, given by number in ascending order; the items are renumbered."""
        return Tally(
            self.judgments[items],
            self.total[items],
            self.annotators[items],
            self.first_total[items],
            self.first_squares[items],
            self.repeats[items],
            self.settled.select_items(items, len(self.judgments)),
            self.recent.select_items(items, len(self.judgments)),
        )

    @property
    def annotator_item_counts(self) -> AnnotatorItemCounts:
        """Return all counts by annotator and item, `settled` and `recent` together."""
        return self.settled.with_sorted_counts_merged(self.recent.numbers, self.recent.counts)

    @property
    def nbytes(self) -> int:
        """Memory of the tally, in bytes."""
        arrays = (self.judgments, self.total, self.annotators, self.first_total, self.first_squares, self.repeats)
        pairs = (self.settled.numbers, self.settled.counts, self.recent.numbers, self.recent.counts)
        return sum(array.nbytes for array in (*arrays, *pairs))

    @property
    def mean(self) -> Array:
        """Mean of all judgments of each item, (N,); NaN where there is none."""
        judged = self.judgments > 0
        mean: Array = np.divide(self.total, self.judgments, out=np.full(len(judged), np.nan), where=judged)
        return mean


def _item_totals_with_values_added(totals: Numbers, items: Integers, values: npt.ArrayLike) -> Numbers:
    new_totals = totals.copy()
    np.add.at(new_totals, items, values)  # one after another, so that sums round alike in any pieces
    return new_totals


def _settled_and_recent_counts_merged_if_large(
    settled: AnnotatorItemCounts, recent: AnnotatorItemCounts
) -> tuple[AnnotatorItemCounts, AnnotatorItemCounts]:
    if len(recent.numbers) < max(MIN_MERGED_PAIRS, len(settled.numbers) // MERGE_FRACTION):
        return settled, recent
    return settled.with_sorted_counts_merged(recent.numbers, recent.counts), AnnotatorItemCounts.empty()
