"""Counts of annotators by list and order of conditions, and of judgments by condition."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.condition_blocks import STAYS, load_item_conditions_once
from app.annotation.hits.item_conditions import NO_CONDITION, ItemConditions, condition_cell_sql
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.selection.condition_squares import ConditionSquare, williams_orders

SELECT_ROWS_OF_ANNOTATORS = text(f"""
    SELECT a.id, a.square_row, ({STAYS}) AS stays FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
    WHERE a.campaign_id = :campaign AND a.square_row IS NOT NULL
      AND coalesce(a.barred, '') NOT IN ('excluded', 'erased')
    ORDER BY a.id
""")

# Conditions in the order of their first items, which numbers them; see `item_conditions`.
COUNT_JUDGMENTS_BY_CONDITION = text(f"""
    SELECT {condition_cell_sql("column")} AS condition, count(*) AS items,
           coalesce(sum(p.judgments), 0) AS judgments
    FROM items i JOIN campaigns c ON c.id = i.campaign_id
    LEFT JOIN current_posteriors p ON p.campaign_id = i.campaign_id AND p.number = i.number AND p.criterion = 0
    WHERE i.campaign_id = :campaign AND i.number <> ALL(c.always_shown)
      AND {condition_cell_sql("column")} <> ''
    GROUP BY 1 ORDER BY min(i.number)
""")


@dataclass(frozen=True)
class ConditionCount:
    """A condition, with the number of its items and of their judgments."""

    condition: str
    items: int
    judgments: int


@dataclass(frozen=True)
class ListCount:
    """A list, numbered from 1, and how many annotators have it.

    Attributes:
        at_work_or_done: Annotators who are at work or have done their tasks.
        left_early: Annotators who left; the next ones get their lists first.

    """

    number: int
    at_work_or_done: int
    left_early: int


@dataclass(frozen=True)
class OrderCount:
    """An order of blocks, and how many annotators have it; as `ListCount`."""

    conditions: Sequence[str]
    at_work_or_done: int
    left_early: int


@dataclass(frozen=True)
class SquareCounts:
    """The conditions of a campaign, the lists if it has contents, and the orders if it has blocks."""

    conditions: Sequence[ConditionCount]
    lists: Sequence[ListCount]
    orders: Sequence[OrderCount]


async def load_square_counts_or_none(
    connection: AsyncConnection, campaign: Campaign, *, now: datetime
) -> SquareCounts | None:
    """Return the counts of a campaign whose items have conditions; None if they have none. Reads all items."""
    if campaign.condition_column is None:
        return None
    key = {"campaign": campaign.id, "column": campaign.condition_column}
    rows = await connection.execute(COUNT_JUDGMENTS_BY_CONDITION, key)
    counts = [ConditionCount(row.condition, row.items, row.judgments) for row in rows]
    return await count_annotators_by_list_and_order(connection, campaign, counts, now=now)


async def square_counts_from_memory_or_none(
    connection: AsyncConnection, cache: PosteriorCache, campaign: Campaign, *, now: datetime
) -> SquareCounts | None:
    """Return the counts as `load_square_counts_or_none` does, by the posteriors in the memory of this process.

    Reads the conditions of items once for each copy of the posteriors, and then only what changed.
    """
    if campaign.condition_column is None:
        return None
    driver = await driver_of(connection)
    campaign_index = await cache.load_current_index(driver, campaign)
    conditions = await load_item_conditions_once(driver, campaign, campaign_index)
    counts = item_and_judgment_counts_of_conditions(conditions, campaign_index.index.judgments)
    return await count_annotators_by_list_and_order(connection, campaign, counts, now=now)


def item_and_judgment_counts_of_conditions(
    conditions: ItemConditions, judgments: npt.NDArray[np.integer[Any]]
) -> list[ConditionCount]:
    """Return the counts of each condition, given the judgments of each item."""
    has_condition = conditions.condition != NO_CONDITION
    condition, count = conditions.condition[has_condition], len(conditions.names)
    judgments = judgments[: len(has_condition)][has_condition]
    items_of_each = np.bincount(condition, minlength=count).tolist()
    judgments_of_each = np.bincount(condition, judgments, minlength=count).astype(np.int64).tolist()
    return [ConditionCount(*counts) for counts in zip(conditions.names, items_of_each, judgments_of_each, strict=True)]


async def count_annotators_by_list_and_order(
    connection: AsyncConnection, campaign: Campaign, conditions: Sequence[ConditionCount], *, now: datetime
) -> SquareCounts:
    """Return the counts of the conditions with those of annotators by list and order."""
    if not conditions:
        return SquareCounts((), (), ())
    square = square_of_campaign(campaign, len(conditions))
    annotators = (await connection.execute(SELECT_ROWS_OF_ANNOTATORS, {"campaign": campaign.id, "now": now})).all()
    people_by_list = Counter((square.index_of_list_of_square_row(one.square_row), one.stays) for one in annotators)
    people_by_order = Counter(
        (square.block_order_of_row(one.square_row, (campaign.seed, one.id)), one.stays) for one in annotators
    )
    balanced = williams_orders(square.n) if square.block_order == "balanced" else ()
    orders = balanced or sorted({order for order, _ in people_by_order})
    return SquareCounts(
        conditions,
        [
            ListCount(number + 1, people_by_list[number, True], people_by_list[number, False])
            for number in range(square.n)
        ]
        if square.has_contents
        else (),
        [
            OrderCount(
                [conditions[one].condition for one in order],
                people_by_order[order, True],
                people_by_order[order, False],
            )
            for order in orders
        ]
        if square.block_order != "none"
        else (),
    )


def square_of_campaign(campaign: Campaign, condition_count: int) -> ConditionSquare:
    """Return the square of a campaign with so many conditions."""
    return ConditionSquare(condition_count, campaign.block_order, has_contents=campaign.content_column is not None)
