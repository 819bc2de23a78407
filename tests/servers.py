"""A running Easel in processes of its own: the application under uvicorn, or all that `easel serve` starts.

What it says goes to a file, so that nobody waits for a line that never comes.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATIENT_SECONDS = 120  # only a test that fails waits so long; a busy machine takes its time
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("EASEL_", "DATABASE_URL"))}
COMMAND = (sys.executable, "-m", "app.cli", "serve", "--port", "0")
# It takes a free port itself: one that was looked for beforehand can be another program's a moment later.
UVICORN = [sys.executable, "-m", "uvicorn", "--port", "0", "--no-access-log", "--factory"]


@contextmanager
def serving(
    environment: Mapping[str, str], said: Path, application: str = "app.main:create_app"
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a server that logs to the file `said`, and yield its process and address once it answers."""
    with said.open("wb") as out:
        process = subprocess.Popen([*UVICORN, application], cwd=ROOT, env=environment, stderr=out)
    try:
        yield process, wait_for_address(process, said)
    finally:
        assert end_process(process), f"SIGTERM did not end it: {said.read_text()}"


def end_process(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> bool:
    """End a process, if it still runs; whether the signal was enough. Who does not is killed."""
    process.send_signal(how)
    # Asked a second time so, Python says where each of its threads stands.
    for enough, next_ in ((True, signal.SIGABRT), (False, signal.SIGKILL)):
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENT_SECONDS)
            return enough
        process.send_signal(next_)
    process.wait(60)
    return False


def wait_for_address(process: subprocess.Popen[bytes], said: Path) -> str:
    """Wait until an application under uvicorn answers, and return its address."""
    return _wait_for_match(r"running on (http://[\d.:]+)", process, said.read_text)[1]


def _wait_for_match(pattern: str, process: subprocess.Popen[bytes], said: Callable[[], str]) -> re.Match[str]:
    """Wait until the process has printed text that matches, and return the match."""
    latest = time.monotonic() + PATIENT_SECONDS
    while not (found := re.search(pattern, said())):
        assert process.poll() is None, f"the server ended: {said()}"
        assert time.monotonic() < latest, f"the server is not ready: {said()}"
        time.sleep(0.02)
    return found


class EaselServer:
    """A running `easel serve`, and the addresses it printed; `link` is empty when no campaign is running."""

    def __init__(self, data: Path, *arguments: str, command: Sequence[str] = COMMAND, **environment: str) -> None:
        self.data = data
        self.welcome = ""
        self._file = tempfile.NamedTemporaryFile(prefix="easel-said-")  # noqa: SIM115  (closed by `close`)
        self.process = subprocess.Popen(
            [*command, *arguments],
            env=ENVIRONMENT | {"EASEL_DATA_DIR": str(data), "PYTHONFAULTHANDLER": "1"} | environment,
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )
        try:
            self.base = _wait_for_match(r"Easel is running at (\S+)\. ", self.process, self._printed_text)[1]
        except BaseException:  # also when Ctrl-C ends the tests
            self.close()
            raise
        self.welcome = self._printed_text()  # printed at once
        self.link = self._printed(r"http://\S+/link/\S+")

    def _printed_text(self) -> str:
        return Path(self._file.name).read_text()

    def _printed(self, pattern: str) -> str:
        match = re.search(pattern, self.welcome)
        return match[0] if match else ""

    def rest(self) -> str:
        """Return what it printed after its start."""
        return self._printed_text().removeprefix(self.welcome)

    def end(self, how: signal.Signals) -> int:
        if not end_process(self.process, how):
            raise AssertionError(f"{how.name} did not end it:\n{self.rest()}")
        return self.process.returncode

    def close(self) -> None:
        try:
            self.end(signal.SIGTERM)
        finally:
            self._file.close()


@contextmanager
def easel_serving(
    data: Path, *arguments: str, command: Sequence[str] = COMMAND, **environment: str
) -> Iterator[EaselServer]:
    server = EaselServer(data, *arguments, command=command, **environment)
    try:
        yield server
    finally:
        server.close()


async def hello(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
    """An application without a database."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": b"hello"})


async def busy(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
    """The same, but each answer holds Python's lock for a second or so first."""
    sum(range(3 * 10**7))
    await hello(scope, receive, send)
