"""Items sorted into bags, so that one can be put in, taken out or picked at random in constant time."""

import numpy as np
import numpy.typing as npt

Bag = list[int]


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
