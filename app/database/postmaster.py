"""PostgreSQL's main process on an embedded cluster: started, watched, started again when it is killed, and stopped."""

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

PORT = 5432  # only part of the socket's file name
START_SECONDS = 60  # recovery after a crash included
STOP_SECONDS = 60
ORPHAN_ENDS = {signal.SIGINT: 15.0, signal.SIGQUIT: 15.0}  # seconds for each signal: whoever started Easel waits
RETRY_SECONDS = 0.2
# What it says while backends of a killed server are still at work, which then end, or where one runs that a killed
# owner started in its last moment.
OLD_ONES_LEFT = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')
log = logging.getLogger(__name__)


class Postmaster:
    """The process and, while it is wanted, a thread that starts it again when it ends unasked.

    `lost` is called from that thread when it could not. PostgreSQL then recovers as after a power cut: what was
    committed is there.
    """

    def __init__(self, command: Sequence[str], cluster: Path, sockets: Path, lost: Callable[[], None]) -> None:
        self.command = command
        self.cluster = cluster
        self.sockets = sockets
        self.lost = lost
        self.log_path = cluster.with_name("postgresql.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.problem: StartupProblem | None = None
        self.stopping = False
        self.turn = threading.Lock()  # to stop it, or to start it again

    @contextmanager
    def running(self) -> Iterator[None]:
        """PostgreSQL answers while the block lasts. Raises StartupProblem, also when it was lost meanwhile."""
        with suppress(FileNotFoundError):
            self.log_path.replace(self.log_path.with_name("postgresql.log.1"))
        # It lives as long as the server: the kernel would end the server with the thread that started it.
        watch = threading.Thread(target=self.watch, name="postmaster", daemon=True)
        try:
            self.launch()
            watch.start()
            yield
        finally:
            self.end()
            if watch.ident is not None:
                watch.join()
            if self.problem is not None:
                raise self.problem

    def watch(self) -> None:
        """Start PostgreSQL again each time that it ends. Give up, and say so, if that cannot be done."""
        try:
            self.keep_running()
        except Exception as problem:  # noqa: BLE001  (a thread that ended in silence would leave the server without one)
            self.give_up(f"PostgreSQL is not watched any more, because of a {type(problem).__name__}.")

    def keep_running(self) -> None:
        while (how := self.ended()) is not None:
            began = time.monotonic()
            try:
                self.launch()
            except (StartupProblem, OSError) as problem:
                self.give_up(f"PostgreSQL ended ({how}) and could not be started again. {problem}")
                return
            if not self.stopping:
                seconds = time.monotonic() - began
                log.warning("PostgreSQL ended (%s). It runs again after %.1f s; what was saved is there.", how, seconds)

    def ended(self) -> str | None:
        """Wait until the process ends; how it did, or None if we stopped it."""
        assert self.process is not None  # noqa: S101  (launched before it is watched)
        code = self.process.wait()
        return None if self.stopping else signal_name(-code) if code < 0 else f"exit code {code}"

    def give_up(self, message: str) -> None:
        with self.turn:
            if self.stopping:
                return
            self.problem = StartupProblem(message)
        self.lost()

    def launch(self) -> None:
        """Start the process and wait until it answers. Raises StartupProblem."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            end_orphan(self.cluster)
            disown_lock_files(self.cluster, self.sockets)
            with self.turn:
                if self.stopping:
                    return
                said_before = self.log_path.stat().st_size if self.log_path.exists() else 0
                self.process = self.started()
            if wait_until_ready(self.process, self.cluster, deadline):
                return
            said = self.log_path.read_bytes()[said_before:].decode(errors="replace")
            if not any(left in said for left in OLD_ONES_LEFT) or time.monotonic() > deadline:
                raise StartupProblem(reason(said, f"PostgreSQL did not start on {self.cluster}"))
            time.sleep(RETRY_SECONDS)

    def started(self) -> subprocess.Popen[bytes]:
        with self.log_path.open("ab") as output:
            # A session of its own: Ctrl-C in the terminal is for us, and we stop the server when we are done.
            return subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
            )

    def end(self) -> None:
        with self.turn:
            self.stopping = True
        if self.process is not None:
            stop(self.process)


def signal_name(number: int) -> str:
    """Return the name of a signal; those for real-time use have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def wait_until_ready(process: subprocess.Popen[bytes], cluster: Path, deadline: float) -> bool:
    """Whether PostgreSQL answers; if not, it has ended. Raises StartupProblem when it takes too long."""
    while not ((now := standing(cluster)) and now.ready and now.pid == process.pid):
        if process.poll() is not None:
            return False
        if time.monotonic() > deadline:
            log_path = cluster.with_name("postgresql.log")
            raise StartupProblem(f"PostgreSQL was not ready after {START_SECONDS} seconds; see {log_path}.")
        time.sleep(0.01)
    return True


def stop(process: subprocess.Popen[bytes]) -> None:
    # Fast; when that takes too long, at once, to be recovered at the next start.
    for how in (signal.SIGINT, signal.SIGQUIT):
        if process.poll() is None:
            process.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
            return


def reason(output: str, what: str) -> str:
    """One line for the person from what a PostgreSQL program printed."""
    if "No space left on device" in output:
        return f"{what}: the disk is full. Free some space, or set EASEL_DATA_DIR to another disk."
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = next(
        (line for line in lines if "FATAL" in line or "error:" in line),
        lines[-1] if lines else "it said nothing",
    )
    return f"{what}: {said}"


# What a server before this one left behind


@dataclass(frozen=True)
class PostmasterFile:
    """What postmaster.pid says."""

    pid: int
    sockets: Path
    ready: bool


def standing(cluster: Path) -> PostmasterFile | None:
    with suppress(OSError, ValueError, IndexError):  # missing, or being written
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        return PostmasterFile(int(lines[0]), Path(lines[4]), len(lines) > 7 and lines[7].strip() == "ready")
    return None


def end_orphan(cluster: Path) -> None:
    """We hold the lock, so a server still running on the cluster has lost its owner: end it."""
    # As `stop` does. Who was killed while it recovered can take very long to shut down in order.
    for how, seconds in ORPHAN_ENDS.items():
        deadline = time.monotonic() + seconds
        while left := orphan(cluster):
            with suppress(ProcessLookupError):
                os.kill(left, how)
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
    if left := orphan(cluster):
        raise StartupProblem(f"A PostgreSQL left over on {cluster} (process {left}) does not end. End it first.")


def orphan(cluster: Path) -> int | None:
    """The process of a server that runs on the cluster."""
    left = standing(cluster)
    return left.pid if left and f"/postgres -D {cluster} " in command_line(left.pid) else None


def disown_lock_files(cluster: Path, sockets: Path) -> None:
    """Make a leftover postmaster.pid harmless when its pid is a zombie, or some other program's by now.

    PostgreSQL would take either for a running server. It knows that the pid of its own parent cannot be one,
    and then still checks, by the shared memory named further down, that no old backend is writing. Without
    the file it could not.
    """
    with suppress(FileNotFoundError):
        pid_file = cluster / "postmaster.pid"
        _, newline, rest = pid_file.read_text().partition("\n")
        pid_file.write_text(f"{os.getpid()}{newline}{rest}")
    (sockets / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)


def command_line(pid: int) -> str:
    """The command of a running process; empty for none, and for a zombie."""
    if sys.platform != "linux":
        ps = ["ps", "-o", "command=", "-p", str(pid)]
        return subprocess.run(ps, check=False, capture_output=True, text=True).stdout
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
