"""Who may come in: a dependency for researchers' pages and one for programs.

Put `dependencies=[Depends(researcher)]` on a router of pages, `[Depends(program)]` on one of the API; a route that
needs to know who it is takes `Researcher`. The serving path looks at the `Token` on the connection that it has.
What an address needs of a role stands in `roles`.
Whoever names a campaign is looked at there, in `require_access`: further on, a campaign is found by its slug alone.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.exceptions import HTTPException

from app.accounts.access import Access, require_need
from app.accounts.login import LoginSession, find_session, postpone_idle_end
from app.accounts.roles import NEED_BY_ROUTE
from app.accounts.secrets import KnownBrowsers, is_same_secret, unmask_token
from app.accounts.shared_links import find_session_by_shared_link
from app.accounts.tokens import admit_token
from app.accounts.users import normalize_typed_name
from app.database.audit_log import CURRENT_ACTOR, Actor
from app.database.campaign import campaign_not_found
from app.database.session import DATABASE_ERRORS, Driver, borrow_autocommit_driver
from app.errors import Forbidden, Refusal, Unauthenticated
from app.http.dependencies import Database, Now, client_network, is_json_wanted, is_script_request, request_base_url

RESEARCHER_HOME = "/admin"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
bearer = HTTPBearer(auto_error=False, description="A token from `POST /api/v1/tokens` or from your account page.")


async def require_researcher(request: Request, database: Database, now: Now) -> AsyncIterator[LoginSession]:
    """The researcher whose browser this is; a stranger is sent to log in and comes back afterwards.

    Everything that changes something must also carry the session's CSRF token, as the field `csrf` of its form or the
    header `X-CSRF-Token`. Templates read the session from `request.state.session`.
    """
    try:
        request.state.session = await admit_researcher(request, database, now)
        if request.method not in SAFE_METHODS:
            await require_csrf(request)
        yield request.state.session
    finally:
        await request.close()  # the form's files; a reply that streams has ended by then


async def require_researcher_without_csrf(request: Request, database: Database, now: Now) -> None:
    """The same for pages of which no method changes more than a tick, so that none asks for the CSRF token."""
    request.state.session = await admit_researcher(request, database, now)


async def admit_researcher(request: Request, database: Database, now: Now) -> LoginSession:
    # A connection of its own, given back at once: a page that streams for hours must not hold it.
    async with database.begin() as connection:
        session = await find_request_session(connection, request, now)
        # A page that asks by itself is not somebody at work.
        if session is not None and session.user_id and not is_script_request(request):
            await postpone_idle_end(
                connection, session, now=now, idle_minutes_allowed=request.app.state.settings.idle_minutes
            )
    if session is None:
        raise login_required_error(request)
    CURRENT_ACTOR.set(Actor(session.name, "page", session.user_id or None))
    require_access(request, session.access)
    return session


async def find_request_session(connection: AsyncConnection, request: Request, now: datetime) -> LoginSession | None:
    """Who asks by their login; where that does not let them see the campaign, by a read-only link to it."""
    slug = slug_in_address(request)
    session = await find_session(connection, session_cookie_value(request), now=now, slug=slug)
    if slug is None or (session is not None and session.access.can_see_campaign):
        return session
    return (
        await find_session_by_shared_link(connection, request.cookies.get(link_cookie_name(request), ""), slug)
        or session
    )


def link_cookie_name(request: Request) -> str:
    """Its path is a campaign's, so that no other page gets it."""
    return f"{request.app.state.cookie_name}_link"


async def is_still_admitted(request: Request, database: Database, now: Now) -> bool:
    """Whether whoever watches a page may go on; while the database is away nobody is thrown out."""
    with suppress(*DATABASE_ERRORS):
        async with database.connect() as connection:
            session = await find_request_session(connection, request, now)
        if session is None:
            return False
        try:
            require_access(request, session.access)
        except Refusal:
            return False
    return True


def slug_in_address(request: Request) -> str | None:
    """The campaign that an address names."""
    slug: str | None = request.path_params.get("slug")
    return slug


def require_access(request: Request, access: Access) -> None:
    """The one place that says who reaches what. Raises `NotFound` (`campaign_not_found`) for a campaign that is not
    there for them, as if there were none, and `Forbidden` for what neither their role allows nor their token.
    """
    request.state.access = access
    slug = slug_in_address(request)
    if slug is not None and not access.can_see_campaign:
        raise campaign_not_found(slug)
    require_need(access, need_of_route(request))


def require_access_to_hit(request: Request, access: Access, *, is_found: bool) -> None:
    """The same where an address names a HIT: what is not there for them is not found further on, whatever it holds."""
    if is_found and access.can_see_campaign:
        require_need(access, need_of_route(request))


def need_of_route(request: Request) -> str:
    """What an address needs; of one that says nothing, what nobody has."""
    return NEED_BY_ROUTE.get(f"{request.method} {request.scope['route'].path}", "")


async def current_access(request: Request) -> Access:
    """What the researcher or the program may do here, after a guard has let them in."""
    access: Access = request.state.access
    return access


async def require_csrf(request: Request) -> None:
    """Raises `Forbidden` (`csrf_failed`) unless the session's token comes with it."""
    if not is_same_secret(unmask_token(await submitted_csrf_token(request)), request.state.session.csrf):
        raise Forbidden(
            "This form is out of date, so nothing was changed. Go back, reload the page and try again.",
            code="csrf_failed",
        )


def find_known_browser(request: Request, name: str) -> str | None:
    """What names this browser if someone has logged in there under this name before."""
    known_browsers: KnownBrowsers = request.app.state.known_browsers
    return known_browsers.read_mark(
        request.cookies.get(known_browser_cookie_name(request), ""), normalize_typed_name(name)
    )


def known_browser_cookie_name(request: Request) -> str:
    return f"{request.app.state.cookie_name}_known"


def session_cookie_value(request: Request) -> str:
    """The secret in the session cookie, empty if there is none."""
    return request.cookies.get(request.app.state.cookie_name, "")


def login_required_error(request: Request) -> Exception:
    if is_json_wanted(request):
        return Unauthenticated("Your login has ended. Nothing was changed; log in and try again.")
    current_path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = current_path if request.method == "GET" else RESEARCHER_HOME
    return HTTPException(303, "Log in first.", {"Location": f"/login?next={quote(target, safe='')}"})


async def submitted_csrf_token(request: Request) -> str:
    """The header, else the form's field. A large upload sends the header or puts the field first."""
    if header := request.headers.get("x-csrf-token"):
        return header
    field = (await request.form()).get("csrf", "")
    return field if isinstance(field, str) else ""


def safe_next_path(target: str) -> str:
    """Where to go after logging in: one of our own researcher pages, whatever a link says."""
    path = target.partition("?")[0]
    return target if path == RESEARCHER_HOME or path.startswith(RESEARCHER_HOME + "/") else RESEARCHER_HOME


def refuse_cross_site_request(request: Request) -> None:
    """Nobody logs a visitor in from another site's page. Browsers tell where a request comes from; programs do not.

    Older browsers tell the origin alone. The login page asks them to.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own_hosts = {request.headers.get("host"), urlsplit(request_base_url(request)).netloc}
    is_other_origin = origin is not None and urlsplit(origin).netloc not in own_hosts
    if site not in (None, "same-origin", "none") or (is_other_origin and site != "same-origin"):
        raise Forbidden("Log in on Easel's own page.", code="cross_site")


async def read_bearer_token(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
    """The token that a program shows. Raises `Unauthenticated` (`token_missing`)."""
    if credentials is None:
        raise Unauthenticated("Send an API token: Authorization: Bearer TOKEN.", code="token_missing")
    return credentials.credentials


Researcher = Annotated[LoginSession, Depends(require_researcher)]
BearerToken = Annotated[str, Depends(read_bearer_token)]
CurrentAccess = Annotated[Access, Depends(current_access)]  # behind one of the guards


async def require_program(request: Request, database: Database, now: Now, token: BearerToken) -> None:
    """A program that shows a researcher's token. Raises `Unauthenticated`."""
    async with borrow_autocommit_driver(database) as connection:
        await admit_program(connection, request, token, now=now)


async def admit_program(connection: Driver, request: Request, token: str, *, now: datetime) -> None:
    """The same on a connection that there is already."""
    token_use = await admit_token(connection, token, client_network(request), slug=slug_in_address(request), now=now)
    CURRENT_ACTOR.set(Actor(token_use.user_name, "api", token_use.user_id))
    require_access(request, token_use.access)
