"""Latin squares of conditions: the order in which an annotator meets conditions, and the contents of each condition.

A row of the square says for one annotator which condition each content has, and in which order the conditions come.
Rows are given out in balance, so every condition is equally often at each place, and every content equally often under
each condition.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Content = TypeVar("Content", int, npt.NDArray[np.int32])  # a number, or several
MAX_CONDITIONS = 24  # of a campaign; an annotator has no more blocks, and there are no more lists
BlockOrder = Literal["none", "balanced", "random", "fixed"]
# What `responses.extra` of an imported answer calls where its task was in the square of the campaign it comes from:
# the block of each shown item, or None, and the list.
SQUARE_PLACE_KEY, BLOCKS_KEY, LIST_KEY = "square_place", "blocks", "list"


class RowUse(NamedTuple):
    """Annotators with a row of the square: those who are at work or done, and all with those who left early."""

    staying: int = 0
    total: int = 0


@cache
def williams_orders(n: int) -> Sequence[tuple[int, ...]]:
    """Return the orders of a Williams design of n >= 1 conditions, numbered from 0.

    Every condition is equally often at each place, and follows every other one equally often. There are n orders if n
    is even, else 2n: a Latin square and its mirror image (Williams 1949).
    """
    zigzag = [(place + 1) // 2 if place % 2 else (n - place // 2) % n for place in range(n)]
    orders = [tuple((condition + row) % n for condition in zigzag) for row in range(n)]
    return orders if n % 2 == 0 else [*orders, *(order[::-1] for order in orders)]


@dataclass(frozen=True)
class ConditionSquare:
    """The rows that the annotators of a campaign have.

    Attributes:
        n: Number of conditions, at least 2.
        block_order: How the order of conditions is chosen; `none` if conditions are mixed.
        has_contents: Whether each annotator sees each content under one condition only.

    """

    n: int
    block_order: BlockOrder
    has_contents: bool

    @property
    def row_count(self) -> int:
        """Number of rows: of lists, of orders, or of both together if there are both."""
        lists = self.n if self.has_contents else 1
        return lists * len(williams_orders(self.n)) if self.block_order == "balanced" else lists

    @property
    def block_count(self) -> int:
        """Number of blocks of all lists; without an order of conditions, a list is one block."""
        lists = self.n if self.has_contents else 1
        return lists if self.block_order == "none" else lists * self.n

    def index_of_list_of_square_row(self, row: int) -> int:
        """Return the list of a row: content c has the condition (c + list) mod n."""
        return row % self.n if self.has_contents else 0

    def condition_of_content(self, row: int, content: Content) -> Content:
        """Return the condition under which an annotator with this row sees a content, or that of each of several."""
        return (content + self.index_of_list_of_square_row(row)) % self.n

    def block_order_of_row(self, row: int, random_seed: Sequence[int] = ()) -> tuple[int, ...]:
        """Return the conditions in the order in which an annotator with this row meets them.

        `random_seed` decides a random order, so it differs between annotators. With lists and balanced orders, the
        orders of one list are all used before one of them is used again, and so are the lists of one order.
        """
        if self.block_order == "random":
            return tuple(np.random.default_rng(random_seed).permutation(self.n).tolist())
        if self.block_order != "balanced":
            return tuple(range(self.n))
        orders = williams_orders(self.n)
        if not self.has_contents:
            return orders[row]
        # Each run of n rows has every list once, and one Latin square of orders, shifted by one from run to run.
        run, place = divmod(row, self.n)
        mirrored = self.n * (run % 2) if len(orders) > self.n else 0
        return orders[mirrored + (place + run) % self.n]


def choose_least_used_row(row_count: int, use_by_row: Mapping[int, RowUse]) -> int:
    """Return the row for the next annotator: the one with the fewest annotators who stay.

    If several have as few, it is the one with the fewest annotators at all, then the first one.
    """
    return min(range(row_count), key=lambda row: (use_by_row.get(row, RowUse()), row))
