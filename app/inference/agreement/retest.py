"""Test-retest reliability: whether an annotator gives the same answer when an item is shown again."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
    sum_values_of_each_number,
)
from app.inference.observations.comparisons import BooleanArray, comparison_arrays_and_item_count_or_raise


@dataclass(frozen=True, slots=True)
class ScoreRetest:
    """Repeated scores, per annotator, (n_annotators,), NaN without repeats; pooled_...: all repeats together.

    Attributes:
        repeats: Number of times an item was scored again.
        same: Share of repeats no further from the previous score than the margin.
        shift: Mean of new score minus old.
        error: Standard error of measurement, sqrt(mean of squared differences / 2): how far one score is from the
        annotator's own long-run mean.
        correlation: Pearson, old with new; NaN for fewer than 3 repeats or where one side does not vary.
        estimable: Whether there are repeats.
        notes: What is missing.

    """

    repeats: Integers
    same: Array
    shift: Array
    error: Array
    correlation: Array
    pooled_same: float
    pooled_shift: float
    pooled_error: float
    pooled_correlation: float
    estimable: BooleanArray
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class LabelRetest:
    """Repeated labels, per annotator, (n_annotators,), NaN without repeats; pooled_...: all repeats together.

    Attributes:
        repeats: Number of times an item or pair was labelled again.
        same: Share of repeats with the previous label.
        kappa: Cohen's, old with new, so beyond what an annotator's habits give by chance; NaN where old and new are one
        label throughout.
        estimable: Whether there are repeats.
        notes: What is missing.

    """

    repeats: Integers
    same: Array
    kappa: Array
    pooled_same: float
    pooled_kappa: float
    estimable: BooleanArray
    notes: tuple[Note, ...]


def compare_repeated_scores(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_annotators: int | None = None,
    margin: float = 0.0,
) -> ScoreRetest:
    """Compare every score with the previous one by the same annotator for the same item.

    Args:
        items: (J,) in order of time.
        annotators: (J,).
        scores: (J,) in [0, 1].
        n_annotators: Number of annotators; default: 1 + the largest number.
        margin: How far apart two scores may be and still count as the same, at least 0.

    Raises:
        ValueError: The arrays are not as above.
        Inestimable: No annotator scored anything twice ("no_repeats").

    """
    items, _ = index_array_and_count_or_raise("items", items)
    annotators, n_annotators = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    values = finite_vector_or_raise("scores", scores)
    refuse_columns_of_unequal_length(items=items, annotators=annotators, scores=values)
    before, repeats_at = _positions_of_previous_and_repeated_or_raise(items, annotators)
    old, new, repeat_annotators = values[before], values[repeats_at], annotators[before]
    same, shift, error, correlation = _same_share_shift_error_and_correlation(
        old, new, repeat_annotators, n_annotators, margin
    )
    pooled = _same_share_shift_error_and_correlation(old, new, np.zeros_like(repeat_annotators), 1, margin)
    pooled_same, pooled_shift, pooled_error, pooled_correlation = (float(figure[0]) for figure in pooled)
    repeats = np.bincount(repeat_annotators, minlength=n_annotators)
    return ScoreRetest(
        repeats=repeats,
        same=same,
        shift=shift,
        error=error,
        correlation=correlation,
        pooled_same=pooled_same,
        pooled_shift=pooled_shift,
        pooled_error=pooled_error,
        pooled_correlation=pooled_correlation,
        estimable=repeats > 0,
        notes=_annotators_without_repeats_notes(repeats, annotators),
    )


def compare_repeated_labels(
    items: npt.ArrayLike, annotators: npt.ArrayLike, labels: npt.ArrayLike, *, n_annotators: int | None = None
) -> LabelRetest:
    """Compare every label with the previous one by the same annotator for the same item.

    The arrays are (J,), in order of time; labels 0 to K - 1. Errors as `compare_repeated_scores`.
    """
    items, _ = index_array_and_count_or_raise("items", items)
    annotators, n_annotators = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    values, _ = index_array_and_count_or_raise("labels", labels)
    refuse_columns_of_unequal_length(items=items, annotators=annotators, labels=values)
    before, repeats_at = _positions_of_previous_and_repeated_or_raise(items, annotators)
    old, new, repeat_annotators = values[before], values[repeats_at], annotators[before]
    same, kappa = _same_share_and_kappa_of_each_annotator(old, new, repeat_annotators, n_annotators)
    pooled_same, pooled_kappa = _same_share_and_kappa_of_each_annotator(old, new, np.zeros_like(repeat_annotators), 1)
    repeats = np.bincount(repeat_annotators, minlength=n_annotators)
    return LabelRetest(
        repeats=repeats,
        same=same,
        kappa=kappa,
        pooled_same=float(pooled_same[0]),
        pooled_kappa=float(pooled_kappa[0]),
        estimable=repeats > 0,
        notes=(*_annotators_without_repeats_notes(repeats, annotators), *_undefined_kappa_notes(kappa, repeats)),
    )


def compare_repeated_pair_judgments_with_previous(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_annotators: int | None = None,
) -> LabelRetest:
    """Compare every judgment of a pair with the previous one by the same annotator.

    The arrays are (J,), in order of time; outcomes +1, 0, -1. The order in which the items are shown does not matter.
    Errors as `compare_repeated_scores`.
    """
    first, second, outcomes, n_items = comparison_arrays_and_item_count_or_raise(first, second, outcomes)
    pair = np.minimum(first, second) * n_items + np.maximum(first, second)
    return compare_repeated_labels(
        pair, annotators, np.where(first < second, outcomes, -outcomes) + 1, n_annotators=n_annotators
    )


def _positions_of_previous_and_repeated_or_raise(items: Integers, annotators: Integers) -> tuple[Integers, Integers]:
    """Return the positions of all repeated judgments, and of the previous judgment of each."""
    order = np.lexsort((items, annotators))  # stable: within an annotator's item, time is kept
    is_repeat = (np.diff(items[order]) == 0) & (np.diff(annotators[order]) == 0)
    if not is_repeat.any():
        raise Inestimable("No one judged anything twice, so there is nothing to compare.", code="no_repeats")
    return order[:-1][is_repeat], order[1:][is_repeat]


def _same_share_shift_error_and_correlation(
    old_scores: Array, new_scores: Array, annotators: Integers, n_annotators: int, margin: float
) -> tuple[Array, Array, Array, Array]:
    mean = _AnnotatorMeans(annotators, n_annotators)
    difference = new_scores - old_scores
    same = mean((np.abs(difference) <= margin + 1e-9).astype(np.float64))
    error = np.sqrt(mean(difference**2) / 2.0)
    x, y = old_scores - mean(old_scores)[annotators], new_scores - mean(new_scores)[annotators]
    spread = np.sqrt(mean(x**2) * mean(y**2))
    # Scores have steps of .01 or so; a spread below this is rounding.
    varies = (mean.count >= 3) & (spread > 1e-12)
    return same, mean(difference), error, mean(x * y) / np.where(varies, spread, np.nan)


def _same_share_and_kappa_of_each_annotator(
    old_labels: Integers, new_labels: Integers, annotators: Integers, n_annotators: int
) -> tuple[Array, Array]:
    mean = _AnnotatorMeans(annotators, n_annotators)
    same = mean((old_labels == new_labels).astype(np.float64))
    # The mean over old labels of how common each is among the new: the sum over labels of both shares.
    chance = mean(mean.label_shares(old_labels, all_labels=new_labels))
    return same, (same - chance) / np.where(chance < 1.0 - 1e-12, 1.0 - chance, np.nan)


class _AnnotatorMeans:
    """Means per annotator; NaN for one without values."""

    def __init__(self, annotators: Integers, n_annotators: int) -> None:
        self.who, self.count = annotators, np.bincount(annotators, minlength=n_annotators)
        self.divisor = np.where(self.count > 0, self.count, np.nan)

    def __call__(self, values: Array) -> Array:
        return sum_values_of_each_number(self.who, values, self.count.size) / self.divisor

    def label_shares(self, labels: Integers, *, all_labels: Integers) -> Array:
        """Return, for each label, its share among all labels of its annotator, `all_labels`."""
        n_labels = int(max(labels.max(), all_labels.max())) + 1
        keys, times = np.unique(self.who * n_labels + all_labels, return_counts=True)
        wanted_keys = self.who * n_labels + labels
        positions = np.minimum(np.searchsorted(keys, wanted_keys), keys.size - 1)
        return np.where(keys[positions] == wanted_keys, times[positions], 0) / self.divisor[self.who]


def _annotators_without_repeats_notes(repeats: Integers, annotators: Integers) -> tuple[Note, ...]:
    annotator_numbers = np.unique(annotators)
    without_repeats = int((repeats[annotator_numbers] == 0).sum())
    subject = f"{without_repeats} of {annotator_numbers.size} annotators"
    sentence = f"{subject} never judged anything twice, so they have no value."
    return (Note("nothing_judged_twice", sentence),) if without_repeats else ()


def _undefined_kappa_notes(kappa: Array, repeats: Integers) -> tuple[Note, ...]:
    has_repeats = repeats > 0
    constant = int((np.isnan(kappa) & has_repeats).sum())
    if not constant:
        return ()
    subject = f"{constant} of {int(has_repeats.sum())} annotators who were asked again"
    sentence = f"{subject} gave the same label throughout, so they have no kappa."
    return (Note("one_label_again", sentence),)
