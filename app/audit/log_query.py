"""Lines of the audit log, newest first: found by who, of what kind, what they say and when; read and exported."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Text, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.formats import RowCells, TableStream
from app.database.account_tables import audit_log
from app.text.spreadsheets import guard_against_formula

LOG_LINES_PER_PAGE = 50
LOG_ROWS_PER_BATCH = 2_000
LOG_EXPORT_COLUMNS = ("at", "who", "way", "campaign", "action", "about", "before", "after")
WAY_PHRASES = {"page": "on a page", "api": "by the API", "command": "on the command line", "server": "by itself"}


@dataclass(frozen=True)
class AuditLogFilter:
    """Which lines are asked for. Empty: whatever it is.

    campaign: a row's id. who: a name. kind: of `KINDS`. words: somewhere in what it is about, was or is, in any case.
    since, until: days in UTC, both of them whole.
    """

    campaign: int | None = None
    who: str = ""
    kind: str = ""
    words: str = ""
    since: date | None = None
    until: date | None = None

    @property
    def sql_conditions(self) -> list[ColumnElement[bool]]:
        """As SQL."""
        log = audit_log.c
        conditions = [log.campaign_id == self.campaign] if self.campaign is not None else []
        conditions += [log.who == self.who] if self.who else []
        conditions += [log.action.startswith(f"{self.kind}.", autoescape=True)] if self.kind else []
        if self.words:
            places = (log.about, log.campaign, log.action, cast(log.before, Text), cast(log.after, Text))
            conditions.append(or_(*(place.icontains(self.words, autoescape=True) for place in places)))
        conditions += [log.noted_at >= utc_midnight(self.since)] if self.since else []
        conditions += [log.noted_at < utc_midnight(self.until) + timedelta(days=1)] if self.until else []
        return conditions


@dataclass(frozen=True)
class AuditLogPage:
    """A page of lines, of how many pages, and how many lines there are in all."""

    lines: Sequence[Row[Any]]
    page: int
    pages: int
    total: int


def utc_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


async def load_log_page(
    connection: AsyncConnection, log_filter: AuditLogFilter, page: int, size: int = LOG_LINES_PER_PAGE
) -> AuditLogPage:
    """A page of what is wanted, from 1 on; beyond the last one, the last."""
    count = select(func.count()).select_from(audit_log).where(*log_filter.sql_conditions)
    total = (await connection.execute(count)).scalar_one()
    pages = max(1, -(-total // size))
    page = min(page, pages)
    statement = newest_log_lines_statement(log_filter).limit(size).offset((page - 1) * size)
    return AuditLogPage((await connection.execute(statement)).all(), page, pages, total)


def newest_log_lines_statement(log_filter: AuditLogFilter) -> Any:
    return select(audit_log).where(*log_filter.sql_conditions).order_by(audit_log.c.id.desc())


async def load_log_actor_names(connection: AsyncConnection, log_filter: AuditLogFilter) -> Sequence[str]:
    """Who has written lines, of the campaign if one is wanted."""
    conditions = AuditLogFilter(log_filter.campaign).sql_conditions
    statement = select(audit_log.c.who).where(*conditions).distinct().order_by(audit_log.c.who)
    return (await connection.execute(statement)).scalars().all()


async def log_export_table(connection: AsyncConnection, log_filter: AuditLogFilter) -> TableStream:
    """All that is wanted, oldest first. What people typed is guarded against spreadsheet programs."""

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
