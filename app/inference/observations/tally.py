"""What the judgments of each item add up to, kept up with as they come in: enough to tell how far annotators differ.

Judgments of one item by the same annotator are not independent, so who judged what is kept too.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers

Numbers = TypeVar("Numbers", Integers, Array)

# Recent pairs are merged into the others once they are an eighth of them, and so many: inserting a few into millions
# would copy the millions every time.
PART, LEAST = 8, 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Which annotator judged which item, as sorted numbers, and how often; (P,) each."""

    numbers: Integers
    counts: Integers

    @classmethod
    def nothing(cls) -> "Pairs":
        """Nobody has judged."""
        return cls(np.zeros(0, np.intp), np.zeros(0, np.intp))

    def within(self, items: Integers, n_items: int) -> "Pairs":
        """Those of some of N items, by their numbers in order, which are numbered anew."""
        annotator, item = np.divmod(self.numbers, n_items)
        place = np.searchsorted(items, item)
        kept = items.take(place, mode="clip") == item
        return Pairs(annotator[kept] * len(items) + place[kept], self.counts[kept])

    def of(self, numbers: Integers) -> Integers:
        """How often each of these is there, (n,)."""
        if not len(self.numbers):
            return np.zeros(len(numbers), np.intp)
        place = np.searchsorted(self.numbers, numbers)
        here = self.numbers.take(place, mode="clip") == numbers
        return np.where(here, self.counts.take(place, mode="clip"), 0)

    def plus(self, numbers: Integers, counts: Integers) -> "Pairs":
        """With these too, sorted and each once."""
        known = self.of(numbers) > 0
        mine = self.counts.copy()
        mine[np.searchsorted(self.numbers, numbers[known])] += counts[known]
        place = np.searchsorted(self.numbers, numbers[~known])
        return Pairs(np.insert(self.numbers, place, numbers[~known]), np.insert(mine, place, counts[~known]))


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Of N items, (N,) each.

    judgments: how many each has; total: the sum of their scores. annotators: how many gave them. first_total,
    first_squares: sums of the first score of each annotator, and of its square. repeats: the sum of the squared numbers
    of judgments by the same annotator, so `judgments` where nobody judged the item twice.
    settled, recent: who judged what; its number is that of the annotator times N plus that of the item.
    """

    judgments: Integers
    total: Array
    annotators: Integers
    first_total: Array
    first_squares: Array
    repeats: Integers
    settled: Pairs
    recent: Pairs

    @classmethod
    def nothing(cls, n_items: int) -> "Tally":
        """Before the first judgment."""
        none, zero = np.zeros(n_items, np.intp), np.zeros(n_items)
        return cls(none, zero, none, zero, zero, none, Pairs.nothing(), Pairs.nothing())

    def after(self, items: npt.ArrayLike, annotators: npt.ArrayLike, scores: npt.ArrayLike) -> "Tally":
        """With these judgments too, in their order; the same sums, to the last bit, in whatever pieces they come.

        items: (T,) from 0 to N - 1; annotators: (T,) whole numbers from 0, below 2^63 / N; scores: (T,). It checks
        nothing. Time and memory grow with T and N; with all judgments so far only now and then.
        """
        items, scores = np.asarray(items, np.intp), np.asarray(scores, np.float64)
        numbers = np.asarray(annotators, np.intp) * len(self.judgments) + items
        pairs, first, more = np.unique(numbers, return_index=True, return_counts=True)
        before = self.settled.of(pairs) + self.recent.of(pairs)
        new = np.sort(first[before == 0])
        settled, recent = _merged(self.settled, self.recent.plus(pairs, more))
        return Tally(
            _plus(self.judgments, items, 1),
            _plus(self.total, items, scores),
            _plus(self.annotators, items[new], 1),
            _plus(self.first_total, items[new], scores[new]),
            _plus(self.first_squares, items[new], scores[new] ** 2),
            _plus(self.repeats, items[first], more * (2 * before + more)),
            settled,
            recent,
        )

    def of(self, items: Integers) -> "Tally":
        """That of some items alone, by their numbers in order, which are numbered anew."""
        return Tally(
            self.judgments[items],
            self.total[items],
            self.annotators[items],
            self.first_total[items],
            self.first_squares[items],
            self.repeats[items],
            self.settled.within(items, len(self.judgments)),
            self.recent.within(items, len(self.judgments)),
        )

    @property
    def pairs(self) -> Pairs:
        """Who judged what: all that is `settled` and `recent`."""
        return self.settled.plus(self.recent.numbers, self.recent.counts)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = (self.judgments, self.total, self.annotators, self.first_total, self.first_squares, self.repeats)
        pairs = (self.settled.numbers, self.settled.counts, self.recent.numbers, self.recent.counts)
        return sum(array.nbytes for array in (*arrays, *pairs))

    @property
    def mean(self) -> Array:
        """Of all judgments, (N,); NaN where there is none."""
        judged = self.judgments > 0
        mean: Array = np.divide(self.total, self.judgments, out=np.full(len(judged), np.nan), where=judged)
        return mean


def _plus(sums: Numbers, items: Integers, values: npt.ArrayLike) -> Numbers:
    more = sums.copy()
    np.add.at(more, items, values)  # one after another, so that sums round alike in any pieces
    return more


def _merged(settled: Pairs, recent: Pairs) -> tuple[Pairs, Pairs]:
    if len(recent.numbers) < max(LEAST, len(settled.numbers) // PART):
        return settled, recent
    return settled.plus(recent.numbers, recent.counts), Pairs.nothing()
