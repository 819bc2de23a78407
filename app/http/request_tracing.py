"""Spans of requests, in the trace that the caller's `traceparent` names."""

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.request_metrics import CRASH_STATUS, route_template

PROPAGATED_HEADERS = ("traceparent", "tracestate")


class TraceRequests:
    """Adds a span for each request; only in a process that is traced."""

    def __init__(self, app: ASGIApp, *, tracer: Any) -> None:
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.app, self.tracer = app, tracer
        self.kind, self.error, self.propagator = SpanKind.SERVER, StatusCode.ERROR, TraceContextTextMapPropagator()

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

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        carrier = {name: headers[name] for name in PROPAGATED_HEADERS if name in headers}
        with self.tracer.start_as_current_span(
            scope["method"],
            context=self.propagator.extract(carrier),
            kind=self.kind,
            record_exception=False,  # neither the events nor the status may have an exception's text: it holds values
            set_status_on_exception=False,
        ) as span:
            try:
                await self.app(scope, receive, send_and_note_status)
            except Exception as problem:
                span.set_status(self.error)
                span.set_attribute("error.type", type(problem).__name__)
                raise
            finally:
                route = route_template(scope)
                span.update_name(f"{scope['method']} {route}")
                span.set_attributes({"http.route": route, "http.response.status_code": status})
