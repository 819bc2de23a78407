"""Number and duration of requests, by the route that answered, for `/metrics` and the log."""

import secrets
import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.background.metrics import PROCESS_METRICS
from app.text.json_log import REQUEST_ID, REQUEST_LOG

CRASH_STATUS = 500
PLAIN_ROUTES_STATE_KEY = "path_by_plain_endpoint"  # routes without FastAPI, which notes only its own in the scope
NO_ROUTE = "none"  # no route has this path; it is not repeated, because it may hold anything


class MeasureRequests:
    """Counts each response and measures the time until its end; logs it if `logs_requests`.

    A log line has the route with the names of its parameters, never the path or query that was asked for: they hold ids
    of people and keys of links. The response has the id of the line in `X-Request-Id`.
    """

    def __init__(self, app: ASGIApp, *, logs_requests: bool) -> None:
        self.app = app
        self.logs_requests = logs_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = CRASH_STATUS
        request_id = secrets.token_hex(8) if self.logs_requests else None
        REQUEST_ID.set(request_id)

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if request_id is not None:
                    MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        started_at = time.perf_counter()
        try:
            await self.app(scope, receive, send_and_note_status)
        finally:
            seconds, route, method = time.perf_counter() - started_at, route_template(scope), scope["method"]
            PROCESS_METRICS.observe("easel_http_request_seconds", seconds, route, method)
            PROCESS_METRICS.count("easel_http_requests_total", route, method, f"{status // 100}xx")
            if self.logs_requests:
                fields = {"route": route, "method": method, "status": status, "ms": round(1000 * seconds, 1)}
                if slug := scope.get("path_params", {}).get("slug"):
                    fields["campaign"] = slug
                REQUEST_LOG.info("request", extra={"fields": fields})


def route_template(scope: Scope) -> str:
    """Return the path of the route that answered, with the names of its parameters instead of their values."""
    route = scope.get("route")
    if route is not None:
        return str(route.path)
    if path := getattr(scope["app"].state, PLAIN_ROUTES_STATE_KEY, {}).get(scope.get("endpoint")):
        return str(path)
    return "/static" if scope["path"].startswith("/static/") else NO_ROUTE
