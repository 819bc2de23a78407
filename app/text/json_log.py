"""Log lines as JSON objects, for programs that collect logs."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

REQUEST_ID: ContextVar[str | None] = ContextVar("REQUEST_ID", default=None)
REQUEST_LOG = logging.getLogger("easel.requests")


class JsonFormatter(logging.Formatter):
    """Formats a record as one line: time, level, logger, event, and the `fields` of the record, if it has any.

    The records hold no values of exceptions (see `redaction`), and no part of Easel logs an id of a person.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if request_id := REQUEST_ID.get():
            line["request_id"] = request_id
        line |= getattr(record, "fields", {})
        if record.exc_text:
            line["trace"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


JSON_LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonFormatter}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {REQUEST_LOG.name: {"level": "INFO"}},
}
"""Configuration for `logging.config.dictConfig`."""
