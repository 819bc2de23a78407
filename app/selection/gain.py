"""What another judgment of an item is expected to settle of which side of a line it lies on.

An item of estimate m and standard error s, which another judgment would bring to s', gains phi((m - c) / s) (s - s'),
where c is the line and phi the normal density: greedy OCBA-m (Chen, He, Fu & Lee 2008).
"""

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array

PRIOR_MOVES = 10.0  # that what is assumed of v at first weighs
LEAST_NOISE = 1e-6  # v, in variances before the first judgment: where nobody has disagreed
PRIOR_JUDGMENTS = 3.0
"""A Beta posterior after n judgments has a variance of m(1 - m) / (n + 3): the next one divides it by (n + 4) / (n + 3)
and leaves the mean where it is expected to be. Other laws begin with about as much.
"""


class Noise:
    """The variance v of one judgment around its item's score, learned from how far scores move.

    The n-th judgment moves a mean by 1/n of its distance to the mean before, so n (n - 1) times the square of the move
    is what it adds to the item's sum of squares (Welford 1962): for `easl` v is the variance within items, pooled. For
    a law whose scores are no means it is what they move as if they were.
    """

    def __init__(self, first: float) -> None:
        """first: the variance before the first judgment, > 0. Until scores move, v is assumed to be half of it."""
        self.first = first
        self._squares, self._moves = PRIOR_MOVES * first / 2, PRIOR_MOVES

    @property
    def variance(self) -> float:
        """v, on the square of the scale of the scores; never 0."""
        return max(self._squares / self._moves, LEAST_NOISE * self.first)

    def learn(self, judgments: int, move: float) -> None:
        """A judgment came, after which an item has so many, at least 2, and moved its score so far."""
        self._squares += judgments * (judgments - 1) * move * move
        self._moves += 1.0

    def of(self, judgments: npt.ArrayLike) -> tuple[Array, Array]:
        """s^2 of items with so many judgments, and s'^2 after another one."""
        n, v = np.asarray(judgments, np.float64), self.variance
        begun = n > 0
        after = np.where(begun, v / (n + 1.0), self.first * v / (self.first + v))
        return np.where(begun, v / np.maximum(n, 1.0), self.first), after


def gain_of(distance: Array, variance: Array, after: Array) -> Array:
    """The logarithm of what another judgment gains, up to a constant. Arrays that broadcast: distances from the line,
    s^2 and s'^2 < s^2.
    """
    gain: Array = gain_on_line(variance, after) - distance * distance / (2.0 * variance)
    return gain


def gain_on_line(variance: Array, after: Array) -> Array:
    """`gain_of` at no distance."""
    gain: Array = np.log(np.sqrt(variance) - np.sqrt(after))
    return gain


def log_gain(distance: Array, variance: Array, judgments: npt.ArrayLike) -> Array:
    """`gain_of` by the posterior's variance > 0 after so many judgments, for whom nobody has seen scores move."""
    known = np.asarray(judgments, np.float64) + PRIOR_JUDGMENTS
    return gain_of(distance, variance, variance * known / (known + 1.0))
