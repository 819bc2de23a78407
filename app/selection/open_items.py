"""Base class of every index: the items' newest values, and which items still want judgments."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from app.selection.rule import ItemValues, SelectionSettings


class OpenItems(ItemValues, ABC):
    """Values of all items, for reading, and the items that still want judgments."""

    def __init__(self, values: ItemValues, settings: SelectionSettings) -> None:
        """Copy the values."""
        super().__init__(values.score.copy(), values.variance.copy(), values.judgments.copy(), values.status)
        self._wanted, self._fewest = settings.judgments_per_item, settings.min_items
        self._never = frozenset(settings.never_drawn)
        # Judgments that each item in the pool still wants, those that are never drawn too; 0 for all other items.
        self._left = np.where(self.status > 0, 0, self._wanted - self.judgments).astype(np.int32)

    @property
    @abstractmethod
    def open_item_count(self) -> int:
        """Number of items that want judgments."""

    def update(
        self,
        numbers: Collection[int],
        score: Collection[float],
        variance: Collection[float],
        judgments: Collection[int],
        status: Collection[int] | None = None,
    ) -> None:
        """Update the values of a few items, as `rule.Index.update` says. Microseconds per item."""
        if status is None:
            status = [self.status.item(item) for item in numbers]
        for item, s, v, count, item_status in zip(numbers, score, variance, judgments, status, strict=True):
            self._update_item(int(item), s, v, count, item_status)

    def full_items(self, open_leases: Mapping[int, int]) -> set[int]:
        """Return the items that have all judgments, counting those of open leases, given the number of leases by
        item.
        """
        return {item for item, leases in open_leases.items() if leases >= self._left.item(item)}

    def open_items(self) -> list[int]:
        """Return the items that want judgments, in numerical order. O(N)."""
        numbers: list[int] = self.open_item_numbers().tolist()
        return numbers

    def open_item_numbers(self) -> npt.NDArray[np.intp]:
        """Return the items that want judgments as an array. A list of a million numbers would take 36 MB."""
        is_open = (self.status == 0) & (self.judgments < self._wanted)
        is_open[[number for number in self._never if number < len(is_open)]] = False
        return np.flatnonzero(is_open)

    def has_open_items_left_after_hit(
        self,
        items: Collection[int],
        *,
        seen_items: Collection[int],
        seen_as_last_resort: bool,
        barred: Collection[int] = (),
        never_asked: npt.NDArray[np.bool_] | None = None,
    ) -> bool:
        """Return whether an annotator can be asked anything after a HIT of these items.

        O(1) if many items are left, else O(len(seen)); with `never_asked` also one pass over arrays of all items.
        """
        open_count = self.open_item_count
        if never_asked is None:
            may_end = len(items) + len(barred if seen_as_last_resort else seen_items)
            if open_count >= may_end + self._fewest:
                return True
        if never_asked is not None:
            items, seen_items, barred = (
                [item for item in group if not never_asked[item]] for group in (items, seen_items, barred)
            )
            wanted = (self._left[: len(never_asked)] > 0) & ~never_asked
            open_count = int(np.count_nonzero(wanted)) - sum(wanted.item(item) for item in self._never)
        if seen_as_last_resort:
            ending = [item for item in items if self._wants_judgments(item) and self._left.item(item) == 1]
            ending += [item for item in {*barred}.difference(ending) if self._wants_judgments(item)]
        else:
            ending = [item for item in {*items, *seen_items} if self._wants_judgments(item)]
        return open_count >= len(ending) + self._fewest

    @abstractmethod
    def _update_item(self, item: int, score: float, variance: float, judgments: int, status: int) -> None:
        """Update the values of an item."""

    def _store_values(self, item: int, score: float, variance: float, judgments: int, status: int) -> None:
        self.score[item], self.variance[item], self.judgments[item] = score, variance, judgments
        self.status[item], self._left[item] = status, 0 if status else self._wanted - judgments

    def _wants_judgments(self, item: int) -> bool:
        return self._left.item(item) > 0 and item not in self._never
