"""No server that a test starts outlives it."""

import signal
import subprocess
import sys

import pytest

from tests import servers

pytestmark = pytest.mark.slow

DEAF = (
    "import signal, time\n"
    "for number in (signal.SIGTERM, signal.SIGABRT): signal.signal(number, signal.SIG_IGN)\n"
    "print('deaf', flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def _out_of_patience(monkeypatch):
    monkeypatch.setattr(servers, "PATIENT_SECONDS", 0)


@pytest.fixture
def started(monkeypatch):
    """Return a list that records every started process."""
    processes = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments, **how):
            super().__init__(*arguments, **how)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    yield processes
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("_out_of_patience")
def test_a_server_that_does_not_become_ready_is_ended(started, tmp_path):
    with pytest.raises(AssertionError):
        servers.EaselServer(tmp_path, command=(sys.executable, "-c", DEAF))
    assert [process.poll() is None for process in started] == [False]


@pytest.mark.usefixtures("_out_of_patience")
def test_a_server_that_hears_no_signal_is_killed(started):
    process = subprocess.Popen((sys.executable, "-c", DEAF), stdout=subprocess.PIPE)
    assert process.stdout
    with process.stdout as said:
        said.readline()
        assert not servers.end_process(process)
    assert process.returncode == -signal.SIGKILL
