"""Readiness checks of this process, which `/ready` reports to load balancers and operators.

To add a check, call `register_check` on `app.state.readiness` in `main.open_application`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from app.background.ending import PROCESS_IS_ENDING
from app.background.health import DATABASE_DISK, CheckResult
from app.background.loop import BackgroundLoop
from app.background.tasks import KeyedTasks
from app.database.migrate import newest_schema_revision
from app.database.session import DATABASE_ERRORS, ServingConnections

CHECK_TIMEOUT_SECONDS = 3.0  # then a check has failed; a load balancer gives up after about five


SELECT_SCHEMA_REVISION = "SELECT max(version_num) FROM alembic_version"

ReadinessCheck = Callable[[], Awaitable[CheckResult]]


class ReadinessChecks:
    """The checks of one process, by name."""

    def __init__(self, *, seconds: float = CHECK_TIMEOUT_SECONDS) -> None:
        self._seconds = seconds
        self._checks: dict[str, ReadinessCheck] = {}
        self._required: set[str] = set()
        self._running: dict[str, asyncio.Task[CheckResult]] = {}

    def register_check(self, name: str, check: ReadinessCheck, *, is_required: bool = True) -> None:
        """Add a check to the report.

        Args:
            name: Key of the check in the report, such as `database`.
            check: Returns the present state within `CHECK_TIMEOUT_SECONDS`; an exception counts as a failure.
            is_required: True if the process should get no requests while the check fails. Other failures are only
                shown.

        """
        self._checks[name] = check
        if is_required:
            self._required.add(name)

    async def run_and_return_result_by_check(self) -> dict[str, CheckResult]:
        """Run all checks at once and return the result of each, within the time limit."""
        # Several load balancers may ask at once, and again while a check hangs: each check runs once for all of them.
        running_tasks = {name: task for name, task in self._running.items() if not task.done()}
        tasks = self._running = {
            name: running_tasks.get(name) or asyncio.create_task(self._run(check))
            for name, check in self._checks.items()
        }
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._seconds)
        late_result = CheckResult(ok=False, detail=f"No result within {self._seconds:g} seconds.")
        return {name: task.result() if task.done() else late_result for name, task in tasks.items()}

    async def _run(self, check: ReadinessCheck) -> CheckResult:
        try:
            return await check()
        except Exception as problem:  # noqa: BLE001  (a broken check is a failed one, and the report still has the others)
            return CheckResult(ok=False, detail=f"The check failed: {type(problem).__name__}.")

    def names_of_failed_required_checks(self, results: dict[str, CheckResult]) -> list[str]:
        return [name for name, result in results.items() if not result.ok and name in self._required]

    async def stop(self) -> None:
        """Cancel the running checks."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def make_database_check(connections: ServingConnections, *, seconds: float = CHECK_TIMEOUT_SECONDS) -> ReadinessCheck:
    """Return a check that the database answers on one of the connections that annotators use, with this schema."""
    newest = newest_schema_revision()

    async def check() -> CheckResult:
        try:
            async with connections.borrow_autocommit_connection() as connection:
                revision = await connection.fetchval(SELECT_SCHEMA_REVISION, timeout=seconds)
        except TimeoutError:
            return CheckResult(ok=False, detail=f"The database did not answer within {seconds:g} seconds.")
        except DATABASE_ERRORS as problem:
            return CheckResult(ok=False, detail=f"The database does not answer: {type(problem).__name__}.")
        if revision != newest:
            return CheckResult(ok=False, detail=f"The schema is at {revision}, and this process needs {newest}.")
        return CheckResult(ok=True)

    return check


def checks_of_server(connections: ServingConnections) -> ReadinessChecks:
    """Return the checks that every process must pass: it is not stopping, and the database answers. A full disk is
    only shown: all servers share the database, so no other one could take over, and reading works.
    """
    checks = ReadinessChecks()
    checks.register_check("accepting", server_stopping_check_result)
    checks.register_check("database", make_database_check(connections))
    DATABASE_DISK.forget()  # another server may have ended in this process
    checks.register_check("storing", DATABASE_DISK.check, is_required=False)
    return checks


async def server_stopping_check_result() -> CheckResult:
    return CheckResult(ok=False, detail="The server stops.") if PROCESS_IS_ENDING.is_set() else CheckResult(ok=True)


def build_readiness_report_body(results: dict[str, CheckResult], failed_names: list[str]) -> dict[str, Any]:
    """Return the body of `/ready`: the state, each check, and the error of a process that is not ready."""
    checks = {name: {"ok": result.ok, "detail": result.detail} for name, result in results.items()}
    if not failed_names:
        return {"status": "ready", "checks": checks}
    message = " ".join(f"{name}: {results[name].detail}" for name in failed_names)
    error = {"code": "not_ready", "message": message, "details": {"failed": failed_names}}
    return {"status": "not_ready", "checks": checks, "error": error}


def make_check_of_work(work: BackgroundLoop | KeyedTasks[Any]) -> ReadinessCheck:
    """Return the check of a background loop or group of tasks for `/ready`."""

    async def check() -> CheckResult:
        return work.health_check_result()

    return check
