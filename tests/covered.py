"""A plugin of pytest-xdist: which lines and branches of the application no test runs.

    PYTEST_PLUGINS=tests.covered pytest -n 4

SlipCover rewrites our bytecode as it is imported, so that a line tells once that it ran, and libraries are left alone.
What traces instead, as coverage.py must before Python 3.12, makes the tests take half as long again. SlipCover's own
plugin does not work with the newest pytest, so here is what is needed of it. Servers and commands that tests start do
not count: nothing is watched but the workers.
"""

import io
import json
import os
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import slipcover

from tests.instrumented import WatchingFinder

ENOUGH = 95  # per cent of lines and branches
NEVER_RUN = ["if TYPE_CHECKING:", "@overload", "raise NotImplementedError"]
SEEN: list[dict[str, Any]] = []  # in the controller: by each worker

if WORKER := "PYTEST_XDIST_WORKER" in os.environ:
    # Before anything of ours is imported: pytest reads this plugin before it reads conftest.py.
    WATCHED = slipcover.Slipcover(immediate=True, branch=True, source=["app"], exclude_also=NEVER_RUN)
    FINDER = WatchingFinder(WATCHED, "app")
    PLACE, PLACES = (
        int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")),
        int(os.environ["PYTEST_XDIST_WORKER_COUNT"]),
    )
    FINDER.make_share(Path(__file__).resolve().parents[1] / "app", PLACE, PLACES)
    sys.meta_path.insert(0, FINDER)


def pytest_configure(config: pytest.Config) -> None:
    if not WORKER and not config.getoption("numprocesses", None):
        raise pytest.UsageError("Coverage is counted by the workers of pytest-xdist: say -n and how many.")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Called in the controller when a worker has ended; one that crashed tells nothing."""
    if covered := getattr(node, "workeroutput", {}).get("covered"):
        SEEN.append(json.loads(covered))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if WORKER:
        session.config.workeroutput["covered"] = json.dumps(WATCHED.get_coverage())  # type: ignore[attr-defined]
    elif session.exitstatus == pytest.ExitCode.OK and share() < ENOUGH:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def merged() -> dict[str, Any]:
    return reduce(slipcover.merge_coverage, SEEN)


def share() -> float:
    """Per cent, of lines and branches together."""
    return float(merged()["summary"]["percent_covered"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not SEEN:  # the run ended before any worker did
        return
    table = io.StringIO()
    slipcover.print_coverage(merged(), outfile=table, skip_covered=True)
    terminalreporter.section("coverage")
    terminalreporter.write_line(table.getvalue())
    terminalreporter.write_line(f"Total coverage: {share():.2f} %, of which {ENOUGH} are enough")
