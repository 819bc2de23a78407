"""Where the line through the scale is: at a threshold, or below the best items."""

from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np

from app.inference.ground.arrays import Array


class Line(Protocol):
    """Where the line through the scale is."""

    @property
    def at(self) -> float: ...

    def move(self, item: int) -> None:
        """An item has a new score."""


def best_among(best: int, size: int) -> int:
    """How many of so many items are the best ones: as many as are wanted, but all except the lowest where there are no
    more.
    """
    return max(1, min(best, size - 1))


class Threshold:
    """At a score, for good."""

    def __init__(self, at: float) -> None:
        self.at = at

    def move(self, item: int) -> None:
        """It stays."""


class BelowBest:
    """In the middle between the k-th and the (k + 1)-th best score, which are found without looking at the others.

    The best lie in one heap and the others in the other one, each beside what has left it or has another score by now.
    """

    def __init__(self, score: Array, k: int) -> None:
        """score: (N,), shared with the caller. 0 < k < N."""
        self._score, self._k = score, k
        self._place()

    @property
    def at(self) -> float:
        self._settle()
        middle: float = (self._best[0][0] - self._rest[0][0]) / 2  # the scores of the others are kept as negative ones
        return middle

    def move(self, item: int) -> None:
        """O(log N)."""
        self._push(item)
        if len(self._best) + len(self._rest) > 2 * len(self._score) + 64:
            self._place()

    def _place(self) -> None:
        order = np.argsort(-self._score, kind="stable")
        self._is_best = np.zeros(len(order), dtype=bool)
        self._is_best[order[: self._k]] = True
        scores = self._score.tolist()
        self._best = [(scores[item], item) for item in order[: self._k].tolist()]
        self._rest = [(-scores[item], item) for item in order[self._k :].tolist()]
        heapify(self._best)
        heapify(self._rest)

    def _push(self, item: int) -> None:
        score = self._score.item(item)
        if self._is_best[item]:
            heappush(self._best, (score, item))
        else:
            heappush(self._rest, (-score, item))

    def _settle(self) -> None:
        """Whoever is on the wrong side changes places with the last one of the other side."""
        self._clear()
        while self._best[0][0] < -self._rest[0][0]:
            (_, worst), (_, better) = heappop(self._best), heappop(self._rest)
            self._is_best[worst], self._is_best[better] = False, True
            self._push(worst)
            self._push(better)
            self._clear()

    def _clear(self) -> None:
        while not self._is_best[(top := self._best[0])[1]] or self._score.item(top[1]) != top[0]:
            heappop(self._best)
        while self._is_best[(top := self._rest[0])[1]] or self._score.item(top[1]) != -top[0]:
            heappop(self._rest)
