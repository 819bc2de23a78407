"""The numbers of the items of a HIT in the order of its page, which knows them by position alone."""

from sqlalchemy import text

from app.crowd.annotators import AssignmentId
from app.database.session import Driver, Record, fetch_one
from app.quality import checks
from app.quality.mixed_in import numbers_shown
from app.selection.segments import shown_once
from app.serving.standing import THEIRS

ITEMS_OF_HIT = text(f"""
    SELECT h.items AS hit_items, h.shown_as FROM hits h WHERE h.campaign_id = :campaign AND h.id = :hit AND {THEIRS}
""")  # noqa: S608  (made of constants)


class ItemsOfHit(Record):
    """The items of a HIT, and which of them stands for each where outputs are the same."""

    hit_items: list[int]
    shown_as: list[int] | None


async def shown_numbers(connection: Driver, assignment: AssignmentId, hit: int) -> list[int]:
    """Return the numbers under which a HIT of this assignment shows items and checks; none of another's HIT."""
    row = await fetch_one(connection, ITEMS_OF_HIT, {**assignment.parameters, "hit": hit}, ItemsOfHit)
    if row is None:
        return []
    mixed = await checks.places(connection, assignment.campaign, hit)
    return numbers_shown(shown_once(row.hit_items, row.shown_as), mixed)
