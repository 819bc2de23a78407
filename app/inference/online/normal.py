"""Validation of Normal posteriors: a mean mu and a variance sigma2 of each item."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array


def to_normal_float_lists(mu: Sequence[float], sigma2: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the posteriors of the items of one HIT, n floats each, as plain floats.

    Raises ValueError for lengths that differ, a mu that is not finite and a sigma2 that is not finite and above 0.
    """
    if len(mu) != len(sigma2):
        raise ValueError(f"a posterior is a pair, but there are {len(mu)} means and {len(sigma2)} variances")
    mus, sigma2s = list(map(float, mu)), list(map(float, sigma2))
    if not all(map(math.isfinite, mus)):
        raise ValueError(f"mu must be finite, not {mus}")
    for value in sigma2s:
        if not 0.0 < value < math.inf:
            raise ValueError(f"sigma2 must be finite and above 0, not {value}")
    return mus, sigma2s


def to_normal_arrays(mu: npt.ArrayLike, sigma2: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the posteriors of any items as float64 arrays. Raises ValueError as `to_normal_float_lists`, except for
    lengths.
    """
    mu, sigma2 = np.asarray(mu, dtype=np.float64), np.asarray(sigma2, dtype=np.float64)
    if not np.all(np.isfinite(mu)):
        raise ValueError("mu must be finite")
    if not np.all((sigma2 > 0.0) & (sigma2 < np.inf)):
        raise ValueError("sigma2 must be finite and above 0")
    return mu, sigma2
