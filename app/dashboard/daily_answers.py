"""Answers per day of running campaigns, for the list of campaigns.

Answers are append-only, so those of earlier calls stay counted in memory, and a call reads only newer ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import leads_to_citus

DAYS_SHOWN = 14
# A transaction with a lower number may commit after one with a higher number, but not as late as this.
SETTLED_AFTER = timedelta(minutes=10)

COUNT_NEW_ANSWERS_SQL = """
    SELECT r.campaign_id AS campaign, CAST(r.received_at AT TIME ZONE 'UTC' AS date) AS day,
           r.received_at < :settled_before AS is_settled,
           count(*) FILTER (WHERE r.source <> 'import') AS answers, max(r.seq) AS seq
    FROM {source}
    GROUP BY 1, 2, 3
"""
# A campaign that was never read is read in full: to find each answer by the index would take ten times as long.
COUNT_NEW_ANSWERS = text(
    COUNT_NEW_ANSWERS_SQL.format(
        source="""(
            SELECT campaign_id, seq, received_at, source FROM responses
            WHERE campaign_id = ANY (CAST(:unread AS bigint[]))
            UNION ALL
            SELECT r.campaign_id, r.seq, r.received_at, r.source
            FROM unnest(CAST(:campaigns AS bigint[]), CAST(:seqs AS bigint[])) AS known (campaign, seq)
            JOIN responses r ON r.campaign_id = known.campaign AND r.seq > known.seq
        ) AS r"""
    )
)
COUNT_NEW_ANSWERS_OF_CAMPAIGN = text(
    COUNT_NEW_ANSWERS_SQL.format(source="responses r WHERE r.campaign_id = :campaign AND r.seq > :seq")
)


@dataclass(frozen=True)
class DailyAnswers:
    """Numbers of answers on the last days (UTC), oldest first; the last day is today.

    Answers that were imported are left out.
    """

    days: Sequence[date]
    counts: Sequence[int]

    @property
    def description(self) -> str:
        """Return the numbers in words, for readers who do not see the bars."""
        busiest = max(range(len(self.counts)), key=lambda place: self.counts[place])
        day = self.days[busiest]
        return (
            f"Answered tasks in the last {len(self.days)} days: {sum(self.counts):,}, "
            f"{self.counts[-1]:,} of them today. Most on {day:%B} {day.day}: {self.counts[busiest]:,}."
        )


@dataclass(frozen=True)
class SettledCounts:
    """The answers of a campaign up to one of them, by day."""

    seq: int = 0
    count_by_day: Mapping[date, int] = field(default_factory=dict)


class DailyAnswerCounts:
    """Counts of answers that this process has read."""

    def __init__(self) -> None:
        self.settled_by_campaign: dict[int, SettledCounts] = {}

    async def load_daily_answers_by_campaign(
        self, connection: AsyncConnection, campaign_ids: Sequence[int], *, now: datetime
    ) -> dict[int, DailyAnswers]:
        """Return the daily answers of each campaign that has any on the days shown."""
        if not campaign_ids:
            return {}
        known = {number: self.settled_by_campaign.get(number, SettledCounts()) for number in campaign_ids}
        rows_by_campaign: dict[int, list[Any]] = {number: [] for number in campaign_ids}
        for row in await self._load_new_counts(connection, known, settled_before=now - SETTLED_AFTER):
            rows_by_campaign[row.campaign].append(row)
        today = now.astimezone(UTC).date()
        days = [today - timedelta(days=ago) for ago in reversed(range(DAYS_SHOWN))]
        daily_answers = {}
        for number, rows in rows_by_campaign.items():
            counts = add_counts(known[number].count_by_day, rows, since=days[0])
            settled_rows = [row for row in rows if row.is_settled]
            if settled_rows:
                self.settled_by_campaign[number] = SettledCounts(
                    max(row.seq for row in settled_rows),
                    add_counts(known[number].count_by_day, settled_rows, since=days[0]),
                )
            if any(counts.get(day) for day in days):
                daily_answers[number] = DailyAnswers(days, [counts.get(day, 0) for day in days])
        return daily_answers

    async def _load_new_counts(
        self, connection: AsyncConnection, known: Mapping[int, SettledCounts], *, settled_before: datetime
    ) -> Sequence[Any]:
        if not leads_to_citus(connection):
            read = {number: settled.seq for number, settled in known.items() if settled.seq}
            parameters = {
                "unread": [number for number in known if number not in read],
                "campaigns": list(read),
                "seqs": list(read.values()),
                "settled_before": settled_before,
            }
            return (await connection.execute(COUNT_NEW_ANSWERS, parameters)).all()
        rows: list[Any] = []
        for number, settled in known.items():
            values = {"campaign": number, "seq": settled.seq, "settled_before": settled_before}
            rows += await connection.execute(COUNT_NEW_ANSWERS_OF_CAMPAIGN, values)
        return rows


def add_counts(count_by_day: Mapping[date, int], rows: Iterable[Any], *, since: date) -> dict[date, int]:
    """Return the sum of counts by day, without the days before `since`."""
    total = {day: count for day, count in count_by_day.items() if day >= since}
    for row in rows:
        if row.day >= since:
            total[row.day] = total.get(row.day, 0) + row.answers
    return total
