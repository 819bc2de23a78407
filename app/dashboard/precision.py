"""Precision of a campaign: how well it knows its items by the disagreement of annotators, now and as answers came in.

Pure: it follows from the responses in order, however they are cut into batches, and not from the update law. The
evidence of the judgments for that law, which the campaign's goal needs, is updated here too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from app.designs.scale import MAX_POINTS
from app.goals.estimates import GoalEvidence
from app.inference.ground.arrays import Array
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, Law
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.inference.ratings.shrunken_means import ItemShrinkage, fit_item_shrinkage

MAX_ITEMS_FOR_QUICK_GOAL = 20_000  # for more, the chance of a goal takes longer than some milliseconds
MAX_JUDGMENTS_FOR_QUICK_FIT = 5_000  # measured by `benchmarks.goal_progress_time`
MAX_CURVE_POINTS = 60  # even, so that every second point of a full curve is a point of the curve of twice the step


def can_measure_goal_quickly(evidence: GoalEvidence) -> bool:
    """Return whether a page can wait for the progress towards a goal."""
    is_small = len(evidence.tally.judgments) <= MAX_ITEMS_FOR_QUICK_GOAL
    return is_small and evidence.fitted_judgment_count <= MAX_JUDGMENTS_FOR_QUICK_FIT


def median_interval_half_width(estimates: ModeratedMeans) -> float:
    """Half the width of the median item's 95 % interval, in points; 50, half of the scale, where nothing is known."""
    low, high = estimates.interval()
    return float(np.median(np.where(np.isfinite(low), high - low, 1.0)) * MAX_POINTS / 2)


@dataclass(frozen=True)
class Precision:
    """Precision of a campaign of N items after `answers` responses.

    Attributes:
        evidence: Sums of the judgments, scores in [0, 1], and their evidence for the law.
        answers: Number of responses.
        step: Number of responses between two points of the curve.
        typical_intervals: Typical interval after 0, `step`, 2 `step`, ... responses, up to `answers`; at most
        MAX_CURVE_POINTS + 1.

    """

    evidence: GoalEvidence
    answers: int
    step: int
    typical_intervals: list[float]

    @cached_property
    def intervals(self) -> ModeratedMeans:
        """Mean and calibrated interval of each item."""
        return moderated_means_of_tally(self.evidence.tally)

    @cached_property
    def shrinkage(self) -> ItemShrinkage:
        """Shrunken mean of each item, with its interval."""
        return fit_item_shrinkage(self.evidence.tally)

    @property
    def nbytes(self) -> int:
        """Approximate memory, in bytes."""
        return self.evidence.nbytes

    def newest_median_half_width(self) -> float:
        """Return the median half width of the items' intervals after all these responses, in time linear in N."""
        return median_interval_half_width(self.intervals)

    def response_counts_and_median_half_widths(self) -> list[tuple[int, float]]:
        """Return the median half width of the items' intervals as (responses, ± points), the newest at the end."""
        points = [(k * self.step, value) for k, value in enumerate(self.typical_intervals)]
        if self.answers % self.step:
            points.append((self.answers, self.newest_median_half_width()))
        return points


def initial_precision(law: Law, n_items: int) -> Precision:
    """Return the precision before the first answer."""
    return Precision(GoalEvidence.empty(law, n_items), 0, 1, [MAX_POINTS / 2])


def precision_after_hits(precision: Precision, hits: Sequence[AnsweredHit], *, total: int = 0) -> Precision:
    """Return the precision after these HITs too, in their order, with values on 0 to 1.

    Until half of the items are judged, points cost nothing; by then so many HITs lie between two of them that an update
    computes few, however large N is.

    Args:
        precision: Precision before these HITs.
        hits: New HITs, in order.
        total: Lower bound of the number of responses; known from the start, it spares points that would be dropped
            again.

    """
    evidence, answers, step, points = (
        precision.evidence,
        precision.answers,
        precision.step,
        precision.typical_intervals.copy(),
    )
    while total >= step * MAX_CURVE_POINTS:
        step, points = 2 * step, points[::2]
    begin, counted_answers, end = answers, answers, answers + len(hits)
    answers_below_half = begin + count_hits_before_half_of_items_are_judged(evidence.tally, hits)
    while answers < end:
        answers = min(end, answers + step - answers % step)
        if answers > answers_below_half or answers == end:
            piece = slice(counted_answers - begin, answers - begin)
            evidence, counted_answers = (
                evidence.with_judgments_added(*item_annotator_and_value_columns_of_hits(hits[piece])),
                answers,
            )
        if answers % step == 0:
            points.append(
                median_interval_half_width(moderated_means_of_tally(evidence.tally))
                if answers > answers_below_half
                else MAX_POINTS / 2
            )
        if len(points) > MAX_CURVE_POINTS:
            step, points = 2 * step, points[::2]
    return Precision(evidence, answers, step, points)


def count_hits_before_half_of_items_are_judged(tally: Tally, hits: Sequence[AnsweredHit]) -> int:
    """Return after how many of these HITs fewer than half of the items are certainly judged: the median is unknown
    there.
    """
    judged = np.count_nonzero(tally.judgments) + np.cumsum([len(hit.items) for hit in hits])
    return int(np.count_nonzero(2 * judged < len(tally.judgments)))


def item_annotator_and_value_columns_of_hits(
    hits: Sequence[AnsweredHit],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Array]:
    """Return item, annotator and value of each judgment as arrays, (T,) each."""
    items = np.array([item for hit in hits for item in hit.items], np.intp)
    annotators = np.repeat(np.array([hit.annotator for hit in hits], np.intp), [len(hit.items) for hit in hits])
    return items, annotators, np.array([value for hit in hits for value in hit.values], np.float64)
