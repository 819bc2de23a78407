"""Where somebody comes in who has no account yet: by an invitation, or to look at a campaign by a read-only link."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth import invitations, login, passwords, users
from app.auth.guards import HOME, known_browser, link_cookie, refuse_other_sites, require_csrf, session_shown
from app.auth.routes import TELL_US_THE_ORIGIN, cookie_rules, logged_in
from app.auth.shared_links import slug_by_link
from app.errors import NotFound, Refusal
from app.settings import Settings
from app.web import AppSettings, Database, Now, Transaction, address_of, base_url, get_now, page, retry_after

public = APIRouter(include_in_schema=False)

Text = Annotated[str, Form()]
LINK_SECONDS = 90 * 86_400  # for which a browser keeps a read-only link


def invitation_address(request: Request, token: str) -> str:
    return base_url(request) + invitations.path_of(token)


def shared_address(request: Request, secret: str) -> str:
    return f"{base_url(request)}/shared/{secret}"


@public.get("/shared/{secret}")
async def shared(request: Request, connection: Transaction, secret: str) -> Response:
    """To the campaign, whose pages get the secret as a cookie: it stands in no address that others may see."""
    slug = await slug_by_link(connection, secret)
    if slug is None:
        raise NotFound("This link was withdrawn, or is not complete. Ask for another one.", code="link_not_found")
    address = f"{HOME}/campaigns/{slug}"
    response = RedirectResponse(address, status_code=303)
    rules = cookie_rules(request)
    response.set_cookie(link_cookie(request), secret, max_age=LINK_SECONDS, path=address, **rules)
    return response


@public.get("/invitation")
async def invitation(request: Request, connection: Transaction, now: Now, token: str = "") -> HTMLResponse:
    """What it is to, and a form: mail programs that look into links must not use it up."""
    row = await invitations.open_invitation(connection, token, now=now)
    session = await login.session_of(connection, session_shown(request), now=now)
    return shown(request, row, token, session)


def shown(
    request: Request,
    row: Any,
    token: str,
    session: login.Session | None,
    *,
    refusal: Refusal | None = None,
    way: str = "",
    name: str = "",
) -> HTMLResponse:
    if session is not None:
        request.state.session = session
    context = {"invitation": row, "token": token, "refusal": refusal, "way": way, "name": name[: users.LONGEST_NAME]}
    headers = retry_after(refusal) | TELL_US_THE_ORIGIN
    return page(request, "admin/invitation.html", context, status=refusal.status if refusal else 200, headers=headers)


@public.post("/invitation", dependencies=[Depends(refuse_other_sites)])
async def accept(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    now: Now,
    token: Text = "",
    way: Text = "",
    name: Text = "",
    password: Text = "",
) -> Response:
    """As whoever is logged in, as somebody with an account, or with a new one; a refusal shows the page again."""
    async with database.begin() as connection:
        row = await invitations.open_invitation(connection, token, now=now)
        session = await login.session_of(connection, session_shown(request), now=now)
    target = f"{HOME}/campaigns/{row.slug}?done=invited" if row.slug else f"{HOME}?done=invited"
    try:
        if way == "me" and session is not None:
            request.state.session = session
            await require_csrf(request)
            await accept_as(database, token, session.user_id, now=now)
            return RedirectResponse(target, status_code=303)
        return await come_in(request, database, settings, target, token=token, way=way, name=name, password=password)
    except Refusal as refusal:
        return shown(request, row, token, session, refusal=refusal, way=way, name=name)


async def come_in(
    request: Request,
    database: Database,
    settings: Settings,
    target: str,
    *,
    token: str,
    way: str,
    name: str,
    password: str,
) -> Response:
    """Log somebody in, once the invitation is theirs."""
    now = await get_now()
    lasting: dict[str, Any] = {"hours": settings.session_hours, "idle_minutes": settings.idle_minutes}
    if way == "new":
        passwords.checked(password)
        password_hash = await passwords.hashed(password)
        async with database.begin() as connection:
            _, user = await invitations.accept_as_new(connection, token, name, password_hash, now=now)
    else:
        browser = known_browser(request, name)
        user = await login.authenticated(database, name, password, address_of(request), browser, now=now)
        await accept_as(database, token, user.id, now=now)
    async with database.begin() as connection:
        session = await login.log_in(connection, user.id, now=now, **lasting)
    return logged_in(request, session, user.name, target, settings)


async def accept_as(database: Database, token: str, user_id: int, *, now: Now) -> None:
    async with database.begin() as connection:
        user = await users.get_user(connection, user_id)
        await invitations.accept(connection, token, user, now=now)
