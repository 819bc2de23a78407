"""Blocks of conditions: the row of the square that an annotator has, and the block that they are in.

An annotator gets a row with the first HIT and keeps it. The rows are given out in balance: a row whose annotator left
early is given again first. Who has left is counted once in a while, as that reads many answers. A block ends when the
annotator has answered its tasks, or can be asked about no more of its items; blocks before the last one that was shown
do not come back.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.assignment_sql import HIT_IS_OPEN, HIT_IS_OPEN_IN_INDEX, IS_FIRST_RESPONSE
from app.annotation.hits.campaign_index import CampaignIndex
from app.annotation.hits.item_audiences import ItemsOfOthers
from app.annotation.hits.item_conditions import (
    NO_CONDITION,
    ItemConditions,
    LeaversByRow,
    PlaceInBlocks,
    build_item_conditions,
    condition_cell_sql,
)
from app.annotation.hits.served_campaign import ServedCampaign
from app.database.session import Driver, Record, execute_statement, fetch_first_row_or_none, fetch_rows
from app.designs.campaign import Campaign
from app.record.law_storage import SHARE_STORE_LOCK
from app.selection.condition_squares import RowUse, choose_least_used_row

LEAVERS_COUNT_FOR = timedelta(minutes=1)  # before they are counted again

SELECT_CONDITIONS_OF_ITEMS = text(f"""
    SELECT i.number, {condition_cell_sql("condition")} AS condition,
           {condition_cell_sql("content")} AS content
    FROM items i JOIN campaigns c ON c.id = i.campaign_id
    WHERE i.campaign_id = :campaign AND i.number <> ALL(c.always_shown)
      AND {condition_cell_sql("condition")} <> ''
    ORDER BY i.number
""")

# One at a time in a campaign: the next one sees the row that the one before has taken.
LOCK_SQUARE = text(
    "SELECT pg_advisory_xact_lock(hashtext('easel.square'), hashtext(CAST(CAST(:campaign AS bigint) AS text)))"
)

# SQL: annotator a is at work, or has done all that the campaign asks of one person. The others left early. It is
# asked of all annotators at once, so HITs and answers are read once for all of them.
STAYS = f"""
    CASE WHEN a.square_row_at > CAST(:now AS timestamptz) - make_interval(mins => c.lease_minutes) THEN true
    WHEN a.square_done THEN true
    WHEN c.hits_per_annotator IS NOT NULL AND c.hits_per_annotator <= (
        SELECT count(*) FROM responses r
        WHERE r.campaign_id = :campaign AND r.annotator_id = a.id AND {IS_FIRST_RESPONSE}) THEN true
    ELSE a.id IN (SELECT h.annotator_id FROM hits h WHERE h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX})
        OR a.id IN (SELECT r.annotator_id FROM responses r
                    WHERE r.campaign_id = :campaign AND r.received_at > CAST(:now AS timestamptz)
                        - make_interval(mins => (SELECT lease_minutes FROM campaigns WHERE id = :campaign)))
    END"""

COUNT_ROW_USE = text(f"""
    SELECT a.square_row AS row, count(*) FILTER (WHERE {STAYS}) AS staying, count(*) AS total
    FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
    WHERE a.campaign_id = :campaign AND a.square_row IS NOT NULL
      AND coalesce(a.barred, '') NOT IN ('excluded', 'erased')
    GROUP BY a.square_row
""")

COUNT_ANNOTATORS_BY_ROW = text("""
    SELECT square_row AS row, count(*) AS total FROM annotators
    WHERE campaign_id = :campaign AND square_row IS NOT NULL AND coalesce(barred, '') NOT IN ('excluded', 'erased')
    GROUP BY square_row
""")

SELECT_ROW_OF_ANNOTATOR = text("""
    SELECT a.square_row, c.revision FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
    WHERE a.campaign_id = :campaign AND a.id = :annotator
""")

STORE_ROW_OF_ANNOTATOR = text("""
    UPDATE annotators SET square_row = CAST(:row AS int), square_row_at = CAST(:now AS timestamptz)
    WHERE campaign_id = :campaign AND id = :annotator
""")

# In the order in which the annotator got them. An item of a HIT tells its condition; a HIT of checks has none.
SELECT_OWN_HITS = text(f"""
    SELECT h.id, coalesce(h.leader, h.items[1]) AS item, {HIT_IS_OPEN} AS is_open FROM hits h
    WHERE h.campaign_id = :campaign AND h.annotator_id = :annotator ORDER BY h.id
""")


class ConditionRow(Record):
    """The number, condition and content of an item."""

    number: int
    condition: str
    content: str | None


class RowAndRevision(Record):
    """The row of the square that an annotator has, and the campaign's present revision."""

    square_row: int | None
    revision: int


class OutdatedRevisionError(Exception):
    """The campaign has another revision than the one that the request began with: it must be read again."""


class OwnHit(Record):
    """A HIT that the annotator got: one of its items, which is None for a HIT of checks, and whether it is open."""

    id: int
    item: int | None
    is_open: bool


@dataclass(frozen=True)
class OwnTasks:
    """Tasks that an annotator got.

    Attributes:
        place: Place of the block of the HIT that they hold, else of the last block that was shown.
        counts: For each block the tasks that they answered, or hold in another assignment.

    """

    place: int
    counts: Sequence[int]


class RowTotal(Record):
    """A row of the square, and how many annotators have it."""

    row: int
    total: int


class RowUseRow(Record):
    """A row of the square, how many annotators have it, and how many of these are at work or done."""

    row: int
    staying: int
    total: int


async def set_place_in_blocks_of_assignment(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, *, now: datetime
) -> None:
    """Set where the annotator is in the blocks of conditions, and which items are outside of the block."""
    assignment.place_in_blocks = await find_place_in_blocks_assigning_square_row(
        connection, assignment, campaign_index, now=now
    )
    assignment.items_of_others = assignment.place_in_blocks.items_outside


async def find_place_in_blocks_assigning_square_row(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, *, now: datetime
) -> PlaceInBlocks:
    """Return where an annotator is, in a campaign whose items have conditions. The first call gives them a row.

    While the annotator holds a HIT, its block is the present one. The conditions of items are remembered with the
    posteriors of this process.

    Raises:
        OutdatedRevisionError: What `assign_square_row_or_raise` raises.

    """
    conditions = campaign_index.conditions or await load_item_conditions_once(
        connection, assignment.campaign, campaign_index
    )
    row = assignment.square_row
    if row is None:
        row = await assign_square_row_or_raise(
            connection, assignment, campaign_index, conditions.square.row_count, now=now
        )
    if conditions.block_order == "none":
        return PlaceInBlocks(await conditions.items_outside_block(row, None))
    order = conditions.square.block_order_of_row(row, (assignment.seed, assignment.annotator_id))
    limits = task_limit_or_none_of_each_block(assignment, len(order))
    own_tasks = count_own_tasks(
        await load_hits_given_to_annotator(connection, assignment),
        [order.index(condition) for condition in range(len(order))],
        conditions,
        limits,
        held_hit=assignment.hit_id,
        answered_hits=assignment.history.answered_hits,
    )
    place, counts = own_tasks.place, own_tasks.counts
    blocks = {at: await conditions.items_outside_block(row, order[at]) for at in range(place, len(order))}
    if assignment.hit_id is None:
        while place < len(order) and (
            has_enough_tasks(counts[place], limits[place])
            or not can_ask_about_block(assignment, campaign_index, blocks[place])
        ):
            place += 1
    if place == len(order):
        return PlaceInBlocks(conditions.all_items())
    return PlaceInBlocks(
        blocks[place],
        [blocks[later] for later in range(place + 1, len(order))],
        is_first_task=not counts[place] and any(counts[:place]),
        is_last_task=has_enough_tasks(counts[place] + 1, limits[place]),
    )


def count_own_tasks(
    own_hits: Sequence[OwnHit],
    place_by_condition: Sequence[int],
    conditions: ItemConditions,
    limits: Sequence[int | None],
    *,
    held_hit: int | None,
    answered_hits: Collection[int],
) -> OwnTasks:
    """Count the tasks of each block. A HIT of checks counts for the block in which the annotator got it.

    Args:
        own_hits: HITs of the annotator, in the order in which they got them.
        place_by_condition: Place of the block of each condition.
        conditions: Conditions of the items.
        limits: As `task_limit_or_none_of_each_block` returns.
        held_hit: HIT that the annotator holds in this assignment, which is not counted.
        answered_hits: HITs that the annotator answered.

    """
    place, held_place, counts = 0, None, [0] * len(limits)
    for hit in own_hits:
        if hit.item is None:
            place += has_enough_tasks(counts[place], limits[place]) and place + 1 < len(limits)
            place_of_hit = place
        elif (condition := conditions.condition_of_hit_or_none([hit.item])) is not None:
            place_of_hit = place_by_condition[condition]
            place = max(place, place_of_hit)
        else:
            continue
        if hit.id == held_hit:
            held_place = place_of_hit
        elif hit.is_open or hit.id in answered_hits:
            counts[place_of_hit] += 1
    return OwnTasks(place if held_place is None else held_place, counts)


def task_limit_or_none_of_each_block(assignment: AssignmentState, block_count: int) -> Sequence[int | None]:
    """Return for each block how many tasks it has; None if it has as many as there are.

    Without a setting for it, the tasks of one annotator are divided among the blocks, and a remainder is spread.
    """
    total = assignment.hits_per_annotator
    if assignment.tasks_per_block is not None or total is None:
        return [assignment.tasks_per_block] * block_count
    return [total * (place + 1) // block_count - total * place // block_count for place in range(block_count)]


def has_enough_tasks(count: int, limit: int | None) -> bool:
    """Return whether a block has as many tasks as its limit, if it has one."""
    return limit is not None and count >= limit


def can_ask_about_block(
    assignment: AssignmentState, campaign_index: CampaignIndex, items_outside: ItemsOfOthers
) -> bool:
    """Return whether the annotator can be asked about the items of a block, now or when others give their HITs back."""
    return campaign_index.index.has_open_items_left_after_hit(
        (),
        seen_items=assignment.seen_or_met_as_checks,
        barred=assignment.not_judged or (),
        seen_as_last_resort=assignment.repeat_items,
        never_asked=items_outside.mask,
    )


async def assign_square_row_or_raise(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, row_count: int, *, now: datetime
) -> int:
    """Store the least used row for an annotator and return it, or the row that they have already.

    Raises:
        OutdatedRevisionError: The campaign has another revision, perhaps with other conditions: the launch was taken
            back. The right to store in the present revision is held until the row is stored.

    """
    key = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
    leavers = await cached_or_loaded_leaver_count_by_row(connection, assignment, campaign_index, now=now)
    async with connection.transaction():
        for lock in (SHARE_STORE_LOCK, LOCK_SQUARE):
            await execute_statement(connection, lock, {"campaign": assignment.campaign_id})
        present = await fetch_first_row_or_none(connection, SELECT_ROW_OF_ANNOTATOR, key, RowAndRevision)
        if present is None or present.revision != assignment.revision:
            raise OutdatedRevisionError
        row = present.square_row
        if row is None:
            totals = await fetch_rows(
                connection, COUNT_ANNOTATORS_BY_ROW, {"campaign": assignment.campaign_id}, RowTotal
            )
            use = {one.row: RowUse(max(0, one.total - leavers.get(one.row, 0)), one.total) for one in totals}
            row = choose_least_used_row(row_count, use)
            await execute_statement(connection, STORE_ROW_OF_ANNOTATOR, key | {"row": row, "now": now})
    return row


async def cached_or_loaded_leaver_count_by_row(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, *, now: datetime
) -> Mapping[int, int]:
    """Return how many annotators with each row have left early, as of at most `LEAVERS_COUNT_FOR` ago."""
    remembered = campaign_index.leavers_by_row
    if remembered is None or abs(now - remembered.counted_at) >= LEAVERS_COUNT_FOR:
        key = {"campaign": assignment.campaign_id, "now": now}
        use = await fetch_rows(connection, COUNT_ROW_USE, key, RowUseRow)
        remembered = LeaversByRow({one.row: one.total - one.staying for one in use}, now)
        campaign_index.leavers_by_row = remembered
    return remembered.counts


async def load_hits_given_to_annotator(connection: Driver, assignment: AssignmentState) -> Sequence[OwnHit]:
    """Return the HITs that the annotator got, first to last, answered or not."""
    key = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
    return await fetch_rows(connection, SELECT_OWN_HITS, key, OwnHit)


async def load_item_conditions_once(
    connection: Driver, campaign: ServedCampaign | Campaign, campaign_index: CampaignIndex
) -> ItemConditions:
    """Read the conditions of items. Concurrent requests wait for the first one."""
    async with campaign_index.audiences_lock:
        if campaign_index.conditions is None:
            key = {
                "campaign": campaign.id,
                "condition": campaign.condition_column,
                "content": campaign.content_column,
            }
            rows = await fetch_rows(connection, SELECT_CONDITIONS_OF_ITEMS, key, ConditionRow)
            campaign_index.conditions = await asyncio.to_thread(
                build_item_conditions,
                [(row.number, row.condition, row.content) for row in rows],
                len(campaign_index.index.score),
                campaign.block_order or "none",
                has_contents=campaign.content_column is not None,
            )
        return campaign_index.conditions


def can_any_list_or_block_fill_task(conditions: ItemConditions, open_items: Collection[int], needed: int) -> bool:
    """Return whether one annotator's list, or one block of it, has as many of these items as a task needs.

    Items that joined after this copy of the conditions may be in any group.
    """
    numbers = np.fromiter(open_items, np.int64, len(open_items))
    if len(numbers) and numbers.max() >= len(conditions.condition):
        return True
    count, condition = len(conditions.names), conditions.condition[numbers].astype(np.int64)
    group = condition if conditions.block_order != "none" else np.zeros_like(condition)
    if conditions.content is not None:
        group = group * count + (condition - conditions.content[numbers]) % count
    return bool(np.any(np.bincount(group[condition != NO_CONDITION]) >= needed))
