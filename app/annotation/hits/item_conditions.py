"""Items under several conditions, in the memory of a process: which ones an annotator sees in a block."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from app.annotation.hits.item_audiences import NO_ITEMS_OF_OTHERS, ItemsOfOthers
from app.selection.condition_squares import BlockOrder, ConditionSquare

MAX_BLOCK_MASK_BYTES = 64_000_000  # of a copy of a campaign: all blocks of eight lists at a million items
# SQL: what may stand around the text of a cell unseen; also no-break and zero-width spaces.
BLANKS_SQL = r"E' \t\r\n\u00a0\u2007\u200b\u202f\ufeff'"
NO_CONDITION = -1  # of an item that every HIT shows


def condition_cell_sql(parameter: str) -> str:
    """Return SQL for the text that an item has in the column named by a parameter: cells that look alike are equal."""
    return f"normalize(btrim(fields ->> CAST(:{parameter} AS text), {BLANKS_SQL}), NFC)"


@dataclass(frozen=True)
class PlaceInBlocks:
    """Where an annotator is in the blocks of conditions.

    Attributes:
        items_outside: Items that the present block does not show.
        later_blocks: For each later block the items that it does not show.
        is_first_task: True before the first task of a block that follows another one.
        is_last_task: True if the block ends with the next task.

    """

    items_outside: ItemsOfOthers = NO_ITEMS_OF_OTHERS
    later_blocks: Sequence[ItemsOfOthers] = ()
    is_first_task: bool = False
    is_last_task: bool = False


NO_BLOCKS = PlaceInBlocks()


@dataclass(frozen=True)
class LeaversByRow:
    """How many annotators with each row of the square had left early at a time."""

    counts: Mapping[int, int]
    counted_at: datetime


def memory_bytes_of_mask(items: ItemsOfOthers) -> int:
    """Return the memory that the mask of these items takes."""
    return 0 if items.mask is None else items.mask.nbytes


@dataclass(frozen=True)
class ItemConditions:
    """The conditions and contents of the items of a campaign.

    Attributes:
        names: Conditions in the order of their first items, which numbers them.
        condition: (N,), the number of each item's condition; `NO_CONDITION` if it has none.
        content: (N,), the number of each item's content in the order of their first items; None without contents.
        block_order: How the order of conditions is chosen.
        outside: Items outside a block that were computed before, by the list of the annotator and the condition.

    """

    names: Sequence[str]
    condition: npt.NDArray[np.int16]
    content: npt.NDArray[np.int32] | None
    block_order: BlockOrder
    outside: LRUCache[tuple[int, int | None], ItemsOfOthers] = field(
        default_factory=lambda: LRUCache(MAX_BLOCK_MASK_BYTES, getsizeof=memory_bytes_of_mask), compare=False
    )

    @property
    def square(self) -> ConditionSquare:
        """The rows that annotators have."""
        return ConditionSquare(len(self.names), self.block_order, has_contents=self.content is not None)

    def mask_of_items_shown_to_square_row(self, row: int) -> npt.NDArray[np.bool_]:
        """Return for each item whether an annotator with this row of the square sees it, in any block."""
        has_condition: npt.NDArray[np.bool_] = self.condition != NO_CONDITION
        if self.content is None:
            return has_condition
        is_in_list: npt.NDArray[np.bool_] = self.condition == self.square.condition_of_content(row, self.content)
        return has_condition & is_in_list

    async def items_outside_block(self, row: int, condition: int | None) -> ItemsOfOthers:
        """Return the items that an annotator with this row does not see in the block of a condition.

        Without a condition there are no blocks: it is what they never see. A thread computes them, O(N), unless they
        are remembered.
        """
        key = self.square.index_of_list_of_square_row(row), condition
        if (outside := self.outside.get(key)) is None:
            outside = self.outside[key] = ItemsOfOthers(await asyncio.to_thread(self.mask_outside_block, *key))
        return outside

    def mask_outside_block(self, row: int, condition: int | None) -> npt.NDArray[np.bool_]:
        """Return for each item whether `items_outside_block` has it."""
        shown = self.mask_of_items_shown_to_square_row(row)
        return ~(shown if condition is None else shown & (self.condition == condition))

    def all_items(self) -> ItemsOfOthers:
        """Return all items, for an annotator who has no block left."""
        return ItemsOfOthers(np.ones(len(self.condition), np.bool_))

    def condition_of_hit_or_none(self, items: Iterable[int]) -> int | None:
        """Return the condition of the items of a HIT; None if it has no item with a condition."""
        conditions = (self.condition.item(item) for item in items if item < len(self.condition))
        return next((condition for condition in conditions if condition != NO_CONDITION), None)


def build_item_conditions(
    rows: Iterable[tuple[int, str, str | None]], item_count: int, block_order: BlockOrder, *, has_contents: bool
) -> ItemConditions:
    """Return the conditions of items, given the number, condition and content of each in the order of their numbers.

    `item_count` is the number of all items; items without a row have no condition.
    """
    number_by_condition: dict[str, int] = {}
    number_by_content: dict[str | None, int] = {}
    condition = np.full(item_count, NO_CONDITION, np.int16)
    content = np.zeros(item_count, np.int32) if has_contents else None
    for number, condition_name, content_name in rows:
        if number < item_count:  # others joined after this copy
            condition[number] = number_by_condition.setdefault(condition_name, len(number_by_condition))
            if content is not None:
                content[number] = number_by_content.setdefault(content_name, len(number_by_content))
    return ItemConditions([*number_by_condition], condition, content, block_order)
