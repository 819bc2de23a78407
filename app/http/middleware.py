"""Middleware of all requests and responses: settings, HEAD, limits of bodies, compression, security headers."""

import re

from python_multipart.multipart import parse_options_header
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.settings import SETTINGS_OF_REQUEST


class SettingsOfApplication:
    """Lets the code behind a request find the settings of its application: they may differ from the environment."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        former = SETTINGS_OF_REQUEST.set(scope["app"].state.settings)
        try:
            await self.app(scope, receive, send)
        finally:
            SETTINGS_OF_REQUEST.reset(former)


class HeadAsGet:
    """Answers HEAD as GET without the body; an endless stream ends after its headers.

    Not below `unsafe_paths`, where GET has effects: a link checker must lease no HIT.
    """

    def __init__(self, app: ASGIApp, *, unsafe_paths: tuple[str, ...]) -> None:
        self.app = app
        self.unsafe_paths = unsafe_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].startswith(self.unsafe_paths):
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})

        await self.app({**scope, "method": "GET"}, receive, send_head)


MAX_SMALL_BODY_BYTES = 1_000_000
FORM_OVERHEAD_BYTES = 100_000
UPLOAD_PATH_PATTERN = re.compile(
    r"/(admin|api/v1)/campaigns/([^/]+/(items|responses|participants|people)(/|$)|(new/file|files)$)"
)
MEDIA_UPLOAD_PATH_PATTERN = re.compile(r"/(admin|api/v1)/campaigns/([^/]+/items(/preview)?|new/file|files)")


def is_multipart_in_utf8(content_type: bytes) -> bool:
    """Return whether a form is in UTF-8. Starlette accepts every codec of Python; some decode to invalid UTF-8."""
    if b"multipart" not in content_type.lower():
        return True
    _, parameters = parse_options_header(content_type)
    return parameters.get(b"charset", b"utf-8").lower() in (b"utf-8", b"utf8")


class BodyLimits:
    """Limits the size of requests: files up to the operator's limits, everything else to a megabyte.

    Forms must be in UTF-8. Both limits are enforced while the body is read, so authentication errors come first.
    """

    def __init__(self, app: ASGIApp, *, upload_mb: int, media_mb: int) -> None:
        self.app = app
        self.upload_bytes = upload_mb * 2**20 + FORM_OVERHEAD_BYTES
        self.media_bytes = media_mb * 2**20

    def max_body_bytes(self, path: str) -> int:
        """Return the most bytes that a request to this path may send."""
        if not UPLOAD_PATH_PATTERN.match(path):
            return MAX_SMALL_BODY_BYTES
        return self.upload_bytes + self.media_bytes * bool(MEDIA_UPLOAD_PATH_PATTERN.fullmatch(path))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.max_body_bytes(scope["path"])
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"").lstrip(b"0")[:20]  # `int` refuses thousands of digits
        received = int(declared) if declared.isdigit() and int(declared) > limit else 0
        too_large = HTTPException(413, f"This is more than the {limit // 10**6} MB allowed here. Nothing was stored.")

        async def receive_within_limit() -> Message:
            nonlocal received
            if not is_multipart_in_utf8(headers.get(b"content-type", b"")):
                raise HTTPException(400, "the form is not in UTF-8")
            if received > limit:
                raise too_large
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise too_large
            return message

        await self.app(scope, receive_within_limit, send)


class CompressPages:
    """Compresses researchers' pages and static files if the browser accepts that.

    Annotators' pages are not compressed: they are small, compression costs time between two HITs, and they hold a
    secret token together with text from their URL, so lengths could reveal the token. Researchers' forms carry a CSRF
    token that is masked differently on each page, so lengths reveal nothing. Event streams, downloads and progress
    reports are sent as they come.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.plain = app
        self.compressed = GZipMiddleware(app, minimum_size=1000, compresslevel=4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.compressed if should_compress(scope) else self.plain)(scope, receive, send)


def should_compress(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    path: str = scope["path"]
    return path.startswith(("/admin", "/static/")) and "/export/" not in path and not path.endswith(".zip")


# Set in the state of a request whose page shows images, sound and video from other servers.
LOADS_HTTPS_STATE_KEY = "loads_https"
# Set in the state of a request whose page these other sites may show in a frame.
FRAME_ORIGINS_STATE_KEY = "frame_origins"
FORM_ORIGINS_STATE_KEY = "form_origins"
FORM_ACTION_DIRECTIVE = "form-action 'self'"

# Paths that search engines must not index.
UNINDEXED_PATHS = ("/admin", "/shared/", "/invitation", "/login")

# Browsers use only https:// for this long, once they have reached the server by it.
STRICT_TRANSPORT_SECONDS = 365 * 86_400

# Previews show a HIT, or the pages of a visit, in frames.
SELF_FRAMED_PATH_PATTERN = re.compile(r"/admin/campaigns/[^/]+/(try/hit|preview)")


class SecurityHeaders:
    """Adds security headers: which sources a page may load, and which pages may frame it.

    No page may be framed, except below `framed_paths`, and by Easel's own pages at `SELF_FRAMED_PATH_PATTERN`. A
    request whose state has `LOADS_HTTPS_STATE_KEY` may load media from other servers, and the sites in
    `FRAME_ORIGINS_STATE_KEY` may frame its page. A policy that the response already has stays. If `https_only`,
    browsers remember to use https:// only.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        form_targets: tuple[str, ...],
        frame_ancestors: tuple[str, ...],
        framed_paths: tuple[str, ...],
        https_only: bool = False,
    ) -> None:
        self.app = app
        self.https_only = https_only
        self.framed_paths = framed_paths
        policy = (
            "default-src 'self'; base-uri 'none'; object-src 'none'; img-src 'self' data:; "
            f"{FORM_ACTION_DIRECTIVE} {' '.join(form_targets)}; frame-ancestors "
        )
        self.frame_ancestors = frame_ancestors
        self.policy_before_ancestors = policy
        self.policy = policy + "'none'"
        self.loads_more = "img-src 'self' data: https:; media-src 'self' https:; "
        self.own_policy = policy + "'self'"
        self.framed_policy = policy + " ".join(frame_ancestors)

    def content_security_policy_of_framed_page(self, origins: tuple[str, ...], *, framed: bool) -> str:
        """Return the policy of a page that its campaign's sites may frame, and a platform's if it may do so anyway."""
        return self.policy_before_ancestors + " ".join((*(self.frame_ancestors if framed else ()), *origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope.setdefault("state", {})
        framed = scope["path"].startswith(self.framed_paths)
        self_framed = SELF_FRAMED_PATH_PATTERN.fullmatch(scope["path"]) is not None
        policy = self.framed_policy if framed else self.own_policy if self_framed else self.policy

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # Browsers apply the first of repeated directives.
                origins: tuple[str, ...] = scope["state"].get(FRAME_ORIGINS_STATE_KEY, ())
                page_policy = self.content_security_policy_of_framed_page(origins, framed=framed) if origins else policy
                if form_origins := scope["state"].get(FORM_ORIGINS_STATE_KEY):
                    allowed = f"{FORM_ACTION_DIRECTIVE} {' '.join(form_origins)}"
                    page_policy = page_policy.replace(FORM_ACTION_DIRECTIVE, allowed)
                extra_sources = self.loads_more if scope["state"].get(LOADS_HTTPS_STATE_KEY) else ""
                headers.setdefault("Content-Security-Policy", extra_sources + page_policy)
                headers["X-Content-Type-Options"] = "nosniff"
                if self.https_only:
                    headers["Strict-Transport-Security"] = f"max-age={STRICT_TRANSPORT_SECONDS}"
                headers.setdefault("Referrer-Policy", "no-referrer")
                if scope["path"].startswith(UNINDEXED_PATHS):
                    headers["X-Robots-Tag"] = "noindex, nofollow"
                cache_control = cache_control_of_path(scope["path"], scope["query_string"])
                headers.setdefault("Cache-Control", cache_control if message["status"] < 400 else "no-store")
                if not (framed or origins):
                    headers["X-Frame-Options"] = "SAMEORIGIN" if self_framed else "DENY"
            await send(message)

        await self.app(scope, receive, send_with_headers)


def cache_control_of_path(path: str, query: bytes) -> str:
    """Return how long browsers may cache a response: a static file whose URL holds its hash forever.

    A script that another one imports has no hash in its URL.
    """
    if not path.startswith("/static/"):
        return "no-store"
    return "max-age=31536000, immutable" if query.startswith(b"v=") else "no-cache"
