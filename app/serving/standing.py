"""Where an assignment stands: its annotator, their campaign, the HIT it holds, and what others hold and answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text

from app.crowd.doors import Visitor
from app.database.session import Driver, Record, fetch_one
from app.errors import NotFound
from app.serving.newest import Newest, changes

# Only who gets a new HIT need know what others hold: a HIT that is held is shown alike however many are open.
NO_HIT = "h.id IS NULL OR h.expires_at <= :now"


def standing_where(condition: str) -> TextClause:
    """The statement that tells where the assignment stands of which `condition` holds."""
    return text(f"""
    SELECT c.*, s.id AS assignment_id, s.arrival, a.id AS annotator_id, a.platform,
           (SELECT count(*) FROM responses r WHERE r.annotator_id = a.id) AS hits_answered,
           EXISTS (SELECT 1 FROM hits o JOIN responses r ON r.hit_id = o.id
                   WHERE o.assignment_id = s.id) AS answered_here,
           (SELECT count(*) FROM hits h WHERE h.annotator_id = a.id AND h.assignment_id <> s.id
            AND h.closed_at IS NULL AND h.expires_at > :now) AS open_elsewhere,
           EXISTS (SELECT 1 FROM hits h WHERE h.annotator_id = a.id AND h.assignment_id <> s.id
                   AND h.closed_at IS NULL) AS begun_elsewhere,
           ARRAY(SELECT DISTINCT item FROM responses r, unnest(r.items) AS item WHERE r.annotator_id = a.id) AS seen,
           CASE WHEN {NO_HIT} THEN
               ARRAY(SELECT item FROM hits o, unnest(o.items) AS item
                     WHERE o.campaign_id = c.id AND o.closed_at IS NULL AND o.expires_at > :now) END AS held,
           CASE WHEN {NO_HIT} THEN
               ARRAY(SELECT leader FROM hits o
                     WHERE o.campaign_id = c.id AND o.closed_at IS NULL AND o.expires_at > :now) END AS leading,
           h.id AS hit_id, h.items AS hit_items, h.draft, h.expires_at, h.iteration AS hit_iteration,
           h.ordinal AS hit_ordinal, h.untouched_by IS NOT NULL AS hit_untouched,
           untouched.here AS untouched_here, untouched.everywhere AS untouched_everywhere, copy.since, news.*
    FROM assignments s
    JOIN annotators a ON a.id = s.annotator_id
    JOIN campaigns c ON c.id = a.campaign_id
    LEFT JOIN hits h ON h.assignment_id = s.id AND h.closed_at IS NULL
    LEFT JOIN unnest(CAST(:copied AS bigint[]), CAST(:watermarks AS text[])) AS copy (campaign_id, since)
         ON copy.campaign_id = c.id
    LEFT JOIN LATERAL (
        SELECT count(*) FILTER (WHERE o.untouched_by = CAST(:visitor AS bytea)) AS here, count(*) AS everywhere
        FROM hits o WHERE o.campaign_id = c.id AND o.closed_at IS NULL AND o.untouched_by IS NOT NULL
        AND o.expires_at > :now) AS untouched ON CAST(:visitor AS bytea) IS NOT NULL AND ({NO_HIT})
    LEFT JOIN LATERAL ({changes(campaign="c.id", since="copy.since")}) AS news ON true
    WHERE {condition}
    """)  # noqa: S608  (made of constants)


STANDING_BY_ID = standing_where("s.id = :assignment")


@dataclass(frozen=True)
class AssignmentKey:
    """Which assignment: the statement that tells where it stands, and what that needs to find it.

    `visitor`: from where they come, when nobody vouches for them.
    """

    standing: TextClause
    key: Mapping[str, Any]
    visitor: Visitor | None = None


def by_id(assignment_id: int, visitor: Visitor | None = None) -> AssignmentKey:
    return AssignmentKey(STANDING_BY_ID, {"assignment": assignment_id}, visitor)


async def standing(connection: Driver, newest: Newest, who: AssignmentKey, *, now: datetime) -> Record:
    """The assignment with its annotator, campaign, unclosed HIT, and what `newest` does not know yet.

    Raises `NotFound` (`assignment_not_found`).
    """
    visitor = who.visitor.address if who.visitor else None
    row = await fetch_one(connection, who.standing, {**who.key, **newest.watermarks(), "visitor": visitor, "now": now})
    if row is None:
        raise NotFound("This task no longer exists.", code="assignment_not_found")
    newest.hear(row)
    return row
