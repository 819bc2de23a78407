"""Items that are only for some people, in the memory of a process: which ones are for others than an annotator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

AUDIENCE_SEPARATOR = "|"
MAX_AUDIENCE_SETS = 32  # in a copy of a campaign: different sets of groups and answers of annotators


def parse_audiences(cell: str) -> list[str]:
    """Return the groups and answers in a cell, such as `experts | native_language = German`."""
    audiences = (part.strip() for part in cell.split(AUDIENCE_SEPARATOR))
    return ["=".join(half.strip() for half in part.split("=", 1)) for part in audiences if part]


@dataclass(frozen=True)
class ItemsOfOthers:
    """Items that are only for other people than an annotator.

    Attributes:
        mask: True at their numbers, for all items; None if there are none.

    """

    mask: npt.NDArray[np.bool_] | None = None


NO_ITEMS_OF_OTHERS = ItemsOfOthers()


@dataclass(frozen=True)
class ItemAudiences:
    """Items that are only for some people.

    Attributes:
        items_by_audience: Numbers of items by the group or answer of their people.
        is_assigned: For each item whether it is only for some people.
        items_of_others: What was computed before, by the audiences that an annotator belongs to.

    """

    items_by_audience: Mapping[str, npt.NDArray[np.int32]]
    is_assigned: npt.NDArray[np.bool_]
    items_of_others: LRUCache[frozenset[str], ItemsOfOthers] = field(
        default_factory=lambda: LRUCache(MAX_AUDIENCE_SETS), compare=False
    )

    def own_audiences(self, audiences: Iterable[str]) -> frozenset[str]:
        """Return those of an annotator's groups and answers that items are for."""
        return frozenset(audience for audience in audiences if audience in self.items_by_audience)

    def items_of_others_than(self, audiences: frozenset[str]) -> ItemsOfOthers:
        """Return the items for other people than those of these audiences. O(N) unless it was computed before."""
        if (others := self.items_of_others.get(audiences)) is None:
            mask = self.is_assigned.copy()
            for audience in audiences:
                mask[self.items_by_audience[audience]] = False
            others = ItemsOfOthers(mask)
            self.items_of_others[audiences] = others
        return others


def build_item_audiences(numbers_by_cell: Iterable[tuple[str, list[int]]], item_count: int) -> ItemAudiences:
    """Return the audiences of the items with these cells. `item_count` is the number of all items."""
    numbers_by_audience: dict[str, list[int]] = {}
    is_assigned = np.zeros(item_count, np.bool_)
    for cell, numbers in numbers_by_cell:
        for audience in parse_audiences(cell):
            known_numbers = [number for number in numbers if number < item_count]  # others joined after this copy
            numbers_by_audience.setdefault(audience, []).extend(known_numbers)
            is_assigned[known_numbers] = True
    items_by_audience = {audience: np.array(numbers, np.int32) for audience, numbers in numbers_by_audience.items()}
    return ItemAudiences(items_by_audience, is_assigned)
