"""Two sets of scores of the same items side by side: the figures of `metrics`, each with its interval over items."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground import metrics
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.bootstrap import DRAWS, LEAST_ITEMS, Statistic, interval_of
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.weighted_correlation import MeanRanks, kendall, pearson, spearman

MOST_AT_ONCE = 1_000
"""Items up to which each two are compared for all draws at once; from there on sorting each draw is faster."""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A figure and its interval by bootstrap over items; NaN where the notes say why."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SideBySide:
    """n: items that both have a score for. Correlations in [-1, 1], ndcg in [0, 1], as in `metrics`."""

    n: int
    pearson: IntervalEstimate
    spearman: IntervalEstimate
    kendall: IntervalEstimate
    ndcg: IntervalEstimate
    notes: tuple[Note, ...]


def compare(
    reference: npt.ArrayLike,
    score: npt.ArrayLike,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> SideBySide:
    """`metrics.compare` with intervals: both (N,), NaN where an item has no score.

    The intervals tell how far a figure depends on which items were asked about; the scores' own uncertainty is not in
    them. Raises what `metrics.compare`
    raises, and ValueError for a level outside (0, 1) or fewer than 0 draws.
    """
    found = metrics.compare(reference, score)
    reference, score = np.asarray(reference, dtype=np.float64), np.asarray(score, dtype=np.float64)
    both = ~(np.isnan(reference) | np.isnan(score))
    x, y = reference[both], score[both]
    values = {"pearson": found.pearson, "spearman": found.spearman, "kendall": found.kendall, "ndcg": found.ndcg}
    figures, notes = {}, list(found.notes)
    for name, statistic in _statistics(x, y).items():
        figures[name] = IntervalEstimate(values[name], np.nan, np.nan)
        if np.isfinite(values[name]):
            interval = interval_of(statistic, found.n, draws=draws, level=level, rng=rng)
            figures[name] = IntervalEstimate(values[name], interval.low, interval.high)
            if interval.refusal:
                sentence = interval.refusal if found.n < LEAST_ITEMS else f"{NAMES[name]}: {interval.refusal}"
                notes.append(Note("figure_without_interval", sentence))
            elif interval.usable < draws:
                sentence = f"{draws - interval.usable:,} of {draws:,} draws of the items have no {NAMES[name]}."
                notes.append(Note("draws_without_figure", sentence))
    return SideBySide(n=found.n, **figures, notes=tuple(dict.fromkeys(notes)))


NAMES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall", "ndcg": "nDCG"}


def _statistics(x: Array, y: Array) -> dict[str, Statistic]:
    block = np.zeros(len(x), dtype=np.intp)
    by_x, by_y = MeanRanks.of(x, block), MeanRanks.of(y, block)
    gain = x - x.min()
    return {
        "pearson": lambda weights: pearson(x, y, weights, block[:1])[:, 0],
        "spearman": lambda weights: spearman(by_x, by_y, weights.T)[0],
        "kendall": lambda weights: (
            kendall(x, y, weights) if len(x) <= MOST_AT_ONCE else _of_copies(metrics.kendall, x, y, weights)
        ),
        "ndcg": lambda weights: _of_copies(metrics.ndcg, gain, y, weights),
    }


def _of_copies(measure: Callable[[Array, Array], float], x: Array, y: Array, weights: Array) -> Array:
    """The measure of each draw's items, copied out, (D,); NaN where it has none."""
    items: list[Integers] = [np.repeat(np.arange(len(x)), row) for row in weights.astype(np.intp)]
    return np.array([_or_nan(measure, x[drawn], y[drawn]) for drawn in items])


def _or_nan(measure: Callable[[Array, Array], float], x: Array, y: Array) -> float:
    try:
        return measure(x, y)
    except Inestimable:
        return np.nan
