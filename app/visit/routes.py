"""Researchers' page of the people who have links of their own."""

import csv
from collections.abc import Iterable
from io import BytesIO, StringIO
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import UploadFile

from app.auth.guards import researcher
from app.database.audit_log import note
from app.database.campaign import campaign_of_page
from app.errors import Invalid, Refusal
from app.spreadsheets import guarded
from app.upload import ReadAs, can_be_read
from app.visit import people
from app.web import AppSettings, Database, Now, Transaction, base_url, download_headers, page

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)
SHOWN = 100  # people on a page
HEADER = ("name", "link", "opened_at", "sets_answered")


@router.get("/people")
async def people_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    number: Annotated[int, Query(alias="page", ge=1, le=people.MOST)] = 1,
) -> HTMLResponse:
    return await shown(request, connection, slug, number=number)


async def shown(
    request: Request, connection: Transaction, slug: str, *, number: int = 1, refusal: Refusal | None = None
) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    count, used = await people.counted(connection, campaign.id)
    pages = max(1, -(-count // SHOWN))
    number = min(number, pages)
    rows = await people.listed(connection, campaign.id, limit=SHOWN, offset=(number - 1) * SHOWN)
    base = base_url(request)
    links = [people.link_of(base, campaign.link_key, row.link) for row in rows]
    context = {"campaign": campaign, "people": list(zip(rows, links, strict=True)), "count": count, "used": used}
    context |= {"number": number, "pages": pages, "per_page": SHOWN, "refusal": refusal, "most": people.MOST}
    context |= {"asks_how": isinstance(refusal, Invalid) and can_be_read(refusal)}
    return page(request, "admin/people.html", context, status=refusal.status if refusal else 200)


@router.post("/people")
async def add_people(request: Request, database: Database, settings: AppSettings, slug: str, now: Now) -> Response:
    """Those in a file, or on lines of their own in the form."""
    form = await request.form()
    file, typed = form.get("file"), str(form.get("names") or "")
    try:
        names: Iterable[str] = [line.strip() for line in typed.splitlines()]
        if isinstance(file, UploadFile) and file.filename:
            content = BytesIO(await file.read())
            read_as = ReadAs(str(form.get("encoding") or "") or None, str(form.get("quotes") or "") or None)
            names = people.names_in(content, file.filename, None, max_mb=settings.max_upload_mb, read_as=read_as)
        async with database.begin() as connection:
            await people.add(connection, await campaign_of_page(connection, slug), names, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await shown(request, connection, slug, refusal=refusal)
    return RedirectResponse(f"/admin/campaigns/{slug}/people?done=people", status_code=303)


@router.get("/people.csv")
async def people_file(request: Request, connection: Transaction, slug: str, now: Now) -> Response:
    """Everybody with their link, for a mail merge."""
    campaign = await campaign_of_page(connection, slug)
    await note(connection, "people.downloaded", campaign, about="people.csv")
    base, file = base_url(request), StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(HEADER)
    for row in await people.listed(connection, campaign.id):
        link = people.link_of(base, campaign.link_key, row.link)
        writer.writerow([guarded(row.name), link, row.opened_at.isoformat() if row.opened_at else "", row.answered])
    headers = download_headers(slug, "people", "csv", now=now) | {"Cache-Control": "no-store"}
    return Response(file.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)
