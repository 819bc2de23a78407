"""Every refusal Easel expects, with the HTTP status and the stable code a program can rely on.

A refusal says what happened, what is safe and what to do. The code never changes once released;
the message may. `details` carries what the message names (a line number, a field) for programs.
"""

from collections.abc import Sequence
from typing import Any

MAX_ECHO_CHARACTERS = 80  # characters
MAX_NAMES_LISTED = 20


def shorten_echo(text: str) -> str:
    """What someone sent, as a refusal repeats it: enough to know it again, however long it is."""
    return text if len(text) <= MAX_ECHO_CHARACTERS else text[: MAX_ECHO_CHARACTERS - 1] + "…"


def pluralize(count: int, word: str) -> str:
    """`1 item`, `2 items`, `1,000 items`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def join_names(names: Sequence[str]) -> str:
    """`a, b, c`; of many names the first ones, and how many more there are."""
    more = [f"and {len(names) - MAX_NAMES_LISTED:,} more"] if len(names) > MAX_NAMES_LISTED else []
    return ", ".join([*map(shorten_echo, names[:MAX_NAMES_LISTED]), *more])


def shorten_names(names: Sequence[str]) -> list[str]:
    """For `details`: the names that `listed` says."""
    return [shorten_echo(name) for name in names[:MAX_NAMES_LISTED]]


def strip_validator_prefix(message: str) -> str:
    """Return what a validator says without the name of the exception that Pydantic puts before it."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


class Refusal(Exception):
    """A request that is understood and refused; `web` turns it into a page or JSON, the CLI into one line."""

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
    """The request made sense, but not in the state things are in now."""

    status = 409
    code = "conflict"


class Gone(Refusal):
    """What was asked for existed and is over: an expired lease that was given to someone else, an old token."""

    status = 410
    code = "gone"


class Unauthenticated(Refusal):
    status = 401
    code = "login_required"


class Forbidden(Refusal):
    status = 403
    code = "forbidden"


class BadGateway(Refusal):
    """Another server that is needed for this cannot be reached, or does not answer as it should."""

    status = 502
    code = "bad_gateway"


class TooLarge(Refusal):
    status = 413
    code = "too_large"


class TooManyAttempts(Refusal):
    """For now; `details.retry_after_seconds` says how long."""

    status = 429
    code = "too_many_attempts"


class TooManyVisits(TooManyAttempts):
    code = "too_many_visits"


class Busy(Refusal):
    """For now; `details.retry_after_seconds` says when to try again. Nothing was stored."""

    status = 503
    code = "busy"


class StartupProblem(Exception):
    """Something on this machine keeps the server from starting; the message is one clear line."""

    code = "startup_problem"
