"""Reports of media that annotators cannot open, one per person and item, so that the researcher can count them."""

from datetime import datetime

from sqlalchemy import text

from app.annotation.hits.assignment_sql import HIT_BELONGS_TO_ASSIGNMENT
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import Driver, execute_statement

STORE_MEDIA_REPORT = text(f"""
    INSERT INTO media_reports (campaign_id, item, segment, annotator_id, reported_at)
    SELECT h.campaign_id, :item, coalesce(h.segment, 0), h.annotator_id, :now FROM hits h
    WHERE h.campaign_id = :campaign AND h.id = :hit AND :item = ANY(h.items) AND {HIT_BELONGS_TO_ASSIGNMENT}
    ON CONFLICT DO NOTHING
""")


# A HIT shows a check under the number of an item that is not in the HIT.
STORE_CHECK_MEDIA_REPORT = text(f"""
    INSERT INTO check_reports (campaign_id, check_number, annotator_id, reported_at)
    SELECT h.campaign_id, k.check_number, h.annotator_id, :now
    FROM hits h JOIN hit_checks k ON k.campaign_id = h.campaign_id AND k.hit_id = h.id
    WHERE h.campaign_id = :campaign AND h.id = :hit AND k.number = :item AND {HIT_BELONGS_TO_ASSIGNMENT}
    ON CONFLICT DO NOTHING
""")


async def store_media_report(
    connection: Driver, assignment: AssignmentId, hit_id: int, item: int, *, now: datetime
) -> None:
    """Store that the annotator cannot open an item or a check of their HIT. Reports on other HITs are ignored.

    Args:
        connection: Connection of the request.
        assignment: The annotator's assignment.
        hit_id: Id of the HIT.
        item: Number under which the HIT shows the item or check.
        now: Time of the report.

    """
    key = {**assignment.parameters, "hit": hit_id, "item": item, "now": now}
    await execute_statement(connection, STORE_MEDIA_REPORT, key)
    await execute_statement(connection, STORE_CHECK_MEDIA_REPORT, key)
