"""Reliability of scores from comparisons: scale separation reliability, and split halves.

Scale separation reliability reads the standard errors of one fit and is inflated if pairs were chosen by the scores so
far (Bramley 2015, Crompvoets et al. 2022). Split halves by annotators fit each half on its own and have no such bias.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.metrics import pearson
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
)
from app.inference.observations.comparisons import BooleanArray, comparison_arrays_and_item_count_or_raise
from app.inference.preferences import best_worst_counts, bradley_terry

DEFAULT_SPLITS = 100
MIN_ITEMS = 3
SPLIT_FIT_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class ScaleSeparation:
    """How far scores are apart, compared with their standard errors.

    Attributes:
        reliability: Scale separation reliability, (variance - mean squared error) / variance; at most 1, and below 0 if
            the scores vary less than their errors.
        separation: G, the standard deviation of the true scores in units of the error, at least 0.
        n_items: Number of items with a score and an error.

    """

    reliability: float
    separation: float
    n_items: int


@dataclass(frozen=True, slots=True)
class SplitHalves:
    """Correlation of the scores of two random halves of the answers.

    Attributes:
        correlation: Mean of Pearson's correlation over the splits.
        low: 2.5 % of the splits have a lower correlation.
        high: 2.5 % of the splits have a higher one.
        full_length: The mean stepped up to all answers, 2 r / (1 + r) (Spearman 1910, Brown 1910).
        n_splits: Number of splits in which both halves have scores that can be compared.

    """

    correlation: float
    low: float
    high: float
    full_length: float
    n_splits: int


def scale_separation(scores: npt.ArrayLike, standard_errors: npt.ArrayLike) -> ScaleSeparation:
    """Return scale separation reliability and G.

    Args:
        scores: Scores of one scale, (n,); items where either array is NaN are left out.
        standard_errors: Their standard errors, (n,).

    Raises:
        ValueError: The shapes differ.
        Inestimable: Fewer than 3 items have a score ("too_few_on_scale"), or all have the same ("scale_of_one_point").

    """
    scores, errors = np.asarray(scores, np.float64), np.asarray(standard_errors, np.float64)
    if scores.ndim != 1 or scores.shape != errors.shape:
        raise ValueError(f"both must be (n,), not {scores.shape} and {errors.shape}")
    usable = np.isfinite(scores) & np.isfinite(errors)
    if np.count_nonzero(usable) < MIN_ITEMS:
        raise Inestimable(
            f"Fewer than {MIN_ITEMS} items have scores on one scale, too few for a reliability.",
            code="too_few_on_scale",
        )
    variance = float(np.var(scores[usable], ddof=1))
    mean_squared_error = float(np.mean(errors[usable] ** 2))
    if variance == 0.0 or mean_squared_error == 0.0:
        raise Inestimable("All scores are equal, so they have no reliability.", code="scale_of_one_point")
    excess = variance - mean_squared_error
    separation = float(np.sqrt(max(excess, 0.0) / mean_squared_error))
    return ScaleSeparation(excess / variance, separation, int(np.count_nonzero(usable)))


def correlate_scores_of_annotator_halves_or_raise(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_items: int | None = None,
    splits: int = DEFAULT_SPLITS,
    rng: np.random.Generator,
) -> SplitHalves:
    """Correlate Bradley-Terry scores of two random halves of the annotators.

    Args:
        first: First item of each pair, (J,), as `bradley_terry.fit` takes it.
        second: Second item, (J,).
        outcomes: +1 if the first is preferred, 0 for a tie, -1 if the second is, (J,).
        annotators: Annotator of each pair, (J,).
        n_items: Number of items; default: 1 + the largest number.
        splits: Number of random splits.
        rng: Source of the splits.

    Raises:
        ValueError: The arrays are invalid.
        Inestimable: "no_judgments", "one_judge", "halves_without_scale".

    """
    first, second, outcomes, n_items = comparison_arrays_and_item_count_or_raise(first, second, outcomes, n_items)
    annotators, n_annotators = index_array_and_count_or_raise("annotators", annotators)
    refuse_columns_of_unequal_length(first=first, annotators=annotators)
    people = np.unique(annotators)
    if len(people) < 2:
        raise Inestimable("All comparisons are by one annotator, so they cannot be split.", code="one_judge")

    def fit_half(mask: BooleanArray) -> Array:
        half = bradley_terry.fit(
            first[mask], second[mask], outcomes[mask], n_items=n_items, tolerance=SPLIT_FIT_TOLERANCE
        )
        return np.where(half.group == 0, half.score, np.nan)

    def halves() -> Iterator[BooleanArray]:
        is_in_half = np.zeros(n_annotators, np.bool_)
        for _ in range(splits):
            is_in_half[:] = False
            is_in_half[rng.permutation(people)[: len(people) // 2]] = True
            yield is_in_half[annotators]

    return _correlate_halves(fit_half, halves())


def best_worst_split_halves_within_tuples(
    hits: npt.ArrayLike,
    items: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    tie_margin: float = 0.0,
    splits: int = DEFAULT_SPLITS,
    rng: np.random.Generator,
) -> SplitHalves:
    """Correlate best-worst counts of two random halves of the answers to each tuple (Kiritchenko & Mohammad 2017).

    HITs of the same items are answers to one tuple. If a tuple has an odd number of answers, a random half gets one
    more.

    Args:
        hits: HIT of each judgment, (R,).
        items: Judged item, (R,).
        scores: Score, (R,); higher is better.
        n_items: Number of items; default: 1 + the largest number.
        tie_margin: Largest difference of tied scores.
        splits: Number of random splits.
        rng: Source of the splits.

    Raises:
        ValueError: The arrays are invalid.
        Inestimable: "nothing_side_by_side", "halves_without_scale".

    """
    hits, n_hits = index_array_and_count_or_raise("hits", hits)
    items, n_items = index_array_and_count_or_raise("items", items, n_items)
    scores = finite_vector_or_raise("scores", scores)
    refuse_columns_of_unequal_length(hits=hits, items=items, scores=scores)
    tuples = best_worst_counts.tuple_number_of_each_hit(hits, items, n_hits)

    def fit_half(mask: BooleanArray) -> Array:
        return best_worst_counts.fit(
            hits[mask], items[mask], scores[mask], n_items=n_items, tie_margin=tie_margin
        ).score

    def halves() -> Iterator[BooleanArray]:
        for _ in range(splits):
            yield random_half_of_each_tuple(tuples, rng)[hits]

    return _correlate_halves(fit_half, halves())


def random_half_of_each_tuple(tuples: Integers, rng: np.random.Generator) -> BooleanArray:
    """Return a random half of the answers to each tuple, (n_hits,); a random half gets one more of an odd number."""
    order = np.lexsort((rng.random(len(tuples)), tuples))
    counts = np.bincount(tuples)
    place = np.arange(len(tuples)) - np.repeat(np.cumsum(counts) - counts, counts)
    half = np.empty(len(tuples), np.bool_)
    half[order] = (place + rng.integers(2, size=len(counts))[tuples[order]]) % 2 == 0
    return half


def _correlate_halves(fit_half: Callable[[BooleanArray], Array], halves: Iterator[BooleanArray]) -> SplitHalves:
    correlations = [r for mask in halves if (r := _correlation_of_halves_or_none(fit_half, mask)) is not None]
    if not correlations:
        raise Inestimable(
            f"There is no split in which both halves have scores for the same {MIN_ITEMS} items or more.",
            code="halves_without_scale",
        )
    mean = float(np.mean(correlations))
    low, high = np.quantile(correlations, (0.025, 0.975)).tolist()
    return SplitHalves(mean, low, high, 2.0 * mean / (1.0 + mean) if mean > -1.0 else np.nan, len(correlations))


def _correlation_of_halves_or_none(fit_half: Callable[[BooleanArray], Array], mask: BooleanArray) -> float | None:
    """Return Pearson's correlation of two halves; None if a half has no scores, or they cannot be compared."""
    try:
        one, other = fit_half(mask), fit_half(~mask)
        both = np.isfinite(one) & np.isfinite(other)
        return pearson(one[both], other[both]) if np.count_nonzero(both) >= MIN_ITEMS else None
    except Inestimable:
        return None
