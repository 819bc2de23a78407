"""How well a campaign knows its items by what annotators' disagreement tells, now and as answers came in.

Pure: it follows from the responses in order, however they are cut into pieces, and not from the update law; but what
its judgments say to that law, for the campaign's goal, is kept up with too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from app.designs.scale import POINTS
from app.goals.evidence import GoalEvidence
from app.inference.ground.arrays import Array
from app.inference.observations.tally import Tally
from app.inference.online.law import Hit, Law
from app.inference.ratings.moderated import Moderated, moderated

MOST_POINTS = 60  # even, so that every second point of a full curve is one of a curve of twice the step


def typical(intervals: Moderated) -> float:
    """Half the width of the median item's 95 % interval, in points; 50, half of the scale, where nothing is known."""
    low, high = intervals.interval()
    return float(np.median(np.where(np.isfinite(low), high - low, 1.0)) * POINTS / 2)


@dataclass(frozen=True)
class Precision:
    """A campaign of N items after `answers` responses.

    evidence: what its judgments add up to, scores in [0, 1], and say to its law.
    typical: the typical interval after 0, `step`, 2 `step`, ... responses, up to `answers`; at most MOST_POINTS + 1.
    """

    evidence: GoalEvidence
    answers: int
    step: int
    typical: list[float]

    @cached_property
    def intervals(self) -> Moderated:
        """Each item's mean and its calibrated interval."""
        return moderated(self.evidence.tally)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self.evidence.nbytes

    def now(self) -> float:
        """The typical interval after all these responses; linear in N."""
        return typical(self.intervals)

    def points(self) -> list[tuple[int, float]]:
        """The typical interval as (responses, ± points), the newest at its end."""
        known = [(k * self.step, value) for k, value in enumerate(self.typical)]
        if self.answers % self.step:
            known.append((self.answers, self.now()))
        return known


def begun(law: Law, n_items: int) -> Precision:
    """Nobody has answered."""
    return Precision(GoalEvidence.nothing(law, n_items), 0, 1, [POINTS / 2])


def followed(before: Precision, hits: Sequence[Hit], *, total: int = 0) -> Precision:
    """After these HITs too, in their order; their values on 0 to 1.

    total: how many responses there are at least; known from the start, it spares points that would be dropped again.
    Until half of the items are judged, points cost nothing; by then so many HITs lie between two of them that a look
    at the newest meets few, however large N is.
    """
    evidence, answers, step, points = before.evidence, before.answers, before.step, before.typical.copy()
    while total >= step * MOST_POINTS:
        step, points = 2 * step, points[::2]
    begin, counted, end = answers, answers, answers + len(hits)
    half = begin + hits_below_half(evidence.tally, hits)
    while answers < end:
        answers = min(end, answers + step - answers % step)
        if answers > half or answers == end:
            piece = slice(counted - begin, answers - begin)
            evidence, counted = evidence.after(*long_form(hits[piece])), answers
        if answers % step == 0:
            points.append(typical(moderated(evidence.tally)) if answers > half else POINTS / 2)
        if len(points) > MOST_POINTS:
            step, points = 2 * step, points[::2]
    return Precision(evidence, answers, step, points)


def hits_below_half(tally: Tally, hits: Sequence[Hit]) -> int:
    """After how many of these HITs surely fewer than half of the items are judged: nothing is known of the median."""
    judged = np.count_nonzero(tally.judgments) + np.cumsum([len(hit.items) for hit in hits])
    return int(np.count_nonzero(2 * judged < len(tally.judgments)))


def long_form(hits: Sequence[Hit]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Array]:
    """Item, annotator and value of each judgment."""
    items = np.array([item for hit in hits for item in hit.items], np.intp)
    who = np.repeat(np.array([hit.annotator for hit in hits], np.intp), [len(hit.items) for hit in hits])
    return items, who, np.array([value for hit in hits for value in hit.values], np.float64)
