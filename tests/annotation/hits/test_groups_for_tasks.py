"""Whether some list of conditions, or one block of it, has enough open items for a task."""

from typing import Any, NamedTuple

import numpy as np

from app.annotation.hits.condition_blocks import can_any_list_or_block_fill_task, count_own_tasks
from app.annotation.hits.condition_counts import (
    SquareCounts,
    count_annotators_by_list_and_order,
    item_and_judgment_counts_of_conditions,
)
from app.annotation.hits.item_conditions import build_item_conditions
from tests.annotation.hits.campaigns import NOW, create_running_campaign


class GotHit(NamedTuple):
    id: int
    item: int | None
    is_open: bool = False


# Items 0, 1 and 2 have the first condition, 3 and 4 the second, and 5 none.
ROWS = [(0, "a", None), (1, "a", None), (2, "a", None), (3, "b", None), (4, "b", None)]


def test_with_blocks_the_items_of_a_task_have_one_condition():
    conditions = build_item_conditions(ROWS, 6, "random", has_contents=False)
    assert can_any_list_or_block_fill_task(conditions, [0, 1, 3], 2)
    assert not can_any_list_or_block_fill_task(conditions, [0, 3], 2)
    assert not can_any_list_or_block_fill_task(conditions, [0, 5], 2)
    assert not can_any_list_or_block_fill_task(conditions, [], 1)


def test_without_blocks_they_may_have_any():
    conditions = build_item_conditions(ROWS, 6, "none", has_contents=False)
    assert can_any_list_or_block_fill_task(conditions, [0, 3], 2)
    assert not can_any_list_or_block_fill_task(conditions, [0, 3], 3)
    assert not can_any_list_or_block_fill_task(conditions, [0, 5], 2)


def test_items_that_joined_later_may_be_of_any_group():
    conditions = build_item_conditions(ROWS, 6, "random", has_contents=False)
    assert can_any_list_or_block_fill_task(conditions, [0, 6], 2)
    assert not can_any_list_or_block_fill_task(conditions, [0, 4], 2)


def test_a_task_of_an_item_without_a_condition_counts_for_no_block():
    conditions = build_item_conditions(ROWS, 6, "random", has_contents=False)
    hits: list[Any] = [GotHit(number, item) for number, item in ((1, 0), (2, 5), (3, 3), (4, None), (5, 4))]
    tasks = count_own_tasks(hits, [0, 1], conditions, [None, None], held_hit=None, answered_hits={1, 2, 3, 4})
    assert (tasks.place, tasks.counts) == (1, [1, 2])


def test_with_contents_the_items_of_a_task_are_in_one_list():
    """Lists of contents x, y and z under the conditions a, b and c: each has every content under one condition."""
    rows = [
        (3 * content + condition, "abc"[condition], "xyz"[content]) for content in range(3) for condition in range(3)
    ]
    lists = build_item_conditions(rows, 9, "none", has_contents=True)
    first = [number for number, is_shown in enumerate(lists.mask_of_items_shown_to_square_row(0)) if is_shown]
    assert len(first) == 3
    assert can_any_list_or_block_fill_task(lists, first, 3)
    assert not can_any_list_or_block_fill_task(lists, [*first[:2], *({0, 1, 2} - {*first})], 3)
    blocks = build_item_conditions(rows, 9, "random", has_contents=True)
    assert not can_any_list_or_block_fill_task(blocks, first, 2)
    assert can_any_list_or_block_fill_task(blocks, first, 1)


def test_judgments_are_counted_by_condition_without_items_that_have_none_or_joined_later():
    conditions = build_item_conditions(ROWS, 6, "random", has_contents=False)
    counts = item_and_judgment_counts_of_conditions(conditions, np.array([1, 2, 3, 10, 20, 400, 5000]))
    assert [(one.condition, one.items, one.judgments) for one in counts] == [("a", 3, 6), ("b", 2, 30)]


async def test_a_campaign_without_conditions_counts_nobody_by_list_or_order(engine):
    campaign = await create_running_campaign(engine)
    async with engine.connect() as connection:
        counts = await count_annotators_by_list_and_order(connection, campaign, [], now=NOW)
    assert counts == SquareCounts((), (), ())
