"""All judgments of a campaign in long form, for estimators that cannot work from sums."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers


@dataclass(frozen=True, slots=True, eq=False)
class LongJudgments:
    """T judgments of N items, in the order in which they were given.

    Attributes:
        n_items: N.
        items: (T,) from 0 to N - 1.
        annotators: (T,), any whole numbers.
        scores: (T,) on 0 to 1.

    """

    n_items: int
    items: Integers
    annotators: Integers
    scores: Array

    @classmethod
    def empty(cls, n_items: int) -> "LongJudgments":
        """Return the judgments of a campaign before the first one."""
        none = np.zeros(0, np.intp)
        return cls(n_items, none, none, np.zeros(0))

    def with_judgments_added(
        self, items: npt.ArrayLike, annotators: npt.ArrayLike, scores: npt.ArrayLike
    ) -> "LongJudgments":
        """Return these judgments followed by new ones."""
        return LongJudgments(
            self.n_items,
            np.append(self.items, np.asarray(items, np.intp)),
            np.append(self.annotators, np.asarray(annotators, np.intp)),
            np.append(self.scores, np.asarray(scores, np.float64)),
        )

    def select_items(self, items: Integers) -> "LongJudgments":
        """Return the judgments of some items, given by number in ascending order; the items are renumbered."""
        positions = np.searchsorted(items, self.items)
        is_selected = items.take(positions, mode="clip") == self.items
        return LongJudgments(len(items), positions[is_selected], self.annotators[is_selected], self.scores[is_selected])

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes."""
        return self.items.nbytes + self.annotators.nbytes + self.scores.nbytes
