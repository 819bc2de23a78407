"""Servers of a chaos run leave nothing behind."""

import sys
from typing import Any

import pytest

from tests.chaos import processes
from tests.chaos.processes import ServerProcess


async def test_a_server_that_is_never_ready_is_ended_before_another_takes_its_place(tmp_path, monkeypatch):
    def give_up(process, said):
        raise AssertionError("the server is not ready")

    monkeypatch.setattr(processes, "UVICORN", [sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(processes, "wait_for_address", give_up)
    monkeypatch.setattr(processes, "SECONDS_BETWEEN_STARTS", 0)
    started: list[Any] = []

    class WatchedServer(ServerProcess):
        def launch(self):
            super().launch()
            started.append(self.process)

    server = WatchedServer("one", tmp_path, "postgresql://none", "secret", [])
    with pytest.raises(AssertionError, match="does not start"):
        await server.start()
    assert len(started) > 1
    assert None not in [process.poll() for process in started]
