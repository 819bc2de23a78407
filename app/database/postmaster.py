"""PostgreSQL's main process on an embedded cluster: start, watch, restart after a kill, and stop."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.errors import StartupProblem

SOCKET_PORT = 5432  # only part of the socket's file name
START_TIMEOUT_SECONDS = 60  # recovery after a crash included
STOP_TIMEOUT_SECONDS = 60
ORPHAN_SIGNAL_SECONDS = {signal.SIGINT: 15.0, signal.SIGQUIT: 15.0}  # short, since the start of Easel waits for them
START_RETRY_SECONDS = 0.2
# PostgreSQL's messages while backends of a killed server still run, which end soon, or a server that a killed owner
# started in its last moment.
OLD_BACKENDS_LEFT_MESSAGES = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')
log = logging.getLogger(__name__)


class Postmaster:
    """PostgreSQL's process, and a thread that restarts it when it ends unexpectedly.

    After a restart PostgreSQL recovers as after a power cut: committed data are there. If the restart fails, the thread
    calls `on_lost`.
    """

    def __init__(self, command: Sequence[str], cluster: Path, sockets: Path, on_lost: Callable[[], None]) -> None:
        self.command = command
        self.cluster = cluster
        self.sockets = sockets
        self.on_lost = on_lost
        self.log_path = cluster.with_name("postgresql.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.problem: StartupProblem | None = None
        self.stopping = False
        self.process_lock = threading.Lock()  # to stop it, or to start it again

    @contextmanager
    def run(self) -> Iterator[None]:
        """Run PostgreSQL during the block. Raises StartupProblem, also if it was lost meanwhile."""
        with suppress(FileNotFoundError):
            self.log_path.replace(self.log_path.with_name("postgresql.log.1"))
        # The thread must live as long as the server: the kernel ends the server with the thread that started it.
        watcher = threading.Thread(target=self.restart_until_stopped_or_lost, name="postmaster", daemon=True)
        try:
            self.start_and_wait()
            watcher.start()
            yield
        finally:
            self.stop_process()
            if watcher.ident is not None:
                watcher.join()
            if self.problem is not None:
                raise self.problem

    def restart_until_stopped_or_lost(self) -> None:
        """Restart PostgreSQL each time that it ends; report the loss if that fails."""
        try:
            self.restart_each_time_it_ends()
        except Exception as problem:  # noqa: BLE001  (a thread that ended in silence would leave the server without one)
            self.store_loss_unless_stopping(f"PostgreSQL is no longer watched, because of a {type(problem).__name__}.")

    def restart_each_time_it_ends(self) -> None:
        while (ending := self.wait_for_unplanned_end_or_none()) is not None:
            began = time.monotonic()
            try:
                self.start_and_wait()
            except (StartupProblem, OSError) as problem:
                self.store_loss_unless_stopping(
                    f"PostgreSQL ended ({ending}) and could not be started again. {problem}"
                )
                return
            if not self.stopping:
                seconds = time.monotonic() - began
                log.warning(
                    "PostgreSQL ended (%s). It runs again after %.1f s; what was saved is kept.", ending, seconds
                )

    def wait_for_unplanned_end_or_none(self) -> str | None:
        """Wait until the process ends, and return how it ended, or None if it was stopped on purpose."""
        assert self.process is not None  # noqa: S101  (launched before it is watched)
        code = self.process.wait()
        return None if self.stopping else signal_name(-code) if code < 0 else f"exit code {code}"

    def store_loss_unless_stopping(self, message: str) -> None:
        with self.process_lock:
            if self.stopping:
                return
            self.problem = StartupProblem(message)
        self.on_lost()

    def start_and_wait(self) -> None:
        """Start the process and wait until it answers. Raises StartupProblem."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            stop_orphaned_server_of_cluster(self.cluster)
            neutralise_leftover_lock_files(self.cluster, self.sockets)
            with self.process_lock:
                if self.stopping:
                    return
                log_size = self.log_path.stat().st_size if self.log_path.exists() else 0
                self.process = self.start_process()
            if wait_until_postgres_is_ready_or_ended(self.process, self.cluster, deadline):
                return
            log_output = self.log_path.read_bytes()[log_size:].decode(errors="replace")
            if not any(left in log_output for left in OLD_BACKENDS_LEFT_MESSAGES) or time.monotonic() > deadline:
                raise StartupProblem(
                    failure_message_from_output(log_output, f"PostgreSQL did not start on {self.cluster}")
                )
            time.sleep(START_RETRY_SECONDS)

    def start_process(self) -> subprocess.Popen[bytes]:
        with self.log_path.open("ab") as output:
            # In a new session, so that Ctrl-C in the terminal reaches only Easel, which then stops the server.
            return subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
            )

    def stop_process(self) -> None:
        with self.process_lock:
            self.stopping = True
        if self.process is not None:
            stop_postgres_fast_then_immediately(self.process)


def signal_name(number: int) -> str:
    """Return the name of a signal; those for real-time use have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def wait_until_postgres_is_ready_or_ended(process: subprocess.Popen[bytes], cluster: Path, deadline: float) -> bool:
    """Wait, and return True when PostgreSQL answers, False if it ended. Raises StartupProblem if it takes too long."""
    while not (
        (postmaster_file := read_postmaster_file_or_none(cluster))
        and postmaster_file.ready
        and postmaster_file.pid == process.pid
    ):
        if process.poll() is not None:
            return False
        if time.monotonic() > deadline:
            log_path = cluster.with_name("postgresql.log")
            raise StartupProblem(f"PostgreSQL was not ready after {START_TIMEOUT_SECONDS} seconds; see {log_path}.")
        time.sleep(0.01)
    return True


def stop_postgres_fast_then_immediately(process: subprocess.Popen[bytes]) -> None:
    """Shut PostgreSQL down in the fast mode, or immediately if that takes too long; the next start then recovers."""
    for stop_signal in (signal.SIGINT, signal.SIGQUIT):
        if process.poll() is None:
            process.send_signal(stop_signal)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_SECONDS)
            return


def failure_message_from_output(output: str, failure: str) -> str:
    """Return one line for the operator from the output of a PostgreSQL program."""
    if "No space left on device" in output:
        return f"{failure}: the disk is full. Free some space, or set EASEL_DATA_DIR to another disk."
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    message = next(
        (line for line in lines if "FATAL" in line or "error:" in line), lines[-1] if lines else "it printed no message"
    )
    return f"{failure}: {message}"


# Remains of an earlier server


@dataclass(frozen=True)
class PostmasterFile:
    """Contents of postmaster.pid."""

    pid: int
    sockets: Path
    ready: bool


def read_postmaster_file_or_none(cluster: Path) -> PostmasterFile | None:
    with suppress(OSError, ValueError, IndexError):  # missing, or being written
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        return PostmasterFile(int(lines[0]), Path(lines[4]), len(lines) > 7 and lines[7].strip() == "ready")
    return None


def stop_orphaned_server_of_cluster(cluster: Path) -> None:
    """End a server that still runs on the cluster. Its owner is gone, since this process holds the lock."""
    # As `stop_postgres_fast_then_immediately` does, with shorter limits: a server that was recovering can take very
    # long to shut down.
    for stop_signal, seconds in ORPHAN_SIGNAL_SECONDS.items():
        deadline = time.monotonic() + seconds
        while pid := pid_of_running_server_or_none(cluster):
            with suppress(ProcessLookupError):
                os.kill(pid, stop_signal)
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
    if pid := pid_of_running_server_or_none(cluster):
        raise StartupProblem(f"A PostgreSQL left over on {cluster} (process {pid}) does not end. End it first.")


def pid_of_running_server_or_none(cluster: Path) -> int | None:
    """Return the process id of a server that runs on the cluster, if any."""
    postmaster_file = read_postmaster_file_or_none(cluster)
    return (
        postmaster_file.pid
        if postmaster_file and f"/postgres -D {cluster} " in command_line_of_process_or_empty(postmaster_file.pid)
        else None
    )


def neutralise_leftover_lock_files(cluster: Path, sockets: Path) -> None:
    """Make a leftover postmaster.pid harmless if its pid now belongs to a zombie or to another program.

    PostgreSQL would take either for a running server. It knows that the pid of its own parent cannot be one, and still
    checks by the shared memory named in the file that no old backend is writing. Without the file it could not.
    """
    with suppress(FileNotFoundError):
        pid_file = cluster / "postmaster.pid"
        _, newline, rest = pid_file.read_text().partition("\n")
        pid_file.write_text(f"{os.getpid()}{newline}{rest}")
    (sockets / f".s.PGSQL.{SOCKET_PORT}.lock").unlink(missing_ok=True)


def command_line_of_process_or_empty(pid: int) -> str:
    """Return the command line of a running process; empty for none and for a zombie."""
    if sys.platform != "linux":
        ps = ["ps", "-o", "command=", "-p", str(pid)]
        return subprocess.run(ps, check=False, capture_output=True, text=True).stdout
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
