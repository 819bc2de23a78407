"""The model of Hopkins & May 2013 for systems that are compared in pairs, ties included."""

from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from app.inference.ground.arrays import Array
from app.inference.observations.comparisons import PairOutcomeCounts, count_pair_outcomes
from app.inference.preferences.pairwise_scores import LikelihoodDerivatives, PairwiseScores, fit_pairwise_scores

_LOG_ROOT_2_PI = 0.5 * np.log(2.0 * np.pi)


def fit(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    decision_radius: float = 0.5,
    ability_sd: float = 0.5,
    observation_sd: float = 1.0,
    prior: float = 1.0,
    tolerance: float = 1e-9,
) -> PairwiseScores:
    """The quality of a system's output is Normal(score, ability_sd^2); a judge sees it with Normal noise.

    A judge with noise of standard deviation `observation_sd` on each output prefers the one that looks better by more
    than `decision_radius` >= 0, and else calls a tie. With d the difference of two scores and s^2 = 2 (ability_sd^2 +
    observation_sd^2), P(first preferred) = Phi((d - radius) / s), and a tie otherwise. `prior` is the precision of the
    Normal prior on a score.

    (Otani et al. 2016, section 2, name the model only: "the quality of each system can be represented by a Gaussian
    distribution". The defaults are those of the program published with Sakaguchi, Post & Van Durme 2014, whose settings
    Otani et al. follow.) That program samples the hidden qualities; here they are integrated out exactly, so there is
    one answer: the most probable scores, with standard errors from the curvature. Arguments, result and errors
    otherwise as `bradley_terry.fit`; ValueError for a radius or deviation out of range, and for ties with a radius of
    0, which would be impossible.
    """
    if not (0.0 <= decision_radius < np.inf and ability_sd >= 0.0 < observation_sd < np.inf and ability_sd < np.inf):
        raise ValueError("decision_radius and ability_sd must be at least 0, observation_sd above 0, all finite")
    comparisons = count_pair_outcomes(first, second, outcomes, n_items=n_items)
    if decision_radius == 0.0 and comparisons.tied.any():
        raise ValueError("there are ties, and with a decision_radius of 0 there can be none")
    spread = float(np.sqrt(2.0 * (ability_sd**2 + observation_sd**2)))
    link = partial(hopkins_may_derivatives, radius=decision_radius / spread, spread=spread)
    return fit_pairwise_scores(comparisons, link, prior=prior, tolerance=tolerance)


def hopkins_may_derivatives(
    comparisons: PairOutcomeCounts, difference: Array, _threshold: float, /, *, radius: float, spread: float
) -> LikelihoodDerivatives:
    """Log-likelihood of the comparisons, with first and minus second derivative in each difference, (P,).

    `radius` is in spreads.
    """
    d = difference / spread
    win, win_slope, win_bend = _log_win_chance_slope_and_curvature(d - radius)
    loss, loss_slope, loss_bend = _log_win_chance_slope_and_curvature(-d - radius)
    tie, tie_slope, tie_bend = (
        _log_tie_chance_slope_and_curvature(d, radius) if comparisons.tied.any() else (0.0 * d,) * 3
    )
    wins, losses, ties = comparisons.low_won, comparisons.high_won, comparisons.tied
    return LikelihoodDerivatives(
        value=float(wins @ win + losses @ loss + ties @ tie),
        slope=(wins * win_slope - losses * loss_slope + ties * tie_slope) / spread,
        bend=(wins * win_bend + losses * loss_bend + ties * tie_bend) / spread**2,
    )


def _log_win_chance_slope_and_curvature(x: Array) -> tuple[Array, Array, Array]:
    """Return the logarithm of Phi(x), its slope, and minus its second derivative."""
    log_chance = log_ndtr(x)
    slope = np.exp(-0.5 * x**2 - _LOG_ROOT_2_PI - log_chance)
    return log_chance, slope, slope * (slope + x)


def _log_tie_chance_slope_and_curvature(d: Array, radius: float) -> tuple[Array, Array, Array]:
    """Return the logarithm of Phi(radius - d) - Phi(-radius - d), its slope and minus its second derivative in d.

    It is evaluated on the side where both tails are small.
    """
    upper, lower = radius - np.abs(d), -radius - np.abs(d)
    log_upper = log_ndtr(upper)
    log_chance = log_upper + np.log(-np.expm1(log_ndtr(lower) - log_upper))
    at_upper = np.exp(-0.5 * upper**2 - _LOG_ROOT_2_PI - log_chance)
    at_lower = np.exp(-0.5 * lower**2 - _LOG_ROOT_2_PI - log_chance)
    slope = at_lower - at_upper
    return log_chance, np.where(d < 0.0, -slope, slope), slope**2 + upper * at_upper - lower * at_lower
