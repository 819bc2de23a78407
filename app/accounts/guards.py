"""Guards of all routes: dependencies that admit researchers (pages) and programs (API).

Pages are on a `researcher_router`, and the API is on a `program_router`. A route that needs the session takes
`Researcher`. The serving path checks the `BearerToken` on the connection that it already has. `roles` lists what each
route needs. `require_access_to_route` checks access to the campaign that a URL names; code behind it finds the campaign
by its slug alone.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.exceptions import HTTPException

from app.accounts.access import Access, require_need
from app.accounts.login import LoginSession, load_login_session_or_none, postpone_idle_end_of_session
from app.accounts.roles import NEED_BY_ROUTE
from app.accounts.secrets import KnownBrowsers, is_same_secret, unmask_csrf_token
from app.accounts.shared_links import load_session_for_shared_link_or_none
from app.accounts.tokens import load_token_and_store_its_use_or_refuse
from app.accounts.users import normalize_typed_name
from app.database.audit_log import CURRENT_ACTOR, Actor
from app.database.campaign import unknown_campaign_slug_error
from app.database.session import DATABASE_ERRORS, Driver, borrow_autocommit_driver
from app.errors import Forbidden, Refusal, Unauthenticated
from app.http.dependencies import (
    MAX_FORM_FIELD_BYTES,
    Database,
    Now,
    client_network_or_empty,
    is_json_wanted,
    is_script_request,
    openapi_description_of_refusals,
    request_base_url,
    require_database_is_current_primary,
)
from app.http.request_problems import require_known_names_once

RESEARCHER_HOME = "/admin"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
bearer = HTTPBearer(auto_error=False, description="A token from `POST /api/v1/tokens` or from your account page.")


async def require_access_and_csrf_yielding_session(
    request: Request, database: Database, now: Now
) -> AsyncIterator[LoginSession]:
    """Yield the session of the researcher who uses this browser; send a stranger to log in first and back afterwards.

    A request that changes something must also carry the session's CSRF token, as the form field `csrf` or the header
    `X-CSRF-Token`. Templates read the session from `request.state.session`.
    """
    try:
        request.state.session = await require_route_access_and_return_session(request, database, now)
        if request.method not in SAFE_METHODS:
            await require_csrf(request)
        yield request.state.session
    finally:
        await request.close()  # the form's files; a reply that streams has ended by then


def researcher_router(prefix: str, *dependencies: Any) -> APIRouter:
    """Return a router of researchers' pages, which has these dependencies besides
    `require_access_and_csrf_yielding_session`.
    """
    return APIRouter(
        prefix=prefix,
        dependencies=[Depends(require_access_and_csrf_yielding_session), *dependencies],
        include_in_schema=False,
    )


async def require_researcher_without_csrf(request: Request, database: Database, now: Now) -> None:
    """Admit the researcher as `require_access_and_csrf_yielding_session` does, for pages whose forms change
    nothing that matters, without a CSRF token.
    """
    request.state.session = await require_route_access_and_return_session(request, database, now)


async def require_route_access_and_return_session(request: Request, database: Database, now: Now) -> LoginSession:
    # A connection of its own, given back at once: a page that streams for hours must not hold it.
    async with database.begin() as connection:
        session = await load_login_or_link_session_or_none(connection, request, now)
        # A request that a script sends by itself does not show that someone works.
        if session is not None and session.user_id and not is_script_request(request):
            await postpone_idle_end_of_session(
                connection, session, now=now, idle_minutes_allowed=request.app.state.settings.idle_minutes
            )
    if session is None:
        if session_secret_or_empty(request):
            await require_database_is_current_primary(request)  # an outdated one does not know a new login
        raise login_required_error(request)
    CURRENT_ACTOR.set(Actor(session.name, "page", session.user_id or None))
    require_access_to_route(request, session.access)
    return session


async def load_login_or_link_session_or_none(
    connection: AsyncConnection, request: Request, now: datetime
) -> LoginSession | None:
    """Return the session by the login, or by a read-only link if the login cannot see the campaign."""
    slug = campaign_slug_in_url_or_none(request)
    session = await load_login_session_or_none(connection, session_secret_or_empty(request), now=now, slug=slug)
    if slug is None or (session is not None and session.access.can_see_campaign):
        return session
    return (
        await load_session_for_shared_link_or_none(
            connection, request.cookies.get(shared_link_cookie_name(request), ""), slug
        )
        or session
    )


def shared_link_cookie_name(request: Request) -> str:
    """Return the name of the cookie for read-only links. Its path is a campaign's, so that no other page gets it."""
    return f"{request.app.state.cookie_name}_link"


async def is_still_admitted_or_database_away(request: Request, database: Database, now: Now) -> bool:
    """Return whether a researcher who watches a page may go on. While the database is unreachable, everyone may."""
    with suppress(*DATABASE_ERRORS):
        async with database.connect() as connection:
            session = await load_login_or_link_session_or_none(connection, request, now)
        if session is None:
            return False
        try:
            require_access_to_route(request, session.access)
        except Refusal:
            return False
    return True


def campaign_slug_in_url_or_none(request: Request) -> str | None:
    """Return the campaign's slug in the URL, None without one."""
    slug: str | None = request.path_params.get("slug")
    return slug


def require_access_to_route(request: Request, access: Access) -> None:
    """Raise a refusal unless the access allows this route; all requests pass here.

    Raises:
        NotFound: `campaign_not_found`, if the campaign is not visible, as if it did not exist.
        Forbidden: The role or the token does not allow it.

    """
    request.state.access = access
    slug = campaign_slug_in_url_or_none(request)
    if slug is not None and not access.can_see_campaign:
        raise unknown_campaign_slug_error(slug)
    require_need(access, need_of_route_or_empty(request))


def require_need_if_hit_visible(request: Request, access: Access, *, is_hit_visible: bool) -> None:
    """Check the access where the URL names a HIT. If the HIT or its campaign is not visible, the route itself refuses
    it as not found.
    """
    if is_hit_visible and access.can_see_campaign:
        require_need(access, need_of_route_or_empty(request))


def need_of_route_or_empty(request: Request) -> str:
    """Return the need of the route. An unlisted route has an empty need, which no role grants."""
    return NEED_BY_ROUTE.get(f"{request.method} {request.scope['route'].path}", "")


async def current_access(request: Request) -> Access:
    """Return the access of the researcher or program that a guard has admitted."""
    access: Access = request.state.access
    return access


async def require_csrf(request: Request) -> None:
    """Raise `Forbidden` (`csrf_failed`) unless the request carries the session's CSRF token."""
    if not is_same_secret(unmask_csrf_token(await csrf_token_from_header_or_form(request)), request.state.session.csrf):
        raise Forbidden(
            "This form is out of date, so nothing was changed. Go back, reload the page and try again.",
            code="csrf_failed",
        )


def known_browser_id_of_name_or_none(request: Request, name: str) -> str | None:
    """Return this browser's mark if someone has logged in here under this name before."""
    known_browsers: KnownBrowsers = request.app.state.known_browsers
    return known_browsers.browser_id_of_mark_or_none(
        request.cookies.get(known_browser_cookie_name(request), ""), normalize_typed_name(name)
    )


def known_browser_cookie_name(request: Request) -> str:
    return f"{request.app.state.cookie_name}_known"


def session_secret_or_empty(request: Request) -> str:
    """Return the secret in the session cookie, empty without one."""
    return request.cookies.get(request.app.state.cookie_name, "")


def login_required_error(request: Request) -> Exception:
    if is_json_wanted(request):
        return Unauthenticated("Your login has ended. Nothing was changed; log in and try again.")
    current_path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = current_path if request.method == "GET" else RESEARCHER_HOME
    return HTTPException(303, "Log in first.", {"Location": f"/login?next={quote(target, safe='')}"})


async def csrf_token_from_header_or_form(request: Request) -> str:
    """Return the token from the header, else from the form. A large upload sends the header or puts the field first."""
    if header := request.headers.get("x-csrf-token"):
        return header
    field = (await request.form(max_part_size=MAX_FORM_FIELD_BYTES)).get("csrf", "")
    return field if isinstance(field, str) else ""


def researcher_path_or_home(target_path: str) -> str:
    """Return the page to show after the login: one of the researcher pages, whatever a link says."""
    path = target_path.partition("?")[0]
    return target_path if path == RESEARCHER_HOME or path.startswith(RESEARCHER_HOME + "/") else RESEARCHER_HOME


def refuse_cross_site_login(request: Request) -> None:
    """Raise `Forbidden` (`cross_site`) for a login from another site's page. Browsers say where a request comes from;
    programs do not.

    Older browsers send only the origin. The login page asks them to.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own_hosts = {request.headers.get("host"), urlsplit(request_base_url(request)).netloc}
    is_other_origin = origin is not None and urlsplit(origin).netloc not in own_hosts
    if site not in (None, "same-origin", "none") or (is_other_origin and site != "same-origin"):
        raise Forbidden("Log in on Easel's own login page.", code="cross_site")


async def bearer_token_or_refuse(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
    """Return the token that a program sent. Raises `Unauthenticated` (`token_missing`)."""
    if credentials is None:
        raise Unauthenticated("Send an API token: Authorization: Bearer TOKEN.", code="token_missing")
    return credentials.credentials


Researcher = Annotated[LoginSession, Depends(require_access_and_csrf_yielding_session)]
BearerToken = Annotated[str, Depends(bearer_token_or_refuse)]
CurrentAccess = Annotated[Access, Depends(current_access)]  # for routes behind one of the guards


async def require_program_token(request: Request, database: Database, now: Now, token: BearerToken) -> None:
    """Admit a program with a researcher's token. Raises `Unauthenticated`."""
    async with borrow_autocommit_driver(database) as connection:
        await admit_program_by_token(connection, request, token, now=now)


def program_router(prefix: str, tag: str, *dependencies: Any, refusals: Mapping[int, str] | None = None) -> APIRouter:
    """Return a router of the API, which has these dependencies besides `require_program_token`.

    Args:
        prefix: Beginning of the routes' addresses.
        tag: Group of the routes in the documentation.
        dependencies: Further dependencies of all routes.
        refusals: Refusals of all routes besides those of a token and of invalid input.

    """
    all_refusals = {401: "`token_missing`, `token_invalid`", 422: "`invalid`"} | dict(refusals or {})
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        dependencies=[Depends(require_program_token), Depends(require_known_names_once), *dependencies],
        responses=openapi_description_of_refusals(dict(sorted(all_refusals.items()))),
    )


async def admit_program_by_token(connection: Driver, request: Request, token: str, *, now: datetime) -> None:
    """Admit a program as `require_program_token` does, on an open connection."""
    token_use = await load_token_and_store_its_use_or_refuse(
        connection, token, client_network_or_empty(request), slug=campaign_slug_in_url_or_none(request), now=now
    )
    CURRENT_ACTOR.set(Actor(token_use.user_name, "api", token_use.user_id, token_use.only_campaign))
    require_access_to_route(request, token_use.access)
