"""Intervals of proportions."""

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array, divide_or_nan


def wilson_shares_and_interval_ends(
    successes: npt.ArrayLike, trials: npt.ArrayLike, level: float = 0.95
) -> tuple[Array, Array, Array]:
    """Return proportions and the two ends of Wilson's intervals (1927), (n,) each; NaN without trials.

    Args:
        successes: Number of successes, (n,).
        trials: Number of independent trials, (n,).
        level: Level of the intervals, between 0 and 1.

    """
    n = np.asarray(trials, np.float64)
    share = divide_or_nan(np.asarray(successes, np.float64), n)
    z2 = float(scipy.special.ndtri((1.0 + level) / 2.0)) ** 2
    middle = share + divide_or_nan(np.full_like(n, z2 / 2.0), n)
    half = np.sqrt(divide_or_nan(z2 * (share * (1.0 - share) + divide_or_nan(np.full_like(n, z2 / 4.0), n)), n))
    scale = 1.0 + divide_or_nan(np.full_like(n, z2), n)
    return share, np.maximum((middle - half) / scale, 0.0), np.minimum((middle + half) / scale, 1.0)
