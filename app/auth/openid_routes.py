"""Logging in by a provider (OpenID Connect), and connecting its login to an account."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse
from itsdangerous import BadSignature, URLSafeTimedSerializer

from app.auth import identities, login, secret
from app.auth.guards import HOME, Researcher, researcher, safe_next, session_shown
from app.auth.openid import Begun, Provider, Told, denied, refused
from app.auth.routes import ACCOUNT, TELL_US_THE_ORIGIN, account_page, confirm, cookie_rules, logged_in
from app.errors import NotFound, Refusal
from app.settings import Settings
from app.web import AppSettings, Database, Now, base_url, page

ADDRESS = "/login/openid"
BACK = f"{ADDRESS}/back"
BEGUN_SECONDS = 600  # for which a login that was begun can be ended

public = APIRouter(include_in_schema=False)
router = APIRouter(prefix=f"{ACCOUNT}/openid", dependencies=[Depends(researcher)], include_in_schema=False)


def provider_of(settings: Settings) -> Provider | None:
    """The one that the operator has set."""
    if settings.oidc_issuer is None:
        return None
    return Provider(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret.get_secret_value())


def its_provider(request: Request) -> Provider:
    """Raises `NotFound` (`no_provider`)."""
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise NotFound("This server has no provider of logins.", code="no_provider")
    return provider


@public.get(ADDRESS)
async def begin(request: Request, next: str = HOME) -> Response:  # noqa: A002  (a URL's word)
    """Off to the provider."""
    try:
        return await sent_off(request, Begun.anew(safe_next(next)))
    except Refusal as refusal:
        return login_page(request, refusal)


@public.get(BACK)
async def back(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    now: Now,
    code: str = "",
    state: str = "",
    error: str = "",
) -> Response:
    """Who comes back is logged in, or the login connected to the account of who began it."""
    try:
        provider, begun = its_provider(request), begun_here(request, state)
        if error:
            raise denied()
        told = await provider.who(code, begun, its_address(request))
        if begun.user is not None:
            response = await connected(request, database, begun.user, told, now)
        else:
            async with database.begin() as connection:
                let_in: dict[str, Any] = {"domains": settings.oidc_domains, "role": settings.oidc_role}
                user = await identities.user_of(connection, told, now=now, **let_in)
                lasting: dict[str, Any] = {"hours": settings.session_hours, "idle_minutes": settings.idle_minutes}
                session = await login.log_in(connection, user.id, now=now, by="provider", **lasting)
            response = logged_in(request, session, user.name, begun.to, settings)
    except Refusal as refusal:
        response = login_page(request, refusal)
    response.delete_cookie(cookie_of(request), path=ADDRESS)
    return response


@router.post("")
async def connect(
    *, request: Request, database: Database, now: Now, who: Researcher, current: Annotated[str, Form()] = ""
) -> Response:
    """Off to the provider, to let this account be logged in to by it."""
    try:
        await confirm(request, database, who, current, now=now)
        return await sent_off(request, Begun.anew(ACCOUNT, who.user_id))
    except Refusal as refusal:
        async with database.begin() as connection:
            return await account_page(request, connection, who, refusal=refusal, form="openid")


@router.post("/disconnect")
async def disconnect(
    *, request: Request, database: Database, now: Now, who: Researcher, current: Annotated[str, Form()] = ""
) -> Response:
    try:
        await confirm(request, database, who, current, now=now)
        async with database.begin() as connection:
            await identities.disconnect(connection, who.user_id, its_provider(request).issuer)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await account_page(request, connection, who, refusal=refusal, form="openid")
    return RedirectResponse(f"{ACCOUNT}?done=disconnected", status_code=303)


async def connected(request: Request, database: Database, user_id: int, told: Told, now: Now) -> Response:
    """Back to the account page of who began it, if they are still logged in. Raises what `connect` does, and
    `Unauthenticated` (`provider_refused`).
    """
    async with database.begin() as connection:
        session = await login.session_of(connection, session_shown(request), now=now)
        if session is None or session.user_id != user_id:
            raise refused()
        await identities.connect(connection, told, user_id, now=now)
    return RedirectResponse(f"{ACCOUNT}?done=connected", status_code=303)


async def sent_off(request: Request, begun: Begun) -> Response:
    """To the provider; the browser keeps what it must bring back."""
    address = await its_provider(request).login_address(begun, its_address(request))
    response = RedirectResponse(address, status_code=303)
    kept = signer(request).dumps(begun.model_dump())
    response.set_cookie(cookie_of(request), kept, max_age=BEGUN_SECONDS, path=ADDRESS, **cookie_rules(request))
    return response


def begun_here(request: Request, state: str) -> Begun:
    """What this browser began not long ago. Raises `Unauthenticated` (`provider_refused`)."""
    try:
        kept = signer(request).loads(request.cookies.get(cookie_of(request), ""), max_age=BEGUN_SECONDS)
    except BadSignature:
        raise refused() from None
    begun = Begun.model_validate(kept)
    if not secret.same(begun.state, state):
        raise refused()
    return begun


def signer(request: Request) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(request.app.state.known_browsers.key, salt="login by a provider")


def cookie_of(request: Request) -> str:
    return f"{request.app.state.cookie_name}_openid"


def its_address(request: Request) -> str:
    return f"{base_url(request)}{BACK}"


def login_page(request: Request, refusal: Refusal) -> Response:
    context = {"next": HOME, "refusal": refusal}
    return page(request, "admin/login.html", context, status=refusal.status, headers=TELL_US_THE_ORIGIN)
