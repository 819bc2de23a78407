"""Health of background work and of the database's disk: results for `/ready`, pauses after failures, log lines."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from app.database.session import DATABASE_ERRORS, DISK_FULL_CODE, is_database_away, sqlstate_of_error_or_empty
from app.errors import Refusal

MAX_PAUSE_SECONDS = 60.0
SECONDS_A_FULL_DISK_IS_SHOWN = 60.0  # after the last refused write; while it is full, writes are refused more often


class CheckResult(NamedTuple):
    """Result of a health check. `detail` is a public sentence for operators: it names no secret, value or campaign."""

    ok: bool
    detail: str = ""


class DatabaseDisk:
    """Memory of one process that the database refused a write because its disk was full.

    A probe that wrote would cost a commit each time, and on a nearly full disk the answers need what is left.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_refused_at: float | None = None

    def remember_if_full(self, error: BaseException) -> None:
        """Remember a refused write, given any error."""
        if isinstance(error, DATABASE_ERRORS) and sqlstate_of_error_or_empty(error) == DISK_FULL_CODE:
            self._last_refused_at = self._clock()

    def forget(self) -> None:
        self._last_refused_at = None

    async def check(self) -> CheckResult:
        """Return a failure if the database refused a write in the last minute."""
        if self._last_refused_at is None or self._clock() - self._last_refused_at > SECONDS_A_FULL_DISK_IS_SHOWN:
            return CheckResult(ok=True)
        return CheckResult(ok=False, detail="The disk of the database is full, so nothing is stored. Free some space.")


DATABASE_DISK = DatabaseDisk()


def seconds_until_next_try(failure_count: int, pause_seconds: float) -> float:
    """Return the seconds until the next try: `pause_seconds`, doubled for each failure in a row, up to a minute."""
    doubled = pause_seconds * 2.0 ** min(failure_count, 30)
    return max(pause_seconds, min(doubled, MAX_PAUSE_SECONDS))


def log_background_failure(
    log: logging.Logger, message: str, problem: BaseException, *, with_trace: bool = True
) -> None:
    """Log a failure of background work, with its traceback unless it is a refusal or a lost database."""
    DATABASE_DISK.remember_if_full(problem)
    is_expected = isinstance(problem, Refusal) or (isinstance(problem, DATABASE_ERRORS) and is_database_away(problem))
    trace = problem if with_trace and not is_expected else None
    log.warning("%s: %s", message, problem if str(problem) else type(problem).__name__, exc_info=trace)
