"""Machines of a data centre on one computer: network namespaces, which can lose power, hang, or be killed."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

BRIDGE = "easel-lan"
GATEWAY = "10.87.0.1"  # the address of this computer, on which the load balancer runs
NEEDED_PROGRAMS = ("ip", "setpriv", "etcd", "patroni", "haproxy")


def find_missing_requirements() -> list[str]:
    """Return what this computer lacks to run the cluster, in words; empty if nothing is missing."""
    missing = [f"the program {name}" for name in NEEDED_PROGRAMS if not shutil.which(name)]
    if not find_postgres_programs():
        missing.append("PostgreSQL's server programs under /usr/lib/postgresql")
    if os.geteuid() != 0:
        missing.append("root, for network namespaces")
    elif not missing and not _can_add_namespace():
        missing.append("a kernel that has network namespaces, virtual Ethernet and bridges")
    return missing


def find_postgres_programs() -> Path | None:
    """Return the folder with the newest installed PostgreSQL's `initdb` and `postgres`, as Debian places them."""
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def run_or_raise(*command: str) -> None:
    """Run a program. Raises `RuntimeError` with what it said if it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def _can_add_namespace() -> bool:
    name = f"easel-try-{os.getpid()}"
    try:
        run_or_raise("ip", "netns", "add", name)
        run_or_raise("ip", "-n", name, "link", "add", "name", "one", "type", "veth", "peer", "name", "two")
        run_or_raise("ip", "-n", name, "link", "add", "name", "lan", "type", "bridge")
    except RuntimeError:
        return False
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return True


@dataclass
class Machine:
    """A machine on the bridge, with its own address, disk and processes.

    Attributes:
        number: 1, 2, 3; the last part of its address is ten more.
        folder: Its disk.
        commands: What runs on it, by name, each with its environment and its user.

    """

    number: int
    folder: Path
    commands: dict[str, tuple[Sequence[str], Mapping[str, str], str]] = field(default_factory=dict)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"easel{self.number}"

    @property
    def address(self) -> str:
        return f"10.87.0.{10 + self.number}"

    @property
    def _cable(self) -> str:
        return f"{self.name}-lan"

    def connect(self) -> None:
        """Make its namespace, and plug it into the bridge."""
        inside = ["ip", "-n", self.name]
        run_or_raise("ip", "netns", "add", self.name)
        run_or_raise("ip", "link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run_or_raise("ip", "link", "set", self._cable, "master", BRIDGE, "up")
        run_or_raise(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        run_or_raise(*inside, "link", "set", "eth0", "up")
        run_or_raise(*inside, "link", "set", "lo", "up")

    def start(self, *programs: str) -> None:
        """Start those programs, or all, that do not run; the output of each is appended to a file of its own."""
        for program in programs or self.commands:
            if program in self._running and self._running[program].poll() is None:
                continue
            command, environment, user = self.commands[program]
            entered = ["ip", "netns", "exec", self.name]
            lowered = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user != "root" else []
            with (self.folder / f"{program}.log").open("ab") as out:
                self._running[program] = subprocess.Popen(
                    [*entered, *lowered, *command],
                    env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                    start_new_session=True, cwd=self.folder,
                )  # fmt: skip

    def process_ids(self, named: str = "") -> list[int]:
        """Return the ids of its processes, or only of those whose command line contains a text."""
        listed = subprocess.run(["ip", "netns", "pids", self.name], check=False, capture_output=True, text=True)
        ids = [int(line) for line in listed.stdout.split()]
        return [one for one in ids if named in _command_line(one)]

    def send(self, number: signal.Signals, named: str = "") -> None:
        """Send a signal to all of its processes, or only to those whose command line contains a text."""
        for one in self.process_ids(named):
            with suppress(ProcessLookupError):
                os.kill(one, number)

    def cut_power(self) -> None:
        """Drop all packets from and to it at once, and kill what runs on it: nobody is told that it is gone."""
        run_or_raise("ip", "link", "set", self._cable, "down")
        self.kill()

    def restore_power(self) -> None:
        """Connect it again and start what runs on it, as at boot."""
        run_or_raise("ip", "link", "set", self._cable, "up")
        self.start()

    def kill(self) -> None:
        """Kill all that runs on it."""
        while self.process_ids():
            self.send(signal.SIGKILL)
            for process in self._running.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
        for process in self._running.values():  # also of those that ended before they were waited for
            process.wait(10)
        self._running.clear()

    def remove(self) -> None:
        """Kill all that runs on it, and take its namespace away."""
        self.kill()
        subprocess.run(["ip", "link", "del", self._cable], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


def _command_line(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def connected_machines(count: int, folder: Path) -> Iterator[list[Machine]]:
    """Connect so many machines with this computer by a bridge; take all of it away afterwards."""
    machines = [Machine(number, folder / f"machine{number}") for number in range(1, count + 1)]
    try:
        run_or_raise("ip", "link", "add", BRIDGE, "type", "bridge")
        run_or_raise("ip", "addr", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        run_or_raise("ip", "link", "set", BRIDGE, "up")
        for machine in machines:
            machine.folder.mkdir(mode=0o755)
            machine.connect()
        yield machines
    finally:
        for machine in machines:
            machine.remove()
        subprocess.run(["ip", "link", "del", BRIDGE], check=False, capture_output=True)
