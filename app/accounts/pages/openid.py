"""Pages for logging in by a provider (OpenID Connect), and for connecting its login to an account."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from itsdangerous import BadSignature, URLSafeTimedSerializer

from app.accounts import identities, login, secrets
from app.accounts.guards import (
    RESEARCHER_HOME,
    Researcher,
    researcher_path_or_home,
    researcher_router,
    session_secret_or_empty,
)
from app.accounts.openid import IdentityClaims, LoginState, Provider, login_reply_mismatch_error, provider_denied_error
from app.accounts.pages.account import (
    ACCOUNT_PATH,
    SEND_ORIGIN_HEADERS,
    cookie_security_options,
    redirect_after_login_with_cookies,
    render_account_page,
    require_current_password,
)
from app.errors import NotFound, Refusal
from app.http.dependencies import AppSettings, Database, Now, render_page, request_base_url
from app.settings import Settings

OPENID_LOGIN_PATH = "/login/openid"
OPENID_CALLBACK_PATH = f"{OPENID_LOGIN_PATH}/back"
LOGIN_STATE_SECONDS = 600  # time limit between start and end of a login

public = APIRouter(include_in_schema=False)
router = researcher_router(f"{ACCOUNT_PATH}/openid")


def provider_of_settings_or_none(settings: Settings) -> Provider | None:
    """Return the provider that the operator has set, None without one."""
    if settings.oidc_issuer is None:
        return None
    return Provider(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret.get_secret_value())


def login_provider_of_server_or_refuse(request: Request) -> Provider:
    """Return the provider. Raises `NotFound` (`no_provider`)."""
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise NotFound("This server has no login provider.", code="no_provider")
    return provider


@public.get(OPENID_LOGIN_PATH)
async def start_openid_login(request: Request, next: str = RESEARCHER_HOME) -> Response:  # noqa: A002  (a URL's word)
    """Redirect to the provider."""
    try:
        return await redirect_to_provider_with_state_cookie(
            request, LoginState.with_new_secrets(researcher_path_or_home(next))
        )
    except Refusal as refusal:
        return render_refused_login_page(request, refusal)


@public.get(OPENID_CALLBACK_PATH)
async def finish_openid_login_or_connect_identity(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    now: Now,
    code: str = "",
    state: str = "",
    error: str = "",
) -> Response:
    """Log the returning user in, or connect the identity to the account that started the flow."""
    try:
        provider, login_state = (
            login_provider_of_server_or_refuse(request),
            matching_login_state_or_refuse(request, state),
        )
        if error:
            raise provider_denied_error()
        claims = await provider.exchange_code_for_identity_or_refuse(code, login_state, openid_callback_url(request))
        if login_state.user is not None:
            response = await connect_identity_and_redirect_or_refuse(request, database, login_state.user, claims, now)
        else:
            async with database.begin() as connection:
                admission: dict[str, Any] = {"domains": settings.oidc_domains, "role": settings.oidc_role}
                user = await identities.find_or_create_identity_user_or_refuse(connection, claims, now=now, **admission)
                session_limits: dict[str, Any] = {
                    "hours": settings.session_hours,
                    "idle_minutes": settings.idle_minutes,
                }
                session = await login.start_session_and_return_secret(
                    connection, user.id, now=now, method="provider", **session_limits
                )
            response = redirect_after_login_with_cookies(request, session, user.name, login_state.to, settings)
    except Refusal as refusal:
        response = render_refused_login_page(request, refusal)
    response.delete_cookie(login_state_cookie_name(request), path=OPENID_LOGIN_PATH)
    return response


@router.post("")
async def start_connecting_identity_and_redirect(
    *, request: Request, database: Database, now: Now, session: Researcher, current: Annotated[str, Form()] = ""
) -> Response:
    """Redirect to the provider, to connect its login with this account."""
    try:
        await require_current_password(request, database, session, current, now=now)
        return await redirect_to_provider_with_state_cookie(
            request, LoginState.with_new_secrets(ACCOUNT_PATH, session.user_id)
        )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_account_page(request, connection, session, refusal=refusal, refused_form_name="openid")


@router.post("/disconnect")
async def submit_identity_disconnection(
    *, request: Request, database: Database, now: Now, session: Researcher, current: Annotated[str, Form()] = ""
) -> Response:
    try:
        await require_current_password(request, database, session, current, now=now)
        async with database.begin() as connection:
            await identities.disconnect_identity_or_refuse(
                connection, session.user_id, login_provider_of_server_or_refuse(request).issuer
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_account_page(request, connection, session, refusal=refusal, refused_form_name="openid")
    return RedirectResponse(f"{ACCOUNT_PATH}?done=disconnected", status_code=303)


async def connect_identity_and_redirect_or_refuse(
    request: Request, database: Database, user_id: int, claims: IdentityClaims, now: Now
) -> Response:
    """Connect the identity with the account that started the flow, if it is still logged in, and redirect to the
    account page. Raises as `connect_identity_or_refuse` does, and `Unauthenticated` (`provider_refused`).
    """
    async with database.begin() as connection:
        session = await login.load_login_session_or_none(connection, session_secret_or_empty(request), now=now)
        if session is None or session.user_id != user_id:
            raise login_reply_mismatch_error()
        await identities.connect_identity_or_refuse(connection, claims, user_id, now=now)
    return RedirectResponse(f"{ACCOUNT_PATH}?done=connected", status_code=303)


async def redirect_to_provider_with_state_cookie(request: Request, login_state: LoginState) -> Response:
    """Redirect to the provider; the browser keeps the state that it must bring back."""
    address = await login_provider_of_server_or_refuse(request).login_url(login_state, openid_callback_url(request))
    response = RedirectResponse(address, status_code=303)
    signed_state = login_state_signer(request).dumps(login_state.model_dump())
    response.set_cookie(
        login_state_cookie_name(request),
        signed_state,
        max_age=LOGIN_STATE_SECONDS,
        path=OPENID_LOGIN_PATH,
        **cookie_security_options(request),
    )
    return response


def matching_login_state_or_refuse(request: Request, state: str) -> LoginState:
    """Return the state of the login that this browser began. Raises `Unauthenticated` (`provider_refused`)."""
    try:
        stored_state = login_state_signer(request).loads(
            request.cookies.get(login_state_cookie_name(request), ""), max_age=LOGIN_STATE_SECONDS
        )
    except BadSignature:
        raise login_reply_mismatch_error() from None
    login_state = LoginState.model_validate(stored_state)
    if not secrets.is_same_secret(login_state.state, state):
        raise login_reply_mismatch_error()
    return login_state


def login_state_signer(request: Request) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(request.app.state.known_browsers.key, salt="login by a provider")


def login_state_cookie_name(request: Request) -> str:
    return f"{request.app.state.cookie_name}_openid"


def openid_callback_url(request: Request) -> str:
    return f"{request_base_url(request)}{OPENID_CALLBACK_PATH}"


def render_refused_login_page(request: Request, refusal: Refusal) -> Response:
    context = {"next": RESEARCHER_HOME}
    return render_page(request, "admin/login.html", context, refusal=refusal, headers=SEND_ORIGIN_HEADERS)
