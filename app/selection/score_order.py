"""Items in the order of their scores, in arrays of numbers: without a Python object for each item or each score."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.buckets import Bucket, Buckets, make_bucket

MAX_REPEATED_SCORES = 16  # items of the same score that are in the arrays one by one; more of them share a bucket
MIN_BUCKET_ITEMS = 8  # fewer items leave their bucket
SEE_BUCKET = -1  # in the place of an item's number: the items of this score are in a bucket

ItemNumbers = npt.NDArray[np.intp]


class ItemsByScore:
    """Items by score, from the lowest up.

    A score with a few items is repeated, once for each of them, and an item takes 12 bytes. A score with more items is
    there once, and they share a bucket: so a million items of the same score are changed as quickly as one.

    Attributes:
        scores: The scores from the lowest up, for reading; none if there is no item.

    """

    __slots__ = ("_bucket_by_score", "_buckets", "_items", "scores")

    def __init__(self, buckets: Buckets, scores: Sequence[float] = (), items: Sequence[int] = ()) -> None:
        """Take a score and the item in each place, from the lowest score up; `buckets` has the positions in buckets."""
        self._buckets, self.scores, self._items = buckets, array("d", scores), array("i", items)
        self._bucket_by_score: dict[float, Bucket] = {}

    def add(self, item: int, score: float) -> None:
        """Add an item that is not here."""
        if (bucket := self._bucket_by_score.get(score)) is not None:
            self._buckets.add_item(item, bucket)
            return
        scores, items = self.scores, self._items
        place = bisect_left(scores, score)
        scores.insert(place, score)
        items.insert(place, item)
        end = place + MAX_REPEATED_SCORES + 1
        if end <= len(scores) and scores[end - 1] == score:
            self._bucket_by_score[score] = self._buckets.make_bucket_of_items(np.array(items[place:end], np.intp))
            scores[place:end], items[place:end] = array("d", [score]), array("i", [SEE_BUCKET])

    def remove(self, item: int, score: float) -> None:
        """Remove an item that was added with this score."""
        scores, items = self.scores, self._items
        if (bucket := self._bucket_by_score.get(score)) is None:
            place = items.index(item, bisect_left(scores, score))
            del scores[place], items[place]
            return
        self._buckets.remove_item(item, bucket)
        if len(bucket) < MIN_BUCKET_ITEMS:
            place = bisect_left(scores, score)
            del self._bucket_by_score[score]
            scores[place : place + 1], items[place : place + 1] = array("d", [score] * len(bucket)), bucket

    def iterate_buckets_outward_from(self, position: float) -> Iterator[tuple[float, Bucket]]:
        """Yield each score with a bucket of its items, from the score nearest to a position outward."""
        scores, items = self.scores, self._items
        end = len(scores)
        above = below = bisect_left(scores, position) if end > 1 else 0
        while above < end or below > 0:
            if above == end or (below > 0 and position - scores[below - 1] <= scores[above] - position):
                stop, start = below, below - 1
                score = scores[start]
                if start > 0 and scores[start - 1] == score:
                    start = bisect_left(scores, score, 0, start)
                below = start
            else:
                start, stop = above, above + 1
                score = scores[start]
                if stop < end and scores[stop] == score:
                    stop = bisect_right(scores, score, stop)
                above = stop
            yield score, self._bucket_by_score[score] if items[start] == SEE_BUCKET else items[start:stop]

    def put_items_of_score_into_bucket(self, score: float, bucket: Bucket) -> None:
        """Take the items of a score whose place says that they are in a bucket."""
        self._bucket_by_score[score] = bucket


def order_items_of_each_cell_by_score(
    items: ItemNumbers, scores: Array, cell_starts: ItemNumbers, buckets: Buckets
) -> list[ItemsByScore]:
    """Return the items of each cell; the fast way to begin with many items.

    Args:
        items: Numbers of items, (n,): those of a cell one after another, by score.
        scores: Their scores, (n,).
        cell_starts: Position of each cell's first item, (C,).
        buckets: Positions of the items in buckets.

    """
    is_first = np.diff(scores, prepend=np.nan) != 0
    is_first[cell_starts] = True
    starts = np.flatnonzero(is_first)
    sizes = np.diff(starts, append=len(items))
    is_large = sizes > MAX_REPEATED_SCORES
    is_kept = is_first | ~np.repeat(is_large, sizes)
    numbers = items.astype(np.intc)
    numbers[starts[is_large]] = SEE_BUCKET
    cell_ends = np.cumsum(is_kept)[np.append(cell_starts[1:], len(items)) - 1].tolist() if len(items) else []
    kept_scores, kept_items = array("d", scores[is_kept].tobytes()), make_bucket(numbers[is_kept])
    cells = [
        ItemsByScore(buckets, kept_scores[start:end], kept_items[start:end])
        for start, end in zip([0, *cell_ends], cell_ends, strict=False)
    ]
    cell_of_run = np.searchsorted(cell_starts, starts[is_large], side="right") - 1
    for cell, start, size in zip(
        cell_of_run.tolist(), starts[is_large].tolist(), sizes[is_large].tolist(), strict=True
    ):
        bucket = buckets.make_bucket_of_items(items[start : start + size])
        cells[cell].put_items_of_score_into_bucket(scores.item(start), bucket)
    return cells
