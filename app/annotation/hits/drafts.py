"""Drafts: the values entered so far in a HIT, so that a reload shows them again."""

import json
from typing import Any

from sqlalchemy import text

from app.annotation.hits.assignment_sql import DATABASE_TIME, HIT_BELONGS_TO_ASSIGNMENT, IS_ONE_HIT_PLATFORM
from app.annotation.hits.lease_sql import HeldHit, LeaseLimits, renew_lease_and_return_its_end_or_none
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import Driver, columns_of_row_class_sql, fetch_first_row_or_none

# The first touch extends a short lease to a full one.
SAVE_DRAFT = text(f"""
    UPDATE hits h SET draft = CAST(:draft AS jsonb), untouched_by = NULL,
        expires_at = CASE WHEN h.untouched_by IS NULL OR h.expires_at <= lease.begins THEN h.expires_at
                          ELSE lease.ends END
    FROM campaigns c, hits before, annotators owner, (
        SELECT {DATABASE_TIME} AS begins, {DATABASE_TIME} + make_interval(mins => lease_minutes) AS ends
        FROM campaigns WHERE id = :campaign OFFSET 0  -- computed outside of CASE, where Citus takes no clock
    ) AS lease
    WHERE h.campaign_id = :campaign AND h.id = :hit AND {HIT_BELONGS_TO_ASSIGNMENT} AND h.closed_at IS NULL
      AND c.id = h.campaign_id AND before.campaign_id = :campaign AND before.id = h.id
      AND owner.campaign_id = :campaign AND owner.id = h.annotator_id
    RETURNING c.id AS campaign_id, {columns_of_row_class_sql(LeaseLimits, "c")}, h.annotator_id, h.assignment_id,
              owner.{IS_ONE_HIT_PLATFORM} AS one_hit, h.id AS hit_id, h.items AS hit_items,
              h.iteration AS hit_iteration, h.ordinal AS hit_ordinal, h.segment AS hit_segment,
              before.untouched_by IS NOT NULL AND h.expires_at <= lease.begins AS touched_late
""")


class DraftedHit(HeldHit):
    """A HIT whose draft was stored, and whether its lease had run out before the first touch."""

    touched_late: bool


async def try_to_save_draft_of_open_hit(
    connection: Driver, assignment: AssignmentId, hit_id: int, draft: dict[str, Any]
) -> bool:
    """Store the draft of a HIT; return False if the HIT is not this annotator's or is closed.

    A draft shows that the annotator is at work, so the first one extends the lease to its full length, even if it has
    just run out and no other annotator needs its items. `connection` must not be in a transaction.
    """
    parameters = {**assignment.parameters, "hit": hit_id, "draft": json.dumps(draft)}
    hit = await fetch_first_row_or_none(connection, SAVE_DRAFT, parameters, DraftedHit)
    if hit is not None and hit.touched_late:
        await renew_lease_and_return_its_end_or_none(connection, hit, None)
    return hit is not None
