"""Spans of OpenTelemetry, if the extra `otel` is installed and OTEL_EXPORTER_OTLP_ENDPOINT is set; else none.

A span of a request is named by its method and route, one of a statement by its command and the first table or function
that it names. No span has an address, an id, a parameter or another value.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

log = logging.getLogger(__name__)

ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
COMMAND = re.compile(r"\s*([A-Za-z]+)")
# Lower-case names of the schema: no value can be among them, since values are parameters.
TARGET = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+(?:ONLY\s+)?([a-z_]+)\b")


@dataclass
class Tracing:
    """The tracer of this process; None if nothing is traced."""

    tracer: Any = None


TRACING = Tracing()


def start_tracing(environment: Mapping[str, str] = os.environ, make_exporter: Callable[[], Any] | None = None) -> None:
    """Trace this process if an endpoint is set. Without the packages that takes, say so in the log.

    Args:
        environment: The environment; OpenTelemetry reads its own variables, such as OTEL_SERVICE_NAME, by itself.
        make_exporter: Makes the exporter of spans; the OTLP exporter if not given.

    """
    if ENDPOINT_VARIABLE not in environment or TRACING.tracer is not None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("%s is set, but OpenTelemetry is not installed: install easel[otel].", ENDPOINT_VARIABLE)
        return
    name = environment.get("OTEL_SERVICE_NAME", "easel")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor((make_exporter or OTLPSpanExporter)()))
    TRACING.tracer = provider.get_tracer("easel")


@lru_cache(2048)
def statement_span_name(sql: str) -> str:
    """Return the command of a statement and the first table or function that it names."""
    command, target = COMMAND.match(sql), TARGET.search(sql)
    return " ".join([*([command[1].upper()] if command else ["SQL"]), *([target[1]] if target else [])])


def add_statement_span(sql: str, seconds: float, problem: BaseException | None = None) -> None:
    """Add the span of a statement that has just ended."""
    if TRACING.tracer is None:
        return
    ended_at = time.time_ns()
    span = TRACING.tracer.start_span(statement_span_name(sql), start_time=ended_at - int(seconds * 1e9))
    span.set_attribute("db.system.name", "postgresql")
    if problem is not None:
        span.set_attribute("error.type", type(problem).__name__)
    span.end(ended_at)
