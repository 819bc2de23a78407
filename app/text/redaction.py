"""Log lines and tracebacks without values: they tell where and why something failed, never with which data.

Messages of exceptions often quote a value: a row's key in PostgreSQL's DETAIL, a parameter of a wrong type, a text that
is no number. Such a value may be the hash of a password, a name, a personal link or a token.
"""

import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

# Classes of PostgreSQL's codes whose messages quote only names of the schema: connections, constraints, transaction
# states, roles, locks, syntax, resources. Their DETAIL lines do quote values, but only the first line is logged.
VALUE_FREE_ERROR_CODES = ("08", "23", "25", "28", "3D", "40", "42", "53", "55", "57", "58")

# Start of a quotation, where a message is cut: a long value may lack its closing quote, and contain quotes itself.
QUOTED_REST = re.compile(r"(?<!\w)[bru]{0,2}['\"`“‘«].*", re.IGNORECASE)

# Exceptions whose messages quote only types and names of the source code.
VALUE_FREE_EXCEPTIONS = (AttributeError, ImportError, ModuleNotFoundError, NameError, TypeError, UnboundLocalError)

# asyncio names the exception of a task that failed, as `exception=ValueError('...')`.
TASK_EXCEPTION = re.compile(r"exception=(\w+)\(.*", re.DOTALL)

CAUSE_HEADING = "\nThe above exception was the direct cause of the following exception:\n\n"
CONTEXT_HEADING = "\nDuring handling of the above exception, another exception occurred:\n\n"
MAX_TRACEBACK_DEPTH = 10


def describe_exception_without_values(error: BaseException) -> str:
    """Return an exception as one line, without the values that its message quotes."""
    error = unwrap_database_error(error)
    kind = type(error)
    if kind.__module__.partition(".")[0] == "app":
        return str(error)  # Easel's own messages quote no secrets
    message = first_line_of_error_message(error)
    code: str = getattr(error, "sqlstate", None) or ""
    if kind not in VALUE_FREE_EXCEPTIONS and not code.startswith(VALUE_FREE_ERROR_CODES):
        message = QUOTED_REST.sub("…", message)
    facts = ", ".join(filter(None, (code, getattr(error, "constraint_name", None))))
    return f"{kind.__name__}{f' ({facts})' if facts else ''}{f': {message}' if message else ''}"


def unwrap_database_error(error: BaseException) -> BaseException:
    """Return asyncpg's exception below those that SQLAlchemy wraps around it."""
    while isinstance(inner := getattr(error, "orig", None), BaseException):
        error = inner
    cause = error.__cause__
    return cause if cause is not None and type(error).__module__.startswith("sqlalchemy.") else error


def first_line_of_error_message(error: BaseException) -> str:
    """Return the first line of an exception's message; PostgreSQL's other lines are DETAIL and CONTEXT."""
    try:
        lines = str(error).splitlines()
    except Exception:  # noqa: BLE001  (a message that cannot be made hides no other exception)
        return ""
    return lines[0] if lines else ""


def format_redacted_traceback(error: BaseException) -> str:
    """Return the traceback of an exception and of its causes, without the values that their messages quote."""
    return "".join(iterate_traceback_parts(error, MAX_TRACEBACK_DEPTH)).rstrip("\n")


def iterate_traceback_parts(error: BaseException, depth: int) -> Iterator[str]:
    earlier, heading = (error.__cause__, CAUSE_HEADING) if error.__cause__ else (error.__context__, CONTEXT_HEADING)
    if earlier is not None and depth and (error.__cause__ or not error.__suppress_context__):
        yield from iterate_traceback_parts(earlier, depth - 1)
        yield heading
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{describe_exception_without_values(error)}\n"
    if isinstance(error, BaseExceptionGroup) and depth:
        for number, member in enumerate(error.exceptions, start=1):
            yield f"\n{number} of {len(error.exceptions)}:\n"
            yield from iterate_traceback_parts(member, depth - 1)


def describe_if_exception(argument: object) -> object:
    """Return an argument of a log line unchanged, or the description of an exception."""
    return describe_exception_without_values(argument) if isinstance(argument, BaseException) else argument


class RedactedRecord(logging.LogRecord):
    """A log record that holds the description of an exception instead of it, so no handler can print its values."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        if isinstance(self.args, tuple):
            self.args = tuple(map(describe_if_exception, self.args))
        if isinstance(self.msg, BaseException):
            self.msg, self.args = describe_exception_without_values(self.msg), None
        if self.name == "asyncio":
            self.msg, self.args = TASK_EXCEPTION.sub(r"exception=\1(…)>", self.getMessage()), None
        if self.exc_info and self.exc_info[1] is not None:
            self.exc_text, self.exc_info = format_redacted_traceback(self.exc_info[1]), None


def print_redacted_traceback(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
    """Print the exception that ends this process; for `sys.excepthook`."""
    print(format_redacted_traceback(error), file=sys.stderr)  # noqa: T201  (as Python itself does)


def print_redacted_thread_traceback(hook_arguments: threading.ExceptHookArgs) -> None:
    """Print the exception that ends a thread; for `threading.excepthook`."""
    if hook_arguments.exc_value is not None and not isinstance(hook_arguments.exc_value, SystemExit):
        print_redacted_traceback(hook_arguments.exc_type, hook_arguments.exc_value, hook_arguments.exc_traceback)


def install_log_redaction() -> None:
    """Keep values out of this process's log, whichever library writes to it."""
    logging.setLogRecordFactory(RedactedRecord)
    sys.excepthook = print_redacted_traceback
    threading.excepthook = print_redacted_thread_traceback
    logging.getLogger("httpx").setLevel(logging.WARNING)  # below, it writes whole addresses, which may hold secrets
