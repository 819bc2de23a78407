"""All judgments of a campaign in long form, for what cannot be told from what they add up to."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers


@dataclass(frozen=True, slots=True, eq=False)
class LongJudgments:
    """Of N items, in their order, (T,) each. annotators: whatever whole numbers they have; scores: on 0 to 1."""

    n_items: int
    items: Integers
    annotators: Integers
    scores: Array

    @classmethod
    def empty(cls, n_items: int) -> "LongJudgments":
        """Before the first one."""
        none = np.zeros(0, np.intp)
        return cls(n_items, none, none, np.zeros(0))

    def add_judgments(self, items: npt.ArrayLike, annotators: npt.ArrayLike, scores: npt.ArrayLike) -> "LongJudgments":
        """With these too."""
        return LongJudgments(
            self.n_items,
            np.append(self.items, np.asarray(items, np.intp)),
            np.append(self.annotators, np.asarray(annotators, np.intp)),
            np.append(self.scores, np.asarray(scores, np.float64)),
        )

    def select_items(self, items: Integers) -> "LongJudgments":
        """Those of some items alone, by their numbers in order, which are numbered anew."""
        positions = np.searchsorted(items, self.items)
        is_selected = items.take(positions, mode="clip") == self.items
        return LongJudgments(len(items), positions[is_selected], self.annotators[is_selected], self.scores[is_selected])

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.items.nbytes + self.annotators.nbytes + self.scores.nbytes
