"""Discriminations of annotators who compare items: their grid, their prior, and estimates from probabilities on it."""

from typing import Final, NamedTuple

import numpy as np

from app.inference.ground.arrays import Array

_STEP: Final = 0.2
DISCRIMINATIONS: Final = np.round(np.arange(-1.6, 3.01, _STEP), 1)
"""The grid of a_k, (G,)."""
_RANDOM: Final = int(np.flatnonzero(DISCRIMINATIONS == 0.0)[0])
KINDS: Final = 3
CAREFUL, AT_RANDOM, REVERSED = range(KINDS)
_CELL_ENDS: Final = np.append(DISCRIMINATIONS - _STEP / 2.0, DISCRIMINATIONS[-1] + _STEP / 2.0)
_INTERVAL_ENDS: Final = (0.025, 0.975)


class DiscriminationEstimates(NamedTuple):
    """Estimates of the a_k of K annotators.

    Attributes:
        mean: (K,) means.
        error: (K,) standard deviations.
        low: (K,) 2.5 % quantiles; the probability of a value of the grid is spread over the cell around it.
        high: (K,) 97.5 % quantiles.

    """

    mean: Array
    error: Array
    low: Array
    high: Array

    @classmethod
    def from_probabilities(cls, by_grid: Array) -> "DiscriminationEstimates":
        """Summarise probabilities of the values of the grid, (K, G), which sum to 1 for each annotator."""
        mean = by_grid @ DISCRIMINATIONS
        error = np.sqrt(np.maximum(by_grid @ DISCRIMINATIONS**2 - mean**2, 0.0))
        below_cell_ends = np.insert(by_grid.cumsum(axis=1), 0, 0.0, axis=1)
        quantiles = np.array([np.interp(_INTERVAL_ENDS, below, _CELL_ENDS) for below in below_cell_ends])
        return cls(mean, error, *quantiles.T)


def prior_matrix_of_kind_and_discrimination(kind_shares: Array, spread_squared: float) -> Array:
    """Return the prior of kind and a_k on the grid, (3, G), from the shares of the kinds and s^2."""
    densities = np.exp(-((DISCRIMINATIONS - np.array([[1.0], [-1.0]])) ** 2) / (2.0 * spread_squared))
    densities /= densities.sum(axis=1, keepdims=True)
    at_random = np.where(np.arange(len(DISCRIMINATIONS)) == _RANDOM, 1.0, 0.0)
    return np.asarray(kind_shares[:, None] * np.array([densities[0], at_random, densities[1]]))
