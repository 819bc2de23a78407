"""Refusals, with their HTTP status and a stable code that programs can rely on.

The message of a refusal says what happened, what is safe and what to do. A released code never changes; the message
may. `details` has the facts of the message (a line number, a field) for programs.
"""

from collections.abc import Sequence
from typing import Any

MAX_ECHO_CHARACTERS = 80
MAX_NAMES_LISTED = 20


def shorten_echo(text: str) -> str:
    """Return the beginning of a text that a client sent, short enough for a message."""
    return text if len(text) <= MAX_ECHO_CHARACTERS else text[: MAX_ECHO_CHARACTERS - 1] + "…"


def pluralize(count: int, word: str) -> str:
    """Return a count with its noun: `1 item`, `2 items`, `1,000 items`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def join_names(names: Sequence[str]) -> str:
    """Return names as `a, b, c`; if there are many, the first ones and the number of the others."""
    more = [f"and {len(names) - MAX_NAMES_LISTED:,} more"] if len(names) > MAX_NAMES_LISTED else []
    return ", ".join([*map(shorten_echo, names[:MAX_NAMES_LISTED]), *more])


def shorten_names(names: Sequence[str]) -> list[str]:
    """Return the names that `join_names` shows, for `details`."""
    return [shorten_echo(name) for name in names[:MAX_NAMES_LISTED]]


def strip_validator_prefix(message: str) -> str:
    """Return a validator's message without the exception's name that Pydantic puts before it."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


class Refusal(Exception):
    """A request that is understood and refused; `http.dependencies` makes it a page or JSON, the CLI one line."""

    status = 400
    code = "refused"

    def __init__(self, message: str, *, code: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        if code is not None:
            self.code = code


class Invalid(Refusal):
    """The input cannot be read as what it should be. Name the field or the line in the message."""

    status = 422
    code = "invalid"


class NotFound(Refusal):
    status = 404
    code = "not_found"


class Conflict(Refusal):
    """The request makes sense, but not in the present state."""

    status = 409
    code = "conflict"


class Gone(Refusal):
    """The requested thing existed and is over: an expired lease that another annotator has now, or an old token."""

    status = 410
    code = "gone"


class Unauthenticated(Refusal):
    status = 401
    code = "login_required"


class Forbidden(Refusal):
    status = 403
    code = "forbidden"


class BadGateway(Refusal):
    """Another server that is needed cannot be reached, or gives a wrong answer."""

    status = 502
    code = "bad_gateway"


class TooLarge(Refusal):
    status = 413
    code = "too_large"


class TooManyAttempts(Refusal):
    """Too many attempts; `details.retry_after_seconds` tells how long to wait."""

    status = 429
    code = "too_many_attempts"


class TooManyVisits(TooManyAttempts):
    code = "too_many_visits"


class Busy(Refusal):
    """The server is busy and stored nothing; `details.retry_after_seconds` tells when to try again."""

    status = 503
    code = "busy"


class StartupProblem(Exception):
    """Something on this machine keeps the server from starting; the message is one clear line."""

    code = "startup_problem"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
