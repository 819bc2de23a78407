"""Ratios to a reference: a Normal posterior on the logarithm of each item's ratio.

Magnitude estimation multiplies: an annotator who finds an item twice as good as the reference gives it twice the
reference's value, and errs by a factor. So the logarithms of ratios are averaged, which is their geometric mean, as is
usual for magnitude estimation; RankME is Novikova, Dušek & Rieser 2018, "RankME: Reliable human ratings for natural
language generation". With known noise and a Normal prior the posterior is Normal again (Gelman et al. 2013, Bayesian
Data Analysis, 2.5):

    (1)  1 / sigma2' = 1 / sigma2 + 1 / noise,
    (2)  mu' = sigma2' (mu / sigma2 + x / noise) for a judgment x = log(value / reference).

A law reads judgments as shares of their scale, and a ratio r has the share s = r / (1 + r). So x is the log-odds of s,
and a score is the logistic of mu: 1/2 for an item as good as the reference, 2/3 for one that is twice as good. A Normal
on the log-odds is a logit-normal on the shares, and a log-normal on the ratios.

The noise of one judgment is gamma on the scale of the scores, where the items are near the reference: 4 gamma on the
logarithm, since the logistic climbs by 1/4 there. The default of 0.1 says that two thirds of the judgments are within a
factor of exp(0.4) = 1.5; in the published RankME judgments of one output it is exp(0.38), over criteria and arms.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array, valid_interval_level_or_raise
from app.inference.online import normal
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Columns, LawParameters, PosteriorFamily, validated_scores_of_hit_as_floats

LOG_NORMAL_DEFAULT_PRIOR = (0.0, math.pi * math.pi / 3.0)
"""As good as the reference, with the variance of a logistic distribution, whose shares are all equally likely. So it is
nearly flat on the scale of the scores; 95 of 100 ratios lie between 1/35 and 35.
"""

LOGARITHM_PER_SCORE = 4.0  # at the reference, where the logistic climbs by 1/4

# Beyond these, scores are 0 or 1 to a float, and have no variance.
_MAX_LOG_NORMAL_MU, _MIN_LOG_NORMAL_SIGMA2, _MAX_LOG_NORMAL_SIGMA2 = 20.0, 1e-9, 100.0

# The trapezoid rule over a Normal density, with nodes in standard deviations: for a function as smooth as the logistic
# its error falls exponentially with the step (Trefethen & Weideman 2014). Up to sigma2 = 10, which is wider than the
# default prior, four digits are right, and below 3 six.
_TRAPEZOID_NODES = [step / 2.0 for step in range(-13, 14)]
_TRAPEZOID_HEIGHTS = [math.exp(-0.5 * node * node) for node in _TRAPEZOID_NODES]
_TRAPEZOID_WEIGHTS = [height / sum(_TRAPEZOID_HEIGHTS) for height in _TRAPEZOID_HEIGHTS]


def is_valid_log_normal_prior(mu: float, sigma2: float) -> bool:
    """Return whether Normal(mu, sigma2) may be a prior: |mu| <= 20, a ratio of half a billion; sigma2 in [1e-9,
    100].
    """
    return abs(mu) <= _MAX_LOG_NORMAL_MU and _MIN_LOG_NORMAL_SIGMA2 <= sigma2 <= _MAX_LOG_NORMAL_SIGMA2


def score(mu: npt.ArrayLike, sigma2: npt.ArrayLike) -> Array:
    """The median of the share, the logistic of mu, in (0, 1): 1/2 is the reference."""
    mu, _ = np.broadcast_arrays(*normal.to_normal_arrays(mu, sigma2))
    return np.asarray(scipy.special.expit(mu), np.float64)


def variance(mu: npt.ArrayLike, sigma2: npt.ArrayLike) -> Array:
    """The variance of the share, in [0, 1/4]; without a closed form, so by quadrature.

    The usual (s (1 - s))^2 sigma2, right for a small sigma2, would be 2.3 times as large for the default prior.
    """
    mu, sigma2 = normal.to_normal_arrays(mu, sigma2)
    sigma, middle = np.sqrt(sigma2), scipy.special.expit(mu)
    first = second = np.zeros(np.broadcast(mu, sigma2).shape)
    for node, weight in zip(
        _TRAPEZOID_NODES, _TRAPEZOID_WEIGHTS, strict=True
    ):  # one by one, so that sums round alike for few and many
        away = scipy.special.expit(mu + node * sigma) - middle
        first, second = first + weight * away, second + weight * away * away
    return np.asarray(second - first * first, np.float64)


def interval(mu: npt.ArrayLike, sigma2: npt.ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """The central interval: the logistic of mu -+ z sigma, z the standard normal quantile at (1 + level) / 2."""
    mu, sigma2 = normal.to_normal_arrays(mu, sigma2)
    reach = scipy.special.ndtri((1.0 + valid_interval_level_or_raise(level)) / 2.0) * np.sqrt(sigma2)
    low, high = scipy.special.expit(mu - reach), scipy.special.expit(mu + reach)
    return np.asarray(low, np.float64), np.asarray(high, np.float64)


def density(mu: npt.ArrayLike, sigma2: npt.ArrayLike, x: npt.ArrayLike) -> Array:
    """The density of the share at x: that of the log-odds, times their slope 1 / (x (1 - x)); 0 outside (0, 1)."""
    mu, sigma2 = normal.to_normal_arrays(mu, sigma2)
    x = np.asarray(x, dtype=np.float64)
    inside = (x > 0.0) & (x < 1.0)
    share = np.where(inside, x, 0.5)
    distance = scipy.special.logit(share) - mu
    height = np.exp(-0.5 * distance * distance / sigma2) / np.sqrt(2.0 * np.pi * sigma2)
    return np.where(inside, height / (share * (1.0 - share)), 0.0)


def lists_of_log_normal_scores_and_variances(
    mu: Sequence[float], sigma2: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return `score` and `variance` of the posteriors of one HIT, as two lists of plain floats, by the same
    operations.
    """
    columns = normal.to_normal_float_lists(mu, sigma2)
    return score(*columns).tolist(), variance(*columns).tolist()


def update(mu: Sequence[float], sigma2: Sequence[float], shares: Sequence[float], parameters: LawParameters) -> Columns:
    """Apply one HIT: (1) and (2), each item by its own share s of the scale.

    Sequences of n >= 1 floats in presentation order, shares in (0, 1); returns two new lists of n floats, sigma2
    smaller than before and above 0. Raises ValueError for lengths that differ, an empty HIT, a share that is NaN or not
    in (0, 1), which no ratio has, a mu that is not finite or a sigma2 that is not finite and above 0.
    """
    mus, sigma2s = normal.to_normal_float_lists(mu, sigma2)
    noise = (LOGARITHM_PER_SCORE * parameters.gamma) ** 2
    log_ratios = [_log_odds(share) for share in validated_scores_of_hit_as_floats(shares, len(mus))]
    return (
        [(m * noise + x * s2) / (noise + s2) for m, s2, x in zip(mus, sigma2s, log_ratios, strict=True)],
        [s2 * noise / (noise + s2) for s2 in sigma2s],
    )


def _log_odds(share: float) -> float:
    if not 0.0 < share < 1.0:
        raise ValueError(f"the share of a ratio must lie between 0 and 1, not be {share}")
    return math.log(share) - math.log1p(-share)


LAW = ItemLaw(
    name="log-normal",
    title="Log-normal: averages the logarithms of ratios",
    assumes="Each value is the item’s ratio to the reference times an error, whose logarithm is Normal and of the same "
    "size everywhere; annotators are assumed to be alike.",
    family=PosteriorFamily(
        name="Log-normal",
        parameter_names=("mu", "sigma2"),
        score_name="median",
        default_prior=LOG_NORMAL_DEFAULT_PRIOR,
        support=(0.0, 1.0),
        is_valid_prior=is_valid_log_normal_prior,
        score=score,
        variance=variance,
        interval=interval,
        density=density,
        scores_and_variances=lists_of_log_normal_scores_and_variances,
    ),
    reads="ratio",
    update=update,
)
