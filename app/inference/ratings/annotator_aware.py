"""Scores that account for their annotators: reliability, bias and scale of each, estimated together with the scores.

`annotator_beliefs` explains the method. Here everything is estimated at once from all judgments;
`online.annotator_aware_state` does the same one HIT at a time.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
)
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_beliefs import Crowd
from app.inference.ratings.annotator_evidence import (
    COMPARED,
    MIN_EVIDENCE_JUDGMENTS,
    N,
    ScoredJudgments,
    evidence_of_each_annotator,
)
from app.inference.ratings.annotator_fixed_point import FixedPoint, crowd_level_of_scores_and_biases, find_fixed_point

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AnnotatorAwareScores:
    """Scores of N items and estimates of J annotators; NaN where not estimable, with notes that say so.

    Attributes:
        score: (N,) in [0, 1], the weighted mean of corrected scores; the plain mean if `trust` is 0.
        standard_error: (N,) from the spread of judgments around the scores, one for all items, and the item's weight.
        weight: (N,) the item's judgments in units of a typical annotator's judgments, at most their number.
        estimable: (N,) whether the item has a judgment.
        reliability: (J,) 0 to 1, the expected correlation of an annotator's answers with the items' values.
        random: (J,) the probability that they answer at random; low for a strict annotator who agrees with the others.
        random_or_nearly: (J,) the probability that they answer at random or are hardly more reliable, below about .29:
            the two cannot be told apart from a few dozen judgments. 0 where `random` is 0.
        annotator_weight: (J,) the weight of one of their judgments, 0 to 1, as far as `trust` applies it.
        bias: (J,) how much higher than the crowd they score the same items, in scores, as far as their answers are
            evidence of it. The crowd is the mean over all judgments.
        scale: (J,) how much wider they score the same items, as a ratio, likewise.
        annotator_estimable: (J,) whether they judged three items that others have judged too.
        trust: 0 to 1, how far weights and biases are applied.
        scale_trust: How far scales are applied, beyond that.
        iterations: Rounds until the beliefs settled, from the start that led there.
        converged: Whether they settled; if not, this is the nearest result, and a note says so.

    """

    score: Array
    standard_error: Array
    weight: Array
    estimable: Mask
    reliability: Array
    random: Array
    random_or_nearly: Array
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
) -> AnnotatorAwareScores:
    """Estimate everything from all judgments at once; time per iteration and memory are linear in their number.

    Args:
        items: (T,) integers from 0.
        annotators: (T,) integers from 0.
        scores: (T,) in [0, 1].
        n_items: The number of items; default: 1 + the largest number.
        n_annotators: The number of annotators; default: 1 + the largest number.
        trust: How far to apply the weights and biases learned, at least 0 and less than 1; None, as the law does,
            applies
        them as far as there is evidence that this helps.
        max_iterations: The largest number of rounds from each of several starts; without convergence the best result is
        returned with a note.
        tolerance: Beliefs have settled when one more round would change none by more than this, on a logarithmic scale.

    Raises:
        ValueError: The arrays are invalid.
        Inestimable: "no_judgments".

    """
    if trust is not None and not 0.0 <= trust < 1.0:
        raise ValueError(f"trust must be at least 0 and less than 1, but is {trust}")
    judgments = validated_scored_judgments(items, annotators, scores, n_items, n_annotators)
    fixed_point = find_fixed_point(judgments, max_rounds=max_iterations, tolerance=tolerance)
    evidence = evidence_of_each_annotator(
        judgments, learning.summaries_of_other_judgments_of_item(judgments, fixed_point.beliefs, fixed_point.crowd)
    )
    typical_information = float(evidence[:, N] @ fixed_point.beliefs.information / len(judgments.scores))
    crowd = learning.crowd_from_totals(
        learning.annotator_contributions(evidence, fixed_point.beliefs, typical_information).sum(axis=0),
        crowd_level_of_scores_and_biases(judgments, fixed_point.beliefs),
    )
    if trust is not None:
        crowd = replace(crowd, trust=trust)
    return _make_scores_from_fixed_point(judgments, fixed_point, crowd, evidence, tolerance)


def validated_scored_judgments(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    n_items: int | None,
    n_annotators: int | None,
) -> ScoredJudgments:
    """Return the judgments as arrays. Raises ValueError for invalid ones, `Inestimable` if there are none."""
    items, item_count = index_array_and_count_or_raise("items", items, n_items)
    annotators, annotator_count = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    values = finite_vector_or_raise("scores", scores)
    refuse_columns_of_unequal_length(items=items, annotators=annotators, scores=values)
    if not len(values):
        raise Inestimable("There are no judgments yet, so nothing can be estimated.", code="no_judgments")
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(f"scores must lie between 0 and 1, but {values.min()} to {values.max()} occur")
    return ScoredJudgments.from_arrays(items, annotators, values, item_count, annotator_count)


def _make_scores_from_fixed_point(
    judgments: ScoredJudgments, fixed_point: FixedPoint, crowd: Crowd, evidence: Array, tolerance: float
) -> AnnotatorAwareScores:
    beliefs = fixed_point.beliefs
    weight, score = learning.judgment_weights_and_corrected_scores(
        judgments, beliefs, crowd, trust=crowd.trust, scale_trust=crowd.scale_trust
    )
    # Two sums, as the online law keeps them: an item that everyone put at 1 has exactly the score 1.
    above, below = judgments.sum_of_each_item(weight * score), judgments.sum_of_each_item(weight * (1.0 - score))
    total = judgments.sum_of_each_item(weight)
    is_judged = total > 0.0
    mean = np.where(is_judged, above, np.nan) / np.where(is_judged, above + below, 1.0)
    is_compared = evidence[:, COMPARED] >= MIN_EVIDENCE_JUDGMENTS
    displayed = learning.annotator_beliefs_for_display(evidence, crowd)
    own_weight = 1.0 + crowd.trust * (np.minimum(beliefs.information / crowd.typical_information, 1.0) - 1.0)

    def nan_unless_compared(values: Array) -> Array:
        return np.where(is_compared, values, np.nan)

    return AnnotatorAwareScores(
        score=mean,
        standard_error=_item_standard_errors(judgments, weight, score, mean, total),
        weight=total,
        estimable=is_judged,
        reliability=nan_unless_compared(displayed.expected_reliability),
        random=nan_unless_compared(displayed.classes[:, 0]),
        random_or_nearly=nan_unless_compared(
            np.where(displayed.classes[:, 0] > 0.0, displayed.classes[:, :2].sum(axis=1), 0.0)
        ),
        annotator_weight=nan_unless_compared(own_weight),
        bias=nan_unless_compared((displayed.bias - crowd.mean_bias) * crowd.spread),
        scale=nan_unless_compared(np.exp(displayed.log_scale)),
        annotator_estimable=is_compared,
        trust=crowd.trust,
        scale_trust=crowd.scale_trust,
        iterations=fixed_point.rounds,
        converged=fixed_point.residual <= tolerance,
        notes=(
            *_convergence_notes(fixed_point, tolerance),
            *_annotator_aware_fit_notes(is_judged, evidence, is_compared, crowd),
        ),
    )


def _item_standard_errors(
    judgments: ScoredJudgments, weight: Array, score: Array, mean: Array, total_weight: Array
) -> Array:
    """Standard errors sqrt(s^2 / weight), s^2 the mean square of judgments around their items' scores.

    NaN if no item has two judgments.
    """
    freedom = len(weight) - np.count_nonzero(total_weight > 0.0)
    if freedom <= 0:
        return np.full(judgments.n_items, np.nan)
    square = weight @ (score - mean[judgments.items]) ** 2 / (weight.mean() * freedom)
    error: Array = np.sqrt(square / np.where(total_weight > 0.0, total_weight, np.nan))
    return error


def _convergence_notes(fixed_point: FixedPoint, tolerance: float) -> tuple[Note, ...]:
    if fixed_point.residual <= tolerance:
        return ()
    sentence = (
        f"The estimates of annotators had not converged after {fixed_point.rounds:,} rounds: another would still have "
        f"changed a value by {fixed_point.residual:.1%}. The nearest result is shown; do not rely on small "
        "differences."
    )
    return (Note("not_settled", sentence),)


FIT_SENTENCE = "This fit reads all judgments at once."
OTHER_FIT_SENTENCE = "Scores that a campaign learned answer by answer can differ from it."


def text_on_share_of_widths(crowd: Crowd) -> str:
    """Return how far corrections for a wide or narrow use of the scale are applied."""
    percent = f"{100 * crowd.trust * crowd.scale_trust:.0f}"
    corrections = "the corrections for a wide or narrow use of the scale"
    return f"none of {corrections}" if percent == "0" else f"{percent} % of {corrections}"


def _annotator_aware_fit_notes(is_judged: Mask, evidence: Array, is_compared: Mask, crowd: Crowd) -> tuple[Note, ...]:
    notes = []
    if unjudged := int(np.count_nonzero(~is_judged)):
        notes.append(Note("items_unseen", f"{unjudged:,} of {len(is_judged):,} items have no judgment and no score."))
    has_judgments = evidence[:, N] > 0.0
    if np.count_nonzero(has_judgments) == 1:
        sentence = "One annotator gave all judgments, so there is no one to compare them with; scores are plain means."
        notes.append(Note("nobody_to_compare", sentence))
    elif uncompared := int(np.count_nonzero(has_judgments & ~is_compared)):
        sentence = (
            f"{uncompared:,} of {np.count_nonzero(has_judgments):,} annotators judged fewer than "
            f"{MIN_EVIDENCE_JUDGMENTS} items that others have judged too, so they are "
            "assumed to be like most annotators."
        )
        notes.append(Note("taken_for_most", sentence))
    if crowd.trust == 0.0:
        sentence = (
            f"{FIT_SENTENCE} Weighting and correcting annotators does not clearly improve their agreement, so it uses "
            f"plain means, and all judgments count equally. {OTHER_FIT_SENTENCE}"
        )
        notes.append(Note("plain_means", sentence))
    else:
        sentence = (
            f"{FIT_SENTENCE} Weighting and correcting annotators improves their agreement, so it applies "
            f"{100 * crowd.trust:.0f} % of the learned weights and biases, and "
            f"{text_on_share_of_widths(crowd)}. {OTHER_FIT_SENTENCE}"
        )
        notes.append(Note("weighted_and_corrected", sentence))
    return tuple(notes)
