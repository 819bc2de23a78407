"""Logging in and out, and the account page: password, other researchers, API tokens."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth import login, passwords, users
from app.auth.guards import HOME, Researcher, refuse_other_sites, researcher, safe_next, session_shown
from app.errors import Invalid, Refusal, Unauthenticated
from app.settings import Settings
from app.web import AppSettings, Database, Now, RowId, Transaction, address_of, base_url, page, retry_after

ACCOUNT = "/admin/account"

public = APIRouter(include_in_schema=False)
router = APIRouter(prefix=ACCOUNT, dependencies=[Depends(researcher)], include_in_schema=False)

Text = Annotated[str, Form()]


@public.get("/login")
async def login_page(request: Request, token: str = "", next: str = HOME) -> HTMLResponse:  # noqa: A002  (a URL's word)
    """The form, or for a one-time link a button: mail programs that look into links must not use it up."""
    return page(request, "admin/login.html", {"token": token, "next": safe_next(next)})


@public.post("/login", dependencies=[Depends(refuse_other_sites)])
async def log_in(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    now: Now,
    name: Text = "",
    password: Text = "",
    token: Text = "",
    next: Text = HOME,  # noqa: A002  (a form's word)
) -> Response:
    """Start a session; a refusal shows the form again, with the name that was typed."""
    try:
        if token:
            async with database.begin() as connection:
                user_id = await login.redeem_one_time_login(connection, token, now=now)
                session = await login.log_in(connection, user_id, now=now, hours=settings.session_hours)
        else:
            user = await login.authenticated(database, name, password, address_of(request), now=now)
            async with database.begin() as connection:
                session = await login.log_in(connection, user.id, now=now, hours=settings.session_hours)
    except Refusal as refusal:
        context = {"name": name, "next": safe_next(next), "refusal": refusal}
        return page(request, "admin/login.html", context, status=refusal.status, headers=retry_after(refusal))
    response = RedirectResponse(safe_next(next), status_code=303)
    set_cookie(request, response, session, settings)
    return response


def set_cookie(request: Request, response: Response, session: str, settings: Settings) -> None:
    response.set_cookie(
        request.app.state.cookie_name,
        session,
        max_age=settings.session_hours * 3600,
        httponly=True,
        samesite="lax",
        secure=base_url(request).startswith("https:"),
    )


@public.post("/logout")
async def log_out(request: Request, _who: Researcher, connection: Transaction) -> Response:
    # In this order: who held a connection while the login is looked up on another could wait for ever, among many.
    await login.log_out(connection, session_shown(request))
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(request.app.state.cookie_name)
    return response


@router.get("")
async def account(request: Request, connection: Transaction, who: Researcher) -> HTMLResponse:
    return await account_page(request, connection, who)


async def account_page(
    request: Request,
    connection: Transaction,
    who: login.Session,
    *,
    refusal: Refusal | None = None,
    new_token: str | None = None,
    new_link: tuple[str, str] | None = None,
) -> HTMLResponse:
    """`new_token` and `new_link` (a name and an address) are shown this once; a refusal beside its form."""
    context = {
        "users": await users.listed_users(connection),
        "tokens": await users.listed_tokens(connection, who.user_id),
        "refusal": refusal,
        "new_token": new_token,
        "new_link": new_link,
    }
    status = refusal.status if refusal else 200
    return page(request, "admin/account.html", context, status=status, headers=retry_after(refusal))


@router.post("/password")
async def change_password(
    *, request: Request, database: Database, now: Now, who: Researcher, current: Text = "", password: Text = ""
) -> Response:
    try:
        password_hash = await confirmed_hash(request, database, who, current, password, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await account_page(request, connection, who, refusal=refusal)
    async with database.begin() as connection:
        await users.set_password(connection, who.user_id, password_hash, keep=who.digest)
    return RedirectResponse(f"{ACCOUNT}?done=password", status_code=303)


async def confirmed_hash(
    request: Request, database: Database, who: login.Session, current: str, password: str, *, now: datetime
) -> str:
    """The new password's hash, once the current one was shown; whoever has none came by a one-time link."""
    passwords.checked(password)
    if who.has_password:
        try:
            await login.authenticated(database, who.name, current, address_of(request), now=now)
        except Unauthenticated as refusal:
            raise Invalid("Your current password is not right. Nothing was changed.", code=refusal.code) from refusal
    return await passwords.hashed(password)


@router.post("/tokens")
async def create_token(
    request: Request, connection: Transaction, now: Now, who: Researcher, name: Text = ""
) -> HTMLResponse:
    try:
        token = await users.create_api_token(connection, who.user_id, name, now=now)
    except Invalid as refusal:
        return await account_page(request, connection, who, refusal=refusal)
    return await account_page(request, connection, who, new_token=token)


@router.post("/tokens/{token_id}/revoke")
async def revoke_token(connection: Transaction, who: Researcher, token_id: RowId) -> Response:
    await users.revoke_api_token(connection, who.user_id, token_id)
    return RedirectResponse(f"{ACCOUNT}?done=token-revoked", status_code=303)


@router.post("/users")
async def add_user(
    request: Request, connection: Transaction, now: Now, who: Researcher, name: Text = ""
) -> HTMLResponse:
    """A new researcher comes in by a link that works once, and then chooses a password."""
    try:
        user = await users.add_user(connection, name, now=now)
    except Refusal as refusal:
        return await account_page(request, connection, who, refusal=refusal)
    link = await invitation(request, connection, user.id, now=now)
    return await account_page(request, connection, who, new_link=(user.name, link))


@router.post("/users/{user_id}/link")
async def make_link(
    request: Request, connection: Transaction, now: Now, who: Researcher, user_id: RowId
) -> HTMLResponse:
    """For someone who has forgotten the password."""
    user = await users.get_user(connection, user_id)
    link = await invitation(request, connection, user.id, now=now)
    return await account_page(request, connection, who, new_link=(user.name, link))


async def invitation(request: Request, connection: Transaction, user_id: int, *, now: datetime) -> str:
    token = await login.create_one_time_login(connection, now=now, user_id=user_id)
    return base_url(request) + login.one_time_login_path(token)


@router.get("/users/{user_id}/remove")
async def confirm_removal(request: Request, connection: Transaction, user_id: RowId) -> HTMLResponse:
    """Asked before what cannot be taken back."""
    return page(request, "admin/remove_user.html", {"user": await users.get_user(connection, user_id)})


@router.post("/users/{user_id}/remove")
async def remove_user(connection: Transaction, who: Researcher, user_id: RowId) -> Response:
    await users.remove_user(connection, user_id, by=who.user_id)
    return RedirectResponse(f"{ACCOUNT}?done=user-removed", status_code=303)
