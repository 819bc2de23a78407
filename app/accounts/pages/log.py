"""Researchers' pages of the audit log, of a campaign and of the whole server."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from app.accounts import log_query
from app.accounts.guards import researcher_router
from app.accounts.log_query import AuditLogQuery
from app.database.audit_log import ACTION_KIND_TITLES, describe_log_line, names_with_old_and_new_value_texts
from app.database.bulk import open_snapshot
from app.designs.campaign import Campaign
from app.http.dependencies import Now, ReadingDatabase, Transaction, content_disposition_headers, render_page
from app.record.campaign import load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse
from app.text.table_formats import EXPORT_MEDIA_TYPES, stream_table_text

router = researcher_router("/admin")

LogFileEnding = Literal["csv", "jsonl"]
LogQuery = Annotated[AuditLogQuery, Query()]


@router.get("/log")
async def server_log_page(request: Request, connection: Transaction, query: LogQuery) -> HTMLResponse:
    return await render_log_page(request, connection, query)


@router.get("/log.{ending}")
async def export_server_log(
    database: ReadingDatabase, query: LogQuery, ending: LogFileEnding, now: Now
) -> StreamingResponse:
    return audit_log_download_response(database, query, None, "easel", ending, now=now)


@router.get("/campaigns/{slug}/log")
async def campaign_log_page(request: Request, connection: Transaction, slug: str, query: LogQuery) -> HTMLResponse:
    return await render_log_page(request, connection, query, await load_campaign_for_page_or_refuse(connection, slug))


@router.get("/campaigns/{slug}/log.{ending}")
async def export_campaign_log(
    connection: Transaction, database: ReadingDatabase, slug: str, query: LogQuery, *, ending: LogFileEnding, now: Now
) -> StreamingResponse:
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return audit_log_download_response(database, query, campaign.id, slug, ending, now=now)


async def render_log_page(
    request: Request, connection: Transaction, query: AuditLogQuery, campaign: Campaign | None = None
) -> HTMLResponse:
    campaign_id, query_fields = campaign.id if campaign else None, query.query_fields(page=1)
    context = {
        "campaign": campaign,
        "filters": query,
        "found": await log_query.load_log_page(connection, query, campaign_id),
        "people": await log_query.load_names_of_log_actors(connection, campaign_id),
        "kinds": ACTION_KIND_TITLES,
        "address": f"/admin/campaigns/{campaign.slug}/log" if campaign else "/admin/log",
        "active_filters": query_fields,
        "query": urlencode(query_fields),
        "describe_change": describe_log_line,
        "changed_values": names_with_old_and_new_value_texts,
        "ways": log_query.WAY_PHRASES,
    }
    return render_page(request, "admin/log.html", context)


def audit_log_download_response(
    database: ReadingDatabase,
    query: AuditLogQuery,
    campaign_id: int | None,
    name: str,
    ending: LogFileEnding,
    *,
    now: datetime,
) -> StreamingResponse:
    async def log_pieces() -> AsyncIterator[str]:
        async with open_snapshot(database) as connection:
            table = await log_query.open_audit_log_table_stream(connection, query, campaign_id)
            async for piece in stream_table_text(table, ending, spreadsheet=False):
                yield piece

    headers = content_disposition_headers(name, "log", ending, now=now)
    return StreamingResponse(log_pieces(), media_type=EXPORT_MEDIA_TYPES[ending], headers=headers)
