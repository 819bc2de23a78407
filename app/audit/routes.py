"""The audit log for researchers: of a campaign, and of the whole server."""

from datetime import date, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from app.analysis.export import MEDIA_TYPES, streamed
from app.audit import found
from app.audit.found import Wanted
from app.auth.guards import researcher
from app.database.audit_log import KINDS, changes, said
from app.database.campaign import campaign_by_slug, campaign_of_page
from app.web import Now, ReadingDatabase, Transaction, download_headers, page

router = APIRouter(prefix="/admin", dependencies=[Depends(researcher)], include_in_schema=False)

Page = Annotated[int, Query(ge=1, le=10_000_000)]
Ending = Literal["csv", "jsonl"]


async def wanted(
    *,
    who: Annotated[str, Query(max_length=200, description="Who did it, by login name.")] = "",
    kind: Annotated[Literal["", *KINDS], Query(description="Of what kind.")] = "",  # type: ignore[valid-type]
    words: Annotated[str, Query(max_length=200, description="Somewhere in what it is about, was or is.")] = "",
    since: Annotated[date | Literal[""], Query(description="The first day, in UTC.")] = "",
    until: Annotated[date | Literal[""], Query(description="The last day, in UTC.")] = "",
) -> Wanted:
    """What a form or a program asks for."""
    return Wanted(None, who.strip(), kind, words.strip(), since or None, until or None)


Asked = Annotated[Wanted, Depends(wanted)]


@router.get("/log")
async def log_of_server(request: Request, connection: Transaction, asked: Asked, page: Page = 1) -> HTMLResponse:
    return await log_page(request, connection, asked, page)


@router.get("/log.{ending}")
async def export_of_server(database: ReadingDatabase, asked: Asked, ending: Ending, now: Now) -> StreamingResponse:
    return download(database, asked, ending, "easel", now)


@router.get("/campaigns/{slug}/log")
async def log_of_campaign(
    request: Request, connection: Transaction, slug: str, asked: Asked, page: Page = 1
) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    return await log_page(request, connection, of(campaign, asked), page, campaign)


@router.get("/campaigns/{slug}/log.{ending}")
async def export_of_campaign(
    connection: Transaction, database: ReadingDatabase, slug: str, asked: Asked, *, ending: Ending, now: Now
) -> StreamingResponse:
    campaign = await campaign_by_slug(connection, slug)
    return download(database, of(campaign, asked), ending, slug, now)


def of(campaign: Any, asked: Wanted) -> Wanted:
    return Wanted(campaign.id, asked.who, asked.kind, asked.words, asked.since, asked.until)


async def log_page(
    request: Request, connection: Transaction, asked: Wanted, number: int, campaign: Any = None
) -> HTMLResponse:
    address = f"/admin/campaigns/{campaign.slug}/log" if campaign else "/admin/log"
    kept = [(name, value) for name in ("who", "kind", "words", "since", "until") if (value := getattr(asked, name))]
    context = {
        "campaign": campaign,
        "asked": asked,
        "found": await found.page_of(connection, asked, number),
        "people": await found.people(connection, asked),
        "kinds": KINDS,
        "address": address,
        "kept": kept,
        "query": urlencode(kept),
        "said": said,
        "changes": changes,
        "ways": found.AS_PEOPLE_SAY,
    }
    return page(request, "admin/log.html", context)


def download(database: ReadingDatabase, asked: Wanted, ending: Ending, name: str, now: datetime) -> StreamingResponse:
    async def table_of(connection: Transaction, _campaign: Any) -> Any:
        return await found.table(connection, asked)

    pieces = streamed(database, None, table_of, ending, spreadsheet=False)
    headers = download_headers(name, "log", ending, now=now)
    return StreamingResponse(pieces, media_type=MEDIA_TYPES[ending], headers=headers)
