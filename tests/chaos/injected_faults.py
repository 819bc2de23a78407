"""Faults of machines: processes that are killed or stand still, connections that break, a full disk, a wrong clock."""

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.chaos.processes import Cluster, ServerProcess
from tests.proxies import Proxy


class FaultInjector:
    """Injects one fault after another, drawn at random.

    Attributes:
        injected: How many of each there were.

    """

    def __init__(
        self, cluster: Cluster, proxy: Proxy, servers: Sequence[ServerProcess], disk: Path | None, rng: Random
    ) -> None:
        self.cluster, self.proxy, self.servers, self.disk, self.rng = cluster, proxy, servers, disk, rng
        self.injected: dict[str, int] = {}
        self.faults: list[Callable[[], Awaitable[None]]] = [
            self.kill_server,
            self.restart_server,
            self.pause_server,
            self.kill_postgresql,
            self.kill_backend,
            self.pause_backend,
            self.cut_connections,
            self.silence_connections,
            self.set_clock,
        ]
        if disk is not None:
            self.faults.append(self.fill_disk)

    async def inject_until(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            await asyncio.sleep(0.5 + 2 * self.rng.random())
            fault = self.rng.choice(self.faults)
            self.injected[fault.__name__] = self.injected.get(fault.__name__, 0) + 1
            await fault()
        self.proxy.cut()  # the network works again, and says that the silent connections are gone
        for server in self.servers:
            server.clock.write_text("0")

    async def kill_server(self) -> None:
        await self.rng.choice(self.servers).restart(signal.SIGKILL)

    async def restart_server(self) -> None:
        await self.rng.choice(self.servers).restart(signal.SIGTERM)

    async def pause_server(self) -> None:
        server = self.rng.choice(self.servers)
        server.send(signal.SIGSTOP)
        await asyncio.sleep(3 * self.rng.random())
        server.send(signal.SIGCONT)

    async def kill_postgresql(self) -> None:
        if (pid := self.cluster.postmaster) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def kill_backend(self) -> None:
        """End one of PostgreSQL's processes, after which it ends all others and recovers."""
        if backends := self.cluster.backends():
            with suppress(ProcessLookupError):
                os.kill(self.rng.choice(backends), signal.SIGKILL)

    async def pause_backend(self) -> None:
        if backends := self.cluster.backends():
            pid = self.rng.choice(backends)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                await asyncio.sleep(3 * self.rng.random())
                os.kill(pid, signal.SIGCONT)

    async def cut_connections(self) -> None:
        self.proxy.cut()

    async def silence_connections(self) -> None:
        """Let the connections of this moment carry nothing any more; the servers must notice that themselves."""
        self.proxy.silence()

    async def set_clock(self) -> None:
        """Put the clock of one server up to two hours ahead or behind."""
        self.rng.choice(self.servers).clock.write_text(str(self.rng.uniform(-7200, 7200)))

    async def fill_disk(self) -> None:
        """Leave not a byte on PostgreSQL's disk for seconds."""
        assert self.disk is not None
        filler = self.disk / "filler"
        try:
            with suppress(OSError), filler.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(shutil.disk_usage(self.disk).free, 1))
            await asyncio.sleep(1 + 3 * self.rng.random())
        finally:
            filler.unlink(missing_ok=True)
        self.cluster.start_again_if_lost()
