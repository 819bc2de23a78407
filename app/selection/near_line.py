"""What to ask next where a line through the scale is what matters: whatever gains most there (`gain`).

Here s^2 = v / n after n judgments, where v is the variance of one judgment, the same for all items and learned from how
far scores move (`Noise`): a posterior's own variance says how much was asked, not how much annotators agree, and items
whose first scores agree by chance must not starve.

The line and v move with every answer, and every gain with them. So items lie in cells of similar estimates; the gain of
a cell's items has an upper bound, and only cells that may hold the best item are looked into.
"""

import math
from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.bags import Bag, Bags, Picked
from app.selection.cut import Line
from app.selection.gain import Noise, gain_of, gain_on_line
from app.selection.leaders import each_of
from app.selection.plane import Plane
from app.selection.rule import Counts

COLUMN_WIDTH = 0.15  # of a cell, in standard deviations before the first judgment, over the root of n + 1
FIRST_LOOK = 16  # cells that are put in order at once
SLACK = 1e-9  # of a bound, since where a cell ends is rounded

Key = tuple[int, int]  # of a cell: judgments, column


class Alike(NamedTuple):
    """Items of as many judgments and the same score, and who they are."""

    score: float
    bag: Bag


class NearLine:
    """Items that may lead, found by their gain from the highest down; as `Leaders` finds them by their variance.

    In a cell items of the same score lie in one bag: at the start of a campaign that is one bag of all.
    """

    def __init__(
        self, items: npt.NDArray[np.intp], score: Array, variance: Array, judgments: Counts, line: Line, *, wanted: int
    ) -> None:
        """`items`: numbers of those that may lead. variance: (N,), > 0, of which the largest is that before the first
        judgment. score, judgments: (N,), shared with the caller, who takes an item out before changing its values.
        wanted: judgments of each item; one that counts as having more has left the pool.
        """
        self._score, self._judgments, self.line, self._wanted = score, judgments, line, wanted
        self.noise = Noise(float(variance.max()) if len(variance) else 1.0)
        self._unit = COLUMN_WIDTH * math.sqrt(self.noise.first)
        self._bags, self._size = Bags(len(score)), len(items)
        self._cells = Plane(self._borders, nowhere=(math.inf, math.inf, 0.0))
        self._within: list[dict[float, Alike]] = []
        self._bounds: tuple[Array, Array, Array, Sorted] | None = None
        items = items[np.lexsort((score[items], judgments[items]))]
        values = judgments[items], score[items]
        differs = np.any([np.diff(column, prepend=np.nan) != 0 for column in values], axis=0)
        for bag in self._bags.fill(items, np.flatnonzero(differs)):
            self._put(bag[0], bag)

    def __len__(self) -> int:
        """How many items may lead."""
        return self._size

    def add(self, item: int) -> None:
        """Let an item lead, by its present values."""
        self._bounds = None
        alike = self._cell(item).get(self._score.item(item))
        self._bags.put(item, self._put(item, []) if alike is None else alike.bag)
        self._size += 1

    def remove(self, item: int) -> None:
        """No longer let an item lead; its values are still those it was added with."""
        self._bounds = None
        score, key = self._score.item(item), self._key(item)
        cell = self._within[self._cells.number[key]]
        self._bags.take(item, cell[score].bag)
        if not cell[score].bag:
            del cell[score]
        if not cell:
            self._cells.close(key)
        self._size -= 1

    def moved(self, item: int, score: float, judgments: int) -> None:
        """An item has other values now than these, whether it may lead or not."""
        self._bounds = None
        after = self._judgments.item(item)
        # What an item has that has left the pool is not its own number, but more than anybody wants.
        if after == judgments + 1 > 1 and after <= self._wanted:
            self.noise.learn(after, self._score.item(item) - score)
        self.line.move(item)

    def draw(self, barred: set[int], rng: np.random.Generator) -> Picked | None:
        """The item of highest gain that is not barred, None if all are barred. Of different scores with the same gain
        it is any with the same probability, and of items of the same values any.
        """
        best, ties, at = -math.inf, 0, self.line.at
        found: tuple[int, Bag] | None = None
        for bound, number, highest, steepness in self._descending(at):
            if bound < best:
                break
            for score, bag in self._within[number].values():
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
        for bound, number, highest, steepness in self._descending(at):
            while found and -found[0][0] >= bound:
                yield from each_of(self._bags, heappop(found)[2], barred, rng)
            within = self._within[number].values()
            for (score, bag), tie in zip(within, rng.random(len(within)).tolist(), strict=True):
                heappush(found, ((score - at) ** 2 * steepness - highest, tie, bag))
        while found:
            yield from each_of(self._bags, heappop(found)[2], barred, rng)

    def gains(self, items: npt.ArrayLike) -> Array:
        """What another judgment of each of these gains now, as `gain_of` has it."""
        distance, judgments = self._score[np.asarray(items)] - self.line.at, self._judgments[np.asarray(items)]
        return gain_of(distance, *self.noise.of(judgments))

    def check(self, items: npt.NDArray[np.intp]) -> None:
        """Raises ValueError unless just these items may lead, found by their gain from the highest down. For tests."""
        away: set[int] = set()
        walked = []
        for item in self.each(away, np.random.default_rng(0)):
            away.add(item)
            walked.append(item)
        if sorted(walked) != items.tolist() or self._size != len(items):
            raise ValueError(f"found were {sorted(walked)}, not {items.tolist()}")
        gains = self.gains(np.array(walked, np.intp))
        if np.any(np.diff(gains) > SLACK * np.abs(gains[1:])):
            raise ValueError("an item comes before one of higher gain")

    def _descending(self, at: float) -> Iterator[tuple[float, int, float, float]]:
        """The cells from the highest bound down: it, their number, and of their items the gain on the line and how
        steeply it falls with the square of the distance.
        """
        if self._bounds is None:  # a HIT's companions are found in the same order as its leader
            low, high, judgments = self._cells.known
            variance, after = self.noise.of(judgments)
            highest, steepness = gain_on_line(variance, after), 0.5 / variance
            distance = np.maximum(np.maximum(low - at, at - high), 0.0)
            bounds = highest - distance * distance * steepness
            self._bounds = bounds, highest, steepness, Sorted(bounds)
        bounds, highest, steepness, in_order = self._bounds
        for number in in_order:
            if bounds[number] == -np.inf:
                return
            yield bounds.item(number), number, highest.item(number), steepness.item(number)

    def _put(self, item: int, bag: Bag) -> Bag:
        score = self._score.item(item)
        self._cell(item)[score] = Alike(score, bag)
        return bag

    def _cell(self, item: int) -> dict[float, Alike]:
        key = self._key(item)
        if key in self._cells.number:
            return self._within[self._cells.number[key]]
        number = self._cells.open(key)
        self._within += [{} for _ in range(len(self._cells.keys) - len(self._within))]
        return self._within[number]

    def _key(self, item: int) -> Key:
        judgments = self._judgments.item(item)
        return judgments, math.floor(self._score.item(item) / self._width(judgments))

    def _width(self, judgments: int) -> float:
        return self._unit / math.sqrt(judgments + 1.0)

    def _borders(self, key: Key) -> tuple[float, float, float]:
        """Of a cell the lowest and highest score, also as rounded, and the judgments."""
        judgments, column = key
        width = self._width(judgments)
        slack = SLACK * (abs(column) + 1) * width
        return column * width - slack, (column + 1) * width + slack, float(judgments)


class NextBest:
    """Companions that come next after their leader: those items that gain most."""

    def __init__(self, near: NearLine) -> None:
        """near: the same items, as they may lead."""
        self._near = near

    def add(self, item: int) -> None:
        """It is added where it may lead."""

    def remove(self, item: int) -> None:
        """It is removed there."""

    def draw(
        self,
        leader: int,
        wanted: int,
        barred: set[int],
        rng: np.random.Generator,
        *,
        beside: Collection[int] = (),
    ) -> list[int]:
        """As `Companions.draw`, but by gain."""
        away = {*barred, *beside, leader}
        drawn: list[int] = []
        for item in islice(self._near.each(away, rng), wanted):
            away.add(item)
            drawn.append(item)
        return drawn

    def check(self, items: npt.NDArray[np.intp]) -> None:
        """They are checked where they may lead."""


class Sorted:
    """The places of numbers, from the largest down; mostly the first few are all that is asked for."""

    def __init__(self, bounds: Array) -> None:
        """bounds: (C,)."""
        self._bounds, first = bounds, min(FIRST_LOOK, len(bounds))
        self._places = np.argpartition(-bounds, first - 1) if first else np.empty(0, np.intp)
        self._first = self._in_order(self._places[:first])

    def __iter__(self) -> Iterator[int]:
        yield from self._first
        yield from self._in_order(self._places[len(self._first) :])

    def _in_order(self, places: npt.NDArray[np.intp]) -> list[int]:
        order: list[int] = places[np.argsort(-self._bounds[places], kind="stable")].tolist()
        return order
