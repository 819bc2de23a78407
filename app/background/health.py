"""Results for `/ready`, pauses after failures of background work, and how these are logged."""

import logging
from typing import NamedTuple

from app.database.session import DATABASE_ERRORS, is_database_away
from app.errors import Refusal

MAX_PAUSE_SECONDS = 60.0


class CheckResult(NamedTuple):
    """Whether a part of this process works. `detail` is a sentence for operators; everyone can read it, so it names no
    secret, value or campaign.
    """

    ok: bool
    detail: str = ""


def retry_pause_seconds(failures: int, pause_seconds: float) -> float:
    """Return the seconds until the next try: `pause`, doubled for each failure in a row up to a minute."""
    doubled = pause_seconds * 2.0 ** min(failures, 30)
    return max(pause_seconds, min(doubled, MAX_PAUSE_SECONDS))


def log_background_failure(
    log: logging.Logger, message: str, problem: BaseException, *, with_trace: bool = True
) -> None:
    """Log that background work failed: with the traceback, unless it is a refusal or the database is away."""
    is_expected = isinstance(problem, Refusal) or (isinstance(problem, DATABASE_ERRORS) and is_database_away(problem))
    trace = problem if with_trace and not is_expected else None
    log.warning("%s: %s", message, problem if str(problem) else type(problem).__name__, exc_info=trace)
