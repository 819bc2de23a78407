"""A TCP proxy before PostgreSQL that fails as networks, routers and failovers do."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from sqlalchemy import make_url

from app.postgres_address import parse_address

NEVER = 10_000


def error_response(sqlstate: str, message: str) -> bytes:
    """What PostgreSQL sends in the place of a greeting."""
    fields = f"SFATAL\0VFATAL\0C{sqlstate}\0M{message}\0\0".encode()
    return b"E" + (4 + len(fields)).to_bytes(4) + fields


class Proxy:
    """Carries connections from a port of the loopback to the server of a database.

    Attributes:
        silent: New connections are accepted and never answered.
        read_only: New connections get a session that takes no writes, as on a standby.
        refuse_settings: New connections may set nothing but the application's name, as with PgBouncer.
        accepted: How many connections came.

    """

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self.silent = False
        self.read_only = False
        self.refuse_settings = False
        self.accepted = 0
        self.port = 0
        self._open: list[asyncio.Event] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """The address of the database through this proxy."""
        url = make_url(self.database_url).set(host="127.0.0.1", port=self.port, query={"ssl": "disable"})
        return url.render_as_string(hide_password=False)

    def silence(self) -> None:
        """Let all present connections carry nothing any more, without closing them; new ones work."""
        for flowing in self._open:
            flowing.clear()
        self._open.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
            try:
                await self.carry(reader, writer)
            finally:
                writer.close()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.silent:
            await asyncio.sleep(NEVER)
        length = await reader.readexactly(4)
        startup = await reader.readexactly(int.from_bytes(length) - 4)
        if self.refuse_settings and b"jit\0" in startup:
            writer.write(error_response("08P01", "unsupported startup parameter: jit"))
            return
        if self.read_only:
            startup = startup[:-1] + b"default_transaction_read_only\0on\0\0"
        ((host, port),) = parse_address(self.database_url).hosts
        if host and host.startswith("/"):
            back = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            back = await asyncio.open_connection(host, port)
        server_reader, server_writer = back
        server_writer.write((4 + len(startup)).to_bytes(4) + startup)
        flowing = asyncio.Event()
        flowing.set()
        self._open.append(flowing)
        try:
            ways = (pump(reader, server_writer, flowing.wait), pump(server_reader, writer, flowing.wait))
            await asyncio.gather(*ways)
        finally:
            server_writer.close()


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: Callable[[], Awaitable[bool]]
) -> None:
    while data := await reader.read(65_536):
        await flowing()
        writer.write(data)
        await writer.drain()
    await flowing()
    writer.close()
