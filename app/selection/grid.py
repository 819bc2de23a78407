"""Cells of a plane without borders, of which only those that hold something exist."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np

from app.inference.ground.arrays import Array

K = TypeVar("K", bound=Hashable)


class SparseGrid(Generic[K]):
    """Numbers for cells, and by its number what is known of each: of all of them together in one array.

    number: by its key, of each cell that there is. keys: by numbers, those of cells that are gone among them. known:
    (W, C); a column is `nowhere` where there is no cell.
    """

    def __init__(self, cell_values: Callable[[K], tuple[float, ...]], *, empty_values: tuple[float, ...]) -> None:
        """known_of: the W numbers that are known of a cell, by its key."""
        self.number_by_key: dict[K, int] = {}
        self.keys: list[K] = []
        self.values: Array = np.empty((len(empty_values), 0))
        self._known_of, self._nowhere = cell_values, empty_values
        self._unused: list[int] = []

    def open_cell(self, key: K) -> int:
        """The number of a new cell: one that is not used now."""
        if not self._unused:
            self._add_cell_numbers(key)
        cell = self._unused.pop()
        self.keys[cell] = key
        self.number_by_key[key] = cell
        self.values[:, cell] = self._known_of(key)
        return cell

    def close_cell(self, key: K) -> None:
        """It holds nothing any more."""
        cell = self.number_by_key.pop(key)
        self.values[:, cell] = self._nowhere
        self._unused.append(cell)

    def _add_cell_numbers(self, key: K) -> None:
        """More numbers, a quarter at a time so that growing stays cheap."""
        added = 16 + len(self.keys) // 4
        self._unused += range(len(self.keys), len(self.keys) + added)
        self.keys += [key] * added
        self.values = np.column_stack([self.values, np.tile(self._nowhere, (added, 1)).T])
