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

from app.auth.access import Access, require_need
from app.auth.login import Session, note_use, session_of
from app.auth.roles import NEEDS
from app.auth.secret import KnownBrowsers, same, unmasked
from app.auth.shared_links import session_by_link
from app.auth.tokens import admit
from app.auth.users import typed_name
from app.database.audit_log import ACTING, Actor
from app.database.campaign import no_campaign
from app.database.session import TROUBLE, Driver, statements
from app.errors import Forbidden, Refusal, Unauthenticated
from app.web import Database, Now, address_of, base_url, fetched, wants_json

HOME = "/admin"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
bearer = HTTPBearer(auto_error=False, description="A token from `POST /api/v1/tokens` or from your account page.")


async def researcher(request: Request, database: Database, now: Now) -> AsyncIterator[Session]:
    """The researcher whose browser this is; a stranger is sent to log in and comes back afterwards.

    Everything that changes something must also carry the session's CSRF token, as the field `csrf` of its form or the
    header `X-CSRF-Token`. Templates read the session from `request.state.session`.
    """
    try:
        request.state.session = await admitted(request, database, now)
        if request.method not in SAFE_METHODS:
            await require_csrf(request)
        yield request.state.session
    finally:
        await request.close()  # the form's files; a reply that streams has ended by then


async def looking(request: Request, database: Database, now: Now) -> None:
    """The same for pages of which no method changes more than a tick, so that none asks for the CSRF token."""
    request.state.session = await admitted(request, database, now)


async def admitted(request: Request, database: Database, now: Now) -> Session:
    # A connection of its own, given back at once: a page that streams for hours must not hold it.
    async with database.begin() as connection:
        session = await session_shown_in(connection, request, now)
        # A page that asks by itself is not somebody at work.
        if session is not None and session.user_id and not fetched(request):
            await note_use(connection, session, now=now, idle_minutes=request.app.state.settings.idle_minutes)
    if session is None:
        raise not_logged_in(request)
    ACTING.set(Actor(session.name, "page", session.user_id or None))
    require_access(request, session.access)
    return session


async def session_shown_in(connection: AsyncConnection, request: Request, now: datetime) -> Session | None:
    """Who asks by their login; where that does not let them see the campaign, by a read-only link to it."""
    slug = slug_of(request)
    session = await session_of(connection, session_shown(request), now=now, slug=slug)
    if slug is None or (session is not None and session.access.sees):
        return session
    return await session_by_link(connection, request.cookies.get(link_cookie(request), ""), slug) or session


def link_cookie(request: Request) -> str:
    """Its path is a campaign's, so that no other page gets it."""
    return f"{request.app.state.cookie_name}_link"


async def still_admitted(request: Request, database: Database, now: Now) -> bool:
    """Whether whoever watches a page may go on; while the database is away nobody is thrown out."""
    with suppress(*TROUBLE):
        async with database.connect() as connection:
            session = await session_shown_in(connection, request, now)
        if session is None:
            return False
        try:
            require_access(request, session.access)
        except Refusal:
            return False
    return True


def slug_of(request: Request) -> str | None:
    """The campaign that an address names."""
    slug: str | None = request.path_params.get("slug")
    return slug


def require_access(request: Request, who: Access) -> None:
    """The one place that says who reaches what. Raises `NotFound` (`campaign_not_found`) for a campaign that is not
    there for them, as if there were none, and `Forbidden` for what neither their role allows nor their token.
    """
    request.state.access = who
    slug = slug_of(request)
    if slug is not None and not who.sees:
        raise no_campaign(slug)
    require_need(who, need_of(request))


def require_access_to_hit(request: Request, who: Access, *, found: bool) -> None:
    """The same where an address names a HIT: what is not there for them is not found further on, whatever it holds."""
    if found and who.sees:
        require_need(who, need_of(request))


def need_of(request: Request) -> str:
    """What an address needs; of one that says nothing, what nobody has."""
    return NEEDS.get(f"{request.method} {request.scope['route'].path}", "")


async def who_asks(request: Request) -> Access:
    """What the researcher or the program may do here, after a guard has let them in."""
    access: Access = request.state.access
    return access


async def require_csrf(request: Request) -> None:
    """Raises `Forbidden` (`csrf_failed`) unless the session's token comes with it."""
    if not same(unmasked(await csrf_of(request)), request.state.session.csrf):
        raise Forbidden(
            "This form is out of date, so nothing was changed. Go back, reload the page and try again.",
            code="csrf_failed",
        )


def known_browser(request: Request, name: str) -> str | None:
    """What names this browser if someone has logged in there under this name before."""
    known: KnownBrowsers = request.app.state.known_browsers
    return known.read(request.cookies.get(known_cookie(request), ""), typed_name(name))


def known_cookie(request: Request) -> str:
    return f"{request.app.state.cookie_name}_known"


def session_shown(request: Request) -> str:
    """The secret in the session cookie, empty if there is none."""
    return request.cookies.get(request.app.state.cookie_name, "")


def not_logged_in(request: Request) -> Exception:
    if wants_json(request):
        return Unauthenticated("Your login has ended. Nothing was changed; log in and try again.")
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = back if request.method == "GET" else HOME
    return HTTPException(303, "Log in first.", {"Location": f"/login?next={quote(target, safe='')}"})


async def csrf_of(request: Request) -> str:
    """The header, else the form's field. A large upload sends the header or puts the field first."""
    if header := request.headers.get("x-csrf-token"):
        return header
    field = (await request.form()).get("csrf", "")
    return field if isinstance(field, str) else ""


def safe_next(target: str) -> str:
    """Where to go after logging in: one of our own researcher pages, whatever a link says."""
    path = target.partition("?")[0]
    return target if path == HOME or path.startswith(HOME + "/") else HOME


def refuse_other_sites(request: Request) -> None:
    """Nobody logs a visitor in from another site's page. Browsers tell where a request comes from; programs do not.

    Older browsers tell the origin alone. The login page asks them to.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = {request.headers.get("host"), urlsplit(base_url(request)).netloc}
    elsewhere = origin is not None and urlsplit(origin).netloc not in ours
    if site not in (None, "same-origin", "none") or (elsewhere and site != "same-origin"):
        raise Forbidden("Log in on Easel's own page.", code="cross_site")


async def token_shown(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
    """The token that a program shows. Raises `Unauthenticated` (`token_missing`)."""
    if credentials is None:
        raise Unauthenticated("Send an API token: Authorization: Bearer TOKEN.", code="token_missing")
    return credentials.credentials


Researcher = Annotated[Session, Depends(researcher)]
Token = Annotated[str, Depends(token_shown)]
Who = Annotated[Access, Depends(who_asks)]  # behind one of the guards


async def program(request: Request, database: Database, now: Now, token: Token) -> None:
    """A program that shows a researcher's token. Raises `Unauthenticated`."""
    async with statements(database) as connection:
        await admit_program(connection, request, token, now=now)


async def admit_program(connection: Driver, request: Request, token: str, *, now: datetime) -> None:
    """The same on a connection that there is already."""
    found = await admit(connection, token, address_of(request), slug=slug_of(request), now=now)
    ACTING.set(Actor(found.user_name, "api", found.user_id))
    require_access(request, found.access)
