"""RA, unbounded: the two-player TrueSkill update on Gaussian posteriors.

Sakaguchi & Van Durme 2018, section 3.1, equations (3) to (10); Herbrich, Minka & Graepel 2006 with
beta = gamma and tau = 0. mu and sigma2 are on the scale of the scores, but mu may leave [0, 1].
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array, valid_interval_level_or_raise
from app.inference.online import normal, truncated_normal
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Columns, LawParameters, PosteriorFamily, validated_scores_of_hit_as_floats
from app.inference.online.pair_updates import Posterior, posterior_columns_after_hit_pairs

TRUESKILL_DEFAULT_PRIOR = (0.5, 1.0 / 12.0)
"""Mean and variance of the flat Beta(1, 1), so that match quality starts on the scale of the bounded laws."""

# Beyond these a float64 loses updates of the size that scores in [0, 1] and their noise can make.
_MAX_TRUESKILL_MU, _MIN_TRUESKILL_SIGMA2, _MAX_TRUESKILL_SIGMA2 = 1e9, 1e-12, 1e12


def is_valid_trueskill_prior(mu: float, sigma2: float) -> bool:
    """Return whether Normal(mu, sigma2) may be a prior: |mu| <= 1e9, sigma2 in [1e-12, 1e12]."""
    return abs(mu) <= _MAX_TRUESKILL_MU and _MIN_TRUESKILL_SIGMA2 <= sigma2 <= _MAX_TRUESKILL_SIGMA2


def score(mu: npt.ArrayLike, sigma2: npt.ArrayLike) -> Array:
    """The mean mu, any real number."""
    mu, sigma2 = normal.to_normal_arrays(mu, sigma2)
    return np.broadcast_arrays(mu, sigma2)[0].copy()


def variance(mu: npt.ArrayLike, sigma2: npt.ArrayLike) -> Array:
    """The variance sigma2, above 0."""
    mu, sigma2 = normal.to_normal_arrays(mu, sigma2)
    return np.broadcast_arrays(mu, sigma2)[1].copy()


def interval(mu: npt.ArrayLike, sigma2: npt.ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """The central interval: mu -+ z sigma, z the standard normal quantile at (1 + level) / 2."""
    mu, sigma2 = normal.to_normal_arrays(mu, sigma2)
    reach = scipy.special.ndtri((1.0 + valid_interval_level_or_raise(level)) / 2.0) * np.sqrt(sigma2)
    return mu - reach, mu + reach


def density(mu: npt.ArrayLike, sigma2: npt.ArrayLike, x: npt.ArrayLike) -> Array:
    """The density at x, any real number."""
    mu, sigma2 = normal.to_normal_arrays(mu, sigma2)
    distance = np.asarray(x, dtype=np.float64) - mu
    return np.exp(-0.5 * distance * distance / sigma2) / np.sqrt(2.0 * np.pi * sigma2)


def update(mu: Sequence[float], sigma2: Sequence[float], scores: Sequence[float], parameters: LawParameters) -> Columns:
    """Apply one HIT: its pairs one after another, the higher score wins, (3) to (10).

    Sequences of n >= 1 floats in presentation order, scores in [0, 1]; returns two new lists of n floats, sigma2 never
    larger than before and always above 0. One item alone changes nothing. Raises ValueError for lengths that differ, an
    empty HIT, a score that is NaN or outside [0, 1], a mu that is not finite or a sigma2 that is not finite and above
    0.
    """
    columns = normal.to_normal_float_lists(mu, sigma2)
    return posterior_columns_after_hit_pairs(
        columns,
        validated_scores_of_hit_as_floats(scores, len(mu)),
        parameters,
        apply_win=partial(_normal_posteriors_after_outcome, surprise=truncated_normal.v_and_w_of_win),
        apply_tie=partial(_normal_posteriors_after_outcome, surprise=truncated_normal.v_and_w_of_tie),
    )


def _normal_posteriors_after_outcome(
    i: Posterior,
    j: Posterior,
    parameters: LawParameters,
    surprise: Callable[[float, float], tuple[float, float]],
) -> tuple[Posterior, Posterior]:
    """Apply (3), (4), (7), (8), with v and w from `surprise` at t / c and epsilon / c."""
    (mu_i, sigma2_i), (mu_j, sigma2_j) = i, j
    noise = 2.0 * parameters.gamma * parameters.gamma
    # The variances first, so that swapping two items swaps the answer exactly.
    c = math.sqrt(noise + (sigma2_i + sigma2_j))
    v, w = surprise((mu_i - mu_j) / c, parameters.epsilon / c)
    return (
        (mu_i + sigma2_i / c * v, _variance_after_outcome(sigma2_i, noise + sigma2_j, w)),
        (mu_j - sigma2_j / c * v, _variance_after_outcome(sigma2_j, noise + sigma2_i, w)),
    )


def _variance_after_outcome(sigma2: float, other_variance: float, w: float) -> float:
    """Return (7), sigma2 (1 - w sigma2 / c^2), written as a quotient that cannot round to 0.

    `other_variance` is c^2 - sigma2.
    """
    return sigma2 * ((other_variance + sigma2 * (1.0 - w)) / (other_variance + sigma2))


NORMAL = PosteriorFamily(
    name="Normal",
    parameter_names=("mu", "sigma2"),
    score_name="mean",
    default_prior=TRUESKILL_DEFAULT_PRIOR,
    support=(-math.inf, math.inf),
    is_valid_prior=is_valid_trueskill_prior,
    score=score,
    variance=variance,
    interval=interval,
    density=density,
    scores_and_variances=normal.to_normal_float_lists,  # the parameters themselves
)


LAW = ItemLaw(
    name="trueskill",
    title="TrueSkill: only the order counts, Gaussian",
    assumes="Only the order of the items of a task counts; each item has a skill that is seen with Normal noise of the "
    "same size everywhere.",
    family=NORMAL,
    reads="order",
    update=update,
)
