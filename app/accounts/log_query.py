"""Queries of the audit log, newest lines first: by person, kind, words and days, for pages and exports."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, Row, Text, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.account_tables import audit_log
from app.database.audit_log import ACTION_KIND_TITLES
from app.database.bulk import StatementTable
from app.http.paging import AddressQuery, Page, PageNumber, SearchWords
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import TableStream

LOG_LINES_PER_PAGE = 50
WAY_PHRASES = {
    "page": "on a page",
    "api": "through the API",
    "command": "on the command line",
    "server": "automatically",
}


class AuditLogQuery(AddressQuery):
    """Lines to show. Empty fields match every line."""

    who: SearchWords = Field(default="", description="Login name of the person.")
    kind: Literal["", *ACTION_KIND_TITLES] = Field(default="", description="Kind of change.")  # type: ignore[valid-type]
    words: SearchWords = Field(default="", description="Text within the subject, the old or the new values.")
    since: date | Literal[""] = Field(default="", description="The first day, in UTC.")
    until: date | Literal[""] = Field(default="", description="The last day, in UTC.")
    page: PageNumber = 1

    def sql_conditions(self, campaign_id: int | None) -> list[ColumnElement[bool]]:
        """Return the filter as SQL conditions, within a campaign if there is one."""
        log = audit_log.c
        conditions = [log.campaign_id == campaign_id] if campaign_id is not None else []
        conditions += [log.who == self.who] if self.who else []
        conditions += [log.action.startswith(f"{self.kind}.", autoescape=True)] if self.kind else []
        if self.words:
            texts = (log.about, log.campaign, log.action, cast(log.before, Text), cast(log.after, Text))
            conditions.append(or_(*(column.icontains(self.words, autoescape=True) for column in texts)))
        conditions += [log.noted_at >= datetime.combine(self.since, time.min, UTC)] if self.since else []
        conditions += [log.noted_at <= datetime.combine(self.until, time.max, UTC)] if self.until else []
        return conditions


async def load_log_page(
    connection: AsyncConnection,
    query: AuditLogQuery,
    campaign_id: int | None = None,
    page_size: int = LOG_LINES_PER_PAGE,
) -> Page[Row[Any]]:
    """Return a page of matching lines, within a campaign if there is one."""
    conditions = query.sql_conditions(campaign_id)
    count = select(func.count()).select_from(audit_log).where(*conditions)
    page: Page[Row[Any]] = Page(query.page, page_size, (await connection.execute(count)).scalar_one())
    statement = (
        select(audit_log).where(*conditions).order_by(audit_log.c.id.desc()).limit(page_size).offset(page.offset)
    )
    return replace(page, rows=(await connection.execute(statement)).all())


async def load_names_of_log_actors(connection: AsyncConnection, campaign_id: int | None) -> Sequence[str]:
    """Return the names of all people with lines, within a campaign if there is one."""
    conditions = AuditLogQuery().sql_conditions(campaign_id)
    statement = select(audit_log.c.who).where(*conditions).distinct().order_by(audit_log.c.who)
    return (await connection.execute(statement)).scalars().all()


async def open_audit_log_table_stream(
    connection: AsyncConnection, query: AuditLogQuery, campaign_id: int | None
) -> TableStream:
    """Return all matching lines, oldest first. Text that people typed is guarded against spreadsheet programs."""
    lines = audit_log.c
    columns = (lines.noted_at.label("at"), lines.who, lines.way, lines.campaign, lines.action, lines.about)
    statement = select(*columns, lines.before, lines.after).where(*query.sql_conditions(campaign_id)).order_by(lines.id)
    return await StatementTable(statement, {"about": guard_against_formula}).open(connection)
