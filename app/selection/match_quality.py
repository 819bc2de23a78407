"""Match quality: the value of comparing two items (Sakaguchi & Van Durme 2018, equations 11 and 23)."""

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array


def match_quality(
    score_i: npt.ArrayLike,
    variance_i: npt.ArrayLike,
    score_j: npt.ArrayLike,
    variance_j: npt.ArrayLike,
    gamma: float,
) -> Array:
    """q(i, j) = sqrt(2 gamma^2 / c^2) exp(-(M_i - M_j)^2 / (2 c^2)), c^2 = 2 gamma^2 + Var_i + Var_j.

    Arrays that broadcast: scores M (modes of a Beta, (23); means of a Gaussian, (11)) and variances >= 0 in
    squared units of the score; gamma > 0. Symmetric bit for bit and in (0, 1]: 1 for equal scores known
    exactly, 0 only where the exponential underflows. Raises ValueError for NaN, a negative variance or
    a gamma that is not finite and above 0.
    """
    if not 0.0 < gamma < np.inf:
        raise ValueError(f"gamma must be a finite number above 0, not {gamma}")
    variances = _variance_array_or_raise_if_negative(variance_i) + _variance_array_or_raise_if_negative(variance_j)
    difference = np.asarray(score_i, dtype=np.float64) - np.asarray(score_j, dtype=np.float64)
    if np.isnan(difference).any():
        raise ValueError("a score must be a number, not NaN")
    noise = 2.0 * gamma * gamma
    c2 = noise + variances
    return np.sqrt(noise / c2) * np.exp(-difference * difference / (2.0 * c2))


def match_quality_matrix(scores: npt.ArrayLike, variances: npt.ArrayLike, gamma: float) -> Array:
    """The match quality of all pairs of N items: (N,) and (N,) give a symmetric (N, N), 8 N^2 bytes.

    The diagonal is an item against another with the same posterior. Raises ValueError as `match_quality`
    does, and if the two are not of one shape (N,).
    """
    scores, variances = np.asarray(scores, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != variances.shape:
        raise ValueError(f"scores and variances must both be (N,), not {scores.shape} and {variances.shape}")
    return match_quality(scores[:, None], variances[:, None], scores, variances, gamma)


def _variance_array_or_raise_if_negative(variance: npt.ArrayLike) -> Array:
    variance = np.asarray(variance, dtype=np.float64)
    if not np.all(variance >= 0.0):
        raise ValueError("a variance must be a number of at least 0")
    return variance
