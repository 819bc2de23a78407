"""Counts of answered HITs per minute, from which `pace` computes rates and forecasts."""

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.record import pace
from app.record.responses import COUNTING_RESPONSES_CONDITION

# Time of the first response that was given here: imported ones say nothing about the pace.
FIRST_ANSWER_TIME_COLUMN = """(SELECT received_at FROM responses
            WHERE campaign_id = :campaign AND source <> 'import'
            ORDER BY seq LIMIT 1) AS first_at"""

COUNT_HITS_PER_MINUTE = text(f"""
    SELECT date_bin('1 minute', received_at, 'epoch') AS minute, count(*) AS hits FROM responses
    WHERE campaign_id = :campaign AND received_at > :since AND source <> 'import' AND {COUNTING_RESPONSES_CONDITION}
    GROUP BY 1
""")


FIND_FIRST_ANSWER_TIME = text(f"SELECT {FIRST_ANSWER_TIME_COLUMN}")


async def load_recent_hits_per_hour_or_none(
    connection: AsyncConnection, campaign_id: int, *, now: datetime
) -> float | None:
    """Return how many HITs are answered per hour now, or None while there are too few answers for a rate."""
    first_answer_at = (await connection.execute(FIND_FIRST_ANSWER_TIME, {"campaign": campaign_id})).scalar()
    if first_answer_at is None:
        return None
    hits_by_minute = await load_hit_count_by_minute(connection, campaign_id, now)
    recent = pace.recent_hit_count_and_hits_per_hour_or_none(
        hits_by_minute, min(first_answer_at, now).timestamp(), now.timestamp()
    )
    return recent[1] if recent and recent[0] >= pace.MIN_HITS_FOR_RATE else None


async def load_hit_count_by_minute(connection: AsyncConnection, campaign_id: int, until: datetime) -> dict[int, int]:
    """Return how many HITs were answered in each minute of the hours that pages show, by minutes since 1970."""
    parameters = {"campaign": campaign_id, "since": until - timedelta(hours=pace.PACE_HOURS_SHOWN)}
    rows = await connection.execute(COUNT_HITS_PER_MINUTE, parameters)
    return {minutes_since_epoch(row.minute): row.hits for row in rows}


def minutes_since_epoch(moment: datetime) -> int:
    """Return the whole minutes since 1970."""
    return int(moment.timestamp()) // 60
