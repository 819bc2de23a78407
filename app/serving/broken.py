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


# A check stands in a HIT under the number of an item that the HIT does not show.
REPORT_CHECK = text(f"""
    INSERT INTO check_reports (campaign_id, check_number, annotator_id, reported_at)
    SELECT h.campaign_id, k.check_number, h.annotator_id, :now
    FROM hits h JOIN hit_checks k ON k.campaign_id = h.campaign_id AND k.hit_id = h.id
    WHERE h.campaign_id = :campaign AND h.id = :hit AND k.number = :item AND {THEIRS}
    ON CONFLICT DO NOTHING
""")  # noqa: S608  (made of constants)


async def report(connection: Driver, assignment: AssignmentId, hit_id: int, item: int, *, now: datetime) -> None:
    """Note that somebody cannot open an item, or a gold or attention item, in a HIT of theirs; of any other nothing is
    noted. item: the number under which it stands in the HIT.
    """
    key = {**assignment.parameters, "hit": hit_id, "item": item, "now": now}
    await execute(connection, REPORT, key)
    await execute(connection, REPORT_CHECK, key)
