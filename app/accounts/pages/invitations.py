"""Pages for people without an account: accept an invitation, or open a campaign by a read-only link."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts import invitations, login, passwords, users
from app.accounts.guards import (
    RESEARCHER_HOME,
    known_browser_id_of_name_or_none,
    refuse_cross_site_login,
    require_csrf,
    session_secret_or_empty,
    shared_link_cookie_name,
)
from app.accounts.pages.account import SEND_ORIGIN_HEADERS, cookie_security_options, redirect_after_login_with_cookies
from app.accounts.shared_links import load_slug_of_shared_link_or_none
from app.errors import NotFound, Refusal
from app.http.dependencies import (
    AppSettings,
    Database,
    Now,
    Transaction,
    client_network_or_empty,
    get_now,
    render_page,
    request_base_url,
)
from app.settings import Settings

public = APIRouter(include_in_schema=False)

FormText = Annotated[str, Form()]
LINK_COOKIE_SECONDS = 90 * 86_400


def invitation_url(request: Request, token: str) -> str:
    return request_base_url(request) + invitations.invitation_path(token)


def shared_link_url(request: Request, secret: str) -> str:
    return f"{request_base_url(request)}/shared/{secret}"


@public.get("/shared/{secret}")
async def set_shared_link_cookie_and_redirect_to_campaign(
    request: Request, connection: Transaction, secret: str
) -> Response:
    """Redirect to the campaign and set the secret as a cookie for its pages, so that it appears in no URL that others
    may see.
    """
    slug = await load_slug_of_shared_link_or_none(connection, secret)
    if slug is None:
        raise NotFound("This link was withdrawn or is incomplete. Ask for a new one.", code="link_not_found")
    address = f"{RESEARCHER_HOME}/campaigns/{slug}"
    response = RedirectResponse(address, status_code=303)
    rules = cookie_security_options(request)
    response.set_cookie(shared_link_cookie_name(request), secret, max_age=LINK_COOKIE_SECONDS, path=address, **rules)
    return response


@public.get("/invitation")
async def invitation_page(request: Request, connection: Transaction, now: Now, token: str = "") -> HTMLResponse:
    """Show the invitation with a form: mail programs that open links must not use it up."""
    row = await invitations.load_open_invitation_or_refuse(connection, token, now=now)
    session = await login.load_login_session_or_none(connection, session_secret_or_empty(request), now=now)
    return render_invitation_page(request, row, token, session)


def render_invitation_page(
    request: Request,
    invitation: Any,
    token: str,
    session: login.LoginSession | None,
    *,
    refusal: Refusal | None = None,
    way: str = "",
    name: str = "",
) -> HTMLResponse:
    if session is not None:
        request.state.session = session
    context = {"invitation": invitation, "token": token, "way": way, "name": name[: users.MAX_LOGIN_NAME_CHARACTERS]}
    return render_page(request, "admin/invitation.html", context, refusal=refusal, headers=SEND_ORIGIN_HEADERS)


@public.post("/invitation", dependencies=[Depends(refuse_cross_site_login)])
async def submit_invitation_acceptance(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    now: Now,
    token: FormText = "",
    way: FormText = "",
    name: FormText = "",
    password: FormText = "",
) -> Response:
    """Accept as the current user, an existing account or a new one. On refusal, show the page again."""
    async with database.begin() as connection:
        row = await invitations.load_open_invitation_or_refuse(connection, token, now=now)
        session = await login.load_login_session_or_none(connection, session_secret_or_empty(request), now=now)
    target = f"{RESEARCHER_HOME}/campaigns/{row.slug}?done=invited" if row.slug else f"{RESEARCHER_HOME}?done=invited"
    try:
        if way == "me" and session is not None:
            request.state.session = session
            await require_csrf(request)
            await accept_invitation_for_user(database, token, session.user_id, now=now)
            return RedirectResponse(target, status_code=303)
        return await accept_invitation_and_log_in(
            request, database, settings, target, token=token, way=way, name=name, password=password
        )
    except Refusal as refusal:
        return render_invitation_page(request, row, token, session, refusal=refusal, way=way, name=name)


async def accept_invitation_and_log_in(
    request: Request,
    database: Database,
    settings: Settings,
    target_path: str,
    *,
    token: str,
    way: str,
    name: str,
    password: str,
) -> Response:
    """Accept the invitation with an existing or a new account, and log in."""
    now = await get_now()
    session_limits: dict[str, Any] = {"hours": settings.session_hours, "idle_minutes": settings.idle_minutes}
    if way == "new":
        passwords.allowed_password_or_refuse(password)
        password_hash = await passwords.hash_allowed_password_or_refuse(password)
        async with database.begin() as connection:
            _, user = await invitations.accept_invitation_as_new_user_returning_both(
                connection, token, name, password_hash, now=now
            )
    else:
        browser = known_browser_id_of_name_or_none(request, name)
        user = await login.authenticate_user_by_password_or_refuse(
            database, name, password, client_network_or_empty(request), browser, now=now
        )
        await accept_invitation_for_user(database, token, user.id, now=now)
    async with database.begin() as connection:
        session = await login.start_session_and_return_secret(connection, user.id, now=now, **session_limits)
    return redirect_after_login_with_cookies(request, session, user.name, target_path, settings)


async def accept_invitation_for_user(database: Database, token: str, user_id: int, *, now: Now) -> None:
    async with database.begin() as connection:
        user = await users.load_user_or_refuse(connection, user_id)
        await invitations.accept_invitation_and_return_it(connection, token, user, now=now)
