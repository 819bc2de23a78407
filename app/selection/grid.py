"""Sparse grid of cells without borders: only cells that hold something exist."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np

from app.inference.ground.arrays import Array

K = TypeVar("K", bound=Hashable)


class SparseGrid(Generic[K]):
    """Numbers of cells, and the values of each cell by number, together in one array.

    Attributes:
        number: The number of each existing cell, by its key.
        keys: The key of each number, also of closed cells.
        known: (W, C) the values; a column has the empty values where there is no cell.

    """

    def __init__(self, cell_values: Callable[[K], tuple[float, ...]], *, empty_values: tuple[float, ...]) -> None:
        """Make an empty grid; `cell_values` returns the W values of a cell, by its key."""
        self.number_by_key: dict[K, int] = {}
        self.keys: list[K] = []
        self.values: Array = np.empty((len(empty_values), 0))
        self._known_of, self._nowhere = cell_values, empty_values
        self._unused: list[int] = []

    def open_new_cell_and_return_number(self, key: K) -> int:
        """Return the number of a new cell: one that is unused."""
        if not self._unused:
            self._allocate_more_cell_numbers(key)
        cell = self._unused.pop()
        self.keys[cell] = key
        self.number_by_key[key] = cell
        self.values[:, cell] = self._known_of(key)
        return cell

    def release_empty_cell(self, key: K) -> None:
        """Release a cell that is empty, so that another key can have it."""
        cell = self.number_by_key.pop(key)
        self.values[:, cell] = self._nowhere
        self._unused.append(cell)

    def _allocate_more_cell_numbers(self, key: K) -> None:
        """Add numbers, a quarter at a time so that growing stays cheap."""
        added = 16 + len(self.keys) // 4
        self._unused += range(len(self.keys), len(self.keys) + added)
        self.keys += [key] * added
        self.values = np.column_stack([self.values, np.tile(self._nowhere, (added, 1)).T])
