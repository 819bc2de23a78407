"""What rules know of one annotator, in arrays; pure."""

from dataclasses import dataclass, field
from math import nan

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.observations.judgment_kinds import JudgmentKind

MetFlags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AnnotatorBehaviour:
    """How one annotator answers: J judgments in H answers, as they came, those of a HIT as presented.

    yields, classes: of the campaign's way of asking; classes is 0 where values are none. ties: whether equal values say
    that two items are equal. hit: (J,) 0 to H - 1. item: (J,). share: (J,) of the scale, 0 to 1; of unordered classes
    the number of the class. others: (J,) the mean of the others' shares for the item; of unordered classes the one that
    most of them chose. company: (J,) how many others judged the item; `others` is NaN where nobody did.
    seconds: (H,) from getting the HIT to its answer, NaN where nobody knows. gold, attention: (G,), (A,) whether each
    check was met. at_random: the probability that the update law gives to answers at random, NaN where it learns none.
    """

    yields: JudgmentKind
    classes: int
    ties: bool
    hit: Integers
    item: Integers
    share: Array
    others: Array
    company: Integers
    seconds: Array
    gold_met: MetFlags = field(default_factory=lambda: np.zeros(0, np.bool_))
    attention_met: MetFlags = field(default_factory=lambda: np.zeros(0, np.bool_))
    random_answer_probability: float = nan

    @property
    def hit_starts(self) -> Integers:
        """Where each HIT that judges something begins, and at last J."""
        return np.append(np.flatnonzero(np.diff(self.hit, prepend=-1)), len(self.hit)).astype(np.intp)
