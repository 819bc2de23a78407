"""Connections to PostgreSQL with time limits, so that no request waits forever.

A server that is switched off, a router that forgets a connection, a failover without a reset: each leaves connections
that look open and carry nothing. So every connect has a time limit for each host, and every statement has one; the
kernel is asked to notice dead peers; and an idle connection is pinged before it is used. Unix sockets, such as those of
the embedded server, need only the limits of statements.
"""

import asyncio
import logging
import math
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

import asyncpg
from asyncpg.connect_utils import SessionAttribute
from asyncpg.transaction import Transaction

from app.text.postgres_address import HostAndPort, PostgresAddress, format_host_and_port
from app.text.tracing import TRACING, add_statement_span

if TYPE_CHECKING:
    BaseConnection = asyncpg.Connection[Any]
else:
    BaseConnection = asyncpg.Connection

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_SECONDS = 1.0  # for PostgreSQL to confirm that a statement was cancelled
# The kernel's own checks, by libpq's names: it notices a dead peer after about 25 s, whatever limit a statement has.
SOCKET_DEFAULTS = {
    "keepalives": 1,
    "keepalives_idle": 10,  # s
    "keepalives_interval": 5,  # s
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # ms
}
# Keepalives on the server's side, which would otherwise keep the locks of a lost client for two hours.
SERVER_DEFAULTS = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
    "client_connection_check_interval": "10s",
}
# First characters of PostgreSQL's codes for a session that must not be used again: broken, ended by the server, or on a
# server that takes no writes because it became a standby.
SESSION_ENDED_CODES = ("08", "57P", "25006", "25P03", "25P04")
# Codes for problems that another host would refuse as well: the user, the password, the database.
REFUSED_BY_ALL_HOSTS_CODES = ("28", "3D", "42501")


@dataclass(frozen=True)
class TimeLimits:
    """How long to wait for PostgreSQL, in seconds.

    Args:
        statement: For one statement. COPY has limits of its own (see `bulk`).
        idle_in_transaction: Until the server ends a transaction in which nothing happens, and so releases its locks.
        connect: For each host of the address.
        ping: For the reply to a ping.
        fresh: A connection that was used within this time is used without a ping.
        acquire: For a connection of `ServingConnections`, including all of the above but `statement`.

    """

    statement: float | None = 3600.0
    idle_in_transaction: float | None = None
    connect: float = 5.0
    ping: float = 2.0
    fresh: float = 1.0
    acquire: float = 10.0


class DatabaseUnreachable(ConnectionError):
    """No host of the address gave a connection; the message says why, without secrets."""

    def __init__(self, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@dataclass
class ConnectionTrust:
    """Limits on the use of one engine's connections, in `time.monotonic()` seconds.

    Args:
        dropped: Connections opened until then are not used again.
        suspected: Connections last used until then are pinged before their next use.

    """

    dropped: float = -math.inf
    suspected: float = -math.inf

    def drop_all(self) -> None:
        """Drop all connections opened until now, because one was dead or on a server that takes no writes."""
        self.dropped = time.monotonic()

    def require_ping_of_all_connections(self) -> None:
        """Let all connections be pinged before their next use, because a statement on one of them timed out."""
        self.suspected = time.monotonic()


class AbandoningTransaction(Transaction):
    """A transaction that closes its connection, instead of sending ROLLBACK, after a statement that did not end.

    ROLLBACK would first wait for that statement, which may never end.
    """

    def __init__(self, connection: "LimitedConnection", *how: Any) -> None:
        super().__init__(connection, *how)
        self.connection = connection

    async def start(self) -> None:
        await super().start()
        if self.connection.transaction_settings:
            try:
                await self.connection.execute(self.connection.transaction_settings)
            except BaseException:
                self.connection.terminate()
                raise

    async def __aexit__(self, kind: object, problem: object, traceback: object) -> None:
        if isinstance(problem, (TimeoutError, asyncio.CancelledError)):
            await close_connection_cancelling_statement(self.connection)
        else:
            await super().__aexit__(kind, problem, traceback)

    async def rollback(self) -> None:
        if not self.connection.is_closed():  # the server rolls back when the connection closes
            await super().rollback()


class LimitedConnection(BaseConnection):
    """asyncpg's connection with keepalives, time limits, and a check whether it may still be trusted."""

    def __init__(self, protocol: Any, transport: Any, *rest: Any) -> None:
        super().__init__(protocol, transport, *rest)
        self.socket: socket.socket | None = transport.get_extra_info("socket")
        # True if there is a network between this process and the server. Stored: asking the socket takes a microsecond.
        self.is_remote = self.socket is None or self.socket.family != socket.AF_UNIX
        self.trust = ConnectionTrust()
        self.limits = TimeLimits()
        self.transaction_settings = ""  # SQL that sets what a transaction has of its own
        self.leads_to_citus = False  # Citus does not take every statement that PostgreSQL takes
        self.opened = self.last_used = time.monotonic()

    def transaction(
        self,
        *,
        isolation: Literal["read_committed", "read_uncommitted", "serializable", "repeatable_read"] | None = None,
        readonly: bool = False,
        deferrable: bool = False,
    ) -> Transaction:
        if self.is_closed():
            raise asyncpg.InterfaceError("connection is closed")
        return AbandoningTransaction(self, isolation, readonly, deferrable)

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109  (asyncpg's own)
        """Close the connection in order, if the server still takes part in that.

        Args:
            timeout: Seconds until it is closed without the server. None stands for `CLOSE_TIMEOUT_SECONDS`.

        """
        if self.opened <= self.trust.dropped:
            self.terminate()
            return
        try:
            await super().close(timeout=CLOSE_TIMEOUT_SECONDS if timeout is None else timeout)
        except TimeoutError:
            self.trust.drop_all()

    def needs_ping(self) -> bool:
        """Return whether to ping before the next use."""
        if self.is_closed() or self.opened <= self.trust.dropped:
            return True
        quiet_since = time.monotonic() - self.limits.fresh
        return self.is_remote and (self.last_used <= self.trust.suspected or self.last_used < quiet_since)

    async def ping(self) -> bool:
        """Return whether the server answers on this connection now; it is closed if not."""
        if self.opened <= self.trust.dropped:
            self.terminate()
        if self.is_closed():
            return False
        try:
            await self.execute("SELECT 1", timeout=self.limits.ping)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
            if isinstance(problem, TimeoutError):
                self.trust.drop_all()
            self.terminate()
            return False
        except BaseException:
            self.terminate()
            raise
        self.last_used = time.monotonic()
        return True

    def is_connection_ruined_by(self, problem: BaseException) -> bool:
        """Return whether a statement's failure means that this connection must not be used again."""
        if isinstance(problem, TimeoutError):
            self.trust.require_ping_of_all_connections()
            return True
        ended = getattr(problem, "sqlstate", None) or ""
        if ended.startswith("25006"):
            self.trust.drop_all()
        return ended.startswith(SESSION_ENDED_CODES)


async def close_connection_cancelling_statement(connection: BaseConnection) -> None:
    """Close a connection whose statement did not end, after asking the server to cancel that statement."""
    with suppress(Exception):
        await connection.close()
    connection.terminate()


def add_span_of_logged_statement(statement: Any) -> None:
    """Add the span of a statement of the driver; its arguments are left out."""
    add_statement_span(statement.query, statement.elapsed, statement.exception)


@dataclass
class Connector:
    """Opens the connections of one engine."""

    address: PostgresAddress
    settings: Mapping[str, str]
    limits: TimeLimits
    # Settings that each transaction sends, because a pooler lends a session for one transaction at a time.
    transaction_settings: Mapping[str, str] = field(default_factory=dict)
    trust: ConnectionTrust = field(default_factory=ConnectionTrust, repr=False)
    # The host to try first: the last that worked, or the one after the last that failed.
    first_host_index: int = field(default=0, repr=False)
    # True if settings are sent after connecting, because PgBouncer refused them in the startup message.
    sends_settings_later: bool = field(default=False, repr=False)

    async def connect(self) -> LimitedConnection:
        """Return a connection to the first host that gives one. Raises DatabaseUnreachable."""
        hosts = self.address.hosts
        start = self.first_host_index
        problems: list[tuple[str, BaseException]] = []
        for host_index in [*range(start, len(hosts)), *range(start)]:
            try:
                connection = await self.connect_to_host(hosts[host_index])
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
                problems.append((format_host_and_port(hosts[host_index]), problem))
                self.first_host_index = (host_index + 1) % len(hosts)
                if sqlstate_or_empty(problem).startswith(REFUSED_BY_ALL_HOSTS_CODES):
                    break
            except asyncio.CancelledError:  # the next attempt begins at another host, since this one may be silent
                self.first_host_index = (host_index + 1) % len(hosts)
                raise
            else:
                self.first_host_index = host_index
                return connection
        _, last = problems[-1]
        is_single_reason = len(hosts) == 1 or sqlstate_or_empty(last).startswith(REFUSED_BY_ALL_HOSTS_CODES)
        reasons = [
            self.describe_problem(problem) if is_single_reason else f"{host}: {self.describe_problem(problem)}"
            for host, problem in problems
        ]
        raise DatabaseUnreachable(
            reasons[-1] if is_single_reason else "; ".join(reasons), sqlstate_or_empty(last)
        ) from last

    async def connect_to_host(self, host: HostAndPort) -> LimitedConnection:
        name, _ = host
        is_unix_socket = name is not None and name.startswith("/")
        is_pooled = self.address.lends_sessions_for_transactions
        settings = {} if is_unix_socket or is_pooled else dict(SERVER_DEFAULTS)
        settings |= self.settings
        connection = await self.connect_with_settings(host, settings)
        connection.trust, connection.limits = self.trust, self.limits
        connection.leads_to_citus = self.address.leads_to_citus
        connection.transaction_settings = "".join(
            f"SET LOCAL {setting} = '{value}';" for setting, value in self.transaction_settings.items()
        )
        if connection.socket is not None and connection.is_remote:
            enable_keepalives(connection.socket, self.address.parameters)
        return connection

    async def connect_with_settings(self, host: HostAndPort, settings: dict[str, str]) -> LimitedConnection:
        """Return a connection whose session has the settings, also through a pooler of sessions."""
        if not self.sends_settings_later:
            try:
                return await self.open_connection(host, settings)
            except asyncpg.PostgresError as problem:
                if "unsupported startup parameter" not in str(problem) or "options" in settings:
                    raise
                self.sends_settings_later = True
        connection = await self.open_connection(host, {"application_name": settings.pop("application_name")})
        await connection.execute("".join(f"SET {name} = '{value}';" for name, value in settings.items()))
        return connection

    async def open_connection(self, host: HostAndPort, settings: Mapping[str, str]) -> LimitedConnection:
        name, port = host
        driver = self.address.parameters_for_driver()
        session = self.address.parameters.get("target_session_attrs")
        connection: LimitedConnection = await asyncpg.connect(
            f"postgresql://?{urlencode(driver)}" if driver else None,
            host=name,
            port=port,
            user=self.address.user,
            password=self.address.password,
            database=self.address.database,
            timeout=self.connect_timeout_seconds(),
            command_timeout=self.statement_timeout_seconds_or_none(),
            target_session_attrs=SessionAttribute(session) if session else None,
            server_settings=dict(settings),
            connection_class=LimitedConnection,
        )
        if TRACING.tracer is not None:
            connection.add_query_logger(add_span_of_logged_statement)
        return connection

    def connect_timeout_seconds(self) -> float:
        """Return the limit for one host; 0 in the address stands for the usual one."""
        return int(self.address.parameters.get("connect_timeout", 0)) or self.limits.connect

    def statement_timeout_seconds_or_none(self) -> float | None:
        """Return the limit for one statement; `command_timeout` in the address replaces the usual one."""
        command_timeout = self.address.parameters.get("command_timeout")
        return float(command_timeout) if command_timeout and self.limits.statement else self.limits.statement

    def describe_problem(self, problem: BaseException) -> str:
        """Return why a host gave no connection."""
        if isinstance(problem, TimeoutError):
            return f"it did not answer within {self.connect_timeout_seconds():g} seconds"
        if isinstance(problem, asyncpg.TargetServerAttributeNotMatched):
            return f"it is not a server for target_session_attrs={self.address.parameters['target_session_attrs']}"
        return " ".join(str(problem).split()) or type(problem).__name__


def sqlstate_or_empty(problem: BaseException) -> str:
    return getattr(problem, "sqlstate", None) or ""


def enable_keepalives(tcp_socket: socket.socket, parameters: Mapping[str, str]) -> None:
    """Let the kernel notice when the other side is gone, as far as this system can.

    Args:
        tcp_socket: A connected TCP socket.
        parameters: Parameters of the address, among them those of `SOCKET_DEFAULTS`; 0 leaves the system's value.

    """
    values = {name: int(parameters.get(name, value)) for name, value in SOCKET_DEFAULTS.items()}
    names = {
        "keepalives_idle": "TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE",
        "keepalives_interval": "TCP_KEEPINTVL",
        "keepalives_count": "TCP_KEEPCNT",
        "tcp_user_timeout": "TCP_USER_TIMEOUT",
    }
    tcp_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, values.pop("keepalives"))
    for name, value in values.items():
        option = getattr(socket, names[name], None)
        if option is not None and value:
            tcp_socket.setsockopt(socket.IPPROTO_TCP, option, value)
