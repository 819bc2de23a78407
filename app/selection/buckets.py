"""Items sorted into buckets, so that one can be added, removed or picked at random in constant time."""

from array import array
from collections.abc import Iterator
from itertools import filterfalse
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from app.selection.item_sets import ItemSet

Bucket: TypeAlias = "array[int]"
EMPTY_BUCKET: Final = array("i")  # a copy takes half the time of a new array

MASKED_TRIES = 128  # random picks in a large bucket before all of its items are looked up in a mask
MAX_ITEMS_FOR_PASS = 1_000  # up to so many, a pass is as fast
LOOKUPS_PER_PLACE = 20  # items that a set looks up in the time in which Python finds the place of one


def make_bucket(items: npt.NDArray[np.integer]) -> Bucket:
    """Return a bucket of these items, (n,)."""
    bucket = array("i")
    bucket.frombytes(items.astype(np.intc).tobytes())
    return bucket


def make_empty_bucket() -> Bucket:
    """Return a bucket without items; each update of an item may need one."""
    return EMPTY_BUCKET[:]


class Pick(NamedTuple):
    """An item, and the probability with which it was picked among the candidates."""

    item: int
    probability: float


class Buckets:
    """Position of each of N items in its bucket; an item is in at most one bucket of the same `Buckets`.

    A bucket is an array in no particular order: to pick a random item, pick a random position. It takes 4 bytes for
    each item, where a list of numbers would take 36.
    """

    def __init__(self, size: int) -> None:
        self._place = np.zeros(size, dtype=np.int32)

    def make_bucket_of_each_run(self, items: npt.NDArray[np.intp], starts: npt.NDArray[np.intp]) -> list[Bucket]:
        """Return one bucket for each run items[starts[b]:starts[b + 1]]; the fast way to begin with many items."""
        sizes = np.diff(starts, append=len(items))
        self._place[items] = np.arange(len(items)) - np.repeat(starts, sizes)
        numbers, ends = make_bucket(items), (starts + sizes).tolist()
        return [numbers[start:end] for start, end in zip(starts.tolist(), ends, strict=True)]

    def make_bucket_of_items(self, items: npt.NDArray[np.intp]) -> Bucket:
        """Return a bucket of these items, (n,), which are in no bucket."""
        self._place[items] = np.arange(len(items))
        return make_bucket(items)

    def add_item(self, item: int, bucket: Bucket) -> None:
        """Add an item that is in no bucket."""
        self._place[item] = len(bucket)
        bucket.append(item)

    def remove_item(self, item: int, bucket: Bucket) -> None:
        """Remove an item from its bucket; the last item moves to its position."""
        place, last = self._place.item(item), bucket.pop()
        if last != item:
            bucket[place] = last
            self._place[last] = place

    def pick_item_or_none(self, bucket: Bucket, barred: ItemSet, rng: np.random.Generator) -> int | None:
        """Pick an item of the bucket that is not barred, uniformly; None if there is none."""
        if len(bucket) == 1:
            item = bucket[0]
            if item in barred:  # as with most whom an annotator has seen
                return None
            rng.random()  # as any other pick, so that the same seed keeps drawing the same HITs
            return item
        if len(bucket) > 2 * len(barred):  # then a pick is good more often than not, however large the bag
            return next(item for item in _iterate_random_picks(bucket, rng) if item not in barred)
        if isinstance(barred, set):
            free = [*filterfalse(barred.__contains__, bucket)]
            return free[int(rng.random() * len(free))] if free else None
        if len(bucket) > MAX_ITEMS_FOR_PASS:
            picks = (rng.random(MASKED_TRIES) * len(bucket)).astype(np.intp)
            if free_picks := barred.items_outside([make_bucket(np.frombuffer(bucket, np.intc)[picks])]):
                return free_picks[0]
        masked_free = barred.items_outside([bucket])
        return masked_free[int(rng.random() * len(masked_free))] if masked_free else None

    def count_items_not_barred(self, bucket: Bucket, barred: ItemSet) -> int:
        """Return how many items of the bucket are not barred. The cost grows with the number barred, not with the
        bucket.
        """
        if len(bucket) == 1:
            return 1
        if not isinstance(barred, set):
            return len(barred.items_outside([bucket]))
        if len(bucket) < LOOKUPS_PER_PLACE * len(barred):
            return len(bucket) - len(barred.intersection(bucket))
        items = np.fromiter(barred, np.intp, len(barred))
        items = items[items < len(self._place)]  # others are newer than these buckets
        places = self._place[items]
        are_possible = places < len(bucket)
        items_at_places = np.frombuffer(bucket, np.intc)[places[are_possible]]
        return len(bucket) - int(np.count_nonzero(items_at_places == items[are_possible]))


def _iterate_random_picks(bucket: Bucket, rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield bucket[int(rng.random() * len(bucket))]
