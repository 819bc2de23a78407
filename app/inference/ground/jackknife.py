"""Bands by the jackknife (Efron & Stein 1981): the figure again, each time without one of those who answered.

For figures of what many people said of the same items, compared with a truth. To draw the people again, with
replacement, would count some of them twice and others never, so that scores were worse than those that there are, and
such a bootstrap lies almost wholly below the figure (`python -m benchmarks.bands_of_people`).
"""

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from app.inference.ground.arrays import Array, Mask, checked_level

SHARP = 1 - 1e-9  # a correlation of 1 has no place on Fisher's scale


def standard_error(without: Array, there: Mask) -> Array:
    """Of a figure without each of P people in turn, (P, ...): its standard error, (...), by those who are `there`,
    (P, ...), as others change nothing; NaN for fewer than two.
    """
    people = there.sum(axis=0)
    few = people < 2
    mean = np.where(there, without, 0.0).sum(axis=0) / np.maximum(people, 1)
    apart = np.where(there, without - mean, 0.0)
    error: Array = np.sqrt((people - 1) / np.maximum(people, 1) * (apart * apart).sum(axis=0))
    return np.where(few, np.nan, error)


def reach(error: Array, people: npt.ArrayLike, level: float = 0.95) -> Array:
    """How far a band goes to either side by this standard error, (...): by Student's t, as few people, (...), tell
    little about how people differ. Raises ValueError for a level outside (0, 1).
    """
    freedom = np.maximum(np.asarray(people) - 1, 1)
    far: Array = t.ppf((1.0 + checked_level(level)) / 2.0, freedom) * error
    return far


def correlation_band(whole: Array, without: Array, there: Mask, level: float = 0.95) -> tuple[Array, Array]:
    """The band of correlations, (...), which are those in `without`, (P, ...), when one of P people is left out; on
    Fisher's scale, so that it stays in [-1, 1]. Otherwise as `standard_error` and `reach`.
    """
    middle = fisher(whole)
    far = reach(standard_error(fisher(without), there), there.sum(axis=0), level)
    return np.minimum(np.tanh(middle - far), whole), np.maximum(np.tanh(middle + far), whole)


def fisher(correlation: Array) -> Array:
    """The scale on which a correlation is about Normal, with the same spread wherever it lies."""
    z: Array = np.arctanh(np.clip(correlation, -SHARP, SHARP))
    return z
