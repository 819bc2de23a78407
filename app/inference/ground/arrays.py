"""Array types of all methods, and the checks and computations that they share."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


def divide_or_nan(numerator: Array, denominator: Array) -> Array:
    """Return the quotient, NaN where the denominator is 0."""
    nothing = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    result: Array = np.divide(numerator, denominator, out=nothing, where=denominator > 0.0)
    return result


def portable_exp(exponent: Array) -> Array:
    """Return powers of e with the same bits on every processor.

    NumPy's own function uses other instructions where a processor has them, and then rounds differently. A replay on
    another machine must reproduce the posteriors of a law to the last bit.
    """
    return np.asarray(scipy.special.inv_boxcox(exponent, 0.0), np.float64)


def portable_log(number: Array) -> Array:
    """Return natural logarithms, with the same bits on every processor; see `portable_exp`."""
    return np.asarray(scipy.special.boxcox(number, 0.0), np.float64)


def valid_interval_level_or_raise(level: float) -> float:
    """Return the level of an interval. Raises ValueError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"the level of an interval must lie between 0 and 1, not {level}")
    return level


def distinct_row_positions_with_codes(columns: Sequence[Array]) -> tuple[Integers, Integers]:
    """Return the distinct rows of these columns, compared bit by bit.

    Args:
        columns: K columns, (N,) each.

    Returns:
        The position at which each distinct row occurs first, (D,), and the number of each row's distinct row, (N,).

    """
    rows = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        values, codes = np.unique(np.ascontiguousarray(column).view(np.int64), return_inverse=True)
        rows = np.unique(rows * len(values) + codes, return_inverse=True)[1]
    _, first, codes = np.unique(rows, return_index=True, return_inverse=True)
    return first, codes
