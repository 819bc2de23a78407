"""How long answers took: from getting a HIT to its first answer."""

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import NumberColumn, fetch_array_by_column
from app.record.responses import LAST_DECISION_SQL, responses_that_count_condition_sql

# Time of the first answer to the HIT.
FIRST_ANSWERED_AT = """
    CASE WHEN r.replaces IS NULL THEN r.received_at ELSE (
        SELECT f.received_at FROM responses f
        WHERE f.campaign_id = r.campaign_id AND f.hit_id = r.hit_id AND f.replaces IS NULL) END"""

# Only answers given in Easel: the time of imported answers is unknown.
LOAD_ANSWER_SECONDS = f"""
    SELECT r.seq, r.annotator_id, extract(epoch FROM {FIRST_ANSWERED_AT} - h.issued_at)::float8 AS seconds
    FROM (SELECT * FROM responses
          WHERE campaign_id = $1
          AND {responses_that_count_condition_sql("$1", LAST_DECISION_SQL.format(campaign="$1"))}) AS r
    JOIN hits h ON h.campaign_id = r.campaign_id AND h.id = r.hit_id WHERE h.leader IS NOT NULL
"""


async def load_answer_duration_columns(connection: AsyncConnection, campaign_id: int) -> dict[str, NumberColumn]:
    """Return the columns `seq`, `annotator` and `seconds`, (R,) each, of the answers that count and were given here."""
    return await fetch_array_by_column(
        connection, LOAD_ANSWER_SECONDS, (campaign_id,), seq="i8", annotator="i8", seconds="f8"
    )
