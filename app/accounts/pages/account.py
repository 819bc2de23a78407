"""Pages for logging in and out, and the account page with password and API tokens."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts import identities, login, passwords, tokens, users
from app.accounts.guards import (
    RESEARCHER_HOME,
    Researcher,
    known_browser_cookie_name,
    known_browser_id_of_name_or_none,
    refuse_cross_site_login,
    researcher_path_or_home,
    researcher_router,
    session_secret_or_empty,
)
from app.accounts.roles import NEEDS_BY_SCOPE
from app.errors import Forbidden, Invalid, NotFound, Refusal, Unauthenticated
from app.http.dependencies import (
    AppSettings,
    Database,
    Now,
    RowId,
    Transaction,
    client_network_or_empty,
    is_json_wanted,
    refusal_response,
    render_page,
    request_base_url,
)
from app.settings import Settings

ACCOUNT_PATH = "/admin/account"
SEND_ORIGIN_HEADERS = {"Referrer-Policy": "same-origin"}  # without it a browser sends `Origin: null`
KNOWN_BROWSER_SECONDS = 365 * 86_400

public = APIRouter(include_in_schema=False)
router = researcher_router(ACCOUNT_PATH)

AccountFormText = Annotated[str, Form()]


@public.get("/login")
async def login_page(request: Request, token: str = "", next: str = RESEARCHER_HOME) -> HTMLResponse:  # noqa: A002  (a URL's word)
    """Show the login form, or a button for a one-time link: mail programs that open links must not use it up."""
    context = {"token": token, "next": researcher_path_or_home(next)}
    return render_page(request, "admin/login.html", context, headers=SEND_ORIGIN_HEADERS)


@public.post("/login", dependencies=[Depends(refuse_cross_site_login)])
async def submit_login(
    *,
    request: Request,
    database: Database,
    settings: AppSettings,
    now: Now,
    name: AccountFormText = "",
    password: AccountFormText = "",
    token: AccountFormText = "",
    next: AccountFormText = RESEARCHER_HOME,  # noqa: A002  (a form's word)
) -> Response:
    """Start a session. A refusal shows the form again, with the name as typed."""
    session_limits: dict[str, Any] = {"hours": settings.session_hours, "idle_minutes": settings.idle_minutes}
    try:
        if token:
            async with database.begin() as connection:
                user = await users.load_user_or_refuse(
                    connection, await login.use_up_login_and_return_user_id_or_refuse(connection, token, now=now)
                )
                session = await login.start_session_and_return_secret(
                    connection, user.id, now=now, by_link=True, **session_limits
                )
        else:
            browser = known_browser_id_of_name_or_none(request, name)
            user = await login.authenticate_user_by_password_or_refuse(
                database, name, password, client_network_or_empty(request), browser, now=now
            )
            async with database.begin() as connection:
                session = await login.start_session_and_return_secret(connection, user.id, now=now, **session_limits)
    except Refusal as refusal:
        context = {"name": name[: users.MAX_LOGIN_NAME_CHARACTERS], "next": researcher_path_or_home(next)}
        return render_page(request, "admin/login.html", context, refusal=refusal, headers=SEND_ORIGIN_HEADERS)
    return redirect_after_login_with_cookies(request, session, user.name, researcher_path_or_home(next), settings)


def redirect_after_login_with_cookies(
    request: Request, session_secret: str, name: str, target_path: str, settings: Settings
) -> Response:
    """Redirect to a page, with the session's cookie and one that marks this browser as known."""
    response, options = RedirectResponse(target_path, status_code=303), cookie_security_options(request)
    response.set_cookie(request.app.state.cookie_name, session_secret, max_age=settings.session_hours * 3600, **options)
    mark = request.app.state.known_browsers.new_signed_browser_mark(name)
    name_of_mark = known_browser_cookie_name(request)
    response.set_cookie(name_of_mark, mark, max_age=KNOWN_BROWSER_SECONDS, path="/login", **options)
    return response


def cookie_security_options(request: Request) -> dict[str, Any]:
    is_secure = "https" in (request.url.scheme, request_base_url(request).partition(":")[0])
    return {"httponly": True, "samesite": "lax", "secure": is_secure}


@public.post("/logout")
async def submit_logout(request: Request, _session: Researcher, connection: Transaction) -> Response:
    # The session comes first: holding a connection while another looks up the login could deadlock under load.
    await login.end_session(connection, session_secret_or_empty(request))
    return logout_response(request)


def logout_response(request: Request) -> Response:
    """Redirect to the login, without the cookie."""
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(request.app.state.cookie_name)
    return response


@router.get("")
async def account_page(request: Request, connection: Transaction, session: Researcher) -> HTMLResponse:
    return await render_account_page(request, connection, session)


async def render_account_page(
    request: Request,
    connection: Transaction,
    session: login.LoginSession,
    *,
    refusal: Refusal | None = None,
    refused_form_name: str = "password",
    new_token: str | None = None,
) -> HTMLResponse:
    """Show the account page. `new_token` is shown this once; a refusal appears next to its `refused_form_name`."""
    provider = request.app.state.provider
    context = {
        "tokens": await tokens.list_api_tokens(connection, session.user_id),
        "scopes": list(NEEDS_BY_SCOPE),
        "campaigns": await tokens.list_slugs_and_names_of_visible_campaigns(connection, session.access),
        "refused_form": refused_form_name,
        "new_token": new_token,
        "connected": provider is not None
        and await identities.is_identity_connected(connection, session.user_id, provider.issuer),
    }
    return render_page(request, "admin/account.html", context, refusal=refusal)


@router.post("/password")
async def submit_password_change(
    *,
    request: Request,
    database: Database,
    now: Now,
    session: Researcher,
    current: AccountFormText = "",
    password: AccountFormText = "",
    revoke_tokens: AccountFormText = "",
) -> Response:
    """Set a new password. Researchers without one, or who have just come by a link because they forgot it, do not need
    the current one.
    """
    try:
        passwords.allowed_password_or_refuse(password)
        await require_current_password(request, database, session, current, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_account_page(request, connection, session, refusal=refusal)
    password_hash = await passwords.hash_allowed_password_or_refuse(password)
    async with database.begin() as connection:
        await users.store_password_and_end_other_sessions(
            connection,
            session.user_id,
            password_hash,
            kept_session_digest=session.digest,
            revoke_tokens=bool(revoke_tokens),
        )
    return RedirectResponse(f"{ACCOUNT_PATH}?done=password", status_code=303)


async def require_current_password(
    request: Request, database: Database, session: login.LoginSession, entered_password: str, *, now: datetime
) -> None:
    """Raise `Invalid` (`wrong_password`) unless `entered_password` is the password, so that an open browser is not
    enough to take over an account.
    """
    if session.must_confirm:
        throttle_mark = f"session {session.digest.hex()}"  # so that failures of others do not delay this
        try:
            await login.authenticate_user_by_password_or_refuse(
                database, session.name, entered_password, client_network_or_empty(request), throttle_mark, now=now
            )
        except Unauthenticated as refusal:
            raise Invalid("Your current password is wrong. Nothing was changed.", code=refusal.code) from refusal


CONFIRMATION_FIELDS = ("current", "csrf", "username")  # fields of the page that asks for the password


class PasswordNeeded(Refusal):
    """An act needs the current password, which was not sent or is wrong.

    Attributes:
        refusal: The reason.
        act: What the password is for.
        fields: The other fields that were sent.

    """

    code = "password_needed"

    def __init__(self, refusal: Refusal, act: str, fields: list[tuple[str, str]]) -> None:
        super().__init__(refusal.message, code=refusal.code, **refusal.details)
        self.status = refusal.status
        self.act = act
        self.fields = fields


def password_confirmation_dependency(action_phrase: str) -> Any:
    """Return a dependency that admits an act only with the current password, the field `current` of its form. A browser
    that sends none, or a wrong one, gets a page that asks for it and then does the act.

    Args:
        action_phrase: What the password is for, as the page says it after "to".

    """

    async def check(request: Request, database: Database, now: Now, session: Researcher) -> None:
        if not session.must_confirm:
            return
        form = await request.form()
        try:
            if not form.get("current"):
                raise Forbidden("Enter your current password. Nothing was changed yet.", code="password_needed")
            await require_current_password(request, database, session, str(form["current"]), now=now)
        except Refusal as refusal:
            fields = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
            fields = [(name, value) for name, value in fields if name not in CONFIRMATION_FIELDS]
            raise PasswordNeeded(refusal, action_phrase, fields) from refusal

    return Depends(check)


def path_of_page_with_form(form_action_path: str) -> str:
    """Return the path of the page with the form of an act."""
    if form_action_path.startswith("/admin/campaigns/"):
        return "/".join(form_action_path.split("/")[:4]) + "/members"
    return "/".join(form_action_path.split("/")[:3])


def confirm_password_response(request: Request, error: Exception) -> Response:
    """Show the page that asks for the password and sends the act again; programs get the refusal."""
    assert isinstance(error, PasswordNeeded)  # noqa: S101  (registered for this class only)
    if is_json_wanted(request):
        return refusal_response(request, error.status, error.code, error.message, error.details)
    context = {"action": error.act, "fields": error.fields, "address": request.url.path}
    context["form_address"] = path_of_page_with_form(request.url.path)
    return render_page(request, "admin/confirm.html", context, refusal=error)


@router.post("/logout-everywhere")
async def submit_logout_everywhere(request: Request, session: Researcher, connection: Transaction) -> Response:
    await users.end_all_sessions(connection, session.user_id)
    return logout_response(request)


@router.post("/tokens", dependencies=[password_confirmation_dependency("create a token")])
async def submit_new_api_token(
    *,
    request: Request,
    connection: Transaction,
    now: Now,
    session: Researcher,
    name: AccountFormText = "",
    scope: Annotated[list[str], Form()] = [],  # noqa: B006  (FastAPI copies it)
    campaign: AccountFormText = "",
) -> HTMLResponse:
    try:
        token_campaign = (
            await tokens.find_visible_campaign_or_refuse(connection, session.access, campaign) if campaign else None
        )
        token = await tokens.issue_token_or_refuse(
            connection, session.user_id, name, now=now, scopes=scope, campaign=token_campaign
        )
    except (Invalid, NotFound) as refusal:
        return await render_account_page(request, connection, session, refusal=refusal, refused_form_name="tokens")
    return await render_account_page(request, connection, session, new_token=token)


@router.post("/tokens/{token_id}/revoke")
async def submit_token_revocation(connection: Transaction, session: Researcher, token_id: RowId) -> Response:
    await tokens.revoke_own_api_token_or_refuse(connection, session.user_id, token_id)
    return RedirectResponse(f"{ACCOUNT_PATH}?done=token-revoked", status_code=303)
