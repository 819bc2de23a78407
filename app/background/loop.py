"""A background loop that repeats its work until it is stopped, whatever the work raises."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from app.background.health import CheckResult, log_background_failure, seconds_until_next_try

log = logging.getLogger(__name__)

MAX_ROUND_SECONDS = 900.0  # then `/ready` reports a round that does not end


class BackgroundLoop:
    """One round of work, a pause, the next round. After failures in a row the pauses double."""

    def __init__(
        self, name: str, work: Callable[[], Awaitable[None]], *, pause_seconds: float, wait_first: bool = False
    ) -> None:
        """Make a loop; `start` starts it.

        Args:
            name: Its name in `/ready` and in the log.
            work: One round.
            pause_seconds: Seconds between two rounds.
            wait_first: True to pause before the first round, because a start is busy.

        """
        self.name = name
        self.failures = 0  # in a row
        self._work = work
        self._pause = pause_seconds
        self._wait_first = wait_first
        self._problem = ""
        self._round_began: float | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Cancel the current round and end the loop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def health_check_result(self) -> CheckResult:
        if self._task is None or self._task.done():
            return CheckResult(ok=False, detail="It is not running.")
        if self.failures:
            return CheckResult(
                ok=False, detail=f"Failed {self.failures} times in a row ({self._problem}); tried again."
            )
        seconds = 0.0 if self._round_began is None else time.monotonic() - self._round_began
        if seconds > MAX_ROUND_SECONDS:
            return CheckResult(ok=False, detail=f"A round has been under way for {seconds / 60:.0f} minutes.")
        return CheckResult(ok=True)

    async def _run(self) -> None:
        if self._wait_first:
            await asyncio.sleep(self._pause)
        while True:
            await self._run_round()
            await asyncio.sleep(seconds_until_next_try(self.failures, self._pause))

    async def _run_round(self) -> None:
        self._round_began = time.monotonic()
        try:
            await self._work()
        except asyncio.CancelledError as problem:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._remember_failure(problem)  # the work waited for a task that was cancelled; this loop was not
        except Exception as problem:  # noqa: BLE001  (the next round comes whatever this one raised)
            self._remember_failure(problem)
        else:
            if self.failures:
                log.warning("%s: works again after %d failures", self.name, self.failures)
            self.failures = 0
        finally:
            self._round_began = None

    def _remember_failure(self, problem: BaseException) -> None:
        kind = type(problem).__name__
        new = not self.failures or kind != self._problem
        self.failures, self._problem = self.failures + 1, kind
        seconds = seconds_until_next_try(self.failures, self._pause)
        log_background_failure(log, f"{self.name}: failed, next try in {seconds:g} s", problem, with_trace=new)
