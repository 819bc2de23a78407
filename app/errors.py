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


def join_with_and(words: Sequence[str]) -> str:
    """Return one word or more as `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def shortened_names_that_message_shows(names: Sequence[str]) -> list[str]:
    """Return the names that `join_names` shows, for `details`."""
    return [shorten_echo(name) for name in names[:MAX_NAMES_LISTED]]


def strip_validator_prefix(message: str) -> str:
    """Return a validator's message without the exception's name that Pydantic puts before it."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


class Refusal(Exception):
    """A valid request that Easel refuses. `http.dependencies` shows it as a page or JSON, the CLI as one line."""

    status = 400
    code = "refused"

    def __init__(self, message: str, *, code: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        if code is not None:
            self.code = code


class Invalid(Refusal):
    """The input cannot be read as expected. The message names the field or the line."""

    status = 422
    code = "invalid"


class NotFound(Refusal):
    """There is nothing at this address, or you have no access to it."""

    status = 404
    code = "not_found"


class Conflict(Refusal):
    """The request is valid, but not possible in the current state."""

    status = 409
    code = "conflict"


class Gone(Refusal):
    """The resource existed but has ended, such as a lease that another annotator now holds, or an old token."""

    status = 410
    code = "gone"


class Unauthenticated(Refusal):
    """The request needs a login or an API token."""

    status = 401
    code = "login_required"


class Forbidden(Refusal):
    """The role or the token does not allow the request."""

    status = 403
    code = "forbidden"


class BadGateway(Refusal):
    """Another server that Easel needs cannot be reached or gives an invalid reply."""

    status = 502
    code = "bad_gateway"


class TooLarge(Refusal):
    """The request is larger than the server allows."""

    status = 413
    code = "too_large"


class TooManyAttempts(Refusal):
    """Too many attempts; `details.retry_after_seconds` says how long to wait."""

    status = 429
    code = "too_many_attempts"


class TooManyVisits(TooManyAttempts):
    """Too many new annotators came at once; `details.retry_after_seconds` says how long to wait."""

    code = "too_many_visits"


class Busy(Refusal):
    """The server is busy and stored nothing; `details.retry_after_seconds` says when to try again."""

    status = 503
    code = "busy"


class StartupProblem(Exception):
    """Something on this machine keeps the server from starting; the message is one clear line."""

    code = "startup_problem"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
