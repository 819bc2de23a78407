"""The server as processes: its port, its database, its workers, and how all of them end together."""

import asyncio
import errno
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import NoReturn

import asyncpg
import click
import uvicorn
from sqlalchemy import make_url, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from uvicorn.supervisors import Multiprocess

from app.auth.login import create_one_time_login, one_time_login_path
from app.campaigns.demo import demo
from app.crowd.platforms import links
from app.database import embedded
from app.database.migrate import upgrade
from app.database.session import create_engine
from app.database.tables import campaigns
from app.errors import StartupProblem
from app.settings import Settings, environment_name

LINKS_SHOWN = 5
GOODBYE_SECONDS = 5  # for requests under way, and for browsers that hold a live page open


def serve(settings: Settings, *, with_demo: bool) -> None:
    """Serve until a signal comes. Raises StartupProblem."""
    # Otherwise SIGTERM would end this process before it has ended PostgreSQL.
    signal.signal(signal.SIGTERM, end)
    with closing(listening_socket(settings.host, settings.port)) as listener, own_database(settings) as url:
        upgrade(url)
        listener.listen(2048)  # from here on visitors wait instead of being refused
        base = address(settings, listener.getsockname()[1])
        click.echo(asyncio.run(welcome(url, base, with_demo=with_demo)))
        # The workers are new processes; what was found out here reaches them by the environment.
        os.environ[environment_name("database_url")] = url
        run(settings, listener)


def end(_signal: int, _frame: object) -> NoReturn:
    sys.exit(0)


# The port


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket bound to the port: taken before anything else is done. Raises StartupProblem."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as problem:
        raise cannot_listen(host, port, problem) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except OSError as problem:
        listener.close()
        raise cannot_listen(host, port, problem) from None
    return listener


def cannot_listen(host: str, port: int, problem: OSError) -> StartupProblem:
    if problem.errno == errno.EADDRINUSE:
        return StartupProblem(
            f"Port {port} on {host} is in use by another program, perhaps another Easel. "
            "Choose another with --port or EASEL_PORT; 0 takes a free one."
        )
    if problem.errno == errno.EACCES:
        return StartupProblem(f"Port {port} needs more rights. Choose one from 1024 on with --port or EASEL_PORT.")
    return StartupProblem(f"Easel cannot listen on {host}: {problem.strerror}. Set --host or EASEL_HOST.")


def address(settings: Settings, port: int) -> str:
    """Where people reach this server."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104  (not bound here)
    return settings.public_url or f"http://{f'[{host}]' if ':' in host else host}:{port}"


# The database


@contextmanager
def own_database(settings: Settings) -> Iterator[str]:
    """The URL of the database of a server: the operator's, or an embedded one that ends with this block."""
    if settings.database_url is None:
        with embedded.start(settings.data_dir) as url:
            yield url
    else:
        asyncio.run(reach(settings.database_url))
        yield settings.database_url


@contextmanager
def any_database(settings: Settings) -> Iterator[str]:
    """The URL of the database of a command: the operator's, or the embedded one, which a server may be running."""
    if settings.database_url is None:
        with embedded.attach_or_start(settings.data_dir) as url:
            upgrade(url)
            yield url
    else:
        if not asyncio.run(reach(settings.database_url)):
            raise StartupProblem("This database has no tables of Easel yet. Run `easel migrate` first.")
        yield settings.database_url


async def reach(url: str) -> bool:
    """Whether a database that answers has Easel's tables. Raises StartupProblem if it does not answer."""
    engine = create_engine(url, pool_size=1)
    try:
        async with engine.connect() as connection:
            return bool(await connection.scalar(text("SELECT to_regclass('campaigns') IS NOT NULL")))
    except (OSError, DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError) as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        place = make_url(url).set(drivername="postgresql", username=None, password=None)
        raise StartupProblem(f"The database at {place} does not answer: {reason}. Check DATABASE_URL.") from None
    finally:
        await engine.dispose()


# What is said at the start


async def welcome(url: str, base: str, *, with_demo: bool) -> str:
    """The addresses to open first, the login in them fresh."""
    engine = create_engine(url, pool_size=1)
    now = datetime.now(UTC)
    try:
        async with engine.begin() as connection:
            if with_demo:
                await demo(connection, now=now)
            token = await create_one_time_login(connection, now=now)
            lines = [f"Easel is running at {base}. Ctrl-C stops it; the data stay.", ""]
            lines += [f"  Researchers  {base}{one_time_login_path(token)}  (works once, for a day)"]
            return "\n".join([*lines, *await running_campaigns(connection, base), ""])
    finally:
        await engine.dispose()


async def running_campaigns(connection: AsyncConnection, base: str) -> list[str]:
    """A line for each of the newest campaigns that annotators can work on."""
    statement = select(campaigns.c.name, campaigns.c.link_key).where(campaigns.c.status == "running")
    running = await connection.execute(statement.order_by(campaigns.c.id.desc()).limit(LINKS_SHOWN))
    return [f"  Annotators   {links(base, key)['link']}  ({name})" for name, key in running]


# Running


class Configuration(uvicorn.Config):
    """uvicorn's configuration; `load` is the first thing of ours that runs in a worker."""

    def load(self) -> None:
        end_with_parent()
        super().load()


def run(settings: Settings, listener: socket.socket) -> None:
    """Serve until a signal comes, here or in workers."""
    configuration = Configuration(
        "app.main:create_app",
        factory=True,
        workers=settings.workers,
        log_level="warning",
        access_log=False,  # platforms put worker ids into query strings
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=GOODBYE_SECONDS,
    )
    if settings.workers == 1:
        server = uvicorn.Server(configuration)
        # From here on and not only once it runs: an exception raised into a starting event loop would hang it.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)
        server.run(sockets=[listener])
    else:
        Multiprocess(configuration, sockets=[listener]).run()


def end_with_parent() -> None:
    """In a worker: end when the main process does. A killed main process can tell nobody."""
    if parent := multiprocessing.parent_process():

        def follow() -> None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=follow, daemon=True).start()
