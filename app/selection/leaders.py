"""Pool of leaders: finds the item of highest variance (Sakaguchi & Van Durme 2018, Algorithm 1, lines 11 and 12)."""

import math
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.selection.buckets import Bucket, Buckets, Pick, make_empty_bucket
from app.selection.item_sets import ItemSet, numbers_not_in_set


class LeaderPool(Protocol):
    """Items that may lead a HIT; the first ones are found without examining all of them."""

    def __len__(self) -> int:
        """Number of items that may lead."""

    def add(self, item: int) -> None:
        """Allow an item to lead, by its present values."""

    def remove(self, item: int) -> None:
        """Stop an item from leading; its values must still be those it was added with."""

    def record_value_change(self, item: int, old_score: float, old_judgments: int, old_status: int) -> None:
        """Record that an item's values have changed from these, whether it may lead or not."""

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return the first item that is not barred, None if all are barred."""

    def iterate_free_leaders_by_gain(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all items that are not barred, in the order of `draw_leader_or_none`.

        The caller bars each item before the next one.
        """

    def require_consistency(self, items: npt.NDArray[np.intp]) -> None:
        """Raise ValueError unless just these items may lead, in the right order. For tests."""


SORTED_VALUES = 5_000
"""Distinct variances that are sorted at a time; each takes about 170 bytes."""
NO_ITEM_NUMBERS = np.empty(0, np.intp)
MAX_HEAP_GROWTH = 4
"""Times the values that are sorted at a time; if the heap grows beyond that, the lowest are left unsorted again."""


class HighestVarianceLeaders:
    """Items by variance: a heap of the highest distinct values, and for each value the bucket of items that tie at it.

    All other items are unsorted and take one byte each. When few sorted items are left, the next highest values are
    sorted, in one pass over all items: the last sorted ones may be barred for long, as leaders of open HITs. If all
    sorted items are barred, a pass over the unsorted ones finds the leader, and they stay unsorted. At the start of a
    campaign all items tie, so there is one bucket. An empty bucket stays in the heap until it comes to the top, or
    until the heap has outgrown its items.
    """

    def __init__(
        self,
        items: npt.NDArray[np.intp],
        variance: npt.NDArray[np.float64],
        *,
        sorted_values: int = SORTED_VALUES,
    ) -> None:
        """Arrange `items`, the numbers that may lead; `variance` is (N,), > 0, indexed by item number.

        It is shared with the caller, who removes an item before changing its variance. `sorted_values` is the number of
        distinct variances that are sorted at a time, at least 1.
        """
        self._variance, self._bags = variance, Buckets(len(variance))
        self._sorted_values = sorted_values
        self._is_unsorted = np.zeros(len(variance), np.bool_)
        self._sorted_count, self._unsorted_count = 0, 0
        self._tied: dict[float, Bucket] = {}
        self._heap: list[float] = []  # of the same keys, negative variances: heapq keeps the smallest on top
        self._lowest_sorted = math.inf  # items of this variance or more are sorted
        self._leave_unsorted(items)
        self._sort_next_values()

    def __len__(self) -> int:
        """Number of items that may lead."""
        return self._sorted_count + self._unsorted_count

    def add(self, item: int) -> None:
        """Allow an item to lead, O(log of the sorted variances)."""
        variance = self._variance.item(item)
        if variance < self._lowest_sorted:
            self._is_unsorted[item] = True
            self._unsorted_count += 1
            return
        key = -variance
        self._sorted_count += 1
        if (bucket := self._tied.get(key)) is not None:
            self._bags.add_item(item, bucket)
            return
        self._tied[key] = bucket = make_empty_bucket()
        self._bags.add_item(item, bucket)
        heappush(self._heap, key)
        if len(self._heap) > MAX_HEAP_GROWTH * self._sorted_values:
            self._sort_highest_values_only()

    def remove(self, item: int) -> None:
        """Stop an item from leading; its variance must still be the one it was added with."""
        variance = self._variance.item(item)
        if variance < self._lowest_sorted:
            self._is_unsorted[item] = False
            self._unsorted_count -= 1
            return
        self._sorted_count -= 1
        bucket = self._tied[-variance]
        self._bags.remove_item(item, bucket)
        if len(self._heap) > 2 * self._sorted_count + 64:
            self._drop_empty_buckets()
        while not bucket and self._heap and not self._tied[self._heap[0]]:
            del self._tied[heappop(self._heap)]

    def record_value_change(self, item: int, old_score: float, old_judgments: int, old_status: int) -> None:
        """Do nothing: the order does not depend on previous values."""

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return the item of highest variance that is not barred, ties uniformly at random; None if all are barred.

        The cost grows with the number barred, not with the number of items, except for one pass over all items if the
        sorted ones are used up or barred.
        """
        for key in self._iterate_sorted_keys():
            bucket = self._tied[key]
            if (item := self._bags.pick_item_or_none(bucket, barred, rng)) is not None:
                return Pick(item, 1.0 / self._bags.count_items_not_barred(bucket, barred))
        items = self._unsorted_items_not_barred(barred)
        if not len(items):
            return None
        variance = self._variance[items]
        tied = items[variance == variance.max()]
        return Pick(tied.item(int(rng.random() * len(tied))), 1.0 / len(tied))

    def iterate_free_leaders_by_gain(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all items that are not barred, in the order of `draw_leader_or_none`.

        The caller bars each item before the next one.
        """
        for key in self._iterate_sorted_keys():
            yield from iterate_bucket_in_random_order(self._bags, self._tied[key], barred, rng)
        items, count = self._unsorted_items_not_barred(barred), self._sorted_values
        while len(items):
            is_high = self._variance[items] >= nth_largest_value(self._variance[items], count)
            highest = items[is_high]
            yield from highest[np.lexsort((rng.random(len(highest)), -self._variance[highest]))].tolist()
            items, count = items[~is_high], 2 * count

    def require_consistency(self, items: npt.NDArray[np.intp]) -> None:
        """Raise ValueError unless just these items may lead, found by their variance from the highest down.

        For tests.
        """
        variance = self._variance
        found_order = [(-key, sorted(self._tied[key])) for key in self._iterate_sorted_keys()]
        are_sorted = variance[items] >= self._lowest_sorted
        high = items[are_sorted]
        expected = [(value, items[variance[items] == value].tolist()) for value in np.unique(variance[high])[::-1]]
        if [pair for pair in found_order if pair[1]] != expected or self._sorted_count != len(high):
            raise ValueError(f"found {found_order}, not {expected}")
        unsorted = np.flatnonzero(self._is_unsorted)
        if not np.array_equal(unsorted, items[~are_sorted]) or self._unsorted_count != len(unsorted):
            raise ValueError(f"left unsorted {unsorted.tolist()}, not {items[~are_sorted].tolist()}")
        if not len(found_order) == len(dict(found_order)) == len(self._heap) == len(self._tied):
            raise ValueError("a variance occurs twice, or is missing in one place")
        if found_order and not found_order[0][1]:
            raise ValueError("the first variance has no item")

    @property
    def variance_bucket_count(self) -> int:
        """Number of distinct variances in the heap, including those without items."""
        return len(self._heap)

    def _unsorted_items_not_barred(self, barred: ItemSet) -> npt.NDArray[np.intp]:
        return (
            numbers_not_in_set(np.flatnonzero(self._is_unsorted), barred) if self._unsorted_count else NO_ITEM_NUMBERS
        )

    def _iterate_sorted_keys(self) -> Iterator[float]:
        """Yield the keys from the highest variance down; if few items are sorted, sort the next values first.

        The heap stays as it is, and children come after parents.
        """
        if self._unsorted_count and self._sorted_count < max(1, self._sorted_values // 2):
            self._sort_next_values()
        heap = self._heap
        frontier = [(value, 0) for value in heap[:1]]
        while frontier:
            value, heap_position = heappop(frontier)
            yield value
            for child, child_value in enumerate(
                heap[2 * heap_position + 1 : 2 * heap_position + 3], 2 * heap_position + 1
            ):
                heappush(frontier, (child_value, child))

    def _leave_unsorted(self, items: npt.NDArray[np.intp]) -> None:
        self._is_unsorted[items] = True
        self._unsorted_count += len(items)

    def _sort_next_values(self) -> None:
        """Sort the highest values of the unsorted items."""
        items = np.flatnonzero(self._is_unsorted)
        self._lowest_sorted = nth_largest_value(self._variance[items], self._sorted_values)
        items = items[self._variance[items] >= self._lowest_sorted]
        self._is_unsorted[items] = False
        self._unsorted_count -= len(items)
        self._sorted_count += len(items)
        items = items[np.argsort(-self._variance[items], kind="stable")]
        values, starts = np.unique(-self._variance[items], return_index=True)
        keys: list[float] = values.tolist()
        self._tied |= zip(keys, self._bags.make_bucket_of_each_run(items, starts), strict=True)
        self._heap += keys  # in order and above all others, so this is a heap

    def _sort_highest_values_only(self) -> None:
        """Leave all items unsorted but those of the highest values."""
        for bucket in self._tied.values():
            self._leave_unsorted(np.frombuffer(bucket, np.intc).astype(np.intp))
        self._tied, self._heap, self._sorted_count = {}, [], 0
        self._sort_next_values()

    def _drop_empty_buckets(self) -> None:
        self._tied = {key: bucket for key, bucket in self._tied.items() if bucket}
        self._heap = list(self._tied)
        heapify(self._heap)


def nth_largest_value(values: npt.NDArray[np.float64], n: int) -> float:
    """Return the nth largest value, minus infinity if there are at most n."""
    return float(np.partition(values, -n)[-n]) if len(values) > n else -math.inf


def iterate_bucket_in_random_order(
    buckets: Buckets, bucket: Bucket, barred: ItemSet, rng: np.random.Generator
) -> Iterator[int]:
    """Yield the items of a bucket in a random order; the caller bars each item before the next one."""
    while (item := buckets.pick_item_or_none(bucket, barred, rng)) is not None:
        yield item
