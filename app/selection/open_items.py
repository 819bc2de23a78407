"""Base class of every index: the items' newest values, and which items still want judgments."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.rule import Counts


class OpenItems(ABC):
    """Scores, variances and judgments, (N,), for reading, and the items that still want judgments."""

    def __init__(
        self,
        score: npt.ArrayLike,
        variance: npt.ArrayLike,
        judgments: npt.ArrayLike,
        *,
        judgments_per_item: int,
        min_items: int = 1,
        never_drawn: Collection[int] = (),
    ) -> None:
        """Copy the arrays (N,): real scores, variances > 0, judgments >= 0.

        Each item wants `judgments_per_item`, except those in `never_drawn`. A HIT has at least `min_items` items.
        """
        self.score: Array = np.array(score, dtype=np.float64)
        self.variance: Array = np.array(variance, dtype=np.float64)
        self.judgments: Counts = np.array(judgments, dtype=np.int64)
        self._wanted, self._fewest, self._never = judgments_per_item, min_items, frozenset(never_drawn)

    @property
    @abstractmethod
    def open_count(self) -> int:
        """Number of items that want judgments."""

    def update(
        self,
        numbers: Collection[int],
        score: Collection[float],
        variance: Collection[float],
        judgments: Collection[int],
    ) -> None:
        """Update the values of a few items: four sequences of one length. Microseconds per item."""
        for item, s, v, count in zip(numbers, score, variance, judgments, strict=True):
            self._update_item(int(item), s, v, count)

    def full_items(self, open_leases: Mapping[int, int]) -> set[int]:
        """Return the items that have all judgments, counting those of open leases, given the number of leases by
        item.
        """
        return {item for item, leases in open_leases.items() if self.judgments.item(item) + leases >= self._wanted}

    def open_items(self) -> list[int]:
        """Return the items that want judgments, in numerical order. O(N)."""
        return np.flatnonzero(fill_never_drawn(self.judgments, self._never, self._wanted) < self._wanted).tolist()

    def has_items_after(
        self, items: Collection[int], *, seen: Collection[int], allow_seen: bool, barred: Collection[int] = ()
    ) -> bool:
        """Return whether an annotator can be asked anything after a HIT of these items. O(len(seen))."""
        if allow_seen:
            ending = [item for item in items if self._is_open(item) and self.judgments.item(item) == self._wanted - 1]
            ending += [item for item in {*barred}.difference(ending) if self._is_open(item)]
        else:
            ending = [item for item in {*items, *seen} if self._is_open(item)]
        return self.open_count >= len(ending) + self._fewest

    @abstractmethod
    def _update_item(self, item: int, score: float, variance: float, judgments: int) -> None:
        """Update the values of an item."""

    def _store_values(self, item: int, score: float, variance: float, judgments: int) -> None:
        self.score[item], self.variance[item], self.judgments[item] = score, variance, judgments

    def _is_open(self, item: int) -> bool:
        return self.judgments.item(item) < self._wanted and item not in self._never


def fill_never_drawn(judgments: Counts, never_drawn: Collection[int], judgments_per_item: int) -> Counts:
    """Return the judgments, (N,), as if the items that are never drawn had all that are wanted."""
    filled = judgments.copy()
    filled[[*never_drawn]] = judgments_per_item
    return filled
