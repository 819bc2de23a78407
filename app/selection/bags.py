"""Items sorted into bags, so that one can be put in, taken out or picked at random in constant time."""

from collections.abc import Iterator
from itertools import filterfalse
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bag = list[int]


class Picked(NamedTuple):
    """An item, and the probability with which it was picked among those that might have been."""

    item: int
    probability: float


class Bags:
    """Where each of N items lies in its bag; an item lies in at most one bag of the same `Bags`.

    A bag is a plain list in no particular order: whoever wants a random item picks a random place.
    """

    def __init__(self, size: int) -> None:
        self._place = np.zeros(size, dtype=np.int32)

    def fill(self, items: npt.NDArray[np.intp], starts: npt.NDArray[np.intp]) -> list[Bag]:
        """One bag for each run items[starts[b]:starts[b + 1]]; the fast way to begin with many items."""
        sizes = np.diff(starts, append=len(items))
        self._place[items] = np.arange(len(items)) - np.repeat(starts, sizes)
        everything, ends = items.tolist(), (starts + sizes).tolist()
        return [everything[start:end] for start, end in zip(starts.tolist(), ends, strict=True)]

    def put(self, item: int, bag: Bag) -> None:
        """Put in an item that lies in no bag."""
        self._place[item] = len(bag)
        bag.append(item)

    def take(self, item: int, bag: Bag) -> None:
        """Take an item out of the bag it lies in; the last one moves to its place."""
        place, last = self._place.item(item), bag.pop()
        if last != item:
            bag[place] = last
            self._place[last] = place

    def pick(self, bag: Bag, barred: set[int], rng: np.random.Generator) -> int | None:
        """One item of the bag that is not barred, uniformly; None if there is none."""
        if len(bag) == 1 and bag[0] in barred:  # as with most whom an annotator has seen
            return None
        if len(bag) > 2 * len(barred):  # then a pick is good more often than not, however large the bag
            return next(item for item in _picks(bag, rng) if item not in barred)
        free = [*filterfalse(barred.__contains__, bag)]
        return free[int(rng.random() * len(free))] if free else None

    def among(self, bag: Bag, barred: set[int]) -> int:
        """How many items of the bag are not barred. The cost grows with the number barred, not with the bag."""
        return 1 if len(bag) == 1 else len(bag) - sum(self._holds(bag, item) for item in barred)

    def _holds(self, bag: Bag, item: int) -> bool:
        """Also of an item that has joined since these were counted."""
        place = self._place.item(item) if item < len(self._place) else len(bag)
        return place < len(bag) and bag[place] == item


def _picks(bag: Bag, rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield bag[int(rng.random() * len(bag))]
