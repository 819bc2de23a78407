"""Drawing a HIT's companions by match quality (Sakaguchi & Van Durme 2018, Algorithm 1, lines 14 to 19).

Companions are drawn one after another without replacement, each with probability proportional to its match
quality with the leader. Done literally that is a pass over all items for every HIT: 30 ms at a million.
`Companions` draws from the same distribution by rejection. Items lie in cells of similar score and variance;
for a leader each cell has an upper bound on the match quality of its items. A cell is picked in proportion to
bound times number of items, one of its items uniformly, and it is accepted with probability quality / bound:
so an item is proposed in proportion to its cell's bound and comes out in proportion to its quality, whatever
the bounds.

Everything is in logarithms, since far from all others every quality underflows to 0 but their ratios are
still right.
"""

import math
from collections.abc import Collection
from itertools import chain

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.buckets import Bucket, Buckets, make_empty_bucket
from app.selection.item_sets import ItemSet, items_not_in_set

VARIANCE_ROW_RATIO = 1.3
"""Growth of 2 gamma^2 + variance within a row of cells. A smaller ratio means fewer rejections, but more bounds to
compute.
"""
SCORE_COLUMN_WIDTH = 0.25
"""Width of a cell, in units of the smallest c (the scale on which match quality falls) in its row."""
TRIES_PER_ROUND = 16
MAX_REJECTION_ROUNDS = 4
"""Number of rounds of tries after which the missing items are drawn by a pass over all items."""
MAX_ITEMS_FOR_FULL_PASS = 200
"""Up to this number of items a pass is faster than the cells."""

EMPTY_CELL_BORDERS = (math.inf, math.inf, 0.0, 0.0)
"""Borders of a cell without items: so far away that its bound is 0."""


class ItemPlaces:
    """Cell of each of N items, and its position there. Several `Companions` share one if each item is in at most one.

    Attributes:
        cell_of: (N,), the number of the item's cell.
        buckets: Positions in cells.

    """

    def __init__(self, size: int) -> None:
        """Make room for N items."""
        self.cell_of = np.zeros(size, dtype=np.int32)
        self.buckets = Buckets(size)


class Companions:
    """Items by (score, variance), any real scores and any variances > 0: the grid of cells has no border.

    Rows are geometric in 2 gamma^2 + variance; columns are narrower in rows of smaller variance, where match quality
    falls faster. Only cells that hold items exist, about a hundred for scores in [0, 1]; a draw computes the bounds of
    all of them at once. At worst, with scores spread over a million times c, every item has a cell of its own, and a
    draw costs what a pass does.
    """

    def __init__(
        self,
        items: npt.NDArray[np.intp],
        score: Array,
        variance: Array,
        gamma: float,
        *,
        places: ItemPlaces | None = None,
    ) -> None:
        """Arrange `items`, the numbers that may be drawn; `score` and `variance` are (N,), indexed by item number.

        The arrays are shared with the caller, who removes an item before changing its values. gamma > 0. `places` may
        be shared with other `Companions` of the same arrays.
        """
        self._score, self._variance, self._noise = score, variance, 2.0 * gamma * gamma
        places = ItemPlaces(len(score)) if places is None else places
        self._bags, self._cell_of = places.buckets, places.cell_of
        row = np.floor(np.log(self._noise + variance[items]) / math.log(VARIANCE_ROW_RATIO))
        column = np.floor(score[items] / (SCORE_COLUMN_WIDTH * VARIANCE_ROW_RATIO ** (row / 2)))
        order = np.lexsort((column, row))
        items, row, column = items[order], row[order], column[order]
        starts = np.flatnonzero((np.diff(row, prepend=np.nan) != 0) | (np.diff(column, prepend=np.nan) != 0))
        self._cells: list[Bucket] = self._bags.make_bucket_of_each_run(items, starts)
        self._cell_of[items] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(items)))
        self._keys = list(zip(row[starts].tolist(), column[starts].tolist(), strict=True))
        self._number = {key: cell for cell, key in enumerate(self._keys)}
        self._unused: list[int] = []
        self._borders = np.array([self._cell_borders(*key) for key in self._keys]).reshape(-1, 4).T
        self._count = np.array([len(bag) for bag in self._cells], dtype=np.float64)
        self._size = len(items)

    def __len__(self) -> int:
        """Number of items that may be drawn."""
        return self._size

    def add(self, item: int) -> None:
        """Allow an item to be drawn, at its present score and variance."""
        row = math.floor(math.log(self._noise + self._variance.item(item)) / math.log(VARIANCE_ROW_RATIO))
        column = math.floor(self._score.item(item) / _column_width(row))
        cell = self._number.get((row, column))
        if cell is None:
            cell = self._open_cell_and_return_number(row, column)
        self._bags.add_item(item, self._cells[cell])
        self._cell_of[item] = cell
        self._count[cell] += 1
        self._size += 1

    def remove(self, item: int) -> None:
        """Stop an item from being drawn; its score and variance must still be those it was added with."""
        cell = self._cell_of.item(item)
        self._bags.remove_item(item, self._cells[cell])
        self._count[cell] -= 1
        self._size -= 1
        if not self._cells[cell]:
            self._release_cell(cell)

    def draw_companions(
        self, leader: int, count: int, barred: ItemSet, rng: np.random.Generator, *, chosen_items: Collection[int] = ()
    ) -> list[int]:
        """Return `count` items in no particular order, fewer if there are no more.

        None of them is barred or among `chosen_items`, the few items that are in the HIT already. `leader` need not be
        one of the items, and is drawn only if it is one and not barred. Rejection may stop after any number of tries
        without
        harm: how many an item needed says nothing about which one it is, and the pass draws the missing items given the
        items drawn so far, just as further tries would.
        """
        drawn = (
            self._draw_companions_by_rejection_sampling(leader, count, barred, chosen_items, rng)
            if self._size > MAX_ITEMS_FOR_FULL_PASS
            else []
        )
        if len(drawn) < count:
            drawn += self._draw_companions_by_weighing_all_items(
                leader, count - len(drawn), barred, {*chosen_items, *drawn}, rng
            )
        return drawn

    def require_consistency(self, items: npt.NDArray[np.intp]) -> None:
        """Raise ValueError unless just these items may be drawn, each from one cell, and none above its cell's bound.

        O(items x cells), for tests.
        """
        held = np.array(sorted(chain.from_iterable(self._cells)), np.intp)
        counts = [len(bag) for bag in self._cells]
        if not np.array_equal(held, items) or self._size != len(items):
            raise ValueError(f"the cells hold {held.tolist()}, not {items.tolist()}")
        if self._count.tolist() != counts or len(self._number) != np.count_nonzero(counts):
            raise ValueError("the counts of the cells are wrong")
        for leader in range(len(self._score)):
            bound = self._log_match_quality_bound_of_each_cell(leader)[self._cell_of[held]]
            if np.any(self._log_match_quality_with(leader, held.tolist()) > bound + 1e-9 * (1 + np.abs(bound))):
                raise ValueError(f"for the leader {leader}, an item is above the bound of its cell")

    def match_quality_with(self, leader: int, items: list[int]) -> Array:
        """Return the match quality of items with a leader, (n,), as a draw computes it."""
        return np.exp(self._log_match_quality_with(leader, items))

    @property
    def cell_capacity(self) -> int:
        """Number of cells that there is room for."""
        return len(self._cells)

    def _draw_companions_by_rejection_sampling(
        self, leader: int, count: int, barred: ItemSet, chosen_items: Collection[int], rng: np.random.Generator
    ) -> list[int]:
        log_bound = self._log_match_quality_bound_of_each_cell(leader)
        cumulative = np.cumsum(self._count * np.exp(log_bound - log_bound.max()))
        drawn: list[int] = []
        for _ in range(MAX_REJECTION_ROUNDS):
            cell_draws, item_draws, accept = rng.random((3, TRIES_PER_ROUND))
            # 1 - u is above 0, so that the first cell to reach it is never one without items.
            cells = cumulative.searchsorted((1.0 - cell_draws) * cumulative[-1])
            bags = [self._cells[cell] for cell in cells.tolist()]
            proposed = [bag[int(u * len(bag))] for bag, u in zip(bags, item_draws.tolist(), strict=True)]
            good = accept < np.exp(self._log_match_quality_with(leader, proposed) - log_bound[cells])
            for item, is_good in zip(proposed, good.tolist(), strict=True):
                if is_good and item not in barred and item not in chosen_items and item not in drawn:
                    drawn.append(item)
                    if len(drawn) == count:
                        return drawn
        return drawn

    def _draw_companions_by_weighing_all_items(
        self, leader: int, count: int, barred: ItemSet, chosen_items: set[int], rng: np.random.Generator
    ) -> list[int]:
        items = items_not_in_set(self._cells, barred | chosen_items)
        if len(items) <= count:
            return items
        # Adding Gumbel noise to logarithms and taking the largest is the same as drawing one after another
        # without replacement in proportion to the numbers themselves (Yellott 1977).
        perturbed = self._log_match_quality_with(leader, items) + rng.gumbel(size=len(items))
        best = np.argpartition(perturbed, -count)[-count:]
        return [items[place] for place in best.tolist()]

    def _log_match_quality_with(self, leader: int, items: list[int]) -> Array:
        distance = self._score[items] - self._score.item(leader)
        c2 = self._noise + self._variance[items] + self._variance.item(leader)
        return _log_match_quality(distance * distance, c2, self._noise)

    def _log_match_quality_bound_of_each_cell(self, leader: int) -> Array:
        """Return the highest match quality that an item of each cell could have.

        It takes the nearest score, and the best of the cell's c^2, since at a given distance d quality is highest at
        c^2 = d^2 and falls to both sides.
        """
        score = self._score.item(leader)
        low, high, least, most = self._borders
        distance = np.maximum(np.maximum(low - score, score - high), 0.0)
        nearest = distance * distance
        variance_sum = self._noise + self._variance.item(leader)
        return _log_match_quality(nearest, np.clip(nearest, variance_sum + least, variance_sum + most), self._noise)

    def _cell_borders(self, row: float, column: float) -> tuple[float, float, float, float]:
        """Return lowest and highest score, least and greatest variance of a cell."""
        width = _column_width(row)
        least, most = VARIANCE_ROW_RATIO**row - self._noise, VARIANCE_ROW_RATIO ** (row + 1) - self._noise
        return column * width, (column + 1) * width, max(least, 0.0), most

    def _open_cell_and_return_number(self, row: int, column: int) -> int:
        """Open a cell at this row and column, with an unused number."""
        if not self._unused:
            self._allocate_more_cell_numbers()
        cell = self._unused.pop()
        self._keys[cell] = row, column
        self._number[row, column] = cell
        self._borders[:, cell] = self._cell_borders(row, column)
        return cell

    def _release_cell(self, cell: int) -> None:
        del self._number[self._keys[cell]]
        self._borders[:, cell] = EMPTY_CELL_BORDERS
        self._unused.append(cell)

    def _allocate_more_cell_numbers(self) -> None:
        """Add cell numbers, a quarter at a time so that growing stays cheap."""
        added = 16 + len(self._cells) // 4
        self._unused += range(len(self._cells), len(self._cells) + added)
        self._cells += [make_empty_bucket() for _ in range(added)]
        self._keys += [(0.0, 0.0)] * added
        self._borders = np.column_stack([self._borders, np.tile(EMPTY_CELL_BORDERS, (added, 1)).T])
        self._count = np.append(self._count, np.zeros(added))


def _column_width(row: float) -> float:
    return float(SCORE_COLUMN_WIDTH * VARIANCE_ROW_RATIO ** (row / 2))


def _log_match_quality(squared_distance: Array, c2: Array, noise: float) -> Array:
    """Return the logarithm of `match_quality` (equations 11 and 23), from d^2, c^2 and 2 gamma^2."""
    return 0.5 * np.log(noise / c2) - squared_distance / (2.0 * c2)
