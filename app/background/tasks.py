"""Tasks by key, such as a campaign's row id. A failure is logged, and does not prevent later tasks of the key."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Generic, TypeVar

from cachetools import LRUCache

from app.background.health import CheckResult, log_background_failure, seconds_until_next_try
from app.errors import Refusal

K = TypeVar("K", bound=Hashable)

log = logging.getLogger(__name__)

MAX_FAILED_KEYS = 1_000
FAILURE_SHOWN_SECONDS = 3_600.0  # in `/ready`, unless a later task of the same key succeeded


class KeyedTasks(Generic[K]):
    """The running tasks of one kind, at most one for each key. Iterates over the keys."""

    def __init__(self, name: str, *, retry_seconds: float | None = None) -> None:
        """Make a group without tasks.

        Args:
            name: Its name in `/ready` and in the log.
            retry_seconds: Pause before a task that failed is tried again; it doubles with each failure. None: a task
                that failed has ended. A `Refusal` is never tried again: it would be refused again.

        """
        self.name = name
        self._retry_seconds = retry_seconds
        self._tasks: dict[K, asyncio.Task[None]] = {}
        self._failed: LRUCache[K, tuple[str, float]] = LRUCache(MAX_FAILED_KEYS)  # kind of exception, and when

    def __contains__(self, key: object) -> bool:
        return key in self._tasks

    def __iter__(self) -> Iterator[K]:
        return iter([*self._tasks])

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, key: K, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Start the task of a key that has no running task."""
        assert key not in self._tasks  # noqa: S101  (else the earlier one would go on without an owner)
        task = self._tasks[key] = asyncio.create_task(self._run_with_retries(key, work), name=f"{self.name} {key}")
        task.add_done_callback(lambda _task: self._tasks.pop(key))
        return task

    async def cancel(self, key: K) -> None:
        """Cancel the task of a key, if there is one, and wait until it has ended."""
        if task := self._tasks.get(key):
            if not task.cancelling():  # a second cancellation would interrupt its cleanup
                task.cancel()
            await asyncio.wait([task])

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        await asyncio.gather(*(self.cancel(key) for key in self))

    async def wait(self, *, first_only: bool = False, most_seconds: float | None = None) -> None:
        """Wait until all running tasks have ended, or only the first of them, or a time is over."""
        if self._tasks:
            return_when = asyncio.FIRST_COMPLETED if first_only else asyncio.ALL_COMPLETED
            await asyncio.wait(self._tasks.values(), return_when=return_when, timeout=most_seconds)

    def health_check_result(self) -> CheckResult:
        since = time.monotonic() - FAILURE_SHOWN_SECONDS
        if failed := [kind for kind, at in self._failed.values() if at > since]:
            return CheckResult(ok=False, detail=f"{len(failed)} failed lately ({', '.join(sorted(set(failed)))}).")
        return CheckResult(ok=True, detail=f"{len(self._tasks)} under way." if self._tasks else "")

    async def _run_with_retries(self, key: K, work: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            try:
                await work()
            except Refusal as refusal:
                log_background_failure(log, f"{self.name}: refused for {key}", refusal)
            except Exception as problem:  # noqa: BLE001  (any failure is noted; the next task or try follows)
                failures += 1
                self._remember_failure(key, problem, failures)
                if self._retry_seconds is not None:
                    await asyncio.sleep(seconds_until_next_try(failures, self._retry_seconds))
                    continue
                return
            self._failed.pop(key, None)
            return

    def _remember_failure(self, key: K, problem: Exception, failures: int) -> None:
        kind = type(problem).__name__
        earlier_kind, _ = self._failed.pop(key, ("", 0.0))
        self._failed[key] = kind, time.monotonic()
        again = "" if self._retry_seconds is None else f" (try {failures}; there will be another)"
        log_background_failure(log, f"{self.name}: failed for {key}{again}", problem, with_trace=kind != earlier_kind)
