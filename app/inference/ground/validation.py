"""Checks of long-form arrays, one entry per judgment, before any mathematics."""

from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers


def index_array_and_count_or_raise(
    name: str, values: npt.ArrayLike, thing_count: int | None = None
) -> tuple[Integers, int]:
    """Return the numbers as an array (n,) of intp, and how many things are numbered.

    Args:
        name: The name of the array in error messages.
        values: Whole numbers (n,), each from 0 to count - 1.
        thing_count: How many things are numbered; default: 1 + the largest number, 0 when n = 0.

    Raises:
        ValueError: Another shape, a value that is no whole number, or a number outside the range.

    """
    numbers = _integer_vector_or_raise(name, values)
    if thing_count is None:
        thing_count = int(numbers.max()) + 1 if len(numbers) else 0
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < thing_count:
        raise ValueError(
            f"{name} are numbered from 0 to {thing_count - 1}, but {numbers.min()} to {numbers.max()} occur"
        )
    return numbers, thing_count


def outcome_vector_or_raise(values: npt.ArrayLike) -> Integers:
    """Return outcomes (n,) as intp: +1 the first is preferred, 0 a tie, -1 the second. ValueError for any other
    number.
    """
    outcomes = _integer_vector_or_raise("outcomes", values)
    if len(outcomes) and (outcomes.min() < -1 or outcomes.max() > 1):
        raise ValueError(f"outcomes are -1, 0 or 1, but {outcomes.min()} to {outcomes.max()} occur")
    return outcomes


def finite_vector_or_raise(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the values as float64 (n,). Raises ValueError for another shape, NaN or an infinity."""
    floats = np.asarray(values, dtype=np.float64)
    if floats.ndim != 1:
        raise ValueError(f"{name} is an array of shape (n,), not {floats.shape}")
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} must be finite")
    return floats


def refuse_columns_of_unequal_length(**columns: npt.NDArray[Any]) -> None:
    """Raise ValueError unless all columns are equally long; the message names them and their lengths."""
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise ValueError(f"one entry per judgment is needed in every array, but the lengths are: {lengths}")


def sum_values_of_each_number(numbers: Integers, values: Array, count: int) -> Array:
    """Return the sum of the values of each number from 0 to count - 1, (count,); numbers and values are (n,)."""
    return np.bincount(numbers, weights=values, minlength=count).astype(np.float64, copy=False)


def _integer_vector_or_raise(name: str, values: npt.ArrayLike) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} is an array of shape (n,), not {array.shape}")
    if len(array) and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be whole numbers, not {array.dtype}")
    return array.astype(np.intp, copy=False)
