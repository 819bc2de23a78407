"""Researchers' page of everybody who works on this server, and of whom somebody invited."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth import invitations, login, users
from app.auth.guards import Researcher, researcher
from app.auth.invitation_routes import invitation_address
from app.auth.roles import MEMBER, ROLES
from app.auth.routes import confirm, require_password
from app.errors import Refusal
from app.web import Database, Now, RowId, Transaction, base_url, get_now, page, retry_after

PEOPLE = "/admin/people"
router = APIRouter(prefix=PEOPLE, dependencies=[Depends(researcher)], include_in_schema=False)

Text = Annotated[str, Form()]


@router.get("")
async def researchers(request: Request, connection: Transaction) -> HTMLResponse:
    return await people_page(request, connection)


async def people_page(
    request: Request,
    connection: Transaction,
    *,
    refusal: Refusal | None = None,
    form: str = "",
    new_link: tuple[str, str] | None = None,
    invitation: str | None = None,
) -> HTMLResponse:
    """`new_link` (a name and an address) and the address of an `invitation` are shown this once; a refusal beside its
    `form`.
    """
    context = {
        "users": await users.listed_users(connection),
        "invitations": await invitations.listed_invitations(connection, None, now=await get_now()),
        "roles": ROLES,
        "refusal": refusal,
        "refused_form": form,
        "new_link": new_link,
        "new_invitation": invitation,
        "days": invitations.INVITATION_DAYS,
    }
    status = refusal.status if refusal else 200
    return page(request, "admin/researchers.html", context, status=status, headers=retry_after(refusal))


@router.post("/invitations")
async def invite(
    *,
    request: Request,
    database: Database,
    now: Now,
    who: Researcher,
    role: Text = MEMBER,
    words: Text = "",
    current: Text = "",
) -> HTMLResponse:
    """A link that works once, for somebody whose login name nobody needs to choose for them."""
    try:
        await confirm(request, database, who, current, now=now)
        async with database.begin() as connection:
            token = await invitations.make_invitation(connection, None, role, words, by=who.user_id, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await people_page(request, connection, refusal=refusal, form="invitations")
    async with database.begin() as connection:
        return await people_page(request, connection, invitation=invitation_address(request, token))


@router.post("/invitations/{invitation}/withdraw")
async def withdraw(connection: Transaction, invitation: RowId) -> Response:
    await invitations.withdraw_invitation(connection, None, invitation)
    return RedirectResponse(f"{PEOPLE}?done=invitation-withdrawn", status_code=303)


@router.post("")
async def add_user(
    *,
    request: Request,
    database: Database,
    now: Now,
    who: Researcher,
    name: Text = "",
    role: Text = MEMBER,
    current: Text = "",
) -> HTMLResponse:
    """A new researcher comes in by a link that works once, and then chooses a password."""
    try:
        await confirm(request, database, who, current, now=now)
        async with database.begin() as connection:
            user = await users.add_user(connection, name, now=now, role=role)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await people_page(request, connection, refusal=refusal, form="users")
    return await page_with_link(request, database, user, now=now)


@router.post("/{user_id}/role", dependencies=[require_password("change the role of a researcher")])
async def set_role(request: Request, database: Database, user_id: RowId, role: Text = "") -> Response:
    try:
        async with database.begin() as connection:
            await users.set_role(connection, user_id, role)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await people_page(request, connection, refusal=refusal, form="roles")
    return RedirectResponse(f"{PEOPLE}?done=role", status_code=303)


@router.get("/{user_id}/link")
async def ask_for_link(request: Request, connection: Transaction, user_id: RowId) -> HTMLResponse:
    return page(request, "admin/login_link.html", {"user": await users.get_user(connection, user_id)})


@router.post("/{user_id}/link")
async def make_link(
    *, request: Request, database: Database, now: Now, who: Researcher, user_id: RowId, current: Text = ""
) -> HTMLResponse:
    """For someone who has forgotten the password."""
    async with database.begin() as connection:
        user = await users.get_user(connection, user_id)
    try:
        await confirm(request, database, who, current, now=now)
    except Refusal as refusal:
        context = {"user": user, "refusal": refusal}
        return page(request, "admin/login_link.html", context, status=refusal.status, headers=retry_after(refusal))
    return await page_with_link(request, database, user, now=now)


async def page_with_link(request: Request, database: Database, user: Any, *, now: datetime) -> HTMLResponse:
    """The page with a fresh login link for a researcher's row."""
    async with database.begin() as connection:
        token = await login.create_one_time_login(connection, now=now, user_id=user.id)
        link = base_url(request) + login.one_time_login_path(token)
        return await people_page(request, connection, new_link=(user.name, link))


@router.get("/{user_id}/remove")
async def confirm_removal(request: Request, connection: Transaction, user_id: RowId) -> HTMLResponse:
    """Asked before what cannot be taken back."""
    return page(request, "admin/remove_user.html", {"user": await users.get_user(connection, user_id)})


@router.post("/{user_id}/remove", dependencies=[require_password("remove a researcher")])
async def remove_user(connection: Transaction, who: Researcher, user_id: RowId) -> Response:
    await users.remove_user(connection, user_id, by=who.user_id)
    return RedirectResponse(f"{PEOPLE}?done=user-removed", status_code=303)
