"""Misfit of comparisons to Bradley-Terry scores, per annotator and per item: infit and outfit.

The residual of a comparison is its outcome minus the probability that the scores give it. Outfit is the mean of the
squared standardised residuals, so surprising answers about pairs that are far apart count most. Infit weights them by
their information (Wright & Masters 1982). Both are near 1 if comparisons are as noisy as the model expects, above 1 if
they contradict the scores more often, and below 1 if they follow them more closely.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from app.inference.ground.arrays import Array, Integers, divide_or_nan
from app.inference.ground.validation import (
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
    sum_values_of_each_number,
)
from app.inference.observations.comparisons import BooleanArray, comparison_arrays_and_item_count_or_raise

FLAG_DEVIATIONS = 2.0
MIN_COMPARED_TO_FLAG = 3


@dataclass(frozen=True, slots=True)
class Misfit:
    """Misfit of each of n annotators or items, (n,) each; NaN without comparisons.

    Attributes:
        comparisons: Number of comparisons.
        infit: Sum of squared residuals divided by the sum of their variances.
        outfit: Mean of squared standardised residuals.
        is_flagged: Infit is above the mean of all by more than two standard deviations; a convention, not a test.

    """

    comparisons: Integers
    infit: Array
    outfit: Array
    is_flagged: BooleanArray


def misfit_of_annotators_and_items(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_annotators: int | None = None,
) -> tuple[Misfit, Misfit]:
    """Return the misfit of annotators, and that of items. A comparison counts for both of its items.

    Args:
        first: First item of each comparison, (J,).
        second: Second item, (J,).
        outcomes: +1 if the first is preferred, 0 for a tie (half a win for each), -1 if the second is, (J,).
        annotators: Annotator of each comparison, (J,).
        scores: Bradley-Terry scores in log odds, (n_items,); finite for all compared items.
        n_annotators: Number of annotators; default: 1 + the largest number.

    Raises:
        ValueError: The arrays are invalid, or a compared item has no score.
        Inestimable: There are no comparisons ("no_judgments").

    """
    scores = np.asarray(scores, np.float64)
    first, second, outcomes, n_items = comparison_arrays_and_item_count_or_raise(first, second, outcomes, len(scores))
    annotators, n_annotators = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    refuse_columns_of_unequal_length(first=first, annotators=annotators)
    difference = scores[first] - scores[second]
    if not np.isfinite(difference).all():
        raise ValueError("every compared item needs a finite score")
    expected = expit(difference)
    variance = expected * expit(-difference)
    squares = ((outcomes + 1) / 2.0 - expected) ** 2
    items = np.concatenate([first, second])
    return (
        _misfit_of_each_number(annotators, squares, variance, n_annotators),
        _misfit_of_each_number(items, np.tile(squares, 2), np.tile(variance, 2), n_items),
    )


def _misfit_of_each_number(numbers: Integers, squares: Array, variance: Array, count: int) -> Misfit:
    comparisons = np.bincount(numbers, minlength=count)
    infit = divide_or_nan(
        sum_values_of_each_number(numbers, squares, count), sum_values_of_each_number(numbers, variance, count)
    )
    outfit = divide_or_nan(
        sum_values_of_each_number(numbers, squares / variance, count), comparisons.astype(np.float64)
    )
    return Misfit(comparisons, infit, outfit, mask_of_high_infit(infit))


def mask_of_high_infit(infit: Array) -> BooleanArray:
    """Return where infit, (n,), is more than two standard deviations above its mean; nowhere for fewer than three."""
    known = infit[np.isfinite(infit)]
    if len(known) < MIN_COMPARED_TO_FLAG:
        return np.zeros(len(infit), np.bool_)
    limit = float(known.mean() + FLAG_DEVIATIONS * known.std(ddof=1))
    return np.where(np.isfinite(infit), infit, -np.inf) > limit
