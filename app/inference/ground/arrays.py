"""Arrays of numbers as all methods take them, and what is checked and computed of them everywhere."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import boxcox, inv_boxcox

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


def divide_or_nan(numerator: Array, denominator: Array) -> Array:
    """The quotient of the two, NaN where `below` is 0."""
    nothing = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    result: Array = np.divide(numerator, denominator, out=nothing, where=denominator > 0.0)
    return result


def portable_exp(exponent: Array) -> Array:
    """Powers of e, with the same bits on every processor: NumPy's own takes other instructions where there are
    some, and rounds otherwise. What a law computes is to be found again by a replay on another machine.
    """
    return np.asarray(inv_boxcox(exponent, 0.0), np.float64)


def portable_log(number: Array) -> Array:
    """Natural logarithms, with the same bits on every processor, as `exp`."""
    return np.asarray(boxcox(number, 0.0), np.float64)


def validate_interval_level(level: float) -> float:
    """The level of an interval; raises ValueError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"the level of an interval must lie between 0 and 1, not {level}")
    return level


def distinct_rows(columns: Sequence[Array]) -> tuple[Integers, Integers]:
    """The rows of these columns, (N,) each, that differ in a bit: where each of them stands first, (D,), and which
    every row is, (N,).
    """
    rows = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        values, codes = np.unique(np.ascontiguousarray(column).view(np.int64), return_inverse=True)
        rows = np.unique(rows * len(values) + codes, return_inverse=True)[1]
    _, first, codes = np.unique(rows, return_index=True, return_inverse=True)
    return first, codes
