"""Bootstrap intervals over items (Efron & Tibshirani 1986): items are resampled with replacement."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.inference.ground.arrays import Array, valid_interval_level_or_raise

BOOTSTRAP_DRAWS = 1000
"""Enough for 2.5 % tails: the ends of an interval then vary by about 5 % of its width from seed to seed."""

MIN_BOOTSTRAP_ITEMS = 6
"""Fewest items for an interval. With fewer, 95 % intervals of a correlation would hold the true one in 40 to 85 of 100
cases, and two or three items that happen to agree would print [1, 1].
"""

_MIN_SPREAD_OF_DRAWS = 1e-12  # a difference of rounding
_CELLS_PER_BLOCK = 500_000  # numbers held at once, draws are made in blocks of so many: what a processor's cache holds

WeightedStatistic = Callable[[Array], Array]
"""Function of weights (D, n), how often each draw contains each item, to D values, NaN where a draw has no value."""


@dataclass(frozen=True, slots=True)
class BootstrapInterval:
    """The central `level` of the draws that gave a value; `usable_draws` counts them.

    `low` and `high` are NaN where there is no interval. `refusal` then says why, unless no interval was requested.
    """

    low: float
    high: float
    usable_draws: int
    refusal: str = ""


def _absent_interval_with_reason(reason: str = "", usable_draws: int = 0) -> BootstrapInterval:
    return BootstrapInterval(np.nan, np.nan, usable_draws, reason and f"There is no interval: {reason}")


def evaluate_without_resampling(statistic: WeightedStatistic, n_items: int) -> float:
    """Return the statistic of the items themselves, without resampling."""
    return float(statistic(np.ones((1, n_items)))[0])


def bootstrap_percentile_interval(
    statistic: WeightedStatistic,
    n_items: int,
    *,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
    cells_per_draw: int = 0,
    recentred_on: float | None = None,
) -> BootstrapInterval:
    """Percentile interval over `draws` resamples of n_items items, each item equally likely.

    There is none for fewer than MIN_BOOTSTRAP_ITEMS items, nor where every draw gives the same value.

    Args:
        statistic: The statistic of weighted items.
        n_items: The number of items.
        draws: The number of resamples, at least 0.
        level: The share of the draws that the interval holds, in (0, 1).
        rng: The source of the resamples.
        cells_per_draw: How many numbers `statistic` holds for one draw, if more than n_items.
        recentred_on: Shift the draws to have this mean, for a statistic that resampling items makes smaller or larger
        by itself.

    Raises:
        ValueError: The level is outside (0, 1), or there are fewer than 0 draws.

    """
    valid_interval_level_or_raise(level)
    if draws < 0:
        raise ValueError(f"the number of draws must be at least 0, not {draws}")
    if draws == 0:
        return _absent_interval_with_reason()
    if n_items < MIN_BOOTSTRAP_ITEMS:
        few = "there is only 1 item" if n_items == 1 else f"{n_items} items are too few"
        return _absent_interval_with_reason(f"it comes from resampling items, and {few}.")
    block = max(1, _CELLS_PER_BLOCK // max(n_items, cells_per_draw))
    sizes = [min(block, draws - start) for start in range(0, draws, block)]
    values = np.concatenate([statistic(draw_item_counts_of_resamples(n_items, size, rng)) for size in sizes])
    values = values[np.isfinite(values)]
    if not len(values):
        return _absent_interval_with_reason("the value is defined for no draw of the items.")
    if np.ptp(values) <= _MIN_SPREAD_OF_DRAWS:
        return _absent_interval_with_reason(
            "the value is the same for every draw of the items, so its error is unknown.", len(values)
        )
    if recentred_on is not None:
        values += recentred_on - values.mean()
    low, high = np.quantile(values, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return BootstrapInterval(float(low), float(high), len(values))


def draw_item_counts_of_resamples(n_items: int, draws: int, rng: np.random.Generator) -> Array:
    """Return how often each of n_items items occurs in n_items draws with replacement, (draws, n_items)."""
    drawn = rng.integers(n_items, size=(draws, n_items))
    cells = (drawn + n_items * np.arange(draws)[:, None]).ravel()
    return np.bincount(cells, minlength=draws * n_items).reshape(drawn.shape).astype(np.float64)
