"""Long-form arrays, one entry per judgment, checked once before any mathematics."""

from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers


def validate_numbers(name: str, values: npt.ArrayLike, count: int | None = None) -> tuple[Integers, int]:
    """The numbers as an array (n,) of intp, and how many things are numbered.

    values: whole numbers (n,), each from 0 to count - 1; count defaults to 1 + the largest, 0 when n = 0.
    Raises ValueError for another shape, for what is not a whole number, and for a number outside the range.
    """
    numbers = _validate_whole_numbers(name, values)
    if count is None:
        count = int(numbers.max()) + 1 if len(numbers) else 0
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
        raise ValueError(f"{name} are numbered from 0 to {count - 1}, but {numbers.min()} to {numbers.max()} occur")
    return numbers, count


def validate_outcomes(values: npt.ArrayLike) -> Integers:
    """Outcomes (n,) as intp: +1 the first is preferred, 0 a tie, -1 the second; ValueError for any other number."""
    outcomes = _validate_whole_numbers("outcomes", values)
    if len(outcomes) and (outcomes.min() < -1 or outcomes.max() > 1):
        raise ValueError(f"outcomes are -1, 0 or 1, but {outcomes.min()} to {outcomes.max()} occur")
    return outcomes


def validate_finite(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The values as float64 (n,); ValueError for another shape, NaN or an infinity."""
    floats = np.asarray(values, dtype=np.float64)
    if floats.ndim != 1:
        raise ValueError(f"{name} is an array of shape (n,), not {floats.shape}")
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} must be finite")
    return floats


def check_equal_length(**columns: npt.NDArray[Any]) -> None:
    """Raises ValueError unless all columns are equally long; names them and their lengths."""
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise ValueError(f"one entry per judgment is needed in every array, but the lengths are: {lengths}")


def sum_by_number(numbers: Integers, values: Array, count: int) -> Array:
    """For each number from 0 to count - 1 the sum of its values, (count,); numbers and values (n,)."""
    return np.bincount(numbers, weights=values, minlength=count).astype(np.float64, copy=False)


def _validate_whole_numbers(name: str, values: npt.ArrayLike) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} is an array of shape (n,), not {array.shape}")
    if len(array) and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be whole numbers, not {array.dtype}")
    return array.astype(np.intp, copy=False)
