"""A TCP proxy before PostgreSQL that fails as networks, routers and failovers do."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

from sqlalchemy import make_url

from app.text.postgres_address import parse_postgres_address

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

    async def __aexit__(self, *problem: object) -> None:
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

    def cut(self) -> None:
        """Close all present connections; new ones work."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

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

    async def connect(self, startup: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to the server that has got a client's first message."""
        ((host, port),) = parse_postgres_address(self.database_url).hosts
        if host and host.startswith("/"):
            reader, writer = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            reader, writer = await asyncio.open_connection(host, port)
        writer.write((4 + len(startup)).to_bytes(4) + startup)
        return reader, writer

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
        server_reader, server_writer = await self.connect(startup)
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


class TransactionPooler(Proxy):
    """Gives all connections one session of PostgreSQL in turn, as PgBouncer does between transactions."""

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._greeting = b""
        self._session: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._client: asyncio.StreamWriter | None = None

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = await reader.readexactly(4)
        startup = await reader.readexactly(int.from_bytes(length) - 4)
        if self._session is None:
            self._session = await self.connect(startup)
            self._greeting = await read_greeting(self._session[0])
            self._tasks.add(asyncio.create_task(self.answer(self._session[0])))
        writer.write(self._greeting)
        while data := await reader.read(65_536):
            self._client = writer
            if data[:1] != b"X":  # one client's goodbye is none of the session
                self._session[1].write(data)

    async def __aexit__(self, *problem: object) -> None:
        await super().__aexit__(*problem)
        if self._session is not None:
            self._session[1].close()

    async def answer(self, reader: asyncio.StreamReader) -> None:
        """Send what PostgreSQL says to the client that spoke last."""
        while data := await reader.read(65_536):
            assert self._client is not None
            self._client.write(data)


async def read_greeting(reader: asyncio.StreamReader) -> bytes:
    """Return the messages of PostgreSQL up to ReadyForQuery."""
    greeting = kind = b""
    while kind != b"Z":
        kind, length = await reader.readexactly(1), await reader.readexactly(4)
        greeting += kind + length + await reader.readexactly(int.from_bytes(length) - 4)
    return greeting
