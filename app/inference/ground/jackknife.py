"""Bands by the jackknife (Efron & Stein 1981): the figure again, each time without one of those who answered.

For figures of what many people said of the same items, compared with a truth. To draw the people again, with
replacement, would count some of them twice and others never, so that scores were worse than those that there are, and
such a bootstrap lies almost wholly below the figure.
"""

import numpy as np
from scipy.stats import t

from app.inference.ground.arrays import Array, checked_level

SHARP = 1 - 1e-9  # a correlation of 1 has no place on Fisher's scale


def standard_error(without: Array) -> Array:
    """Of a figure without each of P people in turn, (P, ...), P >= 2: its standard error, (...)."""
    people = len(without)
    apart = without - without.mean(axis=0)
    error: Array = np.sqrt((people - 1) / people * (apart * apart).sum(axis=0))
    return error


def correlation_band(whole: Array, without: Array, level: float = 0.95) -> tuple[Array, Array]:
    """The band of correlations, (...), which are those in `without`, (P, ...), when one of P people is left out.

    On Fisher's scale, so that it stays in [-1, 1], and by Student's t of P - 1, as few people tell little about how
    people differ. NaN for fewer than two people. Raises ValueError for a level outside (0, 1).
    """
    tail = (1.0 + checked_level(level)) / 2.0
    if len(without) < 2:
        return np.full_like(whole, np.nan), np.full_like(whole, np.nan)
    middle = fisher(whole)
    reach = t.ppf(tail, len(without) - 1) * standard_error(fisher(without))
    return np.tanh(middle - reach), np.tanh(middle + reach)


def fisher(correlation: Array) -> Array:
    """The scale on which a correlation is about Normal, with the same spread wherever it lies."""
    z: Array = np.arctanh(np.clip(correlation, -SHARP, SHARP))
    return z
