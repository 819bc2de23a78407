"""Bands by the jackknife (Efron & Stein 1981): the figure again, each time without one of those who answered.

For figures of what many people said of the same items, compared with a truth. To draw the people again, with
replacement, would count some of them twice and others never, so that scores were worse than those that there are, and
such a bootstrap lies almost wholly below the figure (`python -m benchmarks.bands_of_people`).
"""

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from app.inference.ground.arrays import Array, Mask, validate_interval_level

MAX_CORRELATION = 1 - 1e-9  # a correlation of 1 has no place on Fisher's scale


def jackknife_error(leave_one_out: Array, is_present: Mask) -> Array:
    """Of a figure without each of P people in turn, (P, ...): its standard error, (...), by those who are `there`,
    (P, ...), as others change nothing; NaN for fewer than two.
    """
    people = is_present.sum(axis=0)
    few = people < 2
    mean = np.where(is_present, leave_one_out, 0.0).sum(axis=0) / np.maximum(people, 1)
    deviations = np.where(is_present, leave_one_out - mean, 0.0)
    error: Array = np.sqrt((people - 1) / np.maximum(people, 1) * (deviations * deviations).sum(axis=0))
    return np.where(few, np.nan, error)


def band_half_width(standard_error: Array, people_count: npt.ArrayLike, level: float = 0.95) -> Array:
    """How far a band goes to either side by this standard error, (...): by Student's t, as few people, (...), tell
    little about how people differ. Raises ValueError for a level outside (0, 1).
    """
    freedom = np.maximum(np.asarray(people_count) - 1, 1)
    half_width: Array = t.ppf((1.0 + validate_interval_level(level)) / 2.0, freedom) * standard_error
    return half_width


def correlation_band(
    correlation: Array, leave_one_out: Array, is_present: Mask, level: float = 0.95
) -> tuple[Array, Array]:
    """The band of correlations, (...), which are those in `without`, (P, ...), when one of P people is left out; on
    Fisher's scale, so that it stays in [-1, 1]. Otherwise as `standard_error` and `reach`.
    """
    middle = fisher_z(correlation)
    half_width = band_half_width(jackknife_error(fisher_z(leave_one_out), is_present), is_present.sum(axis=0), level)
    return np.minimum(np.tanh(middle - half_width), correlation), np.maximum(np.tanh(middle + half_width), correlation)


def fisher_z(correlation: Array) -> Array:
    """The scale on which a correlation is about Normal, with the same spread wherever it lies."""
    z: Array = np.arctanh(np.clip(correlation, -MAX_CORRELATION, MAX_CORRELATION))
    return z
