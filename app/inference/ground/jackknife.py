"""Jackknife bands (Efron & Stein 1981): the figure is recomputed without each of the annotators in turn.

They are for figures of many annotators' answers to the same items, compared with a truth. A bootstrap over the
annotators would count some of them twice and others never, so that scores would be worse than the real ones; such a
bootstrap lies almost wholly below the figure (`python -m benchmarks.bands_of_people`).
"""

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from app.inference.ground.arrays import Array, Mask, valid_interval_level_or_raise

MAX_CORRELATION = 1 - 1e-9  # a correlation of 1 has no place on Fisher's scale


def jackknife_error(leave_one_out: Array, is_present: Mask) -> Array:
    """Standard error of a figure, (...), from its values without each of P annotators in turn.

    Args:
        leave_one_out: The figure without each annotator, (P, ...).
        is_present: Which annotators contribute to the figure, (P, ...); the others change nothing.

    Returns:
        The standard error, (...); NaN for fewer than two annotators.

    """
    people = is_present.sum(axis=0)
    few = people < 2
    mean = np.where(is_present, leave_one_out, 0.0).sum(axis=0) / np.maximum(people, 1)
    deviations = np.where(is_present, leave_one_out - mean, 0.0)
    error: Array = np.sqrt((people - 1) / np.maximum(people, 1) * (deviations * deviations).sum(axis=0))
    return np.where(few, np.nan, error)


def half_width_of_student_t_band(standard_error: Array, people_count: npt.ArrayLike, level: float = 0.95) -> Array:
    """Half the width of a band with this standard error, (...).

    It uses Student's t, since few annotators, (...), say little about how annotators differ. Raises ValueError for a
    level outside (0, 1).
    """
    freedom = np.maximum(np.asarray(people_count) - 1, 1)
    half_width: Array = stdtrit(freedom, (1.0 + valid_interval_level_or_raise(level)) / 2.0) * standard_error
    return half_width


def ends_of_jackknife_correlation_band(
    correlation: Array, leave_one_out: Array, is_present: Mask, level: float = 0.95
) -> tuple[Array, Array]:
    """Band of correlations, computed on Fisher's scale so that it stays in [-1, 1].

    Args:
        correlation: The correlations, (...).
        leave_one_out: The correlations without each of P annotators, (P, ...).
        is_present: As in `jackknife_error`.
        level: As in `half_width_of_student_t_band`.

    """
    middle = fisher_z(correlation)
    half_width = half_width_of_student_t_band(
        jackknife_error(fisher_z(leave_one_out), is_present), is_present.sum(axis=0), level
    )
    return np.minimum(np.tanh(middle - half_width), correlation), np.maximum(np.tanh(middle + half_width), correlation)


def fisher_z(correlation: Array) -> Array:
    """Fisher's transformation: a correlation is about Normal on this scale, with the same spread everywhere."""
    z: Array = np.arctanh(np.clip(correlation, -MAX_CORRELATION, MAX_CORRELATION))
    return z
