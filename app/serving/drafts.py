"""What was entered so far in a HIT, so that a reload shows it again."""

import json
from typing import Any

from sqlalchemy import text

from app.crowd.annotators import AssignmentId
from app.database.session import Driver, columns, fetch_one
from app.serving.races import HeldHit, Limits, renew
from app.serving.standing import CLOCK, ONE_HIT, THEIRS

# The first touch makes a short lease a whole one.
SAVE_DRAFT = text(f"""
    UPDATE hits h SET draft = CAST(:draft AS jsonb), untouched_by = NULL,
        expires_at = CASE WHEN h.untouched_by IS NULL OR h.expires_at <= {CLOCK} THEN h.expires_at
                          ELSE {CLOCK} + make_interval(mins => c.lease_minutes) END
    FROM campaigns c, hits before, annotators owner
    WHERE h.campaign_id = :campaign AND h.id = :hit AND {THEIRS} AND h.closed_at IS NULL AND c.id = h.campaign_id
      AND before.campaign_id = h.campaign_id AND before.id = h.id
      AND owner.campaign_id = h.campaign_id AND owner.id = h.annotator_id
    RETURNING c.id, {columns(Limits, "c")}, h.annotator_id, h.assignment_id, owner.{ONE_HIT} AS one_hit,
              h.id AS hit_id, h.items AS hit_items, h.iteration AS hit_iteration, h.ordinal AS hit_ordinal,
              h.segment AS hit_segment, before.untouched_by IS NOT NULL AND h.expires_at <= {CLOCK} AS touched_late
""")  # noqa: S608  (made of constants)


class DraftedHit(HeldHit):
    """A HIT of which a draft was kept, and whether its lease had run out before it was first touched."""

    touched_late: bool


async def save_draft(connection: Driver, assignment: AssignmentId, hit_id: int, draft: dict[str, Any]) -> bool:
    """Keep what was entered so far; False when the HIT is not this annotator's or is closed.

    Somebody is at work, so the lease is a whole one from the first draft on, also when it has just run out and nobody
    needs its items. `connection` is in no transaction.
    """
    parameters = {**assignment.parameters, "hit": hit_id, "draft": json.dumps(draft)}
    hit = await fetch_one(connection, SAVE_DRAFT, parameters, DraftedHit)
    if hit is not None and hit.touched_late:
        await renew(connection, hit, None)
    return hit is not None
