"""Item numbers of a HIT in the order of its page, which knows items only by position."""

from sqlalchemy import text

from app.annotation.hits.assignment_sql import HIT_BELONGS_TO_ASSIGNMENT
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import Driver, Record, fetch_first_row_or_none
from app.quality import checks
from app.quality.check_positions import shown_numbers_of_items_and_checks
from app.selection.segments import items_of_hit_with_distinct_outputs

SELECT_HIT_ITEMS = text(f"""
    SELECT h.items AS hit_items, h.shown_as FROM hits h
    WHERE h.campaign_id = :campaign AND h.id = :hit AND {HIT_BELONGS_TO_ASSIGNMENT}
""")


class HitItemsRow(Record):
    """Items of a HIT, and for each the item under which its output is shown (see `HitProposal.shown_as`)."""

    hit_items: list[int]
    shown_as: list[int] | None


async def load_item_numbers_shown_on_page(connection: Driver, assignment: AssignmentId, hit_id: int) -> list[int]:
    """Return the numbers under which a HIT of this assignment shows items and checks; empty for other HITs."""
    row = await fetch_first_row_or_none(
        connection, SELECT_HIT_ITEMS, {**assignment.parameters, "hit": hit_id}, HitItemsRow
    )
    if row is None:
        return []
    placed_checks = await checks.load_placed_checks(connection, assignment.campaign_id, hit_id)
    return shown_numbers_of_items_and_checks(
        items_of_hit_with_distinct_outputs(row.hit_items, row.shown_as), placed_checks
    )
