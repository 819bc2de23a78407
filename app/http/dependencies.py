"""Functions that all routes share: dependencies (transaction, clock, form), language, pages, and error responses."""

import logging
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address
from itertools import islice
from typing import Annotated, Any, Protocol, TypeVar
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from pydantic import BaseModel, BeforeValidator
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Mount

from app.background.health import DATABASE_DISK
from app.background.metrics import PROCESS_METRICS
from app.database import session
from app.errors import (
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Refusal,
    Unauthenticated,
    shorten_echo,
)
from app.http.languages.catalogue import BROWSER_LANGUAGE, ENGLISH, LANGUAGES, negotiate_language
from app.http.languages.refusals import translate_refusal
from app.http.middleware import FORM_ORIGINS_STATE_KEY, FRAME_ORIGINS_STATE_KEY, LOADS_HTTPS_STATE_KEY
from app.http.request_problems import field_path, iterate_request_problems
from app.http.templating import LANGUAGE_PARAMETER, template_environment
from app.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")


# Dependencies are async although they wait for nothing: FastAPI runs plain functions in a thread.
def dependency_on_app_state(name: str) -> Any:
    """Return a dependency on a value that this process keeps in `app.state`."""

    async def get_value(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(get_value)


async def yield_connection_in_transaction(database: "Database") -> AsyncIterator[AsyncConnection]:
    async with database.begin() as connection:
        yield connection


def utc_now() -> datetime:
    return datetime.now(UTC)


async def get_now() -> datetime:
    return utc_now()


async def read_whole_body(request: Request) -> None:
    """Read and keep the body before a connection is taken: a slow client makes no other request wait."""
    await request.body()


async def read_body_and_yield_serving_connection(request: Request) -> AsyncIterator[session.Driver]:
    await read_whole_body(request)
    async with borrow_serving_connection(request) as connection:
        yield connection


@asynccontextmanager
async def borrow_serving_connection(request: Request) -> AsyncIterator[session.Driver]:
    """Borrow a connection for the campaign in the request's path. Waits for no part of the request."""
    connections: session.ServingConnections = request.app.state.serving_connections
    campaign = await request.app.state.names.find_campaign_id_in_path_or_none(connections, request.path_params)
    async with connections.borrow_autocommit_connection(campaign) as connection:
        yield connection


MAX_ROW_ID = 2**63 - 1  # largest value of a bigint column
ROW_ID_PATTERN = re.compile(r"[1-9][0-9]{0,18}")


def parse_canonical_row_id_or_none(raw: str) -> int | None:
    """Return the row id that a text spells in the canonical way, or None: `+1`, `01` and `1_0` are no ids."""
    if not ROW_ID_PATTERN.fullmatch(raw):
        return None
    number = int(raw)
    return number if number <= MAX_ROW_ID else None


def canonical_row_id_or_refuse(raw: object) -> object:
    """Return a row's number in a URL unchanged.

    Raises `NotFound` for other spellings, such as `+1`, `01` or digits of another script: no page has such a URL.
    """
    if isinstance(raw, str) and parse_canonical_row_id_or_none(raw) is None:
        raise NotFound("There is no such page.")
    return raw


RowId = Annotated[int, BeforeValidator(canonical_row_id_or_refuse), PathParameter(ge=1, le=MAX_ROW_ID)]
Database = Annotated[AsyncEngine, dependency_on_app_state("database")]
# A separate pool for downloads: a slow reader makes other downloads wait, but no annotator.
ReadingDatabase = Annotated[AsyncEngine, dependency_on_app_state("reading_database")]
AppSettings = Annotated[Settings, dependency_on_app_state("settings")]
# List `Now` after it, so that the time is taken after a wait for the connection.
ServingConnection = Annotated[session.Driver, Depends(read_body_and_yield_serving_connection, scope="function")]
# scope="function": the transaction commits before the reply is sent, so a failed commit is never answered with 200.
Transaction = Annotated[AsyncConnection, Depends(yield_connection_in_transaction, scope="function")]
Now = Annotated[datetime, Depends(get_now)]


def render_page(
    request: Request,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    refusal: Refusal | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Return a rendered template, in the language that was chosen for this request; of a refusal, with its status."""
    if refusal is not None:
        status, headers = refusal.status, {**retry_after_headers(refusal), **(headers or {})}
    return jinja_templates_of_language(chosen_language_of_request(request)).TemplateResponse(
        request, template, {"refusal": refusal, **(context or {})}, status_code=status, headers=headers
    )


def render_template(request: Request, template: str, context: Mapping[str, Any]) -> str:
    """Return the text of a template that does not depend on the request but for its language, and shows no refusal."""
    environment = template_environment(chosen_language_of_request(request))
    return environment.get_template(template).render({"refusal": None, **context})


@cache
def jinja_templates_of_language(language: str) -> Jinja2Templates:
    return Jinja2Templates(env=template_environment(language))


LANGUAGE_STATE_KEY = "language"  # in a request's state


def chosen_language_of_request(request: Request) -> str:
    """Return the language that was chosen for a request, else English."""
    return str(request.scope.get("state", {}).get(LANGUAGE_STATE_KEY, ENGLISH))


class PageSettings(Protocol):
    """The settings of a campaign that concern every page with its items."""

    @property
    def language(self) -> str: ...
    @property
    def https_media(self) -> bool: ...


class FramedPageSettings(PageSettings, Protocol):
    """The settings of a campaign that concern every page of its annotators."""

    @property
    def frame_origins(self) -> list[str] | None: ...
    @property
    def form_origins(self) -> list[str] | None: ...


def set_request_language(request: Request, campaign: PageSettings | None = None) -> None:
    """Set the language of the response: the campaign's, else that chosen in the URL, else that of the browser."""
    language = campaign.language if campaign else BROWSER_LANGUAGE
    if language == BROWSER_LANGUAGE:
        requested_language = request.query_params.get(LANGUAGE_PARAMETER, "")
        language = (
            requested_language
            if requested_language in LANGUAGES
            else negotiate_language(request.headers.get("accept-language", ""))
        )
    request.scope.setdefault("state", {})[LANGUAGE_STATE_KEY] = language


def allow_https_media_if_campaign_does(request: Request, campaign: PageSettings) -> None:
    """Let a page load images, sound and video from other servers, if its campaign allows such items."""
    if campaign.https_media:
        request.scope["state"][LOADS_HTTPS_STATE_KEY] = True


def allow_campaign_sources_and_frames(request: Request, campaign: FramedPageSettings) -> None:
    """Let an annotator's page load what its campaign allows, and let its sites show it in a frame or take its form."""
    allow_https_media_if_campaign_does(request, campaign)
    if campaign.frame_origins:
        request.scope["state"][FRAME_ORIGINS_STATE_KEY] = tuple(campaign.frame_origins)
    if campaign.form_origins:
        request.scope["state"][FORM_ORIGINS_STATE_KEY] = tuple(campaign.form_origins)


def request_base_url(request: Request) -> str:
    """Return the URL at which people reach this server: the setting, else the host of this request if it is known.

    A request can claim any host. If it is unknown, links use the address that the request came in on.
    """
    settings: Settings = request.app.state.settings
    if settings.public_url:
        return settings.public_url
    host, port = request.scope.get("server") or (settings.host, settings.port)
    name, machine = request.url.hostname or "", socket.gethostname().lower()
    if name in {host, settings.host, machine, f"{machine}.local", "localhost", "127.0.0.1", "::1"}:
        return str(request.base_url).rstrip("/")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


IPV6_CLIENT_PREFIX_BITS = 64  # clients choose the rest of an IPv6 address themselves


def client_network_or_empty(request: Request) -> str:
    """Return the network that a request comes from, for rate limits; empty if unknown."""
    return network_of_ip_address_or_empty(request.client.host) if request.client else ""


@lru_cache(maxsize=4096)
def network_of_ip_address_or_empty(host: str) -> str:
    """Return an IPv4 address as it is, or the network of an IPv6 address; empty for other hosts."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((address, IPV6_CLIENT_PREFIX_BITS), strict=False))


# Limit of one field in a form with files: 50,000 ids fit. `BodyLimits` limits the form as a whole.
MAX_FORM_FIELD_BYTES = 16 * 2**20


async def read_form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form, with the CR LF that browsers send for line ends replaced by LF."""
    fields = form_text_by_name_refusing_repeats(await request.form())
    return {name: value.replace("\r\n", "\n") for name, value in fields.items()}


def form_text_by_name_refusing_repeats(form: FormData) -> dict[str, str]:
    """Return the texts of a form by name. Raises `Invalid` (`field_twice`) for an ambiguous, repeated field."""
    texts: dict[str, str] = {}
    for name, value in form.multi_items():
        if name in texts:
            echoed_name = shorten_echo(name)
            raise Invalid(
                f"The form contains the field “{echoed_name}” twice. Nothing was stored.",
                code="field_twice",
                field=echoed_name,
            )
        if isinstance(value, str):
            texts[name] = value
    return texts


# List it before `Transaction`, so that a slowly arriving form occupies no connection.
FormFields = Annotated[dict[str, str], Depends(read_form_fields)]


def is_json_wanted(request: Request) -> bool:
    """Return whether to reply with JSON: under /api, and to clients that accept JSON but not HTML."""
    accept = request.headers.get("accept", "")
    return request.url.path.startswith("/api/") or ("application/json" in accept and "text/html" not in accept)


def is_script_request(request: Request) -> bool:
    """Return whether a script of Easel's pages sent the request, and wants a part of a page."""
    return request.headers.get("x-easel") == "fetch"


def content_disposition_headers(
    slug: str, kind: str, ending: str, *subjects: str, now: datetime, inline: bool = False
) -> dict[str, str]:
    """Return the header that names a download by its campaign, kind, subjects and date in UTC."""
    stem = "-".join([slug, kind, *re.findall("[a-z0-9]+", " ".join(subjects).lower())])[:150]
    disposition = "inline" if inline else "attachment"
    return {"Content-Disposition": f'{disposition}; filename="{stem}-{now.astimezone(UTC):%Y-%m-%d}.{ending}"'}


def refusal_response(
    request: Request, status: int, code: str, message: str, details: Mapping[str, Any] | None = None
) -> Response:
    """Return an error as JSON `{"error": {"code", "message", "details"}}` or as a page, as the client accepts."""
    if LANGUAGE_STATE_KEY not in request.scope.get("state", {}) and not is_researcher_or_api_path(request):
        set_request_language(request)
    message = translate_refusal(chosen_language_of_request(request), code, message)
    if is_json_wanted(request):
        body = {"error": {"code": code, "message": message, "details": dict(details or {})}}
        return JSONResponse(body, status_code=status)
    context = {"status": status, "code": code, "message": message, "details": details or {}}
    if is_researcher_or_api_path(request):
        return render_page(
            request,
            "admin/error.html",
            context | {"back": campaign_path_or_none(request, code)},
            status=status,
        )
    return render_page(request, "error.html", context, status=status)


def is_researcher_or_api_path(request: Request) -> bool:
    """Return whether a URL is for researchers or programs, which get English only."""
    return request.url.path.startswith(("/admin", "/api/"))


def campaign_path_or_none(request: Request, code: str) -> str | None:
    """Return the path of the campaign that a researcher's page belongs to, if that campaign exists."""
    match = re.match(r"/admin/campaigns/[a-z0-9-]+(?=/)", request.url.path)
    return match[0] if match and match[0] != "/admin/campaigns/new" and code != "campaign_not_found" else None


# Refusals for what is stored, or is not: an outdated database would mislead. Others are about the request alone.
STATUSES_OF_STORED_STATE = (Unauthenticated.status, Forbidden.status, NotFound.status, Conflict.status, Gone.status)
CODES_OF_REQUEST_ALONE = ("token_missing", "metrics_token_wrong", Unauthenticated.code)


async def require_database_is_current_primary(request: Request, driver: "session.Driver | None" = None) -> None:
    """Return if what the database says may be told. Raises as `PrimaryProof.require_current_primary` does.

    It asks nothing if the database has one address. Call it before a page that ends a visit or turns a person away.
    """
    proof: session.PrimaryProof | None = request.app.state.primary_proof
    if proof is not None:
        await proof.require_current_primary(driver)


async def handle_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101  (registered for this class only)
    if error.status in STATUSES_OF_STORED_STATE and error.code not in CODES_OF_REQUEST_ALONE:
        try:
            await require_database_is_current_primary(request)
        except session.DATABASE_ERRORS as problem:
            return handle_database_error(request, problem)
    response = refusal_response(request, error.status, error.code, error.message, error.details)
    response.headers.update(retry_after_headers(error))
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def retry_after_headers(refusal: Refusal | None) -> dict[str, str]:
    """Return the header that tells programs how long to wait, if the refusal states that."""
    seconds = refusal.details.get("retry_after_seconds") if refusal else None
    return {} if seconds is None else {"Retry-After": str(seconds)}


MAX_REQUEST_PROBLEMS = 100  # reported for one request; a body can hold a hundred thousand


def handle_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  (registered for this class only)
    if any(problem["type"] == "json_invalid" for problem in error.errors()):
        return unreadable_body_response(request, "This is not JSON")
    problems = [
        {"field": field_path(location), "message": words}
        for location, words in islice(iterate_request_problems(error.errors()), MAX_REQUEST_PROBLEMS)
    ]
    message = "; ".join(f"{problem['field']}: {problem['message']}" for problem in problems)
    return refusal_response(request, 422, "invalid", message, {"fields": problems})


def unreadable_body_response(request: Request, reason: str) -> Response:
    """Return the refusal of a body that is not the JSON or the UTF-8 form that it claims to be."""
    return refusal_response(
        request, 400, "unreadable_body", f"The request cannot be read ({reason}). Nothing was stored."
    )


def handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  (registered for this class only)
    path = request.scope["path"]
    if error.status_code == 404 and request.method == "GET" and path.strip("/") and path.endswith("/"):
        # A path without a host, since the request can claim any host.
        query = request.url.query and f"?{request.url.query}"
        return RedirectResponse(f"/{quote(path.strip('/'))}{query}", status_code=307)
    if error.status_code == 400:
        return unreadable_body_response(request, str(error.detail))
    words = {
        404: ("not_found", "There is no such page."),
        413: ("too_large", str(error.detail)),
        405: ("method_not_allowed", "This address does not support that method."),
    }
    code, message = words.get(error.status_code, ("http_error", str(error.detail)))
    response = refusal_response(request, error.status_code, code, message)
    response.headers.update(error.headers or {})
    if error.status_code == 405:
        response.headers["Allow"] = ", ".join(methods_that_url_accepts(request))
    return response


HTTP_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def methods_that_url_accepts(request: Request) -> list[str]:
    """Return all methods that a URL accepts; Starlette names those of a single route only.

    A URL without a route is a static file, which takes GET. `middleware.HeadAsGet` turns a safe HEAD into GET.
    """
    path = request.scope["path"]
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]

    def is_allowed(method: str) -> bool:
        scope = {"type": "http", "method": method, "path": path, "headers": []}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    methods = [method for method in HTTP_METHODS if is_allowed(method)] or ["GET"]
    head = methods[0] == "GET" and not path.startswith(request.app.state.unsafe_paths)
    return [*methods[:1], "HEAD", *methods[1:]] if head else methods


# PostgreSQL's codes for text that it cannot store.
INVALID_TEXT_CODES = ("22021", "22P05")


def handle_database_error(request: Request, error: Exception) -> Response:
    """Return 503 for a lost connection, no free one, or a restart of PostgreSQL: nothing was stored; retry is safe."""
    if session.sqlstate_of_error_or_empty(error) in INVALID_TEXT_CODES:
        return refusal_response(request, 422, "nul_byte", "The request contains a NUL character. Nothing was stored.")
    if not session.is_database_away(error):
        raise error
    DATABASE_DISK.remember_if_full(error)
    PROCESS_METRICS.count("easel_db_errors_total", session.sqlstate_of_error_or_empty(error) or "connection")
    log.warning("database unavailable: %s", str(error) or type(error).__name__)
    response = refusal_response(
        request,
        503,
        "database_unavailable",
        "The database did not answer. Nothing was lost; please try again in a moment.",
    )
    response.headers["Retry-After"] = "2"
    return response


def handle_client_disconnect(_request: Request, _error: Exception) -> Response:
    """Return a response that no client reads: it disconnected in the middle of its request, which needs no log line."""
    return Response(status_code=400)


def handle_crash(request: Request, _error: Exception) -> Response:
    return refusal_response(
        request,
        500,
        "internal_error",
        "Something went wrong on our side. What you did before is safe; please try again.",
    )


class Problem(BaseModel):
    """Every refusal as JSON; programs rely on `code`, people read `message`."""

    class Error(BaseModel):
        """Code, message and details of a refusal."""

        code: str
        message: str
        details: dict[str, Any]

    error: Error


def openapi_description_of_refusals(codes: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of a route's refusals from their codes by HTTP status."""
    return {status: {"model": Problem, "description": words} for status, words in codes.items()}


def register_error_handlers(app: FastAPI) -> None:
    """Register the handlers that turn exceptions into pages or JSON."""
    app.add_exception_handler(Refusal, handle_refusal)
    app.add_exception_handler(RequestValidationError, handle_invalid_request)
    app.add_exception_handler(HTTPException, handle_http_error)
    for error_class in session.DATABASE_ERRORS:
        app.add_exception_handler(error_class, handle_database_error)
    app.add_exception_handler(ClientDisconnect, handle_client_disconnect)
    app.add_exception_handler(Exception, handle_crash)
