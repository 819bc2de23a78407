"""Comparison of two sets of scores of the same items: the figures of `metrics`, each with its interval over items."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground import metrics
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.bootstrap import (
    BOOTSTRAP_DRAWS,
    MIN_BOOTSTRAP_ITEMS,
    WeightedStatistic,
    bootstrap_percentile_interval,
)
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.weighted_correlation import (
    MeanRanks,
    weighted_kendall,
    weighted_pearson_of_each_block,
    weighted_spearman_of_each_block,
)

MAX_ITEMS_PAIRED_AT_ONCE = 1_000
"""Largest number of items for which all pairs are compared for all draws at once; beyond, sorting each draw is
faster.
"""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A figure and its interval by bootstrap over items; NaN where the notes say why."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """Measures of agreement of two sets of scores, with intervals.

    Attributes:
        n: Items with a score on both sides.
        pearson: In [-1, 1], as spearman and kendall; see `metrics`.
        ndcg: In [0, 1].

    """

    n: int
    pearson: IntervalEstimate
    spearman: IntervalEstimate
    kendall: IntervalEstimate
    ndcg: IntervalEstimate
    notes: tuple[Note, ...]


def correlate_with_intervals(
    reference: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> ScoreComparison:
    """Return `metrics.correlate_scores` with intervals: both (N,), NaN where an item has no score.

    The intervals show how far a figure depends on the choice of items; the scores' own uncertainty is not in them.
    Raises what `metrics.correlate_scores` raises, and ValueError for a level outside (0, 1) or fewer than 0 draws.
    """
    correlations = metrics.correlate_scores(reference, scores)
    reference, scores = np.asarray(reference, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    has_both = ~(np.isnan(reference) | np.isnan(scores))
    x, y = reference[has_both], scores[has_both]
    values = {
        "pearson": correlations.pearson,
        "spearman": correlations.spearman,
        "kendall": correlations.kendall,
        "ndcg": correlations.ndcg,
    }
    estimates, notes, names_by_refusal = {}, list(correlations.notes), dict[str, list[str]]()
    for name, statistic in _weighted_correlation_statistic_by_name(x, y).items():
        estimates[name] = IntervalEstimate(values[name], np.nan, np.nan)
        if np.isfinite(values[name]):
            interval = bootstrap_percentile_interval(statistic, correlations.n, draws=draws, level=level, rng=rng)
            estimates[name] = IntervalEstimate(values[name], interval.low, interval.high)
            if interval.refusal:
                names_by_refusal.setdefault(interval.refusal, []).append(STATISTIC_NAMES[name])
            elif interval.usable_draws < draws:
                missing = draws - interval.usable_draws
                sentence = f"{missing:,} of {draws:,} draws of the items have no {STATISTIC_NAMES[name]}."
                notes.append(Note("draws_without_figure", sentence))
    for refusal, names in names_by_refusal.items():
        concerns_all = correlations.n < MIN_BOOTSTRAP_ITEMS or len(names) == len(STATISTIC_NAMES)
        sentence = refusal if concerns_all else f"{', '.join(names)}: {refusal}"
        notes.append(Note("figure_without_interval", sentence))
    return ScoreComparison(n=correlations.n, **estimates, notes=tuple(dict.fromkeys(notes)))


STATISTIC_NAMES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall", "ndcg": "nDCG"}


def _weighted_correlation_statistic_by_name(x: Array, y: Array) -> dict[str, WeightedStatistic]:
    block = np.zeros(len(x), dtype=np.intp)
    by_x, by_y = MeanRanks.from_values(x, block), MeanRanks.from_values(y, block)
    gain = x - x.min()
    return {
        "pearson": lambda weights: weighted_pearson_of_each_block(x, y, weights, block[:1])[:, 0],
        "spearman": lambda weights: weighted_spearman_of_each_block(by_x, by_y, weights.T)[0],
        "kendall": lambda weights: (
            weighted_kendall(x, y, weights)
            if len(x) <= MAX_ITEMS_PAIRED_AT_ONCE
            else _measure_of_each_resample(metrics.kendall, x, y, weights)
        ),
        "ndcg": lambda weights: _measure_of_each_resample(metrics.ndcg, gain, y, weights),
    }


def _measure_of_each_resample(measure: Callable[[Array, Array], float], x: Array, y: Array, weights: Array) -> Array:
    """Return the measure of each draw's items, copied out, (D,); NaN where it has none."""
    items: list[Integers] = [np.repeat(np.arange(len(x)), row) for row in weights.astype(np.intp)]
    return np.array([_measure_or_nan(measure, x[drawn_items], y[drawn_items]) for drawn_items in items])


def _measure_or_nan(measure: Callable[[Array, Array], float], x: Array, y: Array) -> float:
    try:
        return measure(x, y)
    except Inestimable:
        return np.nan
