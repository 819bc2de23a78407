"""Pools for a line through the scale: the items that gain most there come next (`expected_gain`).

Here s^2 = v / n after n judgments, where v is the variance of one judgment, the same for all items and learned from how
far scores move (`JudgmentNoise`): a posterior's own variance says how much was asked, not how much annotators agree,
and items whose first scores agree by chance must not starve.

The line and v move with every answer, and every gain with them. So items are in cells of similar estimates; the gain of
a cell's items has an upper bound, and only cells that may hold the best item are examined.
"""

import math
from collections.abc import Collection, Iterator
from heapq import heappop, heappush, heapreplace
from itertools import islice

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.buckets import Bucket, Buckets, Pick
from app.selection.expected_gain import JudgmentNoise, log_gain_at_distance, log_gain_at_distance_zero
from app.selection.grid import SparseGrid
from app.selection.item_sets import ItemSet
from app.selection.leaders import iterate_bucket_in_random_order
from app.selection.rule import ItemValues
from app.selection.score_order import ItemsByScore, order_items_of_each_cell_by_score
from app.selection.threshold_line import ScaleLine

GAIN_COLUMN_WIDTH = 0.15  # of a cell, in standard deviations before the first judgment, over the root of n + 1
CELLS_SORTED_FIRST = 16  # cells that are put in order at once
BOUND_SLACK = 1e-9  # of a bound, since where a cell ends is rounded

CellKey = tuple[int, int]  # of a cell: judgments, column
CellScan = tuple[float, int, Bucket, Iterator[tuple[float, Bucket]], float, float]
"""Negative gain of a score, number of its cell, items of the score, other scores of the cell with their items, the gain
of the cell's items at the line, and how steeply that falls.
"""


class NearLineLeaders:
    """Items that may lead, by gain from the highest down, as `HighestVarianceLeaders` by variance.

    In a cell items are in the order of their scores: so those nearest to the line are found at once, and a draw
    examines few others.
    """

    def __init__(
        self,
        items: npt.NDArray[np.intp],
        values: ItemValues,
        line: ScaleLine,
        *,
        judgments_per_item: int,
    ) -> None:
        """Arrange `items`, the numbers that may lead.

        `values` are shared with the caller, who removes an item before changing them; the largest variance is that
        before the first judgment. Each item wants `judgments_per_item`.
        """
        score, judgments = values.score, values.judgments
        self._score, self._judgments, self._status = score, judgments, values.status
        self.line, self._wanted = line, judgments_per_item
        self.noise = JudgmentNoise(float(values.variance.max()) if len(score) else 1.0)
        self._unit = GAIN_COLUMN_WIDTH * math.sqrt(self.noise.initial_variance)
        self._bags, self._size = Buckets(len(score)), len(items)
        self._cells = SparseGrid(self._cell_borders, empty_values=(math.inf, math.inf, 0.0))
        self._items_by_cell: list[ItemsByScore] = []
        self._bounds: tuple[Array, Array, Array, LazyDescendingOrder] | None = None
        self._sort_items_into_cells(items)

    def __len__(self) -> int:
        """Number of items that may lead."""
        return self._size

    def add(self, item: int) -> None:
        """Allow an item to lead, by its present values."""
        self._bounds = None
        score, judgments = self._score.item(item), self._judgments.item(item)
        key = self._cell_key(score, judgments)
        number = self._cells.number_by_key.get(key)
        if number is None:
            number = self._open_cell_and_return_number(key)
        self._items_by_cell[number].add(item, score)
        self._size += 1

    def remove(self, item: int) -> None:
        """Stop an item from leading; its values must still be those it was added with."""
        self._bounds = None
        score, judgments = self._score.item(item), self._judgments.item(item)
        key = self._cell_key(score, judgments)
        cell = self._items_by_cell[self._cells.number_by_key[key]]
        cell.remove(item, score)
        if not cell.scores:
            self._cells.release_empty_cell(key)
        self._size -= 1

    def record_value_change(self, item: int, old_score: float, old_judgments: int, old_status: int) -> None:
        """Record that an item's values have changed from these, whether it may lead or not."""
        self._bounds = None
        after = self._judgments.item(item)
        in_pool = not old_status and not self._status.item(item)
        if in_pool and after == old_judgments + 1 > 1 and after <= self._wanted:
            self.noise.learn_from_score_move(after, self._score.item(item) - old_score)
        self.line.update_position_for_item(item, old_score, old_status)

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return the item of highest gain that is not barred, None if all are barred.

        Ties between scores are broken uniformly, and then ties between items of the same values.
        """
        for tied in self._iterate_tied_buckets():
            picks = [
                (item, bucket)
                for bucket in tied
                if (item := self._bags.pick_item_or_none(bucket, barred, rng)) is not None
            ]
            if picks:
                item, bucket = picks[int(rng.random() * len(picks)) if len(picks) > 1 else 0]
                return Pick(item, 1.0 / (len(picks) * self._bags.count_items_not_barred(bucket, barred)))
        return None

    def iterate_free_leaders_by_gain(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all items that are not barred, in the order of `draw_leader_or_none`.

        The caller bars each item before the next one.
        """
        for tied in self._iterate_tied_buckets():
            for place in rng.permutation(len(tied)).tolist() if len(tied) > 1 else (0,):
                yield from iterate_bucket_in_random_order(self._bags, tied[place], barred, rng)

    def log_gains(self, items: npt.ArrayLike) -> Array:
        """Return the present gain of another judgment of each of these items; see `log_gain_at_distance`."""
        distance, judgments = self._score[np.asarray(items)] - self.line.position, self._judgments[np.asarray(items)]
        return log_gain_at_distance(distance, *self.noise.error_variances_before_and_after_judgment(judgments))

    def require_consistency(self, items: npt.NDArray[np.intp]) -> None:
        """Raise ValueError unless just these items may lead, found by their gain from the highest down. For tests."""
        excluded: set[int] = set()
        found_order = []
        for item in self.iterate_free_leaders_by_gain(excluded, np.random.default_rng(0)):
            excluded.add(item)
            found_order.append(item)
        if sorted(found_order) != items.tolist() or self._size != len(items):
            raise ValueError(f"found {sorted(found_order)}, not {items.tolist()}")
        gains = self.log_gains(np.array(found_order, np.intp))
        if np.any(np.diff(gains) > BOUND_SLACK * np.abs(gains[1:])):
            raise ValueError("an item comes before one of higher gain")

    def _iterate_tied_buckets(self) -> Iterator[list[Bucket]]:
        """Yield the buckets of the scores with the same gain, from the highest gain down.

        The best scores of the cells examined so far are in a heap; a cell is examined once it may hold a better one.
        """
        position = self.line.position
        scans: list[CellScan] = []
        for bound, number, highest, steepness in self._iterate_cells(position):
            while scans and -scans[0][0] > bound:
                yield pop_buckets_of_lowest_loss(scans, position)
            buckets = self._items_by_cell[number].iterate_buckets_outward_from(position)
            score, bucket = next(buckets)
            heappush(
                scans, ((score - position) ** 2 * steepness - highest, number, bucket, buckets, highest, steepness)
            )
        while scans:
            yield pop_buckets_of_lowest_loss(scans, position)

    def _iterate_cells(self, position: float) -> Iterator[tuple[float, int, float, float]]:
        """Yield the cells from the highest bound down.

        Each comes with its bound, its number, the gain of its items at the line, and how steeply that falls with the
        square of the distance.
        """
        if self._bounds is None:  # a HIT's companions are found in the same order as its leader
            low, high, judgments = self._cells.values
            variance, after = self.noise.error_variances_before_and_after_judgment(judgments)
            highest, steepness = log_gain_at_distance_zero(variance, after), 0.5 / variance
            distance = np.maximum(np.maximum(low - position, position - high), 0.0)
            bounds = highest - distance * distance * steepness
            self._bounds = bounds, highest, steepness, LazyDescendingOrder(bounds)
        bounds, highest, steepness, in_order = self._bounds
        for number in in_order:
            if bounds[number] == -np.inf:
                return
            yield bounds.item(number), number, highest.item(number), steepness.item(number)

    def _sort_items_into_cells(self, items: npt.NDArray[np.intp]) -> None:
        items = items[np.lexsort((self._score[items], self._judgments[items]))]
        score, judgments = self._score[items], self._judgments[items]
        column = np.floor(score * np.sqrt(judgments + 1.0) / self._unit)
        is_first = (np.diff(judgments, prepend=-1) != 0) | (np.diff(column, prepend=np.nan) != 0)
        starts = np.flatnonzero(is_first)
        cells = order_items_of_each_cell_by_score(items, score, starts, self._bags)
        for cell, start in zip(cells, starts.tolist(), strict=True):
            key = self._cell_key(score.item(start), judgments.item(start))
            self._items_by_cell[self._open_cell_and_return_number(key)] = cell

    def _open_cell_and_return_number(self, key: CellKey) -> int:
        number = self._cells.open_new_cell_and_return_number(key)
        missing = len(self._cells.keys) - len(self._items_by_cell)
        self._items_by_cell += [ItemsByScore(self._bags) for _ in range(missing)]
        return number

    def _cell_key(self, score: float, judgments: int) -> CellKey:
        return judgments, math.floor(score * math.sqrt(judgments + 1.0) / self._unit)

    def _cell_borders(self, key: CellKey) -> tuple[float, float, float]:
        """Return the lowest and highest score of a cell, up to rounding, and its number of judgments."""
        judgments, column = key
        width = self._unit / math.sqrt(judgments + 1.0)
        slack = BOUND_SLACK * (abs(column) + 1) * width
        return column * width - slack, (column + 1) * width + slack, float(judgments)


def pop_buckets_of_lowest_loss(scans: list[CellScan], position: float) -> list[Bucket]:
    """Remove the buckets of the lowest loss from a heap, and continue the scans of their cells."""
    lowest, tied = scans[0][0], []
    while scans and scans[0][0] == lowest:
        _, number, bucket, buckets, highest, steepness = scans[0]
        tied.append(bucket)
        following = next(buckets, None)
        if following is None:
            heappop(scans)
        else:
            score, bucket = following
            loss = (score - position) ** 2 * steepness - highest
            heapreplace(scans, (loss, number, bucket, buckets, highest, steepness))
    return tied


class HighestGainCompanions:
    """Companions of a leader: the items with the next highest gains."""

    def __init__(self, leaders: NearLineLeaders) -> None:
        """Use the pool of leaders, which holds the same items."""
        self._near = leaders

    def add(self, item: int) -> None:
        """Do nothing: the pool of leaders adds the item."""

    def remove(self, item: int) -> None:
        """Do nothing: the pool of leaders removes the item."""

    def draw_companions(
        self,
        leader: int,
        count: int,
        barred: ItemSet,
        rng: np.random.Generator,
        *,
        chosen_items: Collection[int] = (),
    ) -> list[int]:
        """Return companions with the highest gain, drawn as `Companions.draw_companions` does."""
        excluded = barred | {*chosen_items, leader}
        drawn: list[int] = []
        for item in islice(self._near.iterate_free_leaders_by_gain(excluded, rng), count):
            excluded.add(item)
            drawn.append(item)
        return drawn

    def require_consistency(self, items: npt.NDArray[np.intp]) -> None:
        """Do nothing: the pool of leaders checks the items."""


class LazyDescendingOrder:
    """Positions of numbers from the largest down; usually only the first few are needed."""

    def __init__(self, bounds: Array) -> None:
        """Keep the bounds, (C,), unsorted."""
        self._bounds, first = bounds, min(CELLS_SORTED_FIRST, len(bounds))
        self._places = (-bounds).argpartition(first - 1) if first else np.empty(0, np.intp)
        self._first = self._places_in_descending_order(self._places[:first])

    def __iter__(self) -> Iterator[int]:
        yield from self._first
        yield from self._places_in_descending_order(self._places[len(self._first) :])

    def _places_in_descending_order(self, places: npt.NDArray[np.intp]) -> list[int]:
        order: list[int] = places[(-self._bounds[places]).argsort(kind="stable")].tolist()
        return order
