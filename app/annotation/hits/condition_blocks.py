"""Blocks of conditions: the row of the square that an annotator has, and the block that they are in.

An annotator gets a row with the first HIT and keeps it. The rows are given out in balance: a row whose annotator left
early is given again first. Who has left is counted once in a while, as that reads many answers. A block ends when the
annotator has answered its tasks, or can be asked about no more of its items; earlier blocks do not come back.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import text

from app.annotation.hits.assignment import HIT_IS_OPEN, IS_FIRST_RESPONSE, AssignmentState
from app.annotation.hits.campaign_index import CampaignIndex
from app.annotation.hits.item_audiences import ItemsOfOthers
from app.annotation.hits.item_conditions import ItemConditions, LeaversByRow, PlaceInBlocks, build_item_conditions
from app.database.session import Driver, Record, execute_statement, fetch_first_column, fetch_rows, fetch_value
from app.selection.condition_squares import RowUse, choose_least_used_row

LEAVERS_COUNT_FOR = timedelta(minutes=1)  # before they are counted again

SELECT_CONDITIONS_OF_ITEMS = text("""
    SELECT i.number, btrim(i.fields ->> CAST(:condition AS text)) AS condition,
           btrim(i.fields ->> CAST(:content AS text)) AS content
    FROM items i JOIN campaigns c ON c.id = i.campaign_id
    WHERE i.campaign_id = :campaign AND i.number <> ALL(c.always_shown)
      AND btrim(i.fields ->> CAST(:condition AS text)) <> ''
    ORDER BY i.number
""")

# One at a time in a campaign: the next one sees the row that the one before has taken.
LOCK_SQUARE = text(
    "SELECT pg_advisory_xact_lock(hashtext('easel.square'), hashtext(CAST(CAST(:campaign AS bigint) AS text)))"
)

# SQL: annotator a is at work, or has done all that the campaign asks of one person. The others left early.
STAYS = f"""
    a.square_row_at > CAST(:now AS timestamptz) - make_interval(mins => c.lease_minutes)
    OR EXISTS (SELECT FROM hits h WHERE h.campaign_id = a.campaign_id AND h.annotator_id = a.id AND {HIT_IS_OPEN})
    OR EXISTS (SELECT FROM responses r WHERE r.campaign_id = a.campaign_id AND r.annotator_id = a.id
               AND r.received_at > CAST(:now AS timestamptz) - make_interval(mins => c.lease_minutes))
    OR EXISTS (SELECT FROM assignments s
               WHERE s.campaign_id = a.campaign_id AND s.annotator_id = a.id AND s.completed_at IS NOT NULL)
       AND (c.hits_per_annotator IS NULL OR c.hits_per_annotator <= (
            SELECT count(*) FROM responses r
            WHERE r.campaign_id = a.campaign_id AND r.annotator_id = a.id AND {IS_FIRST_RESPONSE}))"""

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

SELECT_ROW_OF_ANNOTATOR = text("SELECT square_row FROM annotators WHERE campaign_id = :campaign AND id = :annotator")

STORE_ROW_OF_ANNOTATOR = text("""
    UPDATE annotators SET square_row = CAST(:row AS int), square_row_at = CAST(:now AS timestamptz)
    WHERE campaign_id = :campaign AND id = :annotator
""")

SELECT_OWN_HITS = text(f"""
    SELECT r.items FROM responses r
    WHERE r.campaign_id = :campaign AND r.annotator_id = :annotator AND {IS_FIRST_RESPONSE}
""")


class ConditionRow(Record):
    """The number, condition and content of an item."""

    number: int
    condition: str
    content: str | None


class RowTotal(Record):
    """A row of the square, and how many annotators have it."""

    row: int
    total: int


class RowUseRow(Record):
    """A row of the square, and how many annotators have it."""

    row: int
    staying: int
    total: int


async def load_place_in_blocks(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, *, now: datetime
) -> None:
    """Set where the annotator is in the blocks of conditions, and which items are outside of the block."""
    assignment.place_in_blocks = await find_place_in_blocks(connection, assignment, campaign_index, now=now)
    assignment.items_of_others = assignment.place_in_blocks.items_outside


async def find_place_in_blocks(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, *, now: datetime
) -> PlaceInBlocks:
    """Return where an annotator is, in a campaign whose items have conditions. The first call gives them a row.

    While the annotator holds a HIT, its block is the present one. The conditions of items are remembered with the
    posteriors of this process.
    """
    conditions = campaign_index.conditions or await load_item_conditions_once(connection, assignment, campaign_index)
    row = assignment.square_row
    if row is None:
        row = await give_row_of_square(connection, assignment, campaign_index, conditions.square.row_count, now=now)
    if conditions.block_order == "none":
        return PlaceInBlocks(await conditions.items_outside_block(row, None))
    order = conditions.square.block_order_of_row(row, (assignment.seed, assignment.annotator_id))
    blocks = [await conditions.items_outside_block(row, condition) for condition in order]
    own_hits = await load_items_of_own_hits(connection, assignment)
    tasks = Counter(conditions.condition_of_hit_or_none(items) for items in own_hits)
    places_begun = [place for place, condition in enumerate(order) if tasks[condition]]
    held_items = assignment.hit_items if assignment.hit_id is not None else assignment.held_elsewhere
    if (held_condition := conditions.condition_of_hit_or_none(held_items or ())) is not None:
        places_begun.append(order.index(held_condition))
    place, block_tasks = max(places_begun, default=0), tasks_per_block_or_none(assignment, len(order))
    if assignment.hit_id is None:
        while place < len(order) and (
            (block_tasks is not None and tasks[order[place]] + assignment.open_elsewhere >= block_tasks)
            or not can_ask_about_block(assignment, campaign_index, blocks[place])
        ):
            place += 1
    if place == len(order):
        return PlaceInBlocks(conditions.all_items())
    tasks_here = tasks[order[place]]
    return PlaceInBlocks(
        blocks[place],
        blocks[place + 1 :],
        is_first_task=not tasks_here and any(tasks[condition] for condition in order[:place]),
        is_last_task=block_tasks is not None and tasks_here + assignment.open_elsewhere + 1 >= block_tasks,
    )


def tasks_per_block_or_none(assignment: AssignmentState, block_count: int) -> int | None:
    """Return how many tasks a block has; None if it has as many as there are."""
    if assignment.tasks_per_block is not None or assignment.hits_per_annotator is None:
        return assignment.tasks_per_block
    return math.ceil(assignment.hits_per_annotator / block_count)


def can_ask_about_block(
    assignment: AssignmentState, campaign_index: CampaignIndex, items_outside: ItemsOfOthers
) -> bool:
    """Return whether the annotator can be asked about the items of a block, now or when others give their HITs back."""
    return campaign_index.index.has_open_items_left_after_hit(
        (),
        seen=assignment.seen,
        barred=assignment.not_judged or (),
        allow_seen=assignment.repeat_items,
        never_asked=items_outside.mask,
    )


async def give_row_of_square(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, row_count: int, *, now: datetime
) -> int:
    """Store the least used row for an annotator and return it, or the row that they have already."""
    key = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
    leavers = await count_leavers_by_row_once_in_a_while(connection, assignment, campaign_index, now=now)
    async with connection.transaction():
        await execute_statement(connection, LOCK_SQUARE, {"campaign": assignment.campaign_id})
        row: int | None = await fetch_value(connection, SELECT_ROW_OF_ANNOTATOR, key)
        if row is None:
            totals = await fetch_rows(
                connection, COUNT_ANNOTATORS_BY_ROW, {"campaign": assignment.campaign_id}, RowTotal
            )
            use = {one.row: RowUse(max(0, one.total - leavers.get(one.row, 0)), one.total) for one in totals}
            row = choose_least_used_row(row_count, use)
            await execute_statement(connection, STORE_ROW_OF_ANNOTATOR, key | {"row": row, "now": now})
    return row


async def count_leavers_by_row_once_in_a_while(
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


async def load_items_of_own_hits(connection: Driver, assignment: AssignmentState) -> Sequence[Sequence[int]]:
    """Return the items of each HIT that the annotator answered."""
    key = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
    return await fetch_first_column(connection, SELECT_OWN_HITS, key)


async def load_item_conditions_once(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex
) -> ItemConditions:
    """Read the conditions of items. Concurrent requests wait for the first one."""
    async with campaign_index.audiences_lock:
        if campaign_index.conditions is None:
            key = {
                "campaign": assignment.campaign_id,
                "condition": assignment.condition_column,
                "content": assignment.content_column,
            }
            rows = await fetch_rows(connection, SELECT_CONDITIONS_OF_ITEMS, key, ConditionRow)
            campaign_index.conditions = await asyncio.to_thread(
                build_item_conditions,
                [(row.number, row.condition, row.content) for row in rows],
                len(campaign_index.index.score),
                assignment.block_order or "none",
                has_contents=assignment.content_column is not None,
            )
        return campaign_index.conditions
