"""Health of background work: results for `/ready`, pauses after failures, and their log lines."""

import logging
from typing import NamedTuple

from app.database.session import DATABASE_ERRORS, is_database_away
from app.errors import Refusal

MAX_PAUSE_SECONDS = 60.0


class CheckResult(NamedTuple):
    """Result of a health check. `detail` is a public sentence for operators: it names no secret, value or campaign."""

    ok: bool
    detail: str = ""


def seconds_until_next_try(failure_count: int, pause_seconds: float) -> float:
    """Return the seconds until the next try: `pause_seconds`, doubled for each failure in a row, up to a minute."""
    doubled = pause_seconds * 2.0 ** min(failure_count, 30)
    return max(pause_seconds, min(doubled, MAX_PAUSE_SECONDS))


def log_background_failure(
    log: logging.Logger, message: str, problem: BaseException, *, with_trace: bool = True
) -> None:
    """Log a failure of background work, with its traceback unless it is a refusal or a lost database."""
    is_expected = isinstance(problem, Refusal) or (isinstance(problem, DATABASE_ERRORS) and is_database_away(problem))
    trace = problem if with_trace and not is_expected else None
    log.warning("%s: %s", message, problem if str(problem) else type(problem).__name__, exc_info=trace)
