"""Cells of a plane without borders, of which only those that hold something exist."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np

from app.inference.ground.arrays import Array

K = TypeVar("K", bound=Hashable)


class Plane(Generic[K]):
    """Numbers for cells, and by its number what is known of each: of all of them together in one array.

    number: by its key, of each cell that there is. keys: by numbers, those of cells that are gone among them. known:
    (W, C); a column is `nowhere` where there is no cell.
    """

    def __init__(self, known_of: Callable[[K], tuple[float, ...]], *, nowhere: tuple[float, ...]) -> None:
        """known_of: the W numbers that are known of a cell, by its key."""
        self.number: dict[K, int] = {}
        self.keys: list[K] = []
        self.known: Array = np.empty((len(nowhere), 0))
        self._known_of, self._nowhere = known_of, nowhere
        self._unused: list[int] = []

    def open(self, key: K) -> int:
        """The number of a new cell: one that is not used now."""
        if not self._unused:
            self._make_room(key)
        cell = self._unused.pop()
        self.keys[cell] = key
        self.number[key] = cell
        self.known[:, cell] = self._known_of(key)
        return cell

    def close(self, key: K) -> None:
        """It holds nothing any more."""
        cell = self.number.pop(key)
        self.known[:, cell] = self._nowhere
        self._unused.append(cell)

    def _make_room(self, key: K) -> None:
        """More numbers, a quarter at a time so that growing stays cheap."""
        more = 16 + len(self.keys) // 4
        self._unused += range(len(self.keys), len(self.keys) + more)
        self.keys += [key] * more
        self.known = np.column_stack([self.known, np.tile(self._nowhere, (more, 1)).T])
