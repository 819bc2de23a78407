"""What to ask next where a line through the scale is what matters: the best k items, or those above a threshold.

The next judgment goes to the item of which it is expected to settle most on which side of the line the item lies:
greedy OCBA-m (Chen, He, Fu & Lee 2008). An item of estimate m and standard error s, which another judgment would bring
to s', gains phi((m - c) / s) (s - s'), where c is the line and phi the normal density.

The line moves with every answer and every gain with the line. So items lie in cells of similar estimates and
variances; the gain of a cell's items has an upper bound, and only cells that may hold the best item are looked into.
"""

import math
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.bags import Bag, Bags, Picked
from app.selection.leaders import each_of
from app.selection.plane import Plane
from app.selection.rule import Counts

ROW_RATIO = 1.1  # how much the variance grows within a row of cells
COLUMN_WIDTH = 0.25  # of a cell, in standard errors of the least variance of its row
PRIOR_JUDGMENTS = 3.0
"""A Beta posterior after n judgments has a variance of m(1 - m) / (n + 3): the next one divides it by (n + 4) / (n + 3)
and leaves the mean where it is expected to be. Other laws begin with about as much.
"""
FIRST_LOOK = 16  # cells that are put in order at once
SLACK = 1e-9  # of a bound, since where a cell ends is rounded

Key = tuple[int, int, int]  # of a cell: judgments, row, column
Values = tuple[float, float]  # of items: score and variance


class Alike(NamedTuple):
    """Items of the same values: their score, their gain on the line, how steeply it falls with the square of the
    distance, and who they are.
    """

    score: float
    highest: float
    steepness: float
    bag: Bag


class Line(Protocol):
    """Where the line through the scale is."""

    @property
    def at(self) -> float: ...

    def move(self, item: int) -> None:
        """An item has a new score."""


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


def log_gain(distance: Array, variance: Array, judgments: npt.ArrayLike) -> Array:
    """The logarithm of what another judgment gains, up to a constant. Arrays that broadcast: distances from the line,
    variances > 0, judgments so far. It grows with the variance, and falls with the distance and with the judgments.
    """
    known = np.asarray(judgments, np.float64) + PRIOR_JUDGMENTS
    less = np.log1p(-np.sqrt(known / (known + 1.0)))
    gain: Array = less + 0.5 * np.log(variance) - distance * distance / (2.0 * variance)
    return gain


class NearLine:
    """Items that may lead, found by their gain from the highest down; as `Leaders` finds them by their variance.

    In a cell items of the same values lie in one bag: at the start of a campaign that is one bag of all.
    """

    def __init__(
        self, items: npt.NDArray[np.intp], score: Array, variance: Array, judgments: Counts, line: Line
    ) -> None:
        """`items`: numbers of those that may lead. Arrays (N,), shared with the caller, who takes an item out before
        changing its values.
        """
        self._score, self._variance, self._judgments, self.line = score, variance, judgments, line
        self._bags, self._size = Bags(len(score)), len(items)
        self._cells = Plane(bound_of, nowhere=(math.inf, math.inf, 0.0, 1.0))
        self._within: list[dict[Values, Alike]] = []
        items = items[np.lexsort((variance[items], score[items], judgments[items]))]
        values = judgments[items], score[items], variance[items]
        differs = np.any([np.diff(column, prepend=np.nan) != 0 for column in values], axis=0)
        starts = np.flatnonzero(differs)
        for bag in self._bags.fill(items, starts):
            self._put(bag[0], bag)

    def __len__(self) -> int:
        """How many items may lead."""
        return self._size

    def add(self, item: int) -> None:
        """Let an item lead, by its present values."""
        cell = self._cell(item)
        alike = cell.get(self._values(item))
        self._bags.put(item, self._put(item, []) if alike is None else alike.bag)
        self._size += 1

    def remove(self, item: int) -> None:
        """No longer let an item lead; its values are still those it was added with."""
        values, key = self._values(item), self._key(item)
        cell = self._within[self._cells.number[key]]
        self._bags.take(item, cell[values].bag)
        if not cell[values].bag:
            del cell[values]
        if not cell:
            self._cells.close(key)
        self._size -= 1

    def moved(self, item: int) -> None:
        """An item has other values now, whether it may lead or not."""
        self.line.move(item)

    def draw(self, barred: set[int], rng: np.random.Generator) -> Picked | None:
        """The item of highest gain that is not barred, None if all are barred. Of different values with the same gain
        it is any with the same probability, and of items of the same values any.
        """
        best, ties, at = -math.inf, 0, self.line.at
        found: tuple[int, Bag] | None = None
        for bound, number in self._descending(at):
            if bound < best:
                break
            for score, highest, steepness, bag in self._within[number].values():
                gain = highest - (score - at) ** 2 * steepness
                if gain < best or (item := self._bags.pick(bag, barred, rng)) is None:
                    continue
                best, ties = gain, ties + 1 if gain == best else 1
                if ties == 1 or rng.random() * ties < 1.0:
                    found = item, bag
        return found and Picked(found[0], 1.0 / (ties * self._bags.among(found[1], barred)))

    def each(self, barred: set[int], rng: np.random.Generator) -> Iterator[int]:
        """All items that are not barred, as `draw` finds one after another. Whoever asks on has barred the last one."""
        found: list[tuple[float, float, Bag]] = []
        at = self.line.at
        for bound, number in self._descending(at):
            while found and -found[0][0] >= bound:
                yield from each_of(self._bags, heappop(found)[2], barred, rng)
            for score, highest, steepness, bag in self._within[number].values():
                heappush(found, ((score - at) ** 2 * steepness - highest, rng.random(), bag))
        while found:
            yield from each_of(self._bags, heappop(found)[2], barred, rng)

    def check(self, items: npt.NDArray[np.intp]) -> None:
        """Raises ValueError unless just these items may lead, found by their gain from the highest down. For tests."""
        away: set[int] = set()
        walked = []
        for item in self.each(away, np.random.default_rng(0)):
            away.add(item)
            walked.append(item)
        if sorted(walked) != items.tolist() or self._size != len(items):
            raise ValueError(f"found were {sorted(walked)}, not {items.tolist()}")
        gains = log_gain(self._score[walked] - self.line.at, self._variance[walked], self._judgments[walked])
        if np.any(np.diff(gains) > SLACK * np.abs(gains[1:])):
            raise ValueError("an item comes before one of higher gain")

    def _descending(self, at: float) -> Iterator[tuple[float, int]]:
        """The numbers of the cells with their bounds, from the highest bound down."""
        low, high, highest, steepness = self._cells.known
        distance = np.maximum(np.maximum(low - at, at - high), 0.0)
        bounds = highest - distance * distance * steepness
        for number in in_order(bounds):
            if bounds[number] == -np.inf:
                return
            yield bounds.item(number), number

    def _put(self, item: int, bag: Bag) -> Bag:
        score, variance = self._values(item)
        highest = on_line(variance, self._judgments.item(item))
        self._cell(item)[score, variance] = Alike(score, highest, 1.0 / (2.0 * variance), bag)
        return bag

    def _cell(self, item: int) -> dict[Values, Alike]:
        key = self._key(item)
        if key in self._cells.number:
            return self._within[self._cells.number[key]]
        number = self._cells.open(key)
        self._within += [{} for _ in range(len(self._cells.keys) - len(self._within))]
        return self._within[number]

    def _values(self, item: int) -> Values:
        return self._score.item(item), self._variance.item(item)

    def _key(self, item: int) -> Key:
        row = math.floor(math.log(self._variance.item(item)) / math.log(ROW_RATIO))
        return self._judgments.item(item), row, math.floor(self._score.item(item) / column_width(row))


def on_line(variance: float, judgments: int) -> float:
    """`log_gain` of an item that lies on the line."""
    known = judgments + PRIOR_JUDGMENTS
    return math.log1p(-math.sqrt(known / (known + 1.0))) + 0.5 * math.log(variance)


def column_width(row: float) -> float:
    return float(COLUMN_WIDTH * ROW_RATIO ** (row / 2))


def bound_of(key: Key) -> tuple[float, float, float, float]:
    """Of a cell the lowest and highest score, the highest gain on the line, and how steeply it falls with the square of
    the distance: at least as high as any item's, also as rounded.
    """
    judgments, row, column = key
    width, most = column_width(row), ROW_RATIO ** (row + 1) * (1.0 + SLACK)
    slack = SLACK * (abs(column) + 1) * width
    return column * width - slack, (column + 1) * width + slack, on_line(most, judgments) + SLACK, 1.0 / (2.0 * most)


def in_order(bounds: Array) -> Iterator[int]:
    """The places of numbers, from the largest down; mostly the first few are all that is asked for."""
    first = min(FIRST_LOOK, len(bounds))
    places = np.argpartition(-bounds, first - 1) if first else np.empty(0, np.intp)
    for some in (places[:first], places[first:]):
        yield from some[np.argsort(-bounds[some], kind="stable")].tolist()
