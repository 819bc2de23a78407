"""Judgments of pairs by annotator, for estimates that look at each annotator's judgments of the same pair together."""

from dataclasses import dataclass

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.validation import sum_values_of_each_number


@dataclass(frozen=True, slots=True)
class AnnotatorPairVotes:
    """Judgments, those of the same pair by the same annotator counted together: R rows, N items, K annotators.

    Attributes:
        low: (R,) the lower item number of the pair.
        high: (R,) the higher item number.
        annotator: (R,) in ascending order.
        judged: (R,) sum of the weights of the judgments.
        wins: (R,) sum of the weights of those that prefer `low`; ties are half.
        decided: (R,) as `judged`, without ties.
        decided_wins: (R,) as `wins`, without ties.
        n_items: N.
        n_annotators: K.

    """

    low: Integers
    high: Integers
    annotator: Integers
    judged: Array
    wins: Array
    decided: Array
    decided_wins: Array
    n_items: int
    n_annotators: int

    @classmethod
    def from_judgments(
        cls,
        pair: tuple[Integers, Integers],
        outcomes: Integers,
        annotators: Integers,
        weights: Array,
        sizes: tuple[int, int],
    ) -> "AnnotatorPairVotes":
        """Count judgments.

        Args:
            pair: First and second item of each judgment, (J,) each.
            outcomes: (J,) +1 (first preferred), 0 (tie), -1.
            annotators: (J,).
            weights: (J,).
            sizes: The numbers of items and of annotators.

        """
        low, high = np.minimum(*pair), np.maximum(*pair)
        low_outcomes = np.where(pair[0] > pair[1], -outcomes, outcomes)
        keys, row = np.unique((annotators * sizes[0] + low) * sizes[0] + high, return_inverse=True)
        won, tied, lost = (
            sum_values_of_each_number(row, np.where(low_outcomes == outcome, weights, 0.0), len(keys))
            for outcome in (1, 0, -1)
        )
        annotator_and_low, high = np.divmod(keys, sizes[0])
        annotator, low = np.divmod(annotator_and_low, sizes[0])
        return cls(low, high, annotator, won + tied + lost, won + 0.5 * tied, won + lost, won, *sizes)

    @property
    def first_row_of_each_annotator(self) -> Integers:
        """Return the first row of each annotator who has one; rows are sorted by annotator."""
        return np.flatnonzero(np.diff(self.annotator, prepend=-1))

    def sum_of_each_item(self, slope: Array) -> Array:
        """Return derivatives in the scores, (N,), from derivatives in the differences low - high, (R,)."""
        return sum_values_of_each_number(self.low, slope, self.n_items) - sum_values_of_each_number(
            self.high, slope, self.n_items
        )
