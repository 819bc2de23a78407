"""Position of the line through the scale: at a threshold, or below the best items."""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection
from typing import Protocol

import numpy as np

from app.inference.ground.arrays import Array
from app.selection.rule import ItemStatus, ItemValues

GONE = int(ItemStatus.GONE)  # flags are compared ten times as slowly
RANKS_NEAR_LINE = 1_000  # items on each side of the line whose scores are kept in order
MAX_SCORES_GROWTH = 4  # times as many scores as there are ranks near the line; of more, only the nearest are kept


class ScaleLine(Protocol):
    """A line through the scale."""

    @property
    def position(self) -> float: ...

    def update_position_for_item(self, item: int, old_score: float, old_status: int) -> None:
        """Update an item whose score has changed from the old one, or that has left the pool or come back."""


def best_item_count_but_not_all(wanted_count: int, size: int) -> int:
    """Return how many of `size` items are the best: as many as are wanted, but never all of them."""
    return max(1, min(wanted_count, size - 1))


class ThresholdLine:
    """A line at a fixed score."""

    def __init__(self, position: float) -> None:
        self.position = position

    def update_position_for_item(self, item: int, old_score: float, old_status: int) -> None:
        """Do nothing: the line is fixed."""


class BelowBestLine:
    """A line midway between the k-th and the (k + 1)-th best score of the items that count.

    The items of the goal count: those in the pool, also settled, that are asked about. Only the scores near the line
    are kept, in order and with their numbers of items, and moving the line to the next rank is one step. If it leaves
    these scores, others are kept, after a pass over all items.
    """

    def __init__(
        self,
        values: ItemValues,
        best_count: int,
        never_drawn: Collection[int] = (),
        *,
        ranks_near_line: int = RANKS_NEAR_LINE,
    ) -> None:
        """Arrange the items; their values are shared with the caller.

        `best_count` is k, see `best_item_count_but_not_all`. `never_drawn` are the numbers of items that are not
        asked about. `ranks_near_line` is the number of items on each side whose scores are kept, at least 1.
        """
        self._score, self._status = values.score, values.status
        self._wanted, self._never = best_count, frozenset(never_drawn)
        self._ranks_near_line = ranks_near_line
        self._at: float | None = None
        self._keep_scores_near_line()

    @property
    def position(self) -> float:
        if self._at is None:  # a HIT's companions are drawn at the same line as its leader
            self._at = self._compute_line_position()
        return self._at

    def update_position_for_item(self, item: int, old_score: float, old_status: int) -> None:
        """Update an item whose score has changed from the old one, or that has left the pool or come back.

        O(log of the scores that are kept).
        """
        if item in self._never:
            return
        self._at = None
        if not old_status & GONE:
            self._add_to_count_of_score(old_score, -1)
        if not self._status.item(item) & GONE:
            self._add_to_count_of_score(self._score.item(item), 1)
        if len(self._scores) > MAX_SCORES_GROWTH * self._ranks_near_line + 64:
            self._keep_scores_near_line()

    def _compute_line_position(self) -> float:
        if self._size < 2:  # nobody has to be told apart
            return float(self._scores_of_counting_items().sum())
        if not self._move_to_last_best_score():
            self._keep_scores_near_line()
            self._move_to_last_best_score()
        return (self._last_best + self._first_other) / 2

    def _scores_of_counting_items(self) -> Array:
        """Return the scores of the items that count, (M,)."""
        counts = self._status & GONE == 0
        counts[[*self._never]] = False
        scores: Array = self._score[counts]
        return scores

    def _keep_scores_near_line(self) -> None:
        """Find the k-th best score, and keep the scores near it."""
        scores = self._scores_of_counting_items()
        self._size = len(scores)
        last = self._size - best_item_count_but_not_all(self._wanted, self._size)  # its place from the lowest up
        low, high = last - self._ranks_near_line, last + self._ranks_near_line
        places = [place for place in (low, last, high) if 0 <= place < self._size]
        ordered = np.partition(scores, places) if places else scores
        self._last_best = ordered.item(last) if self._size else 0.0
        self._lowest = ordered.item(low) if low >= 0 else -math.inf
        self._highest = ordered.item(high) if high < self._size else math.inf
        self._above = int(np.count_nonzero(scores > self._last_best))
        # A million items may have the lowest score: only the others, which are few, are sorted.
        between = scores[(scores > self._lowest) & (scores < self._highest)]
        distinct, counts = np.unique(between, return_counts=True)
        self._count_by_score: dict[float, int] = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
        for border in {self._lowest, self._highest} - {-math.inf, math.inf}:
            self._count_by_score[border] = int(np.count_nonzero(scores == border))
        self._scores = sorted(self._count_by_score)

    def _add_to_count_of_score(self, score: float, change: int) -> None:
        """Change the number of items that have a score by 1 or -1."""
        self._size += change
        if score > self._last_best:
            self._above += change
        if not self._lowest <= score <= self._highest:
            return
        count = self._count_by_score.get(score, 0) + change
        if not count:
            del self._count_by_score[score], self._scores[bisect_left(self._scores, score)]
            return
        if change == count == 1:
            insort(self._scores, score)
        self._count_by_score[score] = count

    def _move_to_last_best_score(self) -> bool:
        """Move to the k-th best score, and return whether that and the next one are among the scores that are kept."""
        k = best_item_count_but_not_all(self._wanted, self._size)
        scores, counts = self._scores, self._count_by_score
        while self._above >= k:
            place = bisect_right(scores, self._last_best)
            if place == len(scores):
                return False
            self._last_best = scores[place]
            self._above -= counts[self._last_best]
        while (up_to_here := self._above + counts.get(self._last_best, 0)) < k:
            place = bisect_left(scores, self._last_best)
            if place == 0:
                return False
            self._last_best, self._above = scores[place - 1], up_to_here
        place = bisect_left(scores, self._last_best)
        self._first_other = self._last_best if up_to_here > k else scores[place - 1]
        return up_to_here > k or place > 0
