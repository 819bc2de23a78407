"""A cluster on this computer: haproxy before three machines, each with etcd, PostgreSQL under Patroni, and Easel."""

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from examples.cluster.machines import Machine, connected_machines
from examples.cluster.services import (
    BALANCER_PORT,
    DATABASE,
    EASEL_PORT,
    PATRONI_PORT,
    Secrets,
    database_url,
    prepare_machine,
    start_haproxy,
)

PATIENCE_SECONDS = 240  # to begin, and to be whole again after a fault


@dataclass(frozen=True)
class Cluster:
    """The running machines, and the addresses by which programs on this computer reach them."""

    machines: Sequence[Machine]
    passwords: Secrets

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{BALANCER_PORT}"

    @property
    def database_url(self) -> str:
        return database_url(self.machines, "easel", self.passwords.easel, DATABASE)

    async def load_members(self) -> list[dict[str, Any]]:
        """Return Patroni's members with their roles and states, as any of them says; none if nobody replies."""
        async with httpx.AsyncClient(timeout=1) as client:
            for machine in self.machines:
                try:
                    reply = await client.get(f"http://{machine.address}:{PATRONI_PORT}/cluster")
                    return list(reply.json()["members"])
                except (httpx.HTTPError, ValueError, KeyError):
                    continue
        return []

    async def find_primary(self) -> Machine:
        """Return the machine whose PostgreSQL accepts writes, waiting for one."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                leaders = [one["name"] for one in await self.load_members() if one["role"] == "leader"]
                for machine in self.machines:
                    if machine.name in leaders:
                        return machine
                await asyncio.sleep(0.5)

    async def switch_over(self) -> None:
        """Ask Patroni for another primary, as an operator does before maintenance."""
        primary = await self.find_primary()
        async with httpx.AsyncClient(timeout=60) as client:
            await client.post(f"http://{primary.address}:{PATRONI_PORT}/switchover", json={"leader": primary.name})

    async def is_whole(self) -> bool:
        """Return whether all PostgreSQL servers replicate, one of them synchronously, and all of Easel is ready."""
        members = await self.load_members()
        if len(members) < len(self.machines) or any(one["state"] not in ("running", "streaming") for one in members):
            return False
        if {"leader", "sync_standby"} - {one["role"] for one in members}:
            return False
        async with httpx.AsyncClient(timeout=2) as client:
            for machine in self.machines:
                try:
                    reply = await client.get(f"http://{machine.address}:{EASEL_PORT}/ready")
                except httpx.HTTPError:
                    return False
                if reply.status_code != 200:
                    return False
        return True

    async def wait_until_whole(self) -> None:
        """Start what has ended, and wait until nothing is missing. Raises `TimeoutError`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await self.is_whole():
                for machine in self.machines:
                    machine.start()
                await asyncio.sleep(1)


@asynccontextmanager
async def running_cluster() -> AsyncIterator[Cluster]:
    """Start a cluster on a temporary folder, and take it away afterwards. Takes root."""
    with ExitStack() as stack:
        folder = stack.enter_context(public_folder())
        machines = stack.enter_context(connected_machines(3, folder))
        cluster = Cluster(machines, Secrets())
        for machine in machines:
            prepare_machine(machine, machines, cluster.passwords)
        for machine in machines:
            machine.start("etcd", "patroni")
        await create_database(cluster)
        balancer = start_haproxy(machines, folder)
        stack.callback(stop_process, balancer)
        await cluster.wait_until_whole()
        yield cluster


@contextmanager
def public_folder() -> Iterator[Path]:
    """Make a temporary folder that PostgreSQL, which runs as another user, may enter."""
    folder = Path(tempfile.mkdtemp(prefix="easel-cluster-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """End a process, and wait for it."""
    process.kill()
    process.wait()


async def create_database(cluster: Cluster) -> None:
    """Create Easel's role and database, once PostgreSQL accepts writes."""
    connection = await connect_as_superuser(cluster)
    try:
        await connection.execute(f"CREATE ROLE easel LOGIN PASSWORD '{cluster.passwords.easel}'")
        await connection.execute(f"CREATE DATABASE {DATABASE} OWNER easel")
    finally:
        await connection.close()


async def connect_as_superuser(cluster: Cluster) -> asyncpg.Connection:
    """Wait for a PostgreSQL that accepts writes, and connect to it."""
    url = database_url(cluster.machines, "postgres", cluster.passwords.postgres, "postgres")
    began = time.monotonic()
    while True:
        try:
            return await asyncpg.connect(f"{url}?target_session_attrs=read-write", timeout=5)
        except (OSError, TimeoutError, asyncpg.PostgresError):
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise
            await asyncio.sleep(1)
