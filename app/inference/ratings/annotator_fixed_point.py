"""Fixed points of beliefs about annotators: beliefs that lead to a consensus on the items that leads to the same
beliefs.

Beliefs about annotators and the crowd determine the consensus of the others on an item; answers compared with it give
new beliefs. Half steps of this kind reach the fixed point, for full ones swing, but creep near it: hundreds of rounds
whose changes look like rest. So once changes are small, the last rounds are extrapolated (Anderson 1965, "Iterative
procedures for nonlinear integral equations"; in the form of Walker & Ni 2011, equation 2.2), wherever that brings the
beliefs nearer to a fixed point. There can be more than one fixed point. Several starts are made, and the end under
which the answers are the most probable is returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference.ground.arrays import Array
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_beliefs import AnnotatorBeliefs, Crowd, CrowdLevel
from app.inference.ratings.annotator_evidence import COMPARED, ScoredJudgments, moments_of_answers_of_each_annotator
from app.inference.ratings.belief_models import RELIABILITY_COUNT

_STEP_SHARE = 0.5  # of each step is taken
# The largest change in a round, on the logarithmic scale, below which rounds are extrapolated. Further away a fixed
# point need not be one that rounds lead to.
_MAX_STEP_TO_EXTRAPOLATE = 0.05
_MAX_ROUNDS_KEPT = 6  # to extrapolate from
_MIN_INFORMATION = 1e-6  # what is learned from somebody's answers, and the same from those that tell even less
_ROUNDS_BEFORE_RETRY = 10  # rounds without extrapolating, after one that led away
# Rounds before steps may grow, so that fits that need fewer take the same path as ever; how much each may grow while it
# keeps its direction, that is, while its cosine with the one before is near 1; and the longest.
_ROUNDS_BEFORE_LONG_STEPS, _STEP_GROWTH, _MAX_STEP_SHARE, _MIN_COSINE = 200, 1.5, 8.0, 0.95

START_INFORMATION = (0.1, 4.0)
"""Starting values of the information of a judgment about t, in units of the prior: next to nothing, and a lot."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """The end of the rounds.

    Attributes:
        beliefs: The beliefs about annotators.
        crowd: The beliefs about the crowd.
        residual: The largest change that one more round would make, on a logarithmic scale.
        log_probability: The log-probability of each annotator's answers given the others', added up.
        rounds: The number of rounds.

    """

    beliefs: AnnotatorBeliefs
    crowd: Crowd
    residual: float
    log_probability: float
    rounds: int


@dataclass(frozen=True, slots=True)
class _Round:
    """A point (P,), its change by one round (P,), and the beliefs there with their evidence."""

    point: Array
    step: Array
    evidence: Array
    beliefs: AnnotatorBeliefs
    crowd: Crowd

    @property
    def residual(self) -> float:
        return float(np.abs(self.step).max())


def find_fixed_point(
    judgments: ScoredJudgments, *, max_rounds: int, tolerance: float, starts: Sequence[float] = START_INFORMATION
) -> FixedPoint:
    """Return the fixed point; if no start led to one within `max_rounds`, the nearest point that a start reached.

    It is reached when one more round would change nothing by more than `tolerance`, on a logarithmic scale.
    """
    counted_crowd = _initial_crowd_from_answer_counts(judgments)
    ends = [
        _fixed_point_from_start(judgments, counted_crowd, information, max_rounds, tolerance) for information in starts
    ]
    converged = [end for end in ends if end.residual <= tolerance]
    if not converged:
        return min(ends, key=lambda end: end.residual)
    return max(converged, key=lambda end: end.log_probability)


def crowd_level_of_scores_and_biases(judgments: ScoredJudgments, beliefs: AnnotatorBeliefs) -> CrowdLevel:
    """Return the level of these scores, and of biases under these beliefs."""
    counts = judgments.sum_of_each_item(np.ones(len(judgments.scores)))
    item_means = judgments.sum_of_each_item(judgments.scores) / np.maximum(counts, 1.0)
    return CrowdLevel(
        item_means=float(item_means.sum()),
        items=float(np.count_nonzero(counts)),
        biases=float(beliefs.bias[judgments.annotators].sum()),
    )


def _initial_crowd_from_answer_counts(judgments: ScoredJudgments) -> Crowd:
    """Return the crowd before any beliefs, from counts of answers."""
    none = np.zeros((2, len(judgments.scores)))
    evidence = moments_of_answers_of_each_annotator(judgments, *none)
    beliefs = learning.estimate_annotator_beliefs(evidence, _crowd_before_any_answer())
    return _crowd_from_beliefs(evidence, beliefs, crowd_level_of_scores_and_biases(judgments, beliefs))


def _crowd_before_any_answer() -> Crowd:
    return learning.crowd_from_totals(np.zeros(learning.TOTALS_SIZE), CrowdLevel())


def _crowd_from_beliefs(evidence: Array, beliefs: AnnotatorBeliefs, level: CrowdLevel) -> Crowd:
    """Return the crowd that these beliefs imply, without asking whether corrections help."""
    totals = np.zeros(learning.TOTALS_SIZE)
    totals[: learning.COMPARED_TOTAL] = learning.crowd_contributions(evidence, beliefs).sum(axis=0)
    return learning.crowd_from_totals(totals, level)


def _make_starting_point(n_annotators: int, information: float) -> Array:
    """Return a point where every annotator is as expected before an answer, but a judgment has this information."""
    crowd = _crowd_before_any_answer()
    beliefs = learning.estimate_annotator_beliefs(np.zeros((n_annotators, COMPARED)), crowd)
    start_information = np.full(n_annotators, information)
    # With reliability r their information is h = r^2 / (1 - r^2), with the slope r / (1 - r^2).
    return _point_from_beliefs(
        replace(beliefs, information=start_information, slope=np.sqrt(start_information * (1.0 + start_information))),
        crowd,
    )


def _point_from_beliefs(beliefs: AnnotatorBeliefs, crowd: Crowd) -> Array:
    """Return all inputs of a round, (3 A + CLASSES + 2,).

    Positive values are in logarithms, so that a step of some size means the same everywhere.
    """
    positive = (beliefs.information, beliefs.slope, crowd.shares, [crowd.bias_sd, crowd.scale_sd])
    return np.concatenate([np.log(np.maximum(np.concatenate(positive), _MIN_INFORMATION)), beliefs.offset])


def _round_of_consensus_and_beliefs(point: Array, judgments: ScoredJudgments, counted_crowd: Crowd) -> _Round:
    """Compute the consensus of the others from the beliefs, and new beliefs from the answers and that consensus."""
    a = judgments.n_annotators
    positive, offset = np.exp(point[:-a]), point[-a:]
    information, slope, shares, (bias_sd, scale_sd) = np.split(positive, np.cumsum([a, a, RELIABILITY_COUNT]))
    unknown = np.zeros(a)
    point_beliefs = AnnotatorBeliefs(
        np.zeros((a, RELIABILITY_COUNT)), information, slope, offset, unknown, unknown, unknown, unknown
    )
    crowd = replace(counted_crowd, shares=shares / shares.sum(), bias_sd=float(bias_sd), scale_sd=float(scale_sd))
    evidence = moments_of_answers_of_each_annotator(
        judgments, *learning.standardised_mean_and_variance_of_others(judgments, point_beliefs, crowd)
    )
    beliefs = learning.estimate_annotator_beliefs(evidence, crowd)
    step = _point_from_beliefs(beliefs, _crowd_from_beliefs(evidence, beliefs, CrowdLevel())) - point
    return _Round(point, step, evidence, beliefs, crowd)


def _fixed_point_from_start(
    judgments: ScoredJudgments, counted_crowd: Crowd, information: float, max_rounds: int, tolerance: float
) -> FixedPoint:
    """Return the end of the rounds from one start."""
    current = _round_of_consensus_and_beliefs(
        _make_starting_point(judgments.n_annotators, information), judgments, counted_crowd
    )
    nearest, recent_rounds, waiting, rounds, share = current, [current], 0, 1, _STEP_SHARE
    while nearest.residual > tolerance and rounds < max_rounds:
        rounds += 1
        extrapolated = (
            None
            if waiting or current.residual > _MAX_STEP_TO_EXTRAPOLATE
            else _extrapolated_point_or_none(recent_rounds)
        )
        with np.errstate(all="ignore" if extrapolated is not None else None):  # a leap may end where numbers do
            next_round = _round_of_consensus_and_beliefs(
                current.point + share * current.step if extrapolated is None else extrapolated,
                judgments,
                counted_crowd,
            )
        if extrapolated is not None and not np.linalg.norm(next_round.step) <= np.linalg.norm(current.step):
            recent_rounds, waiting = [current], _ROUNDS_BEFORE_RETRY
            continue
        share = next_step_share(share, current.step, next_round.step) if rounds > _ROUNDS_BEFORE_LONG_STEPS else share
        current, recent_rounds, waiting = (
            next_round,
            [*recent_rounds, next_round][-_MAX_ROUNDS_KEPT:],
            max(waiting - 1, 0),
        )
        nearest = min(nearest, current, key=lambda end: end.residual)
    log_probability = learning.log_probability_of_answers(nearest.evidence, nearest.crowd)
    level = crowd_level_of_scores_and_biases(judgments, nearest.beliefs)
    crowd = replace(nearest.crowd, mean_bias=level.mean_bias(len(judgments.scores)))
    return FixedPoint(nearest.beliefs, crowd, nearest.residual, log_probability, rounds)


def next_step_share(share: float, step: Array, next_step: Array) -> float:
    """Return the share of the next step to take: more as long as steps keep their direction, else the usual one.

    Rounds can pass a place where they hardly move, near two fixed points that just vanished. Extrapolation does not
    help there, for it searches the place where steps are smallest, and hundreds of short steps lead past it.
    """
    keeps_direction = step @ next_step > _MIN_COSINE * np.linalg.norm(step) * np.linalg.norm(next_step)
    return min(share * _STEP_GROWTH, _MAX_STEP_SHARE) if keeps_direction else _STEP_SHARE


def _extrapolated_point_or_none(recent_rounds: list[_Round]) -> Array | None:
    """Return half a step from the combination of the kept rounds whose step is smallest.

    None if that leads backwards. Changes can shrink and grow again on the way; the point where they are smallest is
    then no end, and a search that returned to it would never leave.
    """
    if len(recent_rounds) == 1:
        return None
    last = recent_rounds[-1]
    point_changes = np.diff([seen.point for seen in recent_rounds], axis=0).T
    step_changes = np.diff([seen.step for seen in recent_rounds], axis=0).T
    share = np.linalg.lstsq(step_changes, last.step, rcond=1e-8)[0]
    leap: Array = _STEP_SHARE * last.step - (point_changes + _STEP_SHARE * step_changes) @ share
    return last.point + leap if leap @ last.step > 0.0 else None
