"""Scores that know their annotators: reliability, bias and scale of each, learned together with the scores.

The method is explained in `annotator_beliefs`. Here everything is estimated at once from all judgments;
`annotator_aware_online` does the same one HIT at a time.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.long_form import check_equal_length, finite, numbered
from app.inference.ground.notes import Note
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_beliefs import Crowd
from app.inference.ratings.annotator_evidence import COMPARED, COMPARED_AT_LEAST, Judged, N, evidence_of
from app.inference.ratings.annotator_fixed_point import FixedPoint, settled

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AnnotatorAware:
    """Scores of N items and what was learned of J annotators; NaN where nothing was, with notes that say so.

    score: (N,) in [0, 1], the weighted mean of corrected scores; the plain mean if `trust` is 0.
    standard_error: (N,) from the spread of judgments around the scores, one for all items, and the item's weight.
    weight: (N,) how many judgments of a typical annotator the item's judgments are worth, at most their number.
    estimable: (N,) whether the item has a judgment.
    reliability: (J,) 0 to 1, the expected correlation of an annotator's answers with what items are worth.
    random: (J,) the probability that they answer at random; somebody strict who goes with the others does not.
    annotator_weight: (J,) what one judgment of theirs counts for, 0 to 1, as far as it was acted on (`trust`).
    bias: (J,) how much higher they score the same items, in scores, as far as their answers are evidence of it;
    scale: (J,) the same of how much wider, as a ratio.
    annotator_estimable: (J,) whether they judged three items that others have judged too.
    trust: 0 to 1, how far weights and biases were acted on; scale_trust: the same of scales, beyond that.
    iterations: rounds until it settled, from the start that led there.
    converged: whether it settled; if not, this is the nearest that it came to, and a note says so.
    """

    score: Array
    standard_error: Array
    weight: Array
    estimable: Mask
    reliability: Array
    random: Array
    annotator_weight: Array
    bias: Array
    scale: Array
    annotator_estimable: Mask
    trust: float
    scale_trust: float
    iterations: int
    converged: bool
    notes: tuple[Note, ...]


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    trust: float | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-7,
) -> AnnotatorAware:
    """Everything from all judgments at once; time per iteration and memory are linear in their number.

    items, annotators: (T,) integers from 0; scores: (T,) in [0, 1]. `trust`: how far to act on the weights and biases
    learned, at least 0 and less than 1; None, as the law does it, is as far as it is sure that this helps. It has
    settled when one more round would change no belief by more than `tolerance`, on a logarithmic scale; where it has
    not after `max_iterations` from any of several starts, the best is given with a note. Raises ValueError for arrays
    that cannot be, `Inestimable` (`no_judgments`).
    """
    if trust is not None and not 0.0 <= trust < 1.0:
        raise ValueError(f"trust must be at least 0 and less than 1, but is {trust}")
    judged = checked(items, annotators, scores, n_items, n_annotators)
    end = settled(judged, max_rounds=max_iterations, tolerance=tolerance)
    evidence = evidence_of(judged, learning.others(judged, end.known, end.common))
    typical = float(evidence[:, N] @ end.known.information / len(judged.scores))
    common = learning.crowd(learning.contributions(evidence, end.known, typical).sum(axis=0))
    if trust is not None:
        common = replace(common, trust=trust)
    return _result(judged, end, common, evidence, tolerance)


def checked(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    n_items: int | None,
    n_annotators: int | None,
) -> Judged:
    """The judgments as arrays; raises ValueError for what cannot be one, `Inestimable` if there are none."""
    items, item_count = numbered("items", items, n_items)
    annotators, annotator_count = numbered("annotators", annotators, n_annotators)
    values = finite("scores", scores)
    check_equal_length(items=items, annotators=annotators, scores=values)
    if not len(values):
        raise Inestimable("There are no judgments yet, so nothing can be estimated.", code="no_judgments")
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(f"scores must lie between 0 and 1, but {values.min()} to {values.max()} occur")
    return Judged.of(items, annotators, values, item_count, annotator_count)


def _result(judged: Judged, end: FixedPoint, common: Crowd, evidence: Array, tolerance: float) -> AnnotatorAware:
    known = end.known
    weight, score = learning.corrected(judged, known, common, trust=common.trust, scale_trust=common.scale_trust)
    # Two sums, as the online law keeps them: an item that everyone put at 1 has exactly the score 1.
    above, below = judged.by_item(weight * score), judged.by_item(weight * (1.0 - score))
    total = judged.by_item(weight)
    seen = total > 0.0
    mean = np.where(seen, above, np.nan) / np.where(seen, above + below, 1.0)
    answered = evidence[:, COMPARED] >= COMPARED_AT_LEAST
    told = learning.described(evidence, common)
    own_weight = 1.0 + common.trust * (np.minimum(known.information / common.typical, 1.0) - 1.0)

    def where(values: Array) -> Array:
        return np.where(answered, values, np.nan)

    return AnnotatorAware(
        score=mean,
        standard_error=_standard_error(judged, weight, score, mean, total),
        weight=total,
        estimable=seen,
        reliability=where(told.reliability),
        random=where(told.classes[:, 0]),
        annotator_weight=where(own_weight),
        bias=where(told.bias * common.spread),
        scale=where(np.exp(told.log_scale)),
        annotator_estimable=answered,
        trust=common.trust,
        scale_trust=common.scale_trust,
        iterations=end.rounds,
        converged=end.residual <= tolerance,
        notes=(*_unsettled(end, tolerance), *_notes(seen, evidence, answered, common)),
    )


def _standard_error(judged: Judged, weight: Array, score: Array, mean: Array, total: Array) -> Array:
    """sqrt(s^2 / weight), s^2 the mean square of judgments around their items' scores; NaN if no item has two."""
    freedom = len(weight) - np.count_nonzero(total > 0.0)
    if freedom <= 0:
        return np.full(judged.n_items, np.nan)
    square = weight @ (score - mean[judged.items]) ** 2 / (weight.mean() * freedom)
    error: Array = np.sqrt(square / np.where(total > 0.0, total, np.nan))
    return error


def _unsettled(end: FixedPoint, tolerance: float) -> tuple[Note, ...]:
    if end.residual <= tolerance:
        return ()
    sentence = (
        f"What is believed of annotators had not settled after {end.rounds:,} rounds: one more would still have "
        f"changed something by {end.residual:.1%} of itself. Shown is what came nearest; do not rely on small "
        "differences."
    )
    return (Note("not_settled", sentence),)


FIT = "In this fit, which reads all judgments at once,"
OTHER_FIT = "Scores that a campaign has learned answer by answer are of another fit, and can differ from it."


def _notes(seen: Mask, evidence: Array, answered: Mask, common: Crowd) -> tuple[Note, ...]:
    notes = []
    if unseen := int(np.count_nonzero(~seen)):
        notes.append(Note("items_unseen", f"{unseen:,} of {len(seen):,} items have no judgment and no score."))
    gave = evidence[:, N] > 0.0
    if np.count_nonzero(gave) == 1:
        sentence = "One annotator gave all judgments, so there is nobody to compare them with; scores are plain means."
        notes.append(Note("nobody_to_compare", sentence))
    elif alone := int(np.count_nonzero(gave & ~answered)):
        sentence = (
            f"{alone:,} of {np.count_nonzero(gave):,} annotators judged fewer than {COMPARED_AT_LEAST} items "
            "that others have judged too, so nothing is said of them; they are taken for what most annotators are."
        )
        notes.append(Note("taken_for_most", sentence))
    if common.trust == 0.0:
        sentence = (
            f"{FIT} there is no sure sign that annotators agree better when the others are weighted and corrected than "
            "when they are averaged, so it takes plain means, and every judgment counts the same in it. "
            f"{OTHER_FIT}"
        )
        notes.append(Note("plain_means", sentence))
    else:
        sentence = (
            f"{FIT} annotators agree better when the others are weighted and corrected than when they are averaged. So "
            f"far as that is sure, it uses {common.trust:.0%} of the weights and biases learned, and "
            f"{common.trust * common.scale_trust:.0%} of the widths. {OTHER_FIT}"
        )
        notes.append(Note("weighted_and_corrected", sentence))
    return tuple(notes)
