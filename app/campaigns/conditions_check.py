"""Check at the launch that the conditions and contents of items make a Latin square, and that tasks fit its blocks."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.item_conditions import NO_CONDITION, ItemConditions, build_item_conditions, condition_cell_sql
from app.designs.campaign import Campaign
from app.errors import Conflict, pluralize, shorten_echo
from app.selection.condition_squares import MAX_CONDITIONS

MAX_NAMED_ITEMS = 20  # without a cell, in a refusal
CELL_ROWS_PER_BATCH = 5_000
MAX_ITEMS_CHECKED_WHILE_EDITING = 50_000

HAS_ITEMS_THAT_ARE_QUICK_TO_CHECK = text("""
    SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign)
        AND NOT EXISTS (SELECT FROM items WHERE campaign_id = :campaign AND number >= :most)
""")

# Items that every task shows need no condition.
SELECT_CELLS_OF_ITEMS = text(f"""
    SELECT i.number, i.external_id, {condition_cell_sql("condition")} AS condition,
           {condition_cell_sql("content")} AS content
    FROM items i JOIN campaigns c ON c.id = i.campaign_id
    WHERE i.campaign_id = :campaign AND i.number <> ALL(c.always_shown) ORDER BY i.number
""")


@dataclass
class EmptyCells:
    """Items without a cell in a column: how many, the id of the first one, and the numbers of the first few."""

    count: int = 0
    first_item: str = ""
    numbers: list[int] = field(default_factory=list)

    def add(self, rows: Iterable[Row[tuple[int, str, str, str]]]) -> None:
        """Count more items."""
        for row in rows:
            if not self.count:
                self.first_item = row.external_id
            if self.count < MAX_NAMED_ITEMS:
                self.numbers.append(row.number)
            self.count += 1


async def refuse_unfit_conditions_and_contents(connection: AsyncConnection, campaign: Campaign) -> None:
    """Refuse a launch in which the columns of conditions and contents do not fit the settings.

    The numbers of items that every task shows must be stored before.

    Raises:
        Conflict: `not_for_systems`, `condition_column_missing`, `condition_cell_missing`, `one_condition`,
            `too_many_conditions`, `content_column_missing`, `content_cell_missing`, `content_incomplete`,
            `too_few_items_in_block`, `too_few_tasks_for_blocks`, `too_few_items_for_tasks`.

    """
    if campaign.condition_column is None:
        return
    if campaign.segment_count:
        raise Conflict(
            f"“{campaign.name}” compares systems, which are its conditions already. Empty the column of conditions, "
            "then launch.",
            code="not_for_systems",
        )
    conditions = await load_item_conditions_or_refuse_empty_cells(connection, campaign)
    refuse_one_or_too_many_conditions(campaign, conditions)
    if conditions.content is not None:
        await refuse_incomplete_contents(connection, campaign, conditions)
    refuse_blocks_without_tasks(campaign, conditions)


async def refuse_added_items_that_break_conditions(
    connection: AsyncConnection, campaign: Campaign, first_number: int
) -> None:
    """Refuse items, from the first number on, that would change the square of a launched campaign.

    More items leave no block with fewer, so the tasks of blocks are not checked again.

    Raises:
        Conflict: `condition_added`, `condition_cell_missing`, `content_cell_missing`, `content_incomplete`.

    """
    if campaign.condition_column is None:
        return
    conditions = await load_item_conditions_or_refuse_empty_cells(connection, campaign)
    known_count = int(conditions.condition[:first_number].max()) + 1
    if known_count < len(conditions.names):
        raise Conflict(
            f"The condition “{shorten_echo(conditions.names[known_count])}” is new, but the launch has fixed the "
            "conditions. Nothing was imported.",
            code="condition_added",
        )
    if conditions.content is not None:
        await refuse_incomplete_contents(connection, campaign, conditions)


async def load_item_conditions_or_refuse_empty_cells(connection: AsyncConnection, campaign: Campaign) -> ItemConditions:
    """Return the conditions of the items. Raises `Conflict` if a column or a cell is missing."""
    assert campaign.condition_column is not None  # noqa: S101  (the caller checked)
    key = {"campaign": campaign.id, "condition": campaign.condition_column, "content": campaign.content_column}
    rows: list[tuple[int, str, str | None]] = []
    without_condition, without_content = EmptyCells(), EmptyCells()
    result = await connection.stream(SELECT_CELLS_OF_ITEMS, key)
    async for batch in result.partitions(CELL_ROWS_PER_BATCH):  # other requests are served in between
        rows += [(row.number, row.condition, row.content) for row in batch]
        without_condition.add(row for row in batch if not row.condition)
        without_content.add(row for row in batch if not row.content)
    refuse_empty_condition_cells(campaign.condition_column, without_condition, len(rows))
    if campaign.content_column is not None:
        refuse_empty_content_cells(campaign.content_column, without_content, len(rows))
    return await asyncio.to_thread(
        build_item_conditions,
        rows,
        1 + rows[-1][0],
        campaign.block_order,
        has_contents=campaign.content_column is not None,
    )


def refuse_empty_condition_cells(column: str, empty: EmptyCells, item_count: int) -> None:
    """Raise `Conflict` if the column of conditions, or a cell in it, is missing."""
    if empty.count == item_count:
        raise Conflict(
            f"The column “{shorten_echo(column)}”, which names conditions, is empty for every item. Upload the items "
            "with this column, or empty the setting, then launch.",
            code="condition_column_missing",
            setting="condition_column",
        )
    if empty.count:
        raise Conflict(
            f"The item “{shorten_echo(empty.first_item)}” has nothing in the column “{shorten_echo(column)}”, "
            "which names its condition. Fill the column for every item, then try again.",
            code="condition_cell_missing",
            setting="condition_column",
            items=empty.numbers,
        )


def refuse_empty_content_cells(column: str, empty: EmptyCells, item_count: int) -> None:
    """Raise `Conflict` if the column of contents, or a cell in it, is missing."""
    if empty.count == item_count:
        raise Conflict(
            f"The column “{shorten_echo(column)}”, which names contents, is empty for every item. Upload the items "
            "with this column, or empty the setting, then launch.",
            code="content_column_missing",
            setting="content_column",
        )
    if empty.count:
        raise Conflict(
            f"The item “{shorten_echo(empty.first_item)}” has nothing in the column “{shorten_echo(column)}”, "
            "which names its content. Fill the column for every item, then try again.",
            code="content_cell_missing",
            setting="content_column",
            items=empty.numbers,
        )


def refuse_one_or_too_many_conditions(campaign: Campaign, conditions: ItemConditions) -> None:
    """Raise `Conflict` if there is one condition, or if they are too many."""
    count, column = len(conditions.names), shorten_echo(campaign.condition_column or "")
    if count == 1:
        raise Conflict(
            f"All items have the same condition in the column “{column}”. Blocks and lists need two or more.",
            code="one_condition",
            setting="condition_column",
        )
    if count > MAX_CONDITIONS:
        raise Conflict(
            f"The column “{column}” names {count:,} conditions, and at most {MAX_CONDITIONS} are possible. Choose "
            "another column, then launch.",
            code="too_many_conditions",
            setting="condition_column",
        )


async def refuse_incomplete_contents(
    connection: AsyncConnection, campaign: Campaign, conditions: ItemConditions
) -> None:
    """Raise `Conflict` (`content_incomplete`) if a content has no item under one of the conditions."""
    assert conditions.content is not None  # noqa: S101  (the caller checked)
    has_condition = np.flatnonzero(conditions.condition != NO_CONDITION)
    content, condition = conditions.content[has_condition], conditions.condition[has_condition]
    counts = np.zeros((int(content.max()) + 1, len(conditions.names)), np.int64)
    np.add.at(counts, (content, condition), 1)
    missing = np.argwhere(counts == 0)
    if len(missing):
        content_number, condition_number = missing[0].tolist()
        item = int(has_condition[np.argmax(content == content_number)])
        key = {"campaign": campaign.id, "number": item, "column": campaign.content_column}
        name = await connection.scalar(SELECT_CONTENT_OF_ITEM, key)
        raise Conflict(
            f"The content “{shorten_echo(name)}” has no item in the condition "
            f"“{shorten_echo(conditions.names[condition_number])}”. Each content needs an item in every condition.",
            code="content_incomplete",
            setting="content_column",
        )


SELECT_CONTENT_OF_ITEM = text(f"""
    SELECT {condition_cell_sql("column")} FROM items WHERE campaign_id = :campaign AND number = :number
""")


def refuse_blocks_without_tasks(campaign: Campaign, conditions: ItemConditions) -> None:
    """Raise `Conflict` if a block, or a list without blocks, has fewer items than a task shows, or no task."""
    square, has_blocks = conditions.square, campaign.block_order != "none"
    needed = campaign.items_per_hit - len(campaign.design.always_shown)
    for row in range(square.n if square.has_contents else 1):
        shown = conditions.condition[conditions.mask_of_items_shown_to_square_row(row)]
        counts = np.bincount(shown, minlength=square.n) if has_blocks else np.array([len(shown)])
        if counts.min() < needed:
            where = (
                f"The block of the condition “{shorten_echo(conditions.names[int(counts.argmin())])}”"
                if has_blocks
                else "A list"
            )
            raise Conflict(
                f"{where} has {pluralize(int(counts.min()), 'item')} for one person, but a task shows {needed}. Show "
                "fewer items per task, or upload more, then launch.",
                code="too_few_items_in_block",
                setting="items_per_hit",
            )
    if has_blocks:
        refuse_task_limit_that_cuts_off_blocks(campaign, square.n, campaign.hits_per_annotator)
        refuse_blocks_without_items_for_all_tasks(campaign, conditions)


def refuse_blocks_without_items_for_all_tasks(campaign: Campaign, conditions: ItemConditions) -> None:
    """Raise `Conflict` (`too_few_items_for_tasks`) if `tasks_per_block` needs more items than a block has.

    Tasks of checks need none of its items, and their number is not known before: with checks there is only a note.
    """
    short = smallest_block_if_too_short_or_none(campaign, conditions)
    if short is not None and campaign.tasks_per_block is not None and campaign.checks_percent is None:
        raise Conflict(
            f"{short.sentence} Set the tasks per block to at most {short.possible_tasks:,}, upload more items, or show "
            "items again, then launch.",
            code="too_few_items_for_tasks",
            setting="tasks_per_block",
            most=short.possible_tasks,
        )


@dataclass(frozen=True)
class ShortBlock:
    """A block whose items are too few for its tasks, and how many tasks they are enough for."""

    sentence: str
    possible_tasks: int


def smallest_block_if_too_short_or_none(campaign: Campaign, conditions: ItemConditions) -> ShortBlock | None:
    """Return the block with the fewest items for one person, if its tasks need more and people see no item twice."""
    limit, square = campaign.hits_per_annotator, conditions.square
    tasks = campaign.tasks_per_block or (None if limit is None else -(-int(limit) // square.n))
    if tasks is None or campaign.repeat_items or campaign.block_order == "none":
        return None
    counts = np.stack(
        [
            np.bincount(conditions.condition[conditions.mask_of_items_shown_to_square_row(row)], minlength=square.n)
            for row in range(square.n if square.has_contents else 1)
        ]
    )
    item_count, shown_count = int(counts.min()), campaign.items_per_hit - len(campaign.design.always_shown)
    if item_count >= tasks * shown_count:
        return None
    name = shorten_echo(conditions.names[int(counts.min(axis=0).argmin())])
    return ShortBlock(
        f"The block of the condition “{name}” has {pluralize(item_count, 'item')} for one person, but "
        f"{pluralize(tasks, 'task')} of {shown_count} need {tasks * shown_count:,}, and nobody sees an item twice.",
        item_count // shown_count,
    )


async def load_short_block_note_or_empty(
    connection: AsyncConnection, campaign: Campaign, *, with_refusals: bool = False
) -> str:
    """Return why a block ends before its tasks, or on request why the launch will be refused; empty if all is well.

    Empty, too, for more than `MAX_ITEMS_CHECKED_WHILE_EDITING`, and for a draft with items that every task shows, which
    are found at the launch.
    """
    if campaign.condition_column is None or (campaign.status == "draft" and campaign.design.always_shown):
        return ""
    key = {"campaign": campaign.id, "most": MAX_ITEMS_CHECKED_WHILE_EDITING}
    if not await connection.scalar(HAS_ITEMS_THAT_ARE_QUICK_TO_CHECK, key):
        return ""
    try:
        await refuse_unfit_conditions_and_contents(connection, campaign)
    except Conflict as refusal:
        return refusal.message if with_refusals else ""
    conditions = await load_item_conditions_or_refuse_empty_cells(connection, campaign)
    short = smallest_block_if_too_short_or_none(campaign, conditions)
    return f"{short.sentence} It ends after {pluralize(short.possible_tasks, 'task')}." if short else ""


def refuse_task_limit_that_cuts_off_blocks(campaign: Campaign, condition_count: int, limit: float | None) -> None:
    """Raise `Conflict` (`too_few_tasks_for_blocks`) if a limit of tasks per annotator cuts a block off."""
    needed = condition_count * (campaign.tasks_per_block or 1)
    if limit is not None and limit < needed:
        of_tasks = f" of {pluralize(campaign.tasks_per_block, 'task')}" if campaign.tasks_per_block else ""
        raise Conflict(
            f"Each person gets {pluralize(int(limit), 'task')}, but there are {condition_count} blocks{of_tasks}. "
            f"Set the tasks per annotator to at least {needed:,}, or leave them empty.",
            code="too_few_tasks_for_blocks",
            setting="hits_per_annotator",
            least=needed,
        )


COUNT_CONDITIONS = text(f"""
    SELECT count(DISTINCT {condition_cell_sql("condition")})
    FROM items i JOIN campaigns c ON c.id = i.campaign_id
    WHERE i.campaign_id = :campaign AND i.number <> ALL(c.always_shown)
      AND {condition_cell_sql("condition")} <> ''
""")


async def refuse_limit_that_moves_blocks(
    connection: AsyncConnection, campaign: Campaign, new_limit: float | None
) -> None:
    """Refuse a new limit of tasks per annotator that would change where blocks of a launched campaign end.

    Raises:
        Conflict: `blocks_are_fixed` if the limit divides the tasks among the blocks, `too_few_tasks_for_blocks`.

    """
    if campaign.block_order == "none" or campaign.status == "draft" or new_limit == campaign.hits_per_annotator:
        return
    if campaign.tasks_per_block is None:
        raise Conflict(
            f"“{campaign.name}” is {campaign.status}, and the tasks per annotator decide where its blocks end, so "
            "people who have begun would have blocks of different lengths. Nothing was changed. To change the limit, "
            "copy the campaign.",
            code="blocks_are_fixed",
            setting="hits_per_annotator",
        )
    key = {"campaign": campaign.id, "condition": campaign.condition_column}
    refuse_task_limit_that_cuts_off_blocks(campaign, await connection.scalar(COUNT_CONDITIONS, key) or 0, new_limit)
