"""Researchers' page about the people of this server: researchers and open invitations."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts import invitations, login, users
from app.accounts.guards import Researcher, researcher_router
from app.accounts.pages.account import password_confirmation_dependency, require_current_password
from app.accounts.pages.invitations import invitation_url
from app.accounts.roles import MEMBER, ROLES
from app.errors import Refusal
from app.http.dependencies import Database, Now, RowId, Transaction, get_now, render_page, request_base_url

RESEARCHERS_PATH = "/admin/people"
router = researcher_router(RESEARCHERS_PATH)

ResearcherFormText = Annotated[str, Form()]


@router.get("")
async def researchers_page(request: Request, connection: Transaction) -> HTMLResponse:
    return await render_researchers_page(request, connection)


async def render_researchers_page(
    request: Request,
    connection: Transaction,
    *,
    refusal: Refusal | None = None,
    refused_form_name: str = "",
    new_link_name_and_url: tuple[str, str] | None = None,
    new_invitation_url: str | None = None,
) -> HTMLResponse:
    """Show the page. `new_link_name_and_url` (a name and an address) and the address of an `new_invitation_url` are
    shown this once; a refusal appears next to its `refused_form_name`.
    """
    context = {
        "users": await users.list_users(connection),
        "invitations": await invitations.list_open_invitations(connection, None, now=await get_now()),
        "roles": ROLES,
        "refused_form": refused_form_name,
        "new_link": new_link_name_and_url,
        "new_invitation": new_invitation_url,
        "days": invitations.INVITATION_DAYS,
    }
    return render_page(request, "admin/researchers.html", context, refusal=refusal)


@router.post("/invitations")
async def submit_server_invitation(
    *,
    request: Request,
    database: Database,
    now: Now,
    session: Researcher,
    role: ResearcherFormText = MEMBER,
    words: ResearcherFormText = "",
    current: ResearcherFormText = "",
) -> HTMLResponse:
    """Create an invitation for a person who will choose their own login name."""
    try:
        await require_current_password(request, database, session, current, now=now)
        async with database.begin() as connection:
            token = await invitations.create_invitation_and_return_token(
                connection, None, role, words, inviter_id=session.user_id, now=now
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_researchers_page(request, connection, refusal=refusal, refused_form_name="invitations")
    async with database.begin() as connection:
        return await render_researchers_page(request, connection, new_invitation_url=invitation_url(request, token))


@router.post("/invitations/{invitation}/withdraw")
async def submit_server_invitation_withdrawal(connection: Transaction, invitation: RowId) -> Response:
    await invitations.withdraw_invitation_or_refuse(connection, None, invitation)
    return RedirectResponse(f"{RESEARCHERS_PATH}?done=invitation-withdrawn", status_code=303)


@router.post("")
async def submit_new_researcher(
    *,
    request: Request,
    database: Database,
    now: Now,
    session: Researcher,
    name: ResearcherFormText = "",
    role: ResearcherFormText = MEMBER,
    current: ResearcherFormText = "",
) -> HTMLResponse:
    """Add a researcher, who comes in by a one-time link and then chooses a password."""
    try:
        await require_current_password(request, database, session, current, now=now)
        async with database.begin() as connection:
            user = await users.insert_and_return_user_or_refuse(connection, name, now=now, role=role)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_researchers_page(request, connection, refusal=refusal, refused_form_name="users")
    return await create_login_link_and_render_page(request, database, user, now=now)


@router.post("/{user_id}/role", dependencies=[password_confirmation_dependency("change the role of a researcher")])
async def submit_server_role(
    request: Request, database: Database, user_id: RowId, role: ResearcherFormText = ""
) -> Response:
    try:
        async with database.begin() as connection:
            await users.set_server_role_unless_last_owner(connection, user_id, role)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_researchers_page(request, connection, refusal=refusal, refused_form_name="roles")
    return RedirectResponse(f"{RESEARCHERS_PATH}?done=role", status_code=303)


@router.get("/{user_id}/link")
async def login_link_page(request: Request, connection: Transaction, user_id: RowId) -> HTMLResponse:
    return render_page(request, "admin/login_link.html", {"user": await users.load_user_or_refuse(connection, user_id)})


@router.post("/{user_id}/link")
async def submit_new_login_link(
    *,
    request: Request,
    database: Database,
    now: Now,
    session: Researcher,
    user_id: RowId,
    current: ResearcherFormText = "",
) -> HTMLResponse:
    """Create a login link for a researcher who has forgotten their password."""
    async with database.begin() as connection:
        user = await users.load_user_or_refuse(connection, user_id)
    try:
        await require_current_password(request, database, session, current, now=now)
    except Refusal as refusal:
        return render_page(request, "admin/login_link.html", {"user": user}, refusal=refusal)
    return await create_login_link_and_render_page(request, database, user, now=now)


async def create_login_link_and_render_page(
    request: Request, database: Database, user: Any, *, now: datetime
) -> HTMLResponse:
    """Show the page with a new login link for a researcher."""
    async with database.begin() as connection:
        token = await login.create_one_time_login_and_return_secret(connection, now=now, user_id=user.id)
        link = request_base_url(request) + login.one_time_login_path(token)
        return await render_researchers_page(request, connection, new_link_name_and_url=(user.name, link))


@router.get("/{user_id}/remove")
async def show_researcher_removal_confirmation(
    request: Request, connection: Transaction, user_id: RowId
) -> HTMLResponse:
    """Ask before removing a researcher, which cannot be undone."""
    return render_page(
        request, "admin/remove_user.html", {"user": await users.load_user_or_refuse(connection, user_id)}
    )


@router.post("/{user_id}/remove", dependencies=[password_confirmation_dependency("remove a researcher")])
async def submit_researcher_removal(connection: Transaction, session: Researcher, user_id: RowId) -> Response:
    await users.delete_user_unless_self_or_last_owner(connection, user_id, actor_id=session.user_id)
    return RedirectResponse(f"{RESEARCHERS_PATH}?done=user-removed", status_code=303)
