"""Pool of leaders: finds the item of highest variance (Sakaguchi & Van Durme 2018, Algorithm 1, lines 11 and 12)."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.selection.buckets import Bucket, Buckets, Pick, make_bucket
from app.selection.item_sets import ItemSet


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

    def iterate_all_leaders_fewest_judgments_first(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all items that are not barred, in the order of `draw_leader_or_none`.

        The caller bars each item before the next one.
        """

    def require_consistency(self, items: npt.NDArray[np.intp]) -> None:
        """Raise ValueError unless just these items may lead, in the right order. For tests."""


class HighestVarianceLeaders:
    """Items by variance: a heap of the distinct values, and for each value the bucket of items that tie at it.

    At the start of a campaign all items tie and there is one bucket; later there may be as many buckets as items. An
    empty bucket stays in the heap until it comes to the top, or until the heap has outgrown its items.
    """

    def __init__(self, items: npt.NDArray[np.intp], variance: npt.NDArray[np.float64]) -> None:
        """Arrange `items`, the numbers that may lead; `variance` is (N,), > 0, indexed by item number.

        It is shared with the caller, who removes an item before changing its variance.
        """
        self._variance, self._bags = variance, Buckets(len(variance))
        self._size = len(items)
        items = items[np.argsort(variance[items], kind="stable")]
        values, starts = np.unique(variance[items], return_index=True)
        # By the negative variance, since heapq keeps the smallest on top; the heap holds the same numbers.
        self._tied: dict[float, Bucket] = dict(
            zip((-values).tolist(), self._bags.make_bucket_of_each_run(items, starts), strict=True)
        )
        self._heap = list(self._tied)
        heapify(self._heap)

    def __len__(self) -> int:
        """Number of items that may lead."""
        return self._size

    def add(self, item: int) -> None:
        """Allow an item to lead, O(log of the distinct variances)."""
        key = -self._variance.item(item)
        self._size += 1
        if key not in self._tied:
            self._tied[key] = make_bucket()
            heappush(self._heap, key)
        self._bags.add_item(item, self._tied[key])

    def remove(self, item: int) -> None:
        """Stop an item from leading; its variance must still be the one it was added with."""
        self._size -= 1
        self._bags.remove_item(item, self._tied[-self._variance.item(item)])
        if len(self._heap) > 2 * self._size + 64:
            self._drop_empty_buckets()
        while self._heap and not self._tied[self._heap[0]]:
            del self._tied[heappop(self._heap)]

    def record_value_change(self, item: int, old_score: float, old_judgments: int, old_status: int) -> None:
        """Do nothing: the order does not depend on previous values."""

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return the item of highest variance that is not barred, ties uniformly at random; None if all are barred.

        The cost grows with the number barred, not with the number of items.
        """
        for key in self._iterate_keys_in_draw_order():
            bucket = self._tied[key]
            if (item := self._bags.pick_item_or_none(bucket, barred, rng)) is not None:
                return Pick(item, 1.0 / self._bags.count_items_not_barred(bucket, barred))
        return None

    def iterate_all_leaders_fewest_judgments_first(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all items that are not barred, in the order of `draw_leader_or_none`.

        The caller bars each item before the next one.
        """
        for key in self._iterate_keys_in_draw_order():
            yield from iterate_bucket(self._bags, self._tied[key], barred, rng)

    def require_consistency(self, items: npt.NDArray[np.intp]) -> None:
        """Raise ValueError unless just these items may lead, found by their variance from the highest down.

        For tests.
        """
        variance = self._variance
        found_order = [(-key, sorted(self._tied[key])) for key in self._iterate_keys_in_draw_order()]
        expected = [(value, items[variance[items] == value].tolist()) for value in np.unique(variance[items])[::-1]]
        if [pair for pair in found_order if pair[1]] != expected or self._size != len(items):
            raise ValueError(f"found {found_order}, not {expected}")
        if not len(found_order) == len(dict(found_order)) == len(self._heap) == len(self._tied):
            raise ValueError("a variance occurs twice, or is missing in one place")
        if found_order and not found_order[0][1]:
            raise ValueError("the first variance has no item")

    @property
    def variance_bucket_count(self) -> int:
        """Number of distinct variances in the heap, including those without items."""
        return len(self._heap)

    def _iterate_keys_in_draw_order(self) -> Iterator[float]:
        """Yield the keys from the highest variance down; the heap stays as it is, and children come after parents."""
        heap = self._heap
        frontier = [(value, 0) for value in heap[:1]]
        while frontier:
            value, heap_position = heappop(frontier)
            yield value
            for child, child_value in enumerate(
                heap[2 * heap_position + 1 : 2 * heap_position + 3], 2 * heap_position + 1
            ):
                heappush(frontier, (child_value, child))

    def _drop_empty_buckets(self) -> None:
        self._tied = {key: bucket for key, bucket in self._tied.items() if bucket}
        self._heap = list(self._tied)
        heapify(self._heap)


def iterate_bucket(buckets: Buckets, bucket: Bucket, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
    """Yield the items of a bucket in a random order; the caller bars each item before the next one."""
    while (item := buckets.pick_item_or_none(bucket, barred, rng)) is not None:
        yield item
