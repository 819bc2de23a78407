"""Beta posteriors, Beta(alpha, beta) on [0, 1], shared by `easl` and `ra`.

Equation numbers are those of Sakaguchi & Van Durme 2018, "Efficient Online Scalar Annotation with Bounded Support". The
vectorised functions take arrays (or floats) that broadcast, as in `law.PosteriorFamily`.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array, valid_interval_level_or_raise
from app.inference.online.law import PosteriorFamily

AlphasAndBetas = tuple[list[float], list[float]]

# Beyond these a float64 loses either the variance (products underflow) or the update (alpha + s == alpha).
_SMALLEST_PRIOR, _LARGEST_PRIOR = 1e-6, 1e9


def is_valid_beta_prior(alpha: float, beta: float) -> bool:
    """Return whether Beta(alpha, beta) may be a prior: both in [1e-6, 1e9], so that floats keep every update."""
    return all(_SMALLEST_PRIOR <= parameter <= _LARGEST_PRIOR for parameter in (alpha, beta))


def score(alpha: npt.ArrayLike, beta: npt.ArrayLike) -> Array:
    """The mode (12), in [0, 1], and a sensible number where (12) has none.

    Where neither parameter is above 1 the density has no peak inside (it is flat, or largest at an end): the mean is
    taken, so Beta(1, 1) gives 0.5. Where only one is above 1 the density climbs to that end, 1 for alpha and 0 for
    beta, while (12) could leave [0, 1].
    """
    alpha, beta = _to_beta_arrays(alpha, beta)
    above, below = np.maximum(alpha - 1.0, 0.0), np.maximum(beta - 1.0, 0.0)
    peaked = above + below > 0.0
    return np.where(peaked, above, alpha) / np.where(peaked, above + below, alpha + beta)


def variance(alpha: npt.ArrayLike, beta: npt.ArrayLike) -> Array:
    """The variance (13), in (0, 1/4).

    A judgment may raise it, although the paper says it cannot: Beta(1, 10) -> Beta(1.9, 10).
    """
    alpha, beta = _to_beta_arrays(alpha, beta)
    total = alpha + beta
    return alpha * beta / (total * total * (total + 1.0))


def interval(alpha: npt.ArrayLike, beta: npt.ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """The central interval: Beta quantiles at (1 - level) / 2 and (1 + level) / 2, both in [0, 1]."""
    alpha, beta = _to_beta_arrays(alpha, beta)
    tail = (1.0 - valid_interval_level_or_raise(level)) / 2.0
    low, high = scipy.special.betaincinv(alpha, beta, tail), scipy.special.betaincinv(alpha, beta, 1.0 - tail)
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def density(alpha: npt.ArrayLike, beta: npt.ArrayLike, x: npt.ArrayLike) -> Array:
    """The density at x: 0 outside [0, 1], infinite at an end whose parameter is below 1 (so draw inside)."""
    alpha, beta = _to_beta_arrays(alpha, beta)
    x = np.asarray(x, dtype=np.float64)
    inside = np.clip(x, 0.0, 1.0)
    log_density = (
        scipy.special.xlogy(alpha - 1.0, inside)
        + scipy.special.xlog1py(beta - 1.0, -inside)
        - scipy.special.betaln(alpha, beta)
    )
    return np.where(x == inside, np.exp(log_density), 0.0)


def beta_mode_and_variance_in_floats(alpha: float, beta: float) -> tuple[float, float]:
    """Return `score` and `variance` of one posterior in plain floats: the same operations, so the same bits, much
    faster.
    """
    above = alpha - 1.0 if alpha > 1.0 else 0.0
    below = beta - 1.0 if beta > 1.0 else 0.0
    peak, total = above + below, alpha + beta
    mode = above / peak if peak > 0.0 else alpha / total
    return mode, alpha * beta / (total * total * (total + 1.0))


def lists_of_beta_modes_and_variances(alpha: Sequence[float], beta: Sequence[float]) -> AlphasAndBetas:
    """Return `score` and `variance` of the posteriors of one HIT, as two lists of plain floats with the same bits."""
    modes_and_variances = [
        beta_mode_and_variance_in_floats(a, b) for a, b in zip(*to_beta_float_lists(alpha, beta), strict=True)
    ]
    return [mode for mode, _ in modes_and_variances], [variance for _, variance in modes_and_variances]


def to_beta_float_lists(alpha: Sequence[float], beta: Sequence[float]) -> AlphasAndBetas:
    """Return the posteriors of one HIT as plain floats.

    Raises ValueError if the lengths differ or a parameter is not finite and above 0.
    """
    if len(alpha) != len(beta):
        raise ValueError(f"a posterior is a pair, but there are {len(alpha)} alphas and {len(beta)} betas")
    alphas, betas = list(map(float, alpha)), list(map(float, beta))
    for parameter in alphas + betas:
        if not 0.0 < parameter < math.inf:
            raise ValueError(f"alpha and beta must be finite and above 0, not {parameter}")
    return alphas, betas


def _to_beta_arrays(alpha: npt.ArrayLike, beta: npt.ArrayLike) -> tuple[Array, Array]:
    alpha, beta = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    for parameter in (alpha, beta):
        # Written so that NaN fails too.
        if not np.all((parameter > 0.0) & (parameter < np.inf)):
            raise ValueError("alpha and beta must be finite and above 0")
    return alpha, beta


BETA = PosteriorFamily(
    name="Beta",
    parameter_names=("alpha", "beta"),
    score_name="mode",
    default_prior=(1.0, 1.0),  # flat: every score is as likely as any other (section 4 of the paper)
    support=(0.0, 1.0),
    is_valid_prior=is_valid_beta_prior,
    score=score,
    variance=variance,
    interval=interval,
    density=density,
    scores_and_variances=lists_of_beta_modes_and_variances,
)
