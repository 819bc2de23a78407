"""Where beliefs about annotators settle: they lead to a consensus on the items that leads to the same beliefs again.

What is believed of annotators and of the crowd says what the others' judgments tell of an item; answers beside that
give new beliefs. Half steps of this kind reach the fixed point, for full ones swing, but creep near it: hundreds of
rounds whose changes look like rest. So once changes are small, the last rounds are extrapolated (Anderson 1965,
"Iterative procedures for nonlinear integral equations"; in the form of Walker & Ni 2011, equation 2.2), wherever
that brings the beliefs nearer to what follows from them. There can be more than one fixed point. Several starts are
made, and the end counts under which the answers are the most probable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference.ground.arrays import Array
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_beliefs import CLASSES, AnnotatorBeliefs, Crowd
from app.inference.ratings.annotator_evidence import COMPARED, Judged, answers_beside

_HALF = 0.5  # of each step is taken
# The largest change in a round, on the logarithmic scale, below which rounds are extrapolated. Further away a fixed
# point need not be one that rounds lead to.
_NEAR = 0.05
_ROUNDS_KEPT = 6  # to extrapolate from
_NOTHING = 1e-6  # what is learned from somebody's answers, and the same from those that tell even less
_PATIENCE = 10  # rounds without extrapolating, after one that led away

STARTS = (0.1, 4.0)
"""What a judgment of any annotator is first taken to tell of t, in units of what is known before: next to nothing, and
a lot."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Where the rounds ended.

    known, common: what is believed. residual: the largest change that one more round would make, on a logarithmic
    scale. log_probability: of each annotator's answers given the others', added up. rounds: how many it took.
    """

    known: AnnotatorBeliefs
    common: Crowd
    residual: float
    log_probability: float
    rounds: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """A point (P,), how far one round moves it (P,), and what is believed there because of what evidence."""

    point: Array
    step: Array
    evidence: Array
    known: AnnotatorBeliefs
    common: Crowd

    @property
    def residual(self) -> float:
        return float(np.abs(self.step).max())


def settled(judged: Judged, *, max_rounds: int, tolerance: float, starts: Sequence[float] = STARTS) -> FixedPoint:
    """The fixed point; if no start led to one within `max_rounds`, the point nearest to one that a start came to.

    It is reached when one more round would change nothing by more than `tolerance`, on a logarithmic scale.
    """
    counted = _counted(judged)
    ends = [_end(judged, counted, information, max_rounds, tolerance) for information in starts]
    reached = [end for end in ends if end.residual <= tolerance]
    if not reached:
        return min(ends, key=lambda end: end.residual)
    return max(reached, key=lambda end: end.log_probability)


def _counted(judged: Judged) -> Crowd:
    """The crowd before anything is believed: what it has in common by counting answers."""
    none = np.zeros((2, len(judged.scores)))
    evidence = answers_beside(judged, *none)
    return _crowd(evidence, learning.beliefs(evidence, learning.crowd(np.zeros(learning.TOTALS))))


def _crowd(evidence: Array, known: AnnotatorBeliefs) -> Crowd:
    """What these beliefs say of the crowd; whether corrections help is not asked here."""
    totals = np.zeros(learning.TOTALS)
    totals[: learning.HEARD] = learning.own_ways(evidence, known).sum(axis=0)
    return learning.crowd(totals)


def _start(n_annotators: int, information: float) -> Array:
    """A point: everybody is as one expects of somebody who has not answered, but a judgment tells so much."""
    common = learning.crowd(np.zeros(learning.TOTALS))
    known = learning.beliefs(np.zeros((n_annotators, COMPARED)), common)
    told = np.full(n_annotators, information)
    # Of reliability r they tell h = r^2 / (1 - r^2), with the slope r / (1 - r^2).
    return _point(replace(known, information=told, slope=np.sqrt(told * (1.0 + told))), common)


def _point(known: AnnotatorBeliefs, common: Crowd) -> Array:
    """All that a round depends on, (3 A + CLASSES + 2,). Logarithms of what is positive, so that a step of some size
    means as much anywhere.
    """
    positive = (known.information, known.slope, common.shares, [common.bias_sd, common.scale_sd])
    return np.concatenate([np.log(np.maximum(np.concatenate(positive), _NOTHING)), known.offset])


def _round(point: Array, judged: Judged, counted: Crowd) -> _Seen:
    """From what is believed to the consensus of the others, and from answers beside it to new beliefs."""
    a = judged.n_annotators
    positive, offset = np.exp(point[:-a]), point[-a:]
    information, slope, shares, (bias_sd, scale_sd) = np.split(positive, np.cumsum([a, a, CLASSES]))
    unknown = np.zeros(a)
    given = AnnotatorBeliefs(np.zeros((a, CLASSES)), information, slope, offset, unknown, unknown, unknown, unknown)
    common = replace(counted, shares=shares / shares.sum(), bias_sd=float(bias_sd), scale_sd=float(scale_sd))
    evidence = answers_beside(judged, *learning.consensus(judged, given, common))
    known = learning.beliefs(evidence, common)
    step = _point(known, _crowd(evidence, known)) - point
    return _Seen(point, step, evidence, known, common)


def _end(judged: Judged, counted: Crowd, information: float, max_rounds: int, tolerance: float) -> FixedPoint:
    """Where one start leads."""
    seen = _round(_start(judged.n_annotators, information), judged, counted)
    nearest, kept, waiting, rounds = seen, [seen], 0, 1
    while nearest.residual > tolerance and rounds < max_rounds:
        rounds += 1
        ahead = None if waiting or seen.residual > _NEAR else _extrapolated(kept)
        with np.errstate(all="ignore" if ahead is not None else None):  # a leap may end where numbers do
            further = _round(seen.point + _HALF * seen.step if ahead is None else ahead, judged, counted)
        if ahead is not None and not np.linalg.norm(further.step) <= np.linalg.norm(seen.step):
            kept, waiting = [seen], _PATIENCE
            continue
        seen, kept, waiting = further, [*kept, further][-_ROUNDS_KEPT:], max(waiting - 1, 0)
        nearest = min(nearest, seen, key=lambda end: end.residual)
    log_probability = learning.log_probability(nearest.evidence, nearest.common)
    return FixedPoint(nearest.known, nearest.common, nearest.residual, log_probability, rounds)


def _extrapolated(kept: list[_Seen]) -> Array | None:
    """Half a step from where the steps of the rounds kept, as a combination of them, come nearest to none.

    None if that lies behind. Changes can shrink and grow again on the way; where they are smallest is then no end, and
    whoever were led back to it would never leave.
    """
    if len(kept) == 1:
        return None
    last = kept[-1]
    moved = np.diff([seen.point for seen in kept], axis=0).T
    bent = np.diff([seen.step for seen in kept], axis=0).T
    share = np.linalg.lstsq(bent, last.step, rcond=1e-8)[0]
    leap: Array = _HALF * last.step - (moved + _HALF * bent) @ share
    return last.point + leap if leap @ last.step > 0.0 else None
