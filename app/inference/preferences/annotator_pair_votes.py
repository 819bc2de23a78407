"""Judgments of pairs by annotator, for estimates that look at each annotator's judgments of the same pair together."""

from dataclasses import dataclass

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.validation import sum_by_number


@dataclass(frozen=True, slots=True)
class AnnotatorPairVotes:
    """Judgments, those of the same pair by the same annotator counted together: R rows, N items, K annotators.

    Attributes:
        low: (R,) the lower item number of the pair.
        high: (R,) the higher item number.
        annotator: (R,) in ascending order.
        judged: (R,) sum of the weights of the judgments.
        wins: (R,) sum of the weights of those that prefer `low`; ties are half.
        n_items: N.
        n_annotators: K.

    """

    low: Integers
    high: Integers
    annotator: Integers
    judged: Array
    wins: Array
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
        is_reversed = pair[0] > pair[1]
        low, high = np.minimum(*pair), np.maximum(*pair)
        n_items = sizes[0]
        keys, row = np.unique((annotators * n_items + low) * n_items + high, return_inverse=True)
        judged = sum_by_number(row, weights, len(keys))
        wins = sum_by_number(row, weights * 0.5 * (1.0 + np.where(is_reversed, -outcomes, outcomes)), len(keys))
        annotator_and_low, high = np.divmod(keys, n_items)
        return cls(annotator_and_low % n_items, high, annotator_and_low // n_items, judged, wins, *sizes)

    @property
    def first_votes(self) -> Integers:
        """Return the first row of each annotator who has one; rows are sorted by annotator."""
        return np.flatnonzero(np.diff(self.annotator, prepend=-1))

    def sum_by_item(self, slope: Array) -> Array:
        """Return derivatives in the scores, (N,), from derivatives in the differences low - high, (R,)."""
        return sum_by_number(self.low, slope, self.n_items) - sum_by_number(self.high, slope, self.n_items)
