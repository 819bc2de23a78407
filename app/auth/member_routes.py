"""Researchers' page of who may reach a campaign."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth import members
from app.auth.guards import researcher
from app.auth.roles import IN_CAMPAIGN, VIEWER
from app.database.campaign import campaign_by_slug, campaign_of_page
from app.errors import Refusal
from app.web import Database, Now, RowId, Transaction, page

router = APIRouter(
    prefix="/admin/campaigns/{slug}/members", dependencies=[Depends(researcher)], include_in_schema=False
)

Text = Annotated[str, Form(max_length=200)]


@router.get("")
async def members_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    return await shown(request, connection, slug)


async def shown(request: Request, connection: Transaction, slug: str, refusal: Refusal | None = None) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    context = {
        "campaign": campaign,
        "members": await members.listed(connection, campaign.id),
        "roles": list(IN_CAMPAIGN),
        "refusal": refusal,
    }
    return page(request, "admin/members.html", context, status=refusal.status if refusal else 200)


def back(slug: str, done: str) -> Response:
    return RedirectResponse(f"/admin/campaigns/{slug}/members?done={done}", status_code=303)


@router.post("")
async def add(
    *, request: Request, database: Database, slug: str, now: Now, name: Text = "", role: Text = VIEWER
) -> Response:
    try:
        async with database.begin() as connection:
            await members.add(connection, await campaign_by_slug(connection, slug), name, role, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await shown(request, connection, slug, refusal)
    return back(slug, "member-added")


@router.post("/{user_id}/role")
async def set_role(request: Request, database: Database, slug: str, user_id: RowId, role: Text = "") -> Response:
    try:
        async with database.begin() as connection:
            await members.set_role(connection, await campaign_by_slug(connection, slug), user_id, role)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await shown(request, connection, slug, refusal)
    return back(slug, "role")


@router.post("/{user_id}/remove")
async def remove(request: Request, database: Database, slug: str, user_id: RowId) -> Response:
    try:
        async with database.begin() as connection:
            await members.remove(connection, await campaign_by_slug(connection, slug), user_id)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await shown(request, connection, slug, refusal)
    return back(slug, "member-removed")
