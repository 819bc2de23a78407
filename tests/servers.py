"""A running Easel in a process of its own, under uvicorn."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATIENT_SECONDS = 60  # only a test that fails waits so long; a busy machine takes its time
# It takes a free port itself: one that was looked for beforehand can be another program's a moment later.
UVICORN = [sys.executable, "-m", "uvicorn", "--factory", "app.main:create_app", "--port", "0", "--no-access-log"]


@contextmanager
def serving(environment: Mapping[str, str], said: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process and its address, once it answers; what it says is in the file `said`."""
    with said.open("wb") as out, subprocess.Popen(UVICORN, cwd=ROOT, env=environment, stderr=out) as process:
        try:
            yield process, _address(process, said)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    latest = time.monotonic() + PATIENT_SECONDS
    while not (found := re.search(r"running on (http://[\d.:]+)", said.read_text())):
        assert process.poll() is None, f"the server ended: {said.read_text()}"
        assert time.monotonic() < latest, f"the server is not ready: {said.read_text()}"
        time.sleep(0.02)
    return found[1]


async def hello(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
    """An application without a database."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": b"hello"})
