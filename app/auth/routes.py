"""Logging in and out, and the account page: password and API tokens."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.auth import identities, login, passwords, tokens, users
from app.auth.guards import (
    HOME,
    Researcher,
    known_browser,
    known_cookie,
    refuse_other_sites,
    researcher,
    safe_next,
    session_shown,
)
from app.auth.roles import SCOPES
from app.errors import Forbidden, Invalid, NotFound, Refusal, Unauthenticated
from app.settings import Settings
from app.web import (
    AppSettings,
    Database,
    Now,
    RowId,
    Transaction,
    address_of,
    base_url,
    page,
    refuse,
    retry_after,
    wants_json,
)

ACCOUNT = "/admin/account"
TELL_US_THE_ORIGIN = {"Referrer-Policy": "same-origin"}  # without it a browser sends `Origin: null`
KNOWN_SECONDS = 365 * 86_400  # for which a browser is known that someone logged in with

public = APIRouter(include_in_schema=False)
router = APIRouter(prefix=ACCOUNT, dependencies=[Depends(researcher)], include_in_schema=False)

Text = Annotated[str, Form()]


@public.get("/login")
async def login_page(request: Request, token: str = "", next: str = HOME) -> HTMLResponse:  # noqa: A002  (a URL's word)
    """The form, or for a one-time link a button: mail programs that look into links must not use it up."""
    context = {"token": token, "next": safe_next(next)}
    return page(request, "admin/login.html", context, headers=TELL_US_THE_ORIGIN)


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
    lasting: dict[str, Any] = {"hours": settings.session_hours, "idle_minutes": settings.idle_minutes}
    try:
        if token:
            async with database.begin() as connection:
                user = await users.get_user(connection, await login.redeem_one_time_login(connection, token, now=now))
                session = await login.log_in(connection, user.id, now=now, by_link=True, **lasting)
        else:
            browser = known_browser(request, name)
            user = await login.authenticated(database, name, password, address_of(request), browser, now=now)
            async with database.begin() as connection:
                session = await login.log_in(connection, user.id, now=now, **lasting)
    except Refusal as refusal:
        context = {"name": name[: users.LONGEST_NAME], "next": safe_next(next), "refusal": refusal}
        return page(
            request,
            "admin/login.html",
            context,
            status=refusal.status,
            headers=retry_after(refusal) | TELL_US_THE_ORIGIN,
        )
    return logged_in(request, session, user.name, safe_next(next), settings)


def logged_in(request: Request, session: str, name: str, target: str, settings: Settings) -> Response:
    """On to a page, with the session's cookie, and one by which this browser is known later."""
    response = RedirectResponse(target, status_code=303)
    set_cookie(request, response, session, settings)
    mark = request.app.state.known_browsers.mark(name)
    response.set_cookie(known_cookie(request), mark, max_age=KNOWN_SECONDS, path="/login", **cookie_rules(request))
    return response


def set_cookie(request: Request, response: Response, session: str, settings: Settings) -> None:
    response.set_cookie(
        request.app.state.cookie_name,
        session,
        max_age=settings.session_hours * 3600,
        **cookie_rules(request),
    )


def cookie_rules(request: Request) -> dict[str, Any]:
    secure = "https" in (request.url.scheme, base_url(request).partition(":")[0])
    return {"httponly": True, "samesite": "lax", "secure": secure}


@public.post("/logout")
async def log_out(request: Request, _who: Researcher, connection: Transaction) -> Response:
    # In this order: who held a connection while the login is looked up on another could wait for ever, among many.
    await login.log_out(connection, session_shown(request))
    return logged_out(request)


def logged_out(request: Request) -> Response:
    """Back to the login, without the cookie."""
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
    form: str = "password",
    new_token: str | None = None,
) -> HTMLResponse:
    """`new_token` is shown this once; a refusal beside its `form`."""
    context = {
        "tokens": await tokens.listed_tokens(connection, who.user_id),
        "scopes": list(SCOPES),
        "campaigns": await tokens.campaigns_for_token(connection, who.access),
        "refusal": refusal,
        "refused_form": form,
        "new_token": new_token,
        "connected": await connected(request, connection, who),
    }
    status = refusal.status if refusal else 200
    return page(request, "admin/account.html", context, status=status, headers=retry_after(refusal))


async def connected(request: Request, connection: Transaction, who: login.Session) -> bool:
    """Whether they can log in by the provider, if this server has one."""
    provider = request.app.state.provider
    return provider is not None and await identities.is_connected(connection, who.user_id, provider.issuer)


@router.post("/password")
async def change_password(
    *,
    request: Request,
    database: Database,
    now: Now,
    who: Researcher,
    current: Text = "",
    password: Text = "",
    revoke_tokens: Text = "",
) -> Response:
    """Without the current one for who has none, or has just come by a link, because they forgot it."""
    try:
        passwords.checked(password)
        await confirm(request, database, who, current, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await account_page(request, connection, who, refusal=refusal)
    password_hash = await passwords.hashed(password)
    async with database.begin() as connection:
        await users.set_password(
            connection, who.user_id, password_hash, keep=who.digest, revoke_tokens=bool(revoke_tokens)
        )
    return RedirectResponse(f"{ACCOUNT}?done=password", status_code=303)


async def confirm(request: Request, database: Database, who: login.Session, current: str, *, now: datetime) -> None:
    """Let nobody who merely finds an open browser take over an account. Raises `Invalid` (`wrong_password`)."""
    if who.must_confirm:
        session = f"session {who.digest.hex()}"  # nobody else's failures keep them from this
        try:
            await login.authenticated(database, who.name, current, address_of(request), session, now=now)
        except Unauthenticated as refusal:
            raise Invalid("Your current password is not right. Nothing was changed.", code=refusal.code) from refusal


OF_CONFIRMING = ("current", "csrf", "username")  # what the page that asks for the password has of its own


class PasswordNeeded(Refusal):
    """An act takes the current password, which was not sent or is not right: `refusal` says which, `act` what it takes
    the password for, `fields` what else was sent.
    """

    code = "password_needed"

    def __init__(self, refusal: Refusal, act: str, fields: list[tuple[str, str]]) -> None:
        super().__init__(refusal.message, code=refusal.code, **refusal.details)
        self.status = refusal.status
        self.act = act
        self.fields = fields


def require_password(act: str) -> Any:
    """Return a dependency that lets an act pass with the current password alone, the field `current` of its form. A
    browser that sends none, or a wrong one, gets a page that asks for it and then does the act.

    act: what the password is for, as the page says it after "to".
    """

    async def check(request: Request, database: Database, now: Now, who: Researcher) -> None:
        if not who.must_confirm:
            return
        form = await request.form()
        try:
            if not form.get("current"):
                raise Forbidden("This takes your current password. Nothing was changed yet.", code="password_needed")
            await confirm(request, database, who, str(form["current"]), now=now)
        except Refusal as refusal:
            fields = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
            fields = [(name, value) for name, value in fields if name not in OF_CONFIRMING]
            raise PasswordNeeded(refusal, act, fields) from refusal

    return Depends(check)


def page_of(address: str) -> str:
    """Return the page on which the form of an act stands."""
    if address.startswith("/admin/campaigns/"):
        return "/".join(address.split("/")[:4]) + "/members"
    return "/".join(address.split("/")[:3])


def ask_for_password(request: Request, error: Exception) -> Response:
    """The page that asks for the password and sends the act again; programs get the refusal."""
    assert isinstance(error, PasswordNeeded)  # noqa: S101  (registered for this class only)
    if wants_json(request):
        return refuse(request, error.status, error.code, error.message, error.details)
    context = {"refusal": error, "act": error.act, "fields": error.fields, "address": request.url.path}
    context["back"] = page_of(request.url.path)
    return page(request, "admin/confirm.html", context, status=error.status, headers=retry_after(error))


@router.post("/logout-everywhere")
async def log_out_everywhere(request: Request, who: Researcher, connection: Transaction) -> Response:
    await users.log_out_everywhere(connection, who.user_id)
    return logged_out(request)


@router.post("/tokens", dependencies=[require_password("create a token")])
async def create_token(
    *,
    request: Request,
    connection: Transaction,
    now: Now,
    who: Researcher,
    name: Text = "",
    scope: Annotated[list[str], Form()] = [],  # noqa: B006  (FastAPI copies it)
    campaign: Text = "",
) -> HTMLResponse:
    try:
        of = await tokens.campaign_for_token(connection, who.access, campaign) if campaign else None
        token = await tokens.create_api_token(connection, who.user_id, name, now=now, scopes=scope, campaign=of)
    except (Invalid, NotFound) as refusal:
        return await account_page(request, connection, who, refusal=refusal, form="tokens")
    return await account_page(request, connection, who, new_token=token)


@router.post("/tokens/{token_id}/revoke")
async def revoke_token(connection: Transaction, who: Researcher, token_id: RowId) -> Response:
    await tokens.revoke_api_token(connection, who.user_id, token_id)
    return RedirectResponse(f"{ACCOUNT}?done=token-revoked", status_code=303)
