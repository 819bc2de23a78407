"""Sets of items that a draw leaves out: a set of numbers if they are few, a mask if they may be most of a campaign."""

from array import array
from collections.abc import Iterator, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, filterfalse
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt


class MaskedItems(MutableSet[int]):
    """A set of items in one byte for each item of the campaign; a copy of a million takes microseconds.

    It holds only items below the length of its mask, which are all that a draw can reach.
    """

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        """Copy the mask: true at the items of the set, (N,)."""
        self._mask = mask.copy()
        self._size = int(np.count_nonzero(mask))

    def __contains__(self, item: object) -> bool:
        return isinstance(item, int) and item < len(self._mask) and self._mask.item(item)

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._mask).tolist())

    def __len__(self) -> int:
        return self._size

    def __or__(self, others: AbstractSet[Any]) -> Self:
        union = type(self)(self._mask)
        for item in others:
            union.add(item)
        return union

    __ror__ = __or__

    def __rsub__(self, others: AbstractSet[int]) -> set[int]:
        return {item for item in others if item not in self}

    def add(self, value: int) -> None:
        """Add an item."""
        if value < len(self._mask) and not self._mask[value]:
            self._mask[value] = True
            self._size += 1

    def discard(self, value: int) -> None:
        """Remove an item if it is there."""
        if value in self:
            self._mask[value] = False
            self._size -= 1

    def numbers_outside(self, numbers: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the items among these that are not in the set, in the same order."""
        return numbers[~self._mask[numbers]]

    def items_outside(self, buckets: Sequence["array[int]"]) -> "array[int]":
        """Return the items of these buckets that are not in the set, in the order of the buckets."""
        numbers = np.concatenate(
            [np.frombuffer(bucket, np.intc) for bucket in buckets if bucket] or [np.empty(0, np.intc)]
        )
        others = array("i")
        others.frombytes(numbers[~self._mask[numbers]].tobytes())
        return others


ItemSet: TypeAlias = set[int] | MaskedItems


def items_not_in_set(buckets: Sequence["array[int]"], barred: ItemSet) -> list[int]:
    """Return the items of these buckets that are not in a set, in the order of the buckets."""
    if isinstance(barred, set):  # much faster to ask than whether it is of a class with abstract methods
        return [*filterfalse(barred.__contains__, chain.from_iterable(buckets))]
    return barred.items_outside(buckets).tolist()


def numbers_not_in_set(numbers: npt.NDArray[np.intp], barred: ItemSet) -> npt.NDArray[np.intp]:
    """Return the items among these that are not in a set, in the same order, in one pass without Python's loops."""
    if isinstance(barred, set):
        return numbers[~np.isin(numbers, np.fromiter(barred, np.intp, len(barred)))] if barred else numbers
    return barred.numbers_outside(numbers)
