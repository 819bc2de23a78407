"""Position of the line through the scale: at a threshold, or below the best items."""

from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np

from app.selection.rule import ItemStatus, ItemValues


class ScaleLine(Protocol):
    """A line through the scale."""

    @property
    def position(self) -> float: ...

    def update_position_for_item(self, item: int) -> None:
        """Update an item whose score has changed, or that has left the pool or come back."""


def number_of_best_items_but_not_all(wanted_count: int, size: int) -> int:
    """Return how many of `size` items are the best: as many as are wanted, but never all of them."""
    return max(1, min(wanted_count, size - 1))


class ThresholdLine:
    """A line at a fixed score."""

    def __init__(self, position: float) -> None:
        self.position = position

    def update_position_for_item(self, item: int) -> None:
        """Do nothing: the line is fixed."""


class BelowBestLine:
    """A line midway between the k-th and the (k + 1)-th best score of the items that count.

    The items of the goal count: those in the pool, also settled, that are asked about. The best are in one heap and the
    others in another, each with outdated entries, so the line is found without examining all items.
    """

    def __init__(self, values: ItemValues, best_count: int, never_drawn: Collection[int] = ()) -> None:
        """Arrange the items; their values are shared with the caller.

        `best_count` is k, see `number_of_best_items_but_not_all`. `never_drawn` are the numbers of items that are not
        asked about.
        """
        self._score, self._status = values.score, values.status
        self._wanted, self._never = best_count, frozenset(never_drawn)
        self._at: float | None = None
        self._rebuild_heaps()

    @property
    def position(self) -> float:
        if self._at is None:  # a HIT's companions are drawn at the same line as its leader
            self._at = self._compute_line_position()
        return self._at

    def update_position_for_item(self, item: int) -> None:
        """Update an item whose score has changed, or that has left the pool or come back. O(log N)."""
        self._at = None
        counts = not self._status.item(item) & ItemStatus.GONE and item not in self._never
        self._size += counts - self._counts.item(item)
        self._counts[item] = counts
        if counts:
            self._push_item_to_heap_of_its_side(item)
        elif self._is_best[item]:
            self._set_is_best_and_count(item, is_best=False)
        if len(self._best) + len(self._rest) > 2 * len(self._score) + 64:
            self._rebuild_heaps()

    def _compute_line_position(self) -> float:
        if self._size < 2:  # nobody has to be told apart
            return float(self._score[self._counts].sum())
        self._rebalance_heaps()
        middle: float = (self._best[0][0] - self._rest[0][0]) / 2  # the scores of the others are kept as negative ones
        return middle

    def _rebuild_heaps(self) -> None:
        self._counts = self._status & ItemStatus.GONE == 0
        self._counts[[*self._never]] = False
        counting = np.flatnonzero(self._counts)
        order = counting[np.argsort(-self._score[counting], kind="stable")]
        self._size, self._bests = (
            len(order),
            min(number_of_best_items_but_not_all(self._wanted, len(order)), len(order)),
        )
        self._is_best = np.zeros(len(self._score), dtype=bool)
        self._is_best[order[: self._bests]] = True
        scores = self._score.tolist()
        self._best = [(scores[item], item) for item in order[: self._bests].tolist()]
        self._rest = [(-scores[item], item) for item in order[self._bests :].tolist()]
        heapify(self._best)
        heapify(self._rest)

    def _push_item_to_heap_of_its_side(self, item: int) -> None:
        score = self._score.item(item)
        if self._is_best[item]:
            heappush(self._best, (score, item))
        else:
            heappush(self._rest, (-score, item))

    def _set_is_best_and_count(self, item: int, *, is_best: bool) -> None:
        self._bests += is_best - self._is_best.item(item)
        self._is_best[item] = is_best

    def _rebalance_heaps(self) -> None:
        """Move items between the heaps until the number of best items and the order are right."""
        k = number_of_best_items_but_not_all(self._wanted, self._size)
        self._drop_stale_heap_entries()
        while self._bests < k:
            self._move_last_to_other_heap(self._rest, best=True)
        while self._bests > k:
            self._move_last_to_other_heap(self._best, best=False)
        while self._best[0][0] < -self._rest[0][0]:
            self._move_last_to_other_heap(self._rest, best=True)
            self._move_last_to_other_heap(self._best, best=False)

    def _move_last_to_other_heap(self, heap: list[tuple[float, int]], *, best: bool) -> None:
        """Move the last item of one heap to the other."""
        _, item = heappop(heap)
        self._set_is_best_and_count(item, is_best=best)
        self._push_item_to_heap_of_its_side(item)
        self._drop_stale_heap_entries()

    def _drop_stale_heap_entries(self) -> None:
        while self._best and not self._is_current_heap_entry(self._best[0][1], self._best[0][0], is_best=True):
            heappop(self._best)
        while self._rest and not self._is_current_heap_entry(self._rest[0][1], -self._rest[0][0], is_best=False):
            heappop(self._rest)

    def _is_current_heap_entry(self, item: int, score: float, *, is_best: bool) -> bool:
        """Return whether the item is still on this side, with this score."""
        return bool(self._counts[item] and self._is_best[item] == is_best and self._score.item(item) == score)
