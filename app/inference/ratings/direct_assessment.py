"""Direct assessment: each item's score is the mean of its judgments (Sakaguchi & Van Durme 2018, section 2).

`fit` is for scores on a continuous scale, `mean_and_median_labels` for labelled points, `assess_standardised_scores`
for scores whose annotators differ in strictness and in how much of the scale they use, as in WMT (Graham et al. 2013).
Intervals are those of `moderated_means`: a bootstrap over an item's own few judgments would contain the true mean far
too seldom.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers, valid_interval_level_or_raise
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
)
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import ModeratedMeans, ScoreBounds, moderated_means_of_tally

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DirectAssessment:
    """Mean scores of N items and their errors; NaN where there is no figure, which notes explain.

    Attributes:
        score: The mean, on the judgments' own scale, (N,).
        standard_error: (N,), as low and high from the item's own disagreement and that of all items, see
        `moderated_means`; so an item with one judgment has them too.
        judgments: The number of judgments, (N,).
        estimable: Whether there is at least one, (N,).

    """

    score: Array
    standard_error: Array
    low: Array
    high: Array
    judgments: Integers
    estimable: Mask
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class MeanAndMedian:
    """Mean of the labels 0..K-1 as if they were equally far apart, and median, which needs only their order, (N,).

    The median of an even number of judgments is midway between the two in the middle. standard_error, low and high are
    of the median, (N,): those of the mean, times how much further medians of Normal judgments vary.
    """

    mean: DirectAssessment
    median: Array
    standard_error: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True)
class StandardisedScores:
    """Direct assessment of z-scores.

    Attributes:
        scores: The assessment, in standard deviations of an annotator.
        annotator_mean: The mean of each annotator's judgments, (J,), NaN where there are none.
        annotator_sd: Their standard deviation, (J,), NaN for fewer than two.
        usable: Which annotators have z-scores, (J,).

    """

    scores: DirectAssessment
    annotator_mean: Array
    annotator_sd: Array
    usable: Mask


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    scale: ScoreBounds | None = None,
    level: float = 0.95,
) -> DirectAssessment:
    """Mean, standard error and interval per item; all judgments count alike, for every annotator.

    Time and memory are linear in T.

    Args:
        items: (T,) integers from 0.
        annotators: (T,) integers from 0.
        scores: (T,) finite numbers.
        n_items: The number of items; default: 1 + the largest number.
        n_annotators: The number of annotators; default: 1 + the largest number.
        scale: The lowest and the highest possible score, None if there are no bounds; intervals are cut to it.
        level: The level of the intervals, in (0, 1).

    Raises:
        ValueError: The arrays or the level are invalid.
        Inestimable: "no_judgments".

    """
    items, annotators, values, count, _ = _validated_assessment_arrays_and_counts(
        items, annotators, scores, n_items, n_annotators
    )
    return _assessment_and_moderated_means(items, annotators, values, count, scale=scale, level=level)[0]


def mean_and_median_labels(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_labels: int | None = None,
    level: float = 0.95,
) -> MeanAndMedian:
    """Mean and median label per item. labels: (T,) integers 0..n_labels - 1, from lowest to highest; else as `fit`."""
    labels, label_count = index_array_and_count_or_raise("labels", labels, n_labels)
    items, annotators, values, count, _ = _validated_assessment_arrays_and_counts(
        items, annotators, labels, n_items, n_annotators
    )
    scale = (0.0, label_count - 1.0) if label_count > 1 else None
    mean, means = _assessment_and_moderated_means(items, annotators, values, count, scale=scale, level=level)
    median, error = (
        _item_medians(items, labels, mean.judgments),
        means.standard_error * _standard_error_ratio_of_median(mean.judgments),
    )
    low, high = replace(means, mean=median, standard_error=error).interval(level)
    return MeanAndMedian(mean, median, error, low, high)


def assess_standardised_scores(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    level: float = 0.95,
) -> StandardisedScores:
    """Direct assessment of z = (score - annotator's mean) / annotator's standard deviation (Graham et al. 2013, WMT).

    The deviation has m - 1 degrees of freedom. An annotator with one judgment, or who always gave the same score, has
    no z-scores: those judgments are left out, and a note says how many. It assumes that annotators saw similar items on
    the whole: an annotator who saw only good ones is taken for mild. Intervals hold the mean of all annotators'
    z-scores; an error in one annotator's mean is part of how far annotators differ. Arrays and errors as for `fit`;
    also `Inestimable` (`nothing_varies`) if no annotator has z-scores.
    """
    items, annotators, values, count, annotator_count = _validated_assessment_arrays_and_counts(
        items, annotators, scores, n_items, n_annotators
    )
    mean, sd, judgment_counts = _group_means_deviations_and_counts(annotators, values, annotator_count)
    usable = np.nan_to_num(sd) > 0.0
    if len(items) and not usable.any():
        raise Inestimable(
            "No annotator has two different scores, so no scores can be standardised.", code="nothing_varies"
        )
    is_kept = usable[annotators]
    kept_annotators = annotators[is_kept]
    z = (values[is_kept] - mean[kept_annotators]) / sd[kept_annotators]
    scored, _ = _assessment_and_moderated_means(
        items[is_kept],
        kept_annotators,
        z,
        count,
        scale=None,
        level=level,
        notes=_unstandardised_notes(judgment_counts, usable),
    )
    return StandardisedScores(scored, mean, sd, usable)


def _validated_assessment_arrays_and_counts(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    n_items: int | None,
    n_annotators: int | None,
) -> tuple[Integers, Integers, Array, int, int]:
    """Return the judgments as arrays, and the numbers of items and annotators."""
    items, item_count = index_array_and_count_or_raise("items", items, n_items)
    annotators, annotator_count = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    values = finite_vector_or_raise("scores", scores)
    refuse_columns_of_unequal_length(items=items, annotators=annotators, scores=values)
    return items, annotators, values, item_count, annotator_count


def _assessment_and_moderated_means(
    items: Integers,
    annotators: Integers,
    values: Array,
    item_count: int,
    *,
    scale: ScoreBounds | None,
    level: float,
    notes: tuple[Note, ...] = (),
) -> tuple[DirectAssessment, ModeratedMeans]:
    valid_interval_level_or_raise(level)
    if not len(items):
        raise Inestimable("There are no judgments yet.", code="no_judgments")
    mean, _, judgments = _group_means_deviations_and_counts(items, values, item_count)
    tally = Tally.empty(item_count).with_judgments_added(items, annotators, values)
    means = replace(moderated_means_of_tally(tally, scale), mean=mean)
    low, high = means.interval(level)
    notes = (*notes, *_assessment_notes(tally, means))
    return DirectAssessment(mean, means.standard_error, low, high, judgments, judgments > 0, notes), means


def _group_means_deviations_and_counts(
    groups: Integers, values: Array, group_count: int
) -> tuple[Array, Array, Integers]:
    """Return mean, standard deviation and number of the values of each group, NaN where there is none."""
    numbers = np.bincount(groups, minlength=group_count)
    lowest = np.full(group_count, np.inf)
    np.minimum.at(lowest, groups, values)
    # Differences from a group's lowest value: so equal values have a deviation of 0, not one of rounding.
    above_lowest = values - lowest[groups]
    mean = _divide_or_nan_unless_positive(np.bincount(groups, weights=above_lowest, minlength=group_count), numbers)
    squares = np.bincount(groups, weights=(above_lowest - mean[groups]) ** 2, minlength=group_count)
    mean_of_values = np.where(numbers > 0, lowest + mean, np.nan)
    return mean_of_values, np.sqrt(_divide_or_nan_unless_positive(squares, numbers - 1)), numbers


def _divide_or_nan_unless_positive(totals: npt.NDArray[Any], numbers: Integers) -> Array:
    """Return the quotient, NaN where the number is not above 0."""
    quotient: Array = np.divide(totals, numbers, out=np.full(len(totals), np.nan), where=numbers > 0)
    return quotient


def _item_medians(items: Integers, labels: Integers, judgments: Integers) -> Array:
    ordered = labels[np.lexsort((labels, items))]
    first, is_judged = np.cumsum(judgments) - judgments, judgments > 0
    median = np.full(len(judgments), np.nan)
    lower, upper = first + (judgments - 1) // 2, first + judgments // 2
    median[is_judged] = (ordered[lower[is_judged]] + ordered[upper[is_judged]]) / 2.0
    return median


def _standard_error_ratio_of_median(judgments: Integers) -> Array:
    """Return the standard error of the median of n Normal judgments, as a ratio to that of their mean.

    It is 1 for n of 1 and 2, then, to 1 %, sqrt(pi / 2 n / (n + h)), h being 1/2 for an odd number and 6/5 for an even
    one.
    """
    n = np.maximum(judgments, 1)
    ratio: Array = np.sqrt(np.pi / 2.0 * n / (n + np.where(n % 2 == 1, 0.5, 1.2)))
    return np.where(n <= 2, 1.0, ratio)


def _assessment_notes(tally: Tally, means: ModeratedMeans) -> tuple[Note, ...]:
    unjudged, single = int((tally.judgments == 0).sum()), int((tally.judgments == 1).sum())
    judged_again = int((tally.judgments > tally.annotators).sum())
    notes = []
    if unjudged:
        notes.append(Note("no_score", f"{_items_with_verb(unjudged, 'has', 'have')} no judgment and no score."))
    if np.isnan(means.standard_error).all():
        notes.append(_no_intervals_note(tally))
    elif single:
        sentence = (
            f"{_items_with_verb(single, 'has', 'have')} one judgment: its error is estimated from the other items."
        )
        notes.append(Note("one_judgment", sentence))
    if judged_again:
        subject = _items_with_verb(judged_again, "was", "were")
        sentence = f"{subject} judged again by the same annotator, which does not narrow any interval."
        notes.append(Note("judged_again", sentence))
    return tuple(notes)


def _no_intervals_note(tally: Tally) -> Note:
    """Return the note on why no item has an interval."""
    alone = tally.annotators.max() < 2
    why = "No item was judged by two annotators" if alone else "Annotators never gave an item different scores"
    return Note("no_intervals", f"{why}, so their differences are unknown and there are no intervals.")


def _items_with_verb(count: int, singular_verb: str, plural_verb: str) -> str:
    return f"1 item {singular_verb}" if count == 1 else f"{count:,} items {plural_verb}"


def _unstandardised_notes(judgment_counts: Integers, usable: Mask) -> tuple[Note, ...]:
    """Return notes on annotators without z-scores, given the number of judgments of each."""
    notes = []
    for is_left_out, why in (
        (judgment_counts == 1, "gave one judgment"),
        ((judgment_counts > 1) & ~usable, "always gave the same score"),
    ):
        if annotators := int(is_left_out.sum()):
            annotators_text, lost_judgments = (
                f"{annotators:,} annotator" + "s" * (annotators > 1),
                int(judgment_counts[is_left_out].sum()),
            )
            judgments = f"{lost_judgments:,} judgment" + "s" * (lost_judgments > 1)
            sentence = f"{annotators_text} {why}, which cannot be standardised: {judgments} left out."
            notes.append(Note("not_standardised", sentence))
    return tuple(notes)
