"""What all routes share: the request's transaction and clock, its language, pages, page-or-JSON errors."""

import logging
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address
from itertools import chain, islice
from typing import Annotated, Any, TypeVar
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

from app.database import session
from app.errors import Invalid, NotFound, Refusal, shorten_echo, strip_validator_prefix
from app.field_flags import MAX_ROW_ID, parse_row_id
from app.http.languages.catalogue import BROWSER_LANGUAGE, ENGLISH, LANGUAGES, negotiate_language
from app.http.languages.refusals import translate_refusal
from app.http.middleware import LOADS_HTTPS_STATE_KEY
from app.http.templating import LANGUAGE_PARAMETER, template_environment
from app.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")


# Dependencies are async although they wait for nothing: FastAPI sends plain functions to a thread.
async def get_database(request: Request) -> AsyncEngine:
    database: AsyncEngine = request.app.state.database
    return database


async def get_reading_database(request: Request) -> AsyncEngine:
    database: AsyncEngine = request.app.state.reading_database
    return database


async def get_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def get_transaction(database: "Database") -> AsyncIterator[AsyncConnection]:
    async with database.begin() as connection:
        yield connection


def utc_now() -> datetime:
    return datetime.now(UTC)


async def get_now() -> datetime:
    return utc_now()


async def get_serving_connection(request: Request) -> AsyncIterator[session.Driver]:
    await request.body()  # kept by the request; however slowly it comes in, nobody else waits for it
    connections: session.ServingConnections = request.app.state.serving_connections
    campaign = await request.app.state.names.find_campaign_id(connections, request.path_params)
    async with connections.borrow(campaign) as connection:
        yield connection


def validate_row_id(raw: object) -> object:
    """Return the number of a row as it stands in an address. Raises `NotFound` for what is written in another way, such
    as `+1`, `01` or digits of another script: no page has such an address.
    """
    if isinstance(raw, str) and parse_row_id(raw) is None:
        raise NotFound("There is no such page.")
    return raw


RowId = Annotated[int, BeforeValidator(validate_row_id), PathParameter(ge=1, le=MAX_ROW_ID)]
Database = Annotated[AsyncEngine, Depends(get_database)]
# A pool of its own for downloads: whoever reads one slowly keeps other downloads waiting, but no annotator.
ReadingDatabase = Annotated[AsyncEngine, Depends(get_reading_database)]
AppSettings = Annotated[Settings, Depends(get_settings)]
# Ask for `Now` after it: the time is then not that of before a wait.
ServingConnection = Annotated[session.Driver, Depends(get_serving_connection, scope="function")]
# scope="function": the transaction commits before the reply is sent, so a failed commit is never answered with 200.
Transaction = Annotated[AsyncConnection, Depends(get_transaction, scope="function")]
Now = Annotated[datetime, Depends(get_now)]


def render_page(
    request: Request,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """A rendered template, in the language that was chosen for this request."""
    template_responses = template_responses_for(request_language(request))
    return template_responses.TemplateResponse(
        request, template, dict(context or {}), status_code=status, headers=headers
    )


@cache
def template_responses_for(language: str) -> Jinja2Templates:
    """What makes responses of templates in a language."""
    return Jinja2Templates(env=template_environment(language))


LANGUAGE_STATE_KEY = "language"  # in a request's state


def request_language(request: Request) -> str:
    """The language that was chosen for a request, else English."""
    return str(request.scope.get("state", {}).get(LANGUAGE_STATE_KEY, ENGLISH))


def choose_request_language(request: Request, campaign: Any = None) -> None:
    """Answer this request in the language of a campaign, or in the one that its reader chose, or their browser."""
    language = campaign.language if campaign else BROWSER_LANGUAGE
    if language == BROWSER_LANGUAGE:
        requested_language = request.query_params.get(LANGUAGE_PARAMETER, "")
        language = (
            requested_language
            if requested_language in LANGUAGES
            else negotiate_language(request.headers.get("accept-language", ""))
        )
    request.scope.setdefault("state", {})[LANGUAGE_STATE_KEY] = language


def allow_external_media(request: Request, campaign: Any) -> None:
    """Let a page load images, sound and video from other servers, if its campaign's items may lie there."""
    if campaign.https_media:
        request.scope["state"][LOADS_HTTPS_STATE_KEY] = True


def request_base_url(request: Request) -> str:
    """Where people reach this server: the operator's setting, else the name that this request used, if it is ours.

    A request can claim any name. Under one that is not known, the address that it came in on stands in links.
    """
    settings: Settings = request.app.state.settings
    if settings.public_url:
        return settings.public_url
    host, port = request.scope.get("server") or (settings.host, settings.port)
    name, machine = request.url.hostname or "", socket.gethostname().lower()
    if name in {host, settings.host, machine, f"{machine}.local", "localhost", "127.0.0.1", "::1"}:
        return str(request.base_url).rstrip("/")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


IPV6_CLIENT_PREFIX_BITS = 64  # of an IPv6 address: the rest is everyone's own to choose


def client_network(request: Request) -> str:
    """From where a request comes, as far as limits care. Empty when nobody can tell."""
    return network_of_host(request.client.host) if request.client else ""


@lru_cache(maxsize=4096)
def network_of_host(host: str) -> str:
    """An IPv4 address, or the network of an IPv6 one; empty for what is neither."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((address, IPV6_CLIENT_PREFIX_BITS), strict=False))


async def read_form_fields(request: Request) -> dict[str, str]:
    """The fields of a form. Browsers end the lines of a text area by CR LF, as nothing else here does."""
    fields = form_texts_by_name(await request.form())
    return {name: value.replace("\r\n", "\n") for name, value in fields.items()}


def form_texts_by_name(form: FormData) -> dict[str, str]:
    """The texts of a form by their names. Raises `Invalid` (`field_twice`): of two, nobody knows which was meant."""
    texts: dict[str, str] = {}
    for name, value in form.multi_items():
        if name in texts:
            echoed_name = shorten_echo(name)
            raise Invalid(
                f"The form holds the field “{echoed_name}” twice. Nothing was stored.",
                code="field_twice",
                field=echoed_name,
            )
        if isinstance(value, str):
            texts[name] = value
    return texts


# Stands before `Transaction`: however slowly a form comes in, it must not keep a connection from others.
FormFields = Annotated[dict[str, str], Depends(read_form_fields)]


def is_json_wanted(request: Request) -> bool:
    """Programs get JSON: everything under /api, and whoever accepts JSON but not HTML."""
    accept = request.headers.get("accept", "")
    return request.url.path.startswith("/api/") or ("application/json" in accept and "text/html" not in accept)


def is_script_request(request: Request) -> bool:
    """Whether one of our scripts asks, which takes a part of a page; else a browser shows a whole one."""
    return request.headers.get("x-easel") == "fetch"


def download_headers(
    slug: str, kind: str, ending: str, *subjects: str, now: datetime, inline: bool = False
) -> dict[str, str]:
    """Return the header that names a download by its campaign, its kind, what it is about, and its date in UTC."""
    stem = "-".join([slug, kind, *re.findall("[a-z0-9]+", " ".join(subjects).lower())])[:150]
    disposition = "inline" if inline else "attachment"
    return {"Content-Disposition": f'{disposition}; filename="{stem}-{now.astimezone(UTC):%Y-%m-%d}.{ending}"'}


def refusal_response(
    request: Request, status: int, code: str, message: str, details: Mapping[str, Any] | None = None
) -> Response:
    """An error as JSON `{"error": {"code", "message", "details"}}` or as a page, whichever the request asked for."""
    if LANGUAGE_STATE_KEY not in request.scope.get("state", {}) and not is_researcher_page(request):
        choose_request_language(request)
    message = translate_refusal(request_language(request), code, message)
    if is_json_wanted(request):
        body = {"error": {"code": code, "message": message, "details": dict(details or {})}}
        return JSONResponse(body, status_code=status)
    context = {"status": status, "code": code, "message": message, "details": details or {}}
    if is_researcher_page(request):
        return render_page(
            request, "admin/error.html", context | {"back": campaign_path_of_request(request, code)}, status=status
        )
    return render_page(request, "error.html", context, status=status)


def is_researcher_page(request: Request) -> bool:
    """Whether a page is for researchers, or for programs: these are in English."""
    return request.url.path.startswith(("/admin", "/api/"))


def campaign_path_of_request(request: Request, code: str) -> str | None:
    """The campaign that a researcher's page is about, unless there is none of that name."""
    match = re.match(r"/admin/campaigns/[a-z0-9-]+(?=/)", request.url.path)
    return match[0] if match and match[0] != "/admin/campaigns/new" and code != "campaign_not_found" else None


def handle_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101  (registered for this class only)
    response = refusal_response(request, error.status, error.code, error.message, error.details)
    response.headers.update(retry_after_headers(error))
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def retry_after_headers(refusal: Refusal | None) -> dict[str, str]:
    """The header that tells programs how long to wait, when the refusal knows it."""
    seconds = refusal.details.get("retry_after_seconds") if refusal else None
    return {} if seconds is None else {"Retry-After": str(seconds)}


MAX_REQUEST_PROBLEMS = 100  # of one request; a body has room for a hundred thousand


def handle_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  (registered for this class only)
    if any(problem["type"] == "json_invalid" for problem in error.errors()):
        return unreadable_body_response(request, "This is not JSON")
    problem_pairs = islice(chain.from_iterable(map(validation_problems, error.errors())), MAX_REQUEST_PROBLEMS)
    problems = [
        {"field": field_path(place), "message": strip_validator_prefix(words)} for place, words in problem_pairs
    ]
    message = "; ".join(f"{problem['field']}: {problem['message']}" for problem in problems)
    return refusal_response(request, 422, "invalid", message, {"fields": problems})


def validation_problems(problem: Mapping[str, Any]) -> Iterator[tuple[Sequence[int | str], str]]:
    """Yield where something is wrong, and what. A check of several settings together names the one that is meant in
    its context (`field`, of a criterion with its `number`); that of a design's settings has each of them (`problems`).
    """
    location, context = problem["loc"], problem.get("ctx", {})
    problems_by_field: Mapping[str, str] = context.get("problems", {})
    for name, words in problems_by_field.items():
        yield (*location, name), words
    if not problems_by_field:
        yield (*location, *(context[part] for part in ("number", "field") if part in context)), problem["msg"]


def field_path(location: Sequence[int | str]) -> str:
    """`scores.v7`: where in a body something is wrong; a field may have any name, and one of any length."""
    return ".".join(shorten_echo(str(part)) for part in location if part != "body") or "body"


def unreadable_body_response(request: Request, reason: str) -> Response:
    """Neither the JSON nor the form in UTF-8 that was announced."""
    return refusal_response(
        request, 400, "unreadable_body", f"What was sent cannot be read ({reason}). Nothing was stored."
    )


def handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  (registered for this class only)
    path = request.scope["path"]
    if error.status_code == 404 and request.method == "GET" and path.strip("/") and path.endswith("/"):
        # Within this server, whatever name the request gave it
        query = request.url.query and f"?{request.url.query}"
        return RedirectResponse(f"/{quote(path.strip('/'))}{query}", status_code=307)
    if error.status_code == 400:
        return unreadable_body_response(request, str(error.detail))
    words = {
        404: ("not_found", "There is no such page."),
        413: ("too_large", str(error.detail)),
        405: ("method_not_allowed", "This address does not take that method."),
    }
    code, message = words.get(error.status_code, ("http_error", str(error.detail)))
    response = refusal_response(request, error.status_code, code, message)
    response.headers.update(error.headers or {})
    if error.status_code == 405:
        response.headers["Allow"] = ", ".join(allowed_methods(request))
    return response


HTTP_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def allowed_methods(request: Request) -> list[str]:
    """All that the address of a request takes; Starlette names the methods of one of its routes alone.

    What no route has is a static file, which is only read. HEAD is taken where `middleware.Heads` makes it a GET.
    """
    path = request.scope["path"]
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]

    def is_allowed(method: str) -> bool:
        scope = {"type": "http", "method": method, "path": path, "headers": []}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    methods = [method for method in HTTP_METHODS if is_allowed(method)] or ["GET"]
    head = methods[0] == "GET" and not path.startswith(request.app.state.unsafe_paths)
    return [*methods[:1], "HEAD", *methods[1:]] if head else methods


# PostgreSQL's codes for text that it cannot hold.
INVALID_TEXT_CODES = ("22021", "22P05")


def handle_database_error(request: Request, error: Exception) -> Response:
    """A lost connection, none free, or a restart of PostgreSQL: nothing was stored, and trying again is safe."""
    if session.sqlstate_of(error) in INVALID_TEXT_CODES:
        return refusal_response(
            request, 422, "nul_byte", "There is a NUL character in what was sent. Nothing was stored."
        )
    if not session.is_database_away(error):
        raise error
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
    """Whoever sent half a request is gone: nobody reads this, and it is nothing to log."""
    return Response(status_code=400)


def handle_crash(request: Request, _error: Exception) -> Response:
    return refusal_response(
        request,
        500,
        "internal_error",
        "Something went wrong on our side. What you did before is safe; please try again.",
    )


class Problem(BaseModel):
    """What every refusal looks like as JSON; programs rely on `code`, people read `message`."""

    class Error(BaseModel):
        """The refusal itself."""

        code: str
        message: str
        details: dict[str, Any]

    error: Error


def document_refusals(codes: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """For OpenAPI: the codes a route refuses with, by HTTP status."""
    return {status: {"model": Problem, "description": words} for status, words in codes.items()}


def register_error_handlers(app: FastAPI) -> None:
    """Register the error pages."""
    app.add_exception_handler(Refusal, handle_refusal)
    app.add_exception_handler(RequestValidationError, handle_invalid_request)
    app.add_exception_handler(HTTPException, handle_http_error)
    for trouble in session.DATABASE_ERRORS:
        app.add_exception_handler(trouble, handle_database_error)
    app.add_exception_handler(ClientDisconnect, handle_client_disconnect)
    app.add_exception_handler(Exception, handle_crash)
