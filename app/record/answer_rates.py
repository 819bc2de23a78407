"""Counts of answered HITs per minute, from which `pace` computes rates and forecasts."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import leads_to_citus
from app.record import pace
from app.record.responses import LAST_DECISION_SQL, responses_that_count_condition_sql


def first_answer_time_column_sql(campaign: str) -> str:
    """Return SQL for the time of the first response that was given here: imported ones say nothing about the pace."""
    return f"""(SELECT received_at FROM responses
            WHERE campaign_id = {campaign} AND source <> 'import'
            ORDER BY seq LIMIT 1) AS first_at"""


def answer_time_columns_sql(campaign: str) -> str:
    """Return SQL for the columns `campaign`, `first_at` and `last_at` of a campaign."""
    return f"""
    SELECT {campaign} AS campaign, {first_answer_time_column_sql(campaign)},
           (SELECT received_at FROM responses WHERE campaign_id = {campaign} ORDER BY seq DESC LIMIT 1) AS last_at"""


def count_hits_per_minute_sql(campaign: str) -> str:
    """Return SQL for the columns `campaign`, `minute` and `hits`: the responses that count after `:since`."""
    last_decision = LAST_DECISION_SQL.format(campaign=campaign)
    return f"""
    SELECT {campaign} AS campaign, date_bin('1 minute', received_at, 'epoch') AS minute, count(*) AS hits
    FROM responses
    WHERE campaign_id = {campaign} AND received_at > :since AND source <> 'import'
    AND {responses_that_count_condition_sql(campaign, last_decision)}
    GROUP BY 2"""


LISTED_CAMPAIGNS_SQL = "unnest(CAST(:campaigns AS bigint[])) AS listed (id)"
FIRST_ANSWER_TIME_COLUMN = first_answer_time_column_sql(":campaign")
FIND_ANSWER_TIMES = text(answer_time_columns_sql("CAST(:campaign AS bigint)"))
FIND_ANSWER_TIMES_OF_CAMPAIGNS = text(f"""
    SELECT times.* FROM {LISTED_CAMPAIGNS_SQL}, LATERAL ({answer_time_columns_sql("listed.id")}) AS times
""")
COUNT_HITS_PER_MINUTE = text(count_hits_per_minute_sql("CAST(:campaign AS bigint)"))
COUNT_HITS_PER_MINUTE_OF_CAMPAIGNS = text(f"""
    SELECT counts.* FROM {LISTED_CAMPAIGNS_SQL}, LATERAL ({count_hits_per_minute_sql("listed.id")}) AS counts
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


class AnswerTimes(NamedTuple):
    """Times of a campaign's first answer that was given here, and of its last answer; None without one."""

    first_at: datetime | None
    last_at: datetime | None


async def load_answer_times_by_campaign(
    connection: AsyncConnection, campaign_ids: Sequence[int]
) -> dict[int, AnswerTimes]:
    """Return the times of the first and the last answer of each campaign, in one statement."""
    rows = await load_rows_of_campaigns(connection, FIND_ANSWER_TIMES_OF_CAMPAIGNS, FIND_ANSWER_TIMES, campaign_ids)
    return {row.campaign: AnswerTimes(row.first_at, row.last_at) for row in rows}


async def load_hit_count_by_minute_by_campaign(
    connection: AsyncConnection, campaign_ids: Sequence[int], until: datetime
) -> dict[int, dict[int, int]]:
    """Return the counts of `load_hit_count_by_minute` for each campaign, in one statement."""
    rows = await load_rows_of_campaigns(
        connection,
        COUNT_HITS_PER_MINUTE_OF_CAMPAIGNS,
        COUNT_HITS_PER_MINUTE,
        campaign_ids,
        since=start_of_hours_shown(until),
    )
    counts: dict[int, dict[int, int]] = {campaign_id: {} for campaign_id in campaign_ids}
    for row in rows:
        counts[row.campaign][minutes_since_epoch(row.minute)] = row.hits
    return counts


async def load_rows_of_campaigns(
    connection: AsyncConnection,
    statement: TextClause,
    statement_of_one_campaign: TextClause,
    campaign_ids: Sequence[int],
    **parameters: Any,
) -> list[Row[Any]]:
    """Return the rows of all campaigns; a cluster reads one campaign at a time."""
    if not campaign_ids:
        return []
    if not leads_to_citus(connection):
        return [*await connection.execute(statement, {"campaigns": [*campaign_ids], **parameters})]
    rows: list[Row[Any]] = []
    for campaign_id in campaign_ids:
        rows += await connection.execute(statement_of_one_campaign, {"campaign": campaign_id, **parameters})
    return rows


async def load_hit_count_by_minute(connection: AsyncConnection, campaign_id: int, until: datetime) -> dict[int, int]:
    """Return how many HITs were answered in each minute of the hours that pages show, by minutes since 1970."""
    parameters = {"campaign": campaign_id, "since": start_of_hours_shown(until)}
    rows = await connection.execute(COUNT_HITS_PER_MINUTE, parameters)
    return {minutes_since_epoch(row.minute): row.hits for row in rows}


def start_of_hours_shown(until: datetime) -> datetime:
    return until - timedelta(hours=pace.PACE_HOURS_SHOWN)


def minutes_since_epoch(moment: datetime) -> int:
    """Return the whole minutes since 1970."""
    return int(moment.timestamp()) // 60
