"""How a campaign came to know what it knows: each item's posterior now and after its first judgments.

Pure: a course follows from the priors and the responses in order, however they are cut into pieces.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online.law import Beliefs, Hit

EARLY = (1, 5, 10)  # judgments after which an item's posterior is kept


@dataclass(frozen=True)
class Course:
    """A campaign of N items after `answers` responses.

    beliefs: all that its law believes.
    judgments: how many each item has had, (N,).
    early: what the posteriors' numbers were after `EARLY` judgments, (3, numbers, N); NaN where there were fewer.
    """

    beliefs: Beliefs
    judgments: npt.NDArray[np.intp]
    early: Array
    answers: int = 0

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self.beliefs.nbytes + self.judgments.nbytes + self.early.nbytes

    @property
    def state(self) -> Array:
        """The posteriors' numbers, (numbers, N)."""
        return self.beliefs.state

    def earlier(self, number: int) -> list[tuple[int, list[float]]]:
        """(judgments, state) of an item at each of `EARLY` that lies behind it; the present one is not among them."""
        return [
            (judgments, self.early[k, :, number].tolist())
            for k, judgments in enumerate(EARLY)
            if judgments < self.judgments[number]
        ]


def begun(beliefs: Beliefs) -> Course:
    """Nobody has answered."""
    numbers, n_items = beliefs.state.shape
    return Course(beliefs, np.zeros(n_items, np.intp), np.full((len(EARLY), numbers, n_items), np.nan))


def followed(course: Course, hits: Sequence[Hit]) -> Course:
    """The course after these HITs too, in their order; one without items is an answer that says nothing. Raises what
    the law raises.
    """
    # Copies: the course that this one continues stays what it is.
    after = Course(course.beliefs.copy(), course.judgments.copy(), course.early.copy(), course.answers + len(hits))
    judged = [hit for hit in hits if hit.items]
    for hit, change in zip(judged, after.beliefs.steps(judged), strict=True):
        note(after, hit.items, zip(*change.state, strict=True))
    return after


def note(course: Course, items: Sequence[int], states: Iterable[tuple[float, ...]]) -> None:
    """Count a judgment of each item, and keep the state it led to if it is one of `EARLY`."""
    for number, state in zip(items, states, strict=False):  # a law may have changed other items too, after these
        course.judgments[number] += 1
        if (judgments := course.judgments.item(number)) in EARLY:
            course.early[EARLY.index(judgments), :, number] = state
