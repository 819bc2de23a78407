"""The HIT that an annotator holds already: shown again with its draft, renewed, or given up."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from asyncpg import UniqueViolationError
from sqlalchemy import text

from app.annotation.hits import check_placement
from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.assignment_sql import DATABASE_TIME
from app.annotation.hits.lease_sql import (
    CAMPAIGN_IS_RUNNING,
    items_with_judgment_limit,
    renew_lease_and_return_its_end_or_none,
)
from app.annotation.hits.next_hit import HitOnPage, NextHit
from app.annotation.hits.no_hit_replies import (
    build_no_hit_reply_completing_assignment,
    crowded_reason_code_or_none,
    no_hit_reason_code_of_assignment_or_none,
)
from app.annotation.hits.shown_items_sql import SELECT_SHOWN_ITEMS_OF_HIT, SELECT_SHOWN_OUTPUTS_OF_HIT, ShownItems
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, SharedParameters, execute_statement, fetch_rows
from app.designs.item_names import rename_draft_items_to_positions
from app.quality.checks import load_placed_checks_and_check_items
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.selection.segments import items_of_hit_with_distinct_outputs

# SQL: an item has all wanted judgments although a lease holds it. An import brought them, or a clock went back.
HAS_FULLY_JUDGED_ITEM = f"""
    EXISTS (SELECT 1 FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:capped AS int[]))
            AND p.judgments >= :wanted)"""

SELECT_HELD_ITEMS, SELECT_HELD_OUTPUTS = (
    text(f"SELECT shown.*, {HAS_FULLY_JUDGED_ITEM} AS overtaken FROM ({shown}) AS shown")
    for shown in (SELECT_SHOWN_ITEMS_OF_HIT, SELECT_SHOWN_OUTPUTS_OF_HIT)
)

CLOSE_HELD_HIT = text(f"""
    UPDATE hits SET closed_at = :now, untouched_by = NULL
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL AND {CAMPAIGN_IS_RUNNING}
      AND (expires_at <= {DATABASE_TIME} OR {HAS_FULLY_JUDGED_ITEM})
""")

TAKE_OVER_HIT = text("""
    UPDATE hits SET assignment_id = :assignment
    WHERE campaign_id = :campaign AND closed_at IS NULL AND id = (
        SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator
        AND assignment_id IS DISTINCT FROM :assignment AND closed_at IS NULL
        ORDER BY expires_at DESC LIMIT 1)
""")


@dataclass(slots=True, kw_only=True)
class HeldHitParameters(SharedParameters):
    """Parameters of the statements that show a held HIT or close it; `shown` are the items on its page."""

    campaign: int
    hit: int | None
    items: Sequence[int]
    shown: Sequence[int]
    segment: int | None
    capped: Sequence[int]
    wanted: int
    now: datetime


class HeldItems(ShownItems):
    """Ids and texts of the items of a HIT, and whether one of them already has all wanted judgments."""

    overtaken: bool


async def move_held_hit_to_this_visit(connection: Driver, assignment: AssignmentState) -> None:
    """Move the HIT that the same person left open in another visit to this one, with its draft."""
    # Another request of this visit may have got a HIT meanwhile. Then the visit continues with that one.
    with suppress(UniqueViolationError):
        parameters = {
            "campaign": assignment.campaign_id,
            "assignment": assignment.assignment_id,
            "annotator": assignment.annotator_id,
        }
        await execute_statement(connection, TAKE_OVER_HIT, parameters)


async def resume_held_hit_or_close_it_and_return_none(
    connection: Driver, assignment: AssignmentState, visitor: Visitor | None, *, now: datetime
) -> NextHit | None:
    """Return the HIT that this assignment already has, with its draft, as long as its items are available.

    Close it and return None if they are not. The caller then tries again: a late answer may have changed what is open.
    """
    items = items_of_hit_with_distinct_outputs(assignment.hit_items, assignment.hit_shown_as)
    parameters = HeldHitParameters(
        campaign=assignment.campaign_id,
        hit=assignment.hit_id,
        items=assignment.hit_items,
        shown=items,
        segment=assignment.hit_segment,
        capped=items_with_judgment_limit(assignment, assignment.hit_items),
        wanted=assignment.judgments_per_item,
        now=now,
    )
    expires_at: datetime | None = assignment.expires_at
    if not assignment.hit_is_open:
        if reason := no_hit_reason_code_of_assignment_or_none(assignment) or crowded_reason_code_or_none(
            assignment, visitor
        ):
            return await build_no_hit_reply_completing_assignment(connection, assignment, reason, now=now)
        expires_at = await renew_lease_and_return_its_end_or_none(
            connection, assignment, visitor if assignment.hit_untouched else None
        )
    statement = SELECT_HELD_ITEMS if assignment.hit_segment is None else SELECT_HELD_OUTPUTS
    (row,) = await fetch_rows(connection, statement, parameters, HeldItems)
    if expires_at is None or row.overtaken:
        await execute_statement(connection, CLOSE_HELD_HIT, parameters)
        return None
    assert assignment.hit_id is not None  # noqa: S101  (the caller checked)
    shown, ids, texts = items, row.ids, row.texts
    if assignment.has_checks:
        placed_checks, checks = await load_placed_checks_and_check_items(
            connection, assignment.campaign_id, assignment.hit_id
        )
        shown, ids, texts = check_placement.presented_numbers_ids_and_texts(items, ids, texts, placed_checks, checks)
    hit = HitOnPage(
        id=assignment.hit_id,
        items=shown,
        ids=ids,
        texts=texts,
        draft=rename_draft_items_to_positions(assignment.draft or {}, shown),
        expires_at=expires_at,
        segment=assignment.hit_segment,
        source_and_reference=row.source_and_reference,
        items_without_checks=items,
    )
    return NextHit(assignment, hit)
