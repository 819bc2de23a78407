"""Queries of the audit log, newest lines first: by person, kind, words and days, for pages and exports."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Text, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.account_tables import audit_log
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import RowCells, TableStream

LOG_LINES_PER_PAGE = 50
LOG_ROWS_PER_BATCH = 2_000
LOG_EXPORT_COLUMNS = ("at", "who", "way", "campaign", "action", "about", "before", "after")
WAY_PHRASES = {"page": "on a page", "api": "through the API", "command": "on the command line", "server": "by itself"}


@dataclass(frozen=True)
class AuditLogFilter:
    """Filter of lines. Empty fields match every line.

    Attributes:
        campaign: A campaign's id.
        who: A name.
        kind: A key of `ACTION_KIND_TITLES`.
        words: Text within the subject, the old or the new values, in any case.
        since: First day in UTC.
        until: Last day in UTC.

    """

    campaign: int | None = None
    who: str = ""
    kind: str = ""
    words: str = ""
    since: date | None = None
    until: date | None = None

    @property
    def sql_conditions(self) -> list[ColumnElement[bool]]:
        """The filter as SQL conditions."""
        log = audit_log.c
        conditions = [log.campaign_id == self.campaign] if self.campaign is not None else []
        conditions += [log.who == self.who] if self.who else []
        conditions += [log.action.startswith(f"{self.kind}.", autoescape=True)] if self.kind else []
        if self.words:
            texts = (log.about, log.campaign, log.action, cast(log.before, Text), cast(log.after, Text))
            conditions.append(or_(*(column.icontains(self.words, autoescape=True) for column in texts)))
        conditions += [log.noted_at >= utc_midnight(self.since)] if self.since else []
        conditions += [log.noted_at < utc_midnight(self.until) + timedelta(days=1)] if self.until else []
        return conditions


@dataclass(frozen=True)
class AuditLogPage:
    """A page of lines, its number, the number of pages, and the number of all lines."""

    lines: Sequence[Row[Any]]
    page: int
    pages: int
    total: int


def utc_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


async def load_log_page(
    connection: AsyncConnection, log_filter: AuditLogFilter, page: int, size: int = LOG_LINES_PER_PAGE
) -> AuditLogPage:
    """Return a page of matching lines, counted from 1; the last one if there are fewer pages."""
    count = select(func.count()).select_from(audit_log).where(*log_filter.sql_conditions)
    total = (await connection.execute(count)).scalar_one()
    pages = max(1, -(-total // size))
    page = min(page, pages)
    statement = newest_log_lines_statement(log_filter).limit(size).offset((page - 1) * size)
    return AuditLogPage((await connection.execute(statement)).all(), page, pages, total)


def newest_log_lines_statement(log_filter: AuditLogFilter) -> Any:
    return select(audit_log).where(*log_filter.sql_conditions).order_by(audit_log.c.id.desc())


async def load_log_actor_names(connection: AsyncConnection, log_filter: AuditLogFilter) -> Sequence[str]:
    """Return the names of all people with lines, in the campaign if the filter names one."""
    conditions = AuditLogFilter(log_filter.campaign).sql_conditions
    statement = select(audit_log.c.who).where(*conditions).distinct().order_by(audit_log.c.who)
    return (await connection.execute(statement)).scalars().all()


def log_export_table(connection: AsyncConnection, log_filter: AuditLogFilter) -> TableStream:
    """Return all matching lines, oldest first. Text that people typed is guarded against spreadsheet programs."""

    async def chunks() -> AsyncIterator[list[RowCells]]:
        statement = select(audit_log).where(*log_filter.sql_conditions).order_by(audit_log.c.id)
        async for rows in (await connection.stream(statement)).partitions(LOG_ROWS_PER_BATCH):
            yield [
                (
                    row.noted_at,
                    row.who,
                    row.way,
                    row.campaign,
                    row.action,
                    guard_against_formula(row.about),
                    row.before,
                    row.after,
                )
                for row in rows
            ]

    return TableStream(LOG_EXPORT_COLUMNS, chunks())
