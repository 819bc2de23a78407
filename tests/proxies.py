"""A TCP proxy before PostgreSQL that fails as networks, routers and failovers do."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Self

from sqlalchemy import make_url

from app.database.session import POOLED_SESSION_SETTINGS
from app.text.postgres_address import parse_postgres_address

NEVER = 10_000
CANCEL_REQUEST = (80877102).to_bytes(4)
STATEMENT_NUMBERS = count()


def error_response(sqlstate: str, message: str) -> bytes:
    """Return the error that PostgreSQL sends instead of a greeting."""
    fields = f"SFATAL\0VFATAL\0C{sqlstate}\0M{message}\0\0".encode()
    return b"E" + (4 + len(fields)).to_bytes(4) + fields


class Proxy:
    """Carries connections from a port of the loopback to the server of a database.

    Attributes:
        silent: New connections are accepted and never answered.
        read_only: New connections get a session that takes no writes, as on a standby.
        refuse_settings: New connections may set nothing but the application's name, as with PgBouncer.
        swallowed: What clients send with this text in it never arrives; empty for nothing.
        accepted: How many connections came.

    """

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self.silent = False
        self.read_only = False
        self.refuse_settings = False
        self.swallowed = b""
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
        """Return the address of the database through this proxy."""
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
            asking = pump(
                reader, server_writer, flowing.wait, lambda data: bool(self.swallowed) and self.swallowed in data
            )
            ways = (asking, pump(server_reader, writer, flowing.wait))
            await asyncio.gather(*ways)
        finally:
            server_writer.close()


async def pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    flowing: Callable[[], Awaitable[bool]],
    is_swallowed: Callable[[bytes], bool] = lambda _data: False,
) -> None:
    while data := await reader.read(65_536):
        await flowing()
        if is_swallowed(data):
            await asyncio.sleep(NEVER)
        writer.write(data)
        await writer.drain()
    await flowing()
    writer.close()


class LentSession:
    """A session of PostgreSQL that a pooler lends.

    Attributes:
        names: Its names of statements, by their text.
        wanted: Whether the client waits for each of the next ParseComplete.

    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.names: dict[bytes, bytes] = {}
        self.wanted: deque[bool] = deque()

    def send(self, kind: bytes, body: bytes) -> None:
        self.writer.write(kind + (4 + len(body)).to_bytes(4) + body)

    def parse(self, statement: bytes, *, wanted: bool) -> bytes:
        """Prepare a statement, and return its name in this session."""
        self.names[statement] = b"s%d" % next(STATEMENT_NUMBERS)
        self.send(b"P", self.names[statement] + b"\0" + statement)
        self.wanted.append(wanted)
        return self.names[statement]

    async def forget(self) -> None:
        """Reset the session to a state without anything."""
        self.send(b"Q", b"DISCARD ALL\0")
        await read_greeting(self.reader)
        self.names.clear()


class TransactionPooler(Proxy):
    """Lends a few sessions in turn, each for one transaction, after which the session has no state any more.

    Attributes:
        sessions: How many.
        settings: Settings of all of its sessions, as by PgBouncer's connect_query.
        keeps_statements: Clients find their prepared statements in each session, as with PgBouncer 1.21.

    """

    def __init__(
        self,
        database_url: str,
        *,
        sessions: int = 3,
        settings: Mapping[str, str] = POOLED_SESSION_SETTINGS,
        keeps_statements: bool = True,
    ) -> None:
        super().__init__(database_url)
        self.sessions = sessions
        self.settings = settings
        self.keeps_statements = keeps_statements
        self._free: asyncio.Queue[LentSession] = asyncio.Queue()
        self._opened: list[LentSession] = []
        self._opening = asyncio.Lock()
        self._greeting = b""

    @property
    def url(self) -> str:
        return f"{super().url}&pool_mode=transaction"

    async def __aexit__(self, *problem: object) -> None:
        await super().__aexit__(*problem)
        for session in self._opened:
            session.writer.close()

    async def open_session(self, startup: bytes) -> None:
        session = LentSession(*await self.connect(startup))
        self._greeting = await read_greeting(session.reader)
        self._opened.append(session)
        self._free.put_nowait(session)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        startup = await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
        if startup[:4] == CANCEL_REQUEST:
            return
        if b"jit\0" in startup:
            writer.write(error_response("08P01", "unsupported startup parameter: jit"))
            return
        settings = b"".join(f"{name}\0{value}\0".encode() for name, value in self.settings.items())
        startup = startup[:-1] + settings + b"\0"
        async with self._opening:
            while len(self._opened) < self.sessions:
                await self.open_session(startup)
        writer.write(self._greeting)
        client = PooledClient(self, writer)
        try:
            while True:
                kind, body = await read_message(reader)
                if kind == b"X":
                    return
                await client.send(kind, body)
        finally:
            if (broken := client.session) is not None:  # it left in the middle of a transaction
                broken.writer.close()
                self._opened.remove(broken)
                await self.open_session(startup)


class PooledClient:
    """A client of a `TransactionPooler`, with the session that it has now, if any."""

    def __init__(self, pooler: TransactionPooler, writer: asyncio.StreamWriter) -> None:
        self.pooler = pooler
        self.writer = writer
        self.session: LentSession | None = None
        self.statements: dict[bytes, bytes] = {}

    async def send(self, kind: bytes, body: bytes) -> None:
        """Send a message of the client to its session, by the names that statements have there."""
        if self.session is None:
            self.session = await self.pooler._free.get()
            self.pooler._tasks.add(asyncio.create_task(self.answer(self.session)))
        if not self.pooler.keeps_statements:
            self.session.send(kind, body)
        elif kind == b"P":
            name, _, statement = body.partition(b"\0")
            self.statements[name] = statement
            self.session.parse(statement, wanted=True)
        elif kind == b"B":
            portal, name, rest = body.split(b"\0", 2)
            self.session.send(kind, b"\0".join((portal, self.name_in_session(self.session, name), rest)))
        elif kind in (b"D", b"C") and body[:1] == b"S":
            self.session.send(kind, b"S" + self.name_in_session(self.session, body[1:-1]) + b"\0")
            if kind == b"C":
                self.session.names.pop(self.statements.pop(body[1:-1]))
        else:
            self.session.send(kind, body)

    def name_in_session(self, session: LentSession, name: bytes) -> bytes:
        statement = self.statements[name]
        return session.names.get(statement) or session.parse(statement, wanted=False)

    async def answer(self, session: LentSession) -> None:
        """Send what PostgreSQL says to the client, until the transaction ends."""
        while True:
            kind, body = await read_message(session.reader)
            if kind == b"1" and self.pooler.keeps_statements and not session.wanted.popleft():
                continue
            if kind == b"Z":
                session.wanted.clear()
            if has_ended := (kind, body) == (b"Z", b"I"):
                self.session = None
            self.writer.write(kind + (4 + len(body)).to_bytes(4) + body)
            if has_ended:
                await session.forget()
                self.pooler._free.put_nowait(session)
                return


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the kind and the body of a message."""
    kind = await reader.readexactly(1)
    return kind, await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)


async def read_greeting(reader: asyncio.StreamReader) -> bytes:
    """Return the messages of PostgreSQL up to ReadyForQuery."""
    greeting = kind = b""
    while kind != b"Z":
        kind, body = await read_message(reader)
        greeting += kind + (4 + len(body)).to_bytes(4) + body
    return greeting
