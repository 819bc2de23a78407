"""What an item shows and somebody cannot open: noted once for each person, so that the researcher sees how many."""

from datetime import datetime

from sqlalchemy import text

from app.crowd.annotators import AssignmentId
from app.database.session import Driver, execute
from app.serving.standing import THEIRS

REPORT = text(f"""
    INSERT INTO media_reports (campaign_id, item, segment, annotator_id, reported_at)
    SELECT h.campaign_id, :item, coalesce(h.segment, 0), h.annotator_id, :now FROM hits h
    WHERE h.campaign_id = :campaign AND h.id = :hit AND :item = ANY(h.items) AND {THEIRS}
    ON CONFLICT DO NOTHING
""")  # noqa: S608  (made of constants)


async def report(connection: Driver, assignment: AssignmentId, hit_id: int, item: int, *, now: datetime) -> None:
    """Of an item in a HIT of theirs; of any other nothing is noted."""
    await execute(connection, REPORT, {**assignment.parameters, "hit": hit_id, "item": item, "now": now})
