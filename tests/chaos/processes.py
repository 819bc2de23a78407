"""The processes of a run: PostgreSQL on a small disk of its own, a proxy before it, and servers that can be killed."""

import asyncio
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.database.embedded import run_postgres_and_yield_url
from app.errors import StartupProblem
from tests.chaos.server import CLOCK, COUNTS, FAULTS
from tests.servers import ENVIRONMENT, ROOT, UVICORN, wait_for_address

DISK_MB = 700
GRACE_SECONDS = 20
SECONDS_BETWEEN_STARTS = 1
# As in production, but that little of the log is written ahead on the small disk.
POSTGRES_OPTIONS = {"max_wal_size": "96MB", "min_wal_size": "80MB", "max_connections": "60"}


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a disk of 700 MB on a folder, and yield whether this machine allows that: it takes root."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0755", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Cluster:
    """PostgreSQL with the product's own supervision, which starts it again when it is killed."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.url = ""
        self.is_lost = False
        self._running = ExitStack()

    def start(self) -> None:
        """Start it. Call this from the main thread."""
        self.is_lost = False
        self.url = self._running.enter_context(
            run_postgres_and_yield_url(self.data, POSTGRES_OPTIONS, on_lost=self.note_loss)
        )

    def note_loss(self) -> None:
        self.is_lost = True

    def start_again_if_lost(self) -> None:
        """Start it once more, as an operator does after a disk was full."""
        if self.is_lost:
            self.stop()
            self.start()

    def stop(self) -> None:
        with suppress(StartupProblem):  # it says that PostgreSQL was lost
            self._running.close()

    @property
    def postmaster(self) -> int | None:
        with suppress(OSError, IndexError, ValueError):
            return int((self.data / "postgresql/postmaster.pid").read_text().split()[0])
        return None

    def backends(self) -> list[int]:
        """Return the process ids of PostgreSQL's children."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[1]) == self.postmaster:
                    found.append(int(stat.parent.name))
        return found


@dataclass(frozen=True)
class GivenDatabase:
    """A database that the run does not start, such as that of a cluster of several servers."""

    url: str

    def start_again_if_lost(self) -> None:
        pass


class ServerProcess:
    """One process of the application, which can be killed, stopped for a while, and started again.

    Attributes:
        base: Its address; empty while it does not run.

    """

    def __init__(self, name: str, folder: Path, database_url: str, secret_key: str, faults: Sequence[str]) -> None:
        self.clock, self.output = folder / f"{name}.clock", folder / f"{name}.log"
        self.clock.write_text("0")
        self.output.touch()
        kinds, limited = ("UNTOUCHED", "VISITS"), ("ADDRESS", "CAMPAIGN")
        limits = {f"EASEL_{kind}_PER_{unit}": "1000000" for kind in kinds for unit in limited}
        self._environment = (
            ENVIRONMENT
            | limits
            | {
                "DATABASE_URL": database_url,
                "EASEL_SECRET_KEY": secret_key,
                "EASEL_POOL_SIZE": "8",
                CLOCK: str(self.clock),
                FAULTS: " ".join(faults),
                COUNTS: str(folder),
            }
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.base = ""

    async def start(self) -> None:
        """Start it and wait until it answers, with patience for a database that is away."""
        for _ in range(5):
            self.launch()
            assert self.process is not None
            with suppress(AssertionError):  # it ended, because PostgreSQL does not answer yet
                self.base = await asyncio.to_thread(wait_for_address, self.process, self.output)
                return
            self.process.kill()  # a slow one would outlive the run
            self.process.wait()
            await asyncio.sleep(SECONDS_BETWEEN_STARTS)
        raise AssertionError(f"the server does not start:\n{self.output.read_text()}")

    def launch(self) -> None:
        command = [*UVICORN, "tests.chaos.server:create_app"]
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=out, stderr=out)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def restart(self, how: signal.Signals) -> None:
        """End it by a signal, and start it again on another port."""
        self.base = ""
        self.send(how)
        await asyncio.to_thread(self.wait_or_kill)
        await self.start()

    def wait_or_kill(self) -> None:
        """Wait until it has ended; kill it after some seconds, as orchestrators do."""
        assert self.process is not None
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE_SECONDS)
            return
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
            self.wait_or_kill()


def make_secret_key() -> str:
    return secrets.token_hex(32)
