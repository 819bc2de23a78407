"""Lines of the audit log, newest first: found by who, of what kind, what they say and when; read and exported."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Text, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.formats import Cells, TableFile
from app.database.account_tables import audit_log
from app.spreadsheets import guarded

LINES_PER_PAGE = 50
ROWS_AT_ONCE = 2_000
COLUMNS = ("at", "who", "way", "campaign", "action", "about", "before", "after")
AS_PEOPLE_SAY = {"page": "on a page", "api": "by the API", "command": "on the command line", "server": "by itself"}


@dataclass(frozen=True)
class Wanted:
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
    def conditions(self) -> list[ColumnElement[bool]]:
        """As SQL."""
        log = audit_log.c
        found = [log.campaign_id == self.campaign] if self.campaign is not None else []
        found += [log.who == self.who] if self.who else []
        found += [log.action.startswith(f"{self.kind}.", autoescape=True)] if self.kind else []
        if self.words:
            places = (log.about, log.campaign, log.action, cast(log.before, Text), cast(log.after, Text))
            found.append(or_(*(place.icontains(self.words, autoescape=True) for place in places)))
        found += [log.noted_at >= midnight(self.since)] if self.since else []
        found += [log.noted_at < midnight(self.until) + timedelta(days=1)] if self.until else []
        return found


@dataclass(frozen=True)
class Found:
    """A page of lines, of how many pages, and how many lines there are in all."""

    lines: Sequence[Row[Any]]
    page: int
    pages: int
    total: int


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


async def page_of(connection: AsyncConnection, wanted: Wanted, page: int, size: int = LINES_PER_PAGE) -> Found:
    """A page of what is wanted, from 1 on; beyond the last one, the last."""
    count = select(func.count()).select_from(audit_log).where(*wanted.conditions)
    total = (await connection.execute(count)).scalar_one()
    pages = max(1, -(-total // size))
    page = min(page, pages)
    statement = newest_first(wanted).limit(size).offset((page - 1) * size)
    return Found((await connection.execute(statement)).all(), page, pages, total)


def newest_first(wanted: Wanted) -> Any:
    return select(audit_log).where(*wanted.conditions).order_by(audit_log.c.id.desc())


async def people(connection: AsyncConnection, wanted: Wanted) -> Sequence[str]:
    """Who has written lines, of the campaign if one is wanted."""
    of = Wanted(wanted.campaign).conditions
    statement = select(audit_log.c.who).where(*of).distinct().order_by(audit_log.c.who)
    return (await connection.execute(statement)).scalars().all()


async def table(connection: AsyncConnection, wanted: Wanted) -> TableFile:
    """All that is wanted, oldest first. What people typed is guarded against spreadsheet programs."""

    async def chunks() -> AsyncIterator[list[Cells]]:
        statement = select(audit_log).where(*wanted.conditions).order_by(audit_log.c.id)
        async for rows in (await connection.stream(statement)).partitions(ROWS_AT_ONCE):
            yield [
                (row.noted_at, row.who, row.way, row.campaign, row.action, guarded(row.about), row.before, row.after)
                for row in rows
            ]

    return TableFile(COLUMNS, chunks())
