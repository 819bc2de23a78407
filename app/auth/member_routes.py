"""Researchers' page of who may reach a campaign: members, invitations, read-only links."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth import invitations, members, shared_links
from app.auth.guards import Researcher, researcher
from app.auth.invitation_routes import invitation_address, shared_address
from app.auth.roles import IN_CAMPAIGN, VIEWER
from app.auth.routes import confirm, require_password
from app.database.campaign import campaign_by_slug, campaign_of_page
from app.errors import Refusal
from app.web import Database, Now, RowId, Transaction, get_now, page, retry_after

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)

Text = Annotated[str, Form(max_length=1000)]
Act = Callable[[Any, Any], Awaitable[Any]]


@router.get("/members")
async def members_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    return await shown(request, connection, slug)


async def shown(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    refusal: Refusal | None = None,
    form: str = "",
    invitation: str | None = None,
    link: str | None = None,
) -> HTMLResponse:
    """The addresses of an `invitation` and a `link` are shown this once; a refusal beside its `form`."""
    campaign = await campaign_of_page(connection, slug)
    context = {
        "campaign": campaign,
        "members": await members.listed(connection, campaign.id),
        "invitations": await invitations.listed_invitations(connection, campaign.id, now=await get_now()),
        "links": await shared_links.listed_links(connection, campaign.id),
        "roles": list(IN_CAMPAIGN),
        "refusal": refusal,
        "refused_form": form,
        "new_invitation": invitation,
        "new_shared": link,
        "days": invitations.INVITATION_DAYS,
    }
    status = refusal.status if refusal else 200
    return page(request, "admin/members.html", context, status=status, headers=retry_after(refusal))


async def done(
    request: Request, database: Database, slug: str, act: Act, word: str, *, form: str = "members"
) -> Response:
    """The page after an act, or with why it was refused."""
    try:
        async with database.begin() as connection:
            await act(connection, await campaign_by_slug(connection, slug))
    except Refusal as refusal:
        async with database.begin() as connection:
            return await shown(request, connection, slug, refusal=refusal, form=form)
    return RedirectResponse(f"/admin/campaigns/{slug}/members?done={word}", status_code=303)


@router.post("/members", dependencies=[require_password("add a member")])
async def add(
    *, request: Request, database: Database, slug: str, now: Now, name: Text = "", role: Text = VIEWER
) -> Response:
    async def act(connection: Transaction, campaign: Any) -> None:
        await members.add(connection, campaign, name, role, now=now)

    return await done(request, database, slug, act, "member-added", form="add")


@router.post("/members/{user_id}/role", dependencies=[require_password("change the role of a member")])
async def set_role(request: Request, database: Database, slug: str, user_id: RowId, role: Text = "") -> Response:
    async def act(connection: Transaction, campaign: Any) -> None:
        await members.set_role(connection, campaign, user_id, role)

    return await done(request, database, slug, act, "role")


@router.post("/members/{user_id}/remove", dependencies=[require_password("remove a member")])
async def remove(request: Request, database: Database, slug: str, user_id: RowId) -> Response:
    async def act(connection: Transaction, campaign: Any) -> None:
        await members.remove(connection, campaign, user_id)

    return await done(request, database, slug, act, "member-removed")


@router.post("/invitations")
async def invite(
    *,
    request: Request,
    database: Database,
    who: Researcher,
    slug: str,
    now: Now,
    role: Text = VIEWER,
    words: Text = "",
    current: Text = "",
) -> HTMLResponse:
    """A link that works once."""
    try:
        await confirm(request, database, who, current, now=now)
        async with database.begin() as connection:
            campaign = await campaign_by_slug(connection, slug)
            token = await invitations.make_invitation(connection, campaign, role, words, by=who.user_id, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await shown(request, connection, slug, refusal=refusal, form="invitations")
    async with database.begin() as connection:
        return await shown(request, connection, slug, invitation=invitation_address(request, token))


@router.post("/invitations/{invitation}/withdraw")
async def withdraw_invitation(connection: Transaction, slug: str, invitation: RowId) -> Response:
    await invitations.withdraw_invitation(connection, await campaign_by_slug(connection, slug), invitation)
    return RedirectResponse(f"/admin/campaigns/{slug}/members?done=invitation-withdrawn", status_code=303)


@router.post("/links", dependencies=[require_password("make a read-only link")])
async def make_link(
    *, request: Request, database: Database, who: Researcher, slug: str, now: Now, words: Text = ""
) -> HTMLResponse:
    """A read-only link."""
    try:
        async with database.begin() as connection:
            campaign = await campaign_by_slug(connection, slug)
            secret = await shared_links.make_link(connection, campaign, words, by=who.name, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await shown(request, connection, slug, refusal=refusal, form="links")
    async with database.begin() as connection:
        return await shown(request, connection, slug, link=shared_address(request, secret))


@router.post("/links/{link}/withdraw")
async def withdraw_link(connection: Transaction, slug: str, link: RowId) -> Response:
    await shared_links.withdraw_link(connection, await campaign_by_slug(connection, slug), link)
    return RedirectResponse(f"/admin/campaigns/{slug}/members?done=link-withdrawn", status_code=303)
