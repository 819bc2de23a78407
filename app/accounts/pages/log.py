"""Researchers' pages of the audit log, of a campaign and of the whole server."""

from collections.abc import AsyncIterator
from datetime import date, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from app.accounts import log_query
from app.accounts.guards import require_researcher
from app.accounts.log_query import AuditLogFilter
from app.database.audit_log import ACTION_KIND_TITLES, describe_log_line, displayed_changes
from app.database.bulk import open_snapshot
from app.database.campaign import load_campaign_by_slug, load_campaign_for_page
from app.http.dependencies import Now, ReadingDatabase, Transaction, download_headers, render_page
from app.text.table_formats import EXPORT_MEDIA_TYPES, stream_table_text

router = APIRouter(prefix="/admin", dependencies=[Depends(require_researcher)], include_in_schema=False)

LogPageNumber = Annotated[int, Query(ge=1, le=10_000_000)]
LogFileEnding = Literal["csv", "jsonl"]


async def read_log_filter(
    *,
    who: Annotated[str, Query(max_length=200, description="Login name of the person.")] = "",
    kind: Annotated[Literal["", *ACTION_KIND_TITLES], Query(description="Kind of change.")] = "",  # type: ignore[valid-type]
    words: Annotated[
        str, Query(max_length=200, description="Text within the subject, the old or the new values.")
    ] = "",
    since: Annotated[date | Literal[""], Query(description="The first day, in UTC.")] = "",
    until: Annotated[date | Literal[""], Query(description="The last day, in UTC.")] = "",
) -> AuditLogFilter:
    """Return the filter that a form or a program asks for."""
    return AuditLogFilter(None, who.strip(), kind, words.strip(), since or None, until or None)


LogFilterQuery = Annotated[AuditLogFilter, Depends(read_log_filter)]


@router.get("/log")
async def server_log_page(
    request: Request, connection: Transaction, log_filter: LogFilterQuery, page: LogPageNumber = 1
) -> HTMLResponse:
    return await render_log_page(request, connection, log_filter, page)


@router.get("/log.{ending}")
async def export_server_log(
    database: ReadingDatabase, log_filter: LogFilterQuery, ending: LogFileEnding, now: Now
) -> StreamingResponse:
    return log_download(database, log_filter, ending, "easel", now)


@router.get("/campaigns/{slug}/log")
async def campaign_log_page(
    request: Request, connection: Transaction, slug: str, log_filter: LogFilterQuery, page: LogPageNumber = 1
) -> HTMLResponse:
    campaign = await load_campaign_for_page(connection, slug)
    return await render_log_page(request, connection, limit_log_to_campaign(campaign, log_filter), page, campaign)


@router.get("/campaigns/{slug}/log.{ending}")
async def export_campaign_log(
    connection: Transaction,
    database: ReadingDatabase,
    slug: str,
    log_filter: LogFilterQuery,
    *,
    ending: LogFileEnding,
    now: Now,
) -> StreamingResponse:
    campaign = await load_campaign_by_slug(connection, slug)
    return log_download(database, limit_log_to_campaign(campaign, log_filter), ending, slug, now)


def limit_log_to_campaign(campaign: Any, log_filter: AuditLogFilter) -> AuditLogFilter:
    return AuditLogFilter(
        campaign.id, log_filter.who, log_filter.kind, log_filter.words, log_filter.since, log_filter.until
    )


async def render_log_page(
    request: Request, connection: Transaction, log_filter: AuditLogFilter, page_number: int, campaign: Any = None
) -> HTMLResponse:
    address = f"/admin/campaigns/{campaign.slug}/log" if campaign else "/admin/log"
    query_fields = [
        (name, value) for name in ("who", "kind", "words", "since", "until") if (value := getattr(log_filter, name))
    ]
    context = {
        "campaign": campaign,
        "asked": log_filter,
        "found": await log_query.load_log_page(connection, log_filter, page_number),
        "people": await log_query.load_log_actor_names(connection, log_filter),
        "kinds": ACTION_KIND_TITLES,
        "address": address,
        "kept": query_fields,
        "query": urlencode(query_fields),
        "said": describe_log_line,
        "changes": displayed_changes,
        "ways": log_query.WAY_PHRASES,
    }
    return render_page(request, "admin/log.html", context)


def log_download(
    database: ReadingDatabase, log_filter: AuditLogFilter, ending: LogFileEnding, name: str, now: datetime
) -> StreamingResponse:
    async def log_pieces() -> AsyncIterator[str]:
        async with open_snapshot(database) as connection:
            table = log_query.log_export_table(connection, log_filter)
            async for piece in stream_table_text(table, ending, spreadsheet=False):
                yield piece

    headers = download_headers(name, "log", ending, now=now)
    return StreamingResponse(log_pieces(), media_type=EXPORT_MEDIA_TYPES[ending], headers=headers)
