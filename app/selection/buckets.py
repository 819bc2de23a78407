"""Items sorted into bags, so that one can be put in, taken out or picked at random in constant time."""

from collections.abc import Iterator
from itertools import filterfalse
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bucket = list[int]


class Pick(NamedTuple):
    """An item, and the probability with which it was picked among those that might have been."""

    item: int
    probability: float


class Buckets:
    """Where each of N items lies in its bag; an item lies in at most one bag of the same `Bags`.

    A bag is a plain list in no particular order: whoever wants a random item picks a random place.
    """

    def __init__(self, size: int) -> None:
        self._place = np.zeros(size, dtype=np.int32)

    def fill_buckets(self, items: npt.NDArray[np.intp], starts: npt.NDArray[np.intp]) -> list[Bucket]:
        """One bag for each run items[starts[b]:starts[b + 1]]; the fast way to begin with many items."""
        sizes = np.diff(starts, append=len(items))
        self._place[items] = np.arange(len(items)) - np.repeat(starts, sizes)
        numbers, ends = items.tolist(), (starts + sizes).tolist()
        return [numbers[start:end] for start, end in zip(starts.tolist(), ends, strict=True)]

    def add_item(self, item: int, bucket: Bucket) -> None:
        """Put in an item that lies in no bag."""
        self._place[item] = len(bucket)
        bucket.append(item)

    def remove_item(self, item: int, bucket: Bucket) -> None:
        """Take an item out of the bag it lies in; the last one moves to its place."""
        place, last = self._place.item(item), bucket.pop()
        if last != item:
            bucket[place] = last
            self._place[last] = place

    def pick_item(self, bucket: Bucket, barred: set[int], rng: np.random.Generator) -> int | None:
        """One item of the bag that is not barred, uniformly; None if there is none."""
        if len(bucket) == 1 and bucket[0] in barred:  # as with most whom an annotator has seen
            return None
        if len(bucket) > 2 * len(barred):  # then a pick is good more often than not, however large the bag
            return next(item for item in _random_picks(bucket, rng) if item not in barred)
        free = [*filterfalse(barred.__contains__, bucket)]
        return free[int(rng.random() * len(free))] if free else None

    def count_allowed(self, bucket: Bucket, barred: set[int]) -> int:
        """How many items of the bag are not barred. The cost grows with the number barred, not with the bag."""
        return 1 if len(bucket) == 1 else len(bucket) - sum(self._contains(bucket, item) for item in barred)

    def _contains(self, bucket: Bucket, item: int) -> bool:
        """Also of an item that has joined since these were counted."""
        place = self._place.item(item) if item < len(self._place) else len(bucket)
        return place < len(bucket) and bucket[place] == item


def _random_picks(bucket: Bucket, rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield bucket[int(rng.random() * len(bucket))]
