"""Results for `/ready`, pauses after failures of background work, and how these are logged."""

import logging
from typing import NamedTuple

from app.database.session import TROUBLE, is_away
from app.errors import Refusal

LONGEST_PAUSE_SECONDS = 60.0


class CheckResult(NamedTuple):
    """Whether a part of this process works. `detail` is a sentence for operators; everyone can read it, so it names no
    secret, value or campaign.
    """

    ok: bool
    detail: str = ""


def pause_after(failures: int, pause: float) -> float:
    """Return the seconds until the next try: `pause`, doubled for each failure in a row up to a minute."""
    doubled = pause * 2.0 ** min(failures, 30)
    return max(pause, min(doubled, LONGEST_PAUSE_SECONDS))


def log_failure(log: logging.Logger, what: str, problem: BaseException, *, with_trace: bool = True) -> None:
    """Log that background work failed: with the traceback, unless it is a refusal or the database is away."""
    known = isinstance(problem, Refusal) or (isinstance(problem, TROUBLE) and is_away(problem))
    trace = problem if with_trace and not known else None
    log.warning("%s: %s", what, problem if str(problem) else type(problem).__name__, exc_info=trace)
