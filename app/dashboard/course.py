"""How a campaign came to know what it knows: each item's posterior now and after its first judgments.

Pure: a course follows from the priors and the responses in order, however they are cut into pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online.annotator_aware_learned import Learned
from app.inference.online.annotator_aware_online import JUDGMENT
from app.inference.online.law import Law, Parameters
from app.inference.online.laws import Hit, steps

EARLY = (1, 5, 10)  # judgments after which an item's posterior is kept

LEARNED_BYTES = 8 * JUDGMENT  # of a judgment
ARRAYS = ("a", "b", "judgments", "early_a", "early_b")


@dataclass(frozen=True)
class Course:
    """A campaign of N items after `answers` responses.

    a, b: both parameters of each posterior, (N,).
    judgments: how many each item has had, (N,).
    early_a, early_b: what the parameters were after `EARLY` judgments, (3, N); NaN where there were fewer.
    learned: what is known of annotators, None with a law that learns nothing of them.
    """

    a: Array
    b: Array
    judgments: npt.NDArray[np.intp]
    early_a: Array
    early_b: Array
    answers: int
    learned: Learned | None = None

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        arrays: list[Array] = [getattr(self, name) for name in ARRAYS]
        states = 0 if self.learned is None else LEARNED_BYTES * int(self.judgments.sum())
        return sum(array.nbytes for array in arrays) + states

    def early(self, number: int) -> list[tuple[int, float, float]]:
        """(judgments, a, b) of an item at each of `EARLY` that lies behind it; the present one is not among them."""
        return [
            (judgments, float(self.early_a[k, number]), float(self.early_b[k, number]))
            for k, judgments in enumerate(EARLY)
            if judgments < self.judgments[number]
        ]


def begun(law: Law, a: Array, b: Array) -> Course:
    """Nobody has answered: `a` and `b` are the priors, (N,)."""
    none = np.full((len(EARLY), len(a)), np.nan)
    learned = None if law.update else Learned.nothing(list(zip(a.tolist(), b.tolist(), strict=True)))
    return Course(a, b, np.zeros(len(a), np.intp), none, none, 0, learned)


def followed(
    course: Course, law: Law, hits: Sequence[Hit], parameters: Parameters, *, annotators: Sequence[int] = ()
) -> Course:
    """The course after these HITs too, in their order. Raises what `laws.replay` raises.

    annotators: who answered each HIT, for a law that learns about them.
    """
    # Copies: the course that this one continues stays what it is.
    course = replace(course, **{name: getattr(course, name).copy() for name in ARRAYS})
    if course.learned is not None:
        learned = course.learned.copy()
        course = replace(course, learned=learned)
        learn(course, learned, hits, annotators)
    elif hits:
        apply(course, law, hits, parameters)
    return replace(course, answers=course.answers + len(hits))


def apply(course: Course, law: Law, hits: Sequence[Hit], parameters: Parameters) -> None:
    """Change a course's arrays by HITs. Only the items of these HITs are touched, however many the campaign has."""
    touched = np.unique(np.concatenate([items for items, _ in hits]))
    place = {number: k for k, number in enumerate(touched.tolist())}
    a, b = course.a[touched].tolist(), course.b[touched].tolist()
    here = [([place[number] for number in items], scores) for items, scores in hits]
    for (items, _), (_, new_a, new_b) in zip(hits, steps(law, a, b, here, parameters), strict=True):
        note(course, items, new_a, new_b)
    course.a[touched], course.b[touched] = a, b


def learn(course: Course, learned: Learned, hits: Sequence[Hit], annotators: Sequence[int]) -> None:
    """The same with a law that learns about annotators."""
    for (items, scores), annotator in zip(hits, annotators, strict=True):
        changed, change = learned.apply(annotator, items, scores)
        note(course, items, change.a[: len(items)], change.b[: len(items)])
        course.a[changed], course.b[changed] = change.a, change.b


def note(course: Course, items: Sequence[int], a: Sequence[float], b: Sequence[float]) -> None:
    """Count a judgment of each item, and keep the parameters it led to if it is one of `EARLY`."""
    for number, value_a, value_b in zip(items, a, b, strict=True):
        course.judgments[number] += 1
        if (judgments := course.judgments.item(number)) in EARLY:
            when = EARLY.index(judgments)
            course.early_a[when, number], course.early_b[when, number] = value_a, value_b
