"""Expected gain of another judgment of an item, for the question on which side of a line the item is.

An item of estimate m and standard error s, which another judgment would bring to s', gains phi((m - c) / s) (s - s'),
where c is the line and phi the normal density: greedy OCBA-m (Chen, He, Fu & Lee 2008).
"""

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array

PRIOR_MOVE_WEIGHT = 10.0  # that what is assumed of v at first weighs
MIN_NOISE_RATIO = 1e-6  # v, in variances before the first judgment: where nobody has disagreed
PRIOR_JUDGMENTS = 3.0
"""Judgments that a prior is worth. A Beta posterior after n judgments has a variance of m(1 - m) / (n + 3): the next
one divides it by (n + 4) / (n + 3) and leaves the expected mean where it is. Other laws begin with about as much.
"""


class JudgmentNoise:
    """The variance v of one judgment around its item's score, learned from how far scores move.

    The n-th judgment moves a mean by 1/n of its distance to the mean before, so n (n - 1) times the square of the move
    is what it adds to the item's sum of squares (Welford 1962): for `easl` v is the variance within items, pooled. For
    a law whose scores are no means, the moves are read as if they were.
    """

    def __init__(self, initial_variance: float) -> None:
        """Start with the variance before the first judgment, > 0. Until scores move, v is assumed to be half of it."""
        self.initial_variance = initial_variance
        self._squares, self._moves = PRIOR_MOVE_WEIGHT * initial_variance / 2, PRIOR_MOVE_WEIGHT

    @property
    def variance(self) -> float:
        """Variance v of one judgment, in squared units of the scores; never 0."""
        return max(self._squares / self._moves, MIN_NOISE_RATIO * self.initial_variance)

    def learn_from_score_move(self, judgment_count: int, score_move: float) -> None:
        """Record the move of a score by the judgment after which its item has `judgment_count`, at least 2."""
        self._squares += judgment_count * (judgment_count - 1) * score_move * score_move
        self._moves += 1.0

    def error_variances_before_and_after_judgment(self, judgments: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the squared errors of scores after this many judgments, s^2, and after another one, s'^2."""
        n, v = np.asarray(judgments, np.float64), self.variance
        has_judgments = n > 0
        after = np.where(has_judgments, v / (n + 1.0), self.initial_variance * v / (self.initial_variance + v))
        return np.where(has_judgments, v / np.maximum(n, 1.0), self.initial_variance), after


def log_gain_at_distance(distance: Array, variance: Array, variance_after: Array) -> Array:
    """Return the logarithm of the gain of another judgment, up to a constant.

    Arrays that broadcast: distances from the line, s^2 and s'^2 < s^2.
    """
    gain: Array = log_gain_at_distance_zero(variance, variance_after) - distance * distance / (2.0 * variance)
    return gain


def log_gain_at_distance_zero(variance: Array, variance_after: Array) -> Array:
    """Return `log_gain_at_distance` at distance 0."""
    gain: Array = np.log(np.sqrt(variance) - np.sqrt(variance_after))
    return gain


def log_gain_from_posterior(distance: Array, variance: Array, judgments: npt.ArrayLike) -> Array:
    """Return `log_gain_at_distance` by the posterior's variance > 0 after this many judgments.

    It is for uses without observed moves of scores.
    """
    weight = np.asarray(judgments, np.float64) + PRIOR_JUDGMENTS
    return log_gain_at_distance(distance, variance, variance * weight / (weight + 1.0))
