"""How many HITs were answered in each minute, of which `pace` makes rates and forecasts."""

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.record import pace
from app.record.stream import COUNTING

# When the first response was given here: imported ones say nothing about the pace.
FIRST_AT = """(SELECT received_at FROM responses
            WHERE campaign_id = :campaign AND source <> 'import'
            ORDER BY seq LIMIT 1) AS first_at"""

PER_MINUTE = text(f"""
    SELECT date_bin('1 minute', received_at, 'epoch') AS minute, count(*) AS hits FROM responses
    WHERE campaign_id = :campaign AND received_at > :since AND source <> 'import' AND {COUNTING} GROUP BY 1
""")  # noqa: S608  (made of constants)


FIRST = text(f"SELECT {FIRST_AT}")


async def recent_pace(connection: AsyncConnection, campaign_id: int, *, now: datetime) -> float | None:
    """HITs an hour that are answered now, from a few on; None while there is too little to say."""
    first = (await connection.execute(FIRST, {"campaign": campaign_id})).scalar()
    if first is None:
        return None
    minutes = await per_minute(connection, campaign_id, now)
    recent = pace.recent_rate(minutes, min(first, now).timestamp(), now.timestamp())
    return recent[1] if recent and recent[0] >= pace.FEWEST_HITS else None


async def per_minute(connection: AsyncConnection, campaign_id: int, until: datetime) -> dict[int, int]:
    parameters = {"campaign": campaign_id, "since": until - timedelta(hours=pace.HOURS_SHOWN)}
    rows = await connection.execute(PER_MINUTE, parameters)
    return {minute_of(row.minute): row.hits for row in rows}


def minute_of(moment: datetime) -> int:
    """Whole minutes since 1970."""
    return int(moment.timestamp()) // 60
