"""Number and duration of requests, by the route that answered, for `/metrics`."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.background.metrics import PROCESS_METRICS

CRASH_STATUS = 500
NO_ROUTE = "none"  # no route has this path; it is not repeated, because it may hold anything


class CountRequests:
    """Counts each response and measures the time until its end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = CRASH_STATUS

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        started_at = time.perf_counter()
        try:
            await self.app(scope, receive, send_and_note_status)
        finally:
            route, method = route_template(scope), scope["method"]
            PROCESS_METRICS.observe("easel_http_request_seconds", time.perf_counter() - started_at, route, method)
            PROCESS_METRICS.count("easel_http_requests_total", route, method, f"{status // 100}xx")


def route_template(scope: Scope) -> str:
    """Return the path of the route that answered, with the names of its parameters instead of their values."""
    route = scope.get("route")
    if route is not None:
        return str(route.path)
    return "/static" if scope["path"].startswith("/static/") else NO_ROUTE
