"""The command `easel serve`: bind the port, publish the address, print the welcome, and serve until stopped."""

import asyncio
import errno
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

import click
from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.login import create_one_time_login_and_return_secret, one_time_login_path
from app.accounts.secrets import load_or_create_installation_key
from app.annotation.platforms.registry import annotator_link_base_url_and_key, open_link_url_of_campaign
from app.database.migrate import upgrade_schema
from app.database.server_database import open_server_database_and_yield_url, reset_restored_transaction_ids
from app.database.session import create_engine
from app.database.sharing_tables import experiment_arms
from app.database.tables import campaigns
from app.errors import StartupProblem
from app.server.addresses import publish_server_url_during_context, server_url
from app.server.processes import StopRequest, serve_until_stopped
from app.settings import Settings, easel_command_to_type, set_environment_of_child_processes

MAX_CAMPAIGN_LINKS = 5
MAX_PORT = 65535
WANTED_OPEN_FILES = 65_536  # limit for a process, connections included, if the system allows it; usual is 1,024


def run_server(settings: Settings, *, with_demo: bool) -> None:
    """Serve until a signal comes. Raises StartupProblem."""
    raise_limit_of_open_files()
    stop_request = StopRequest()  # else SIGTERM would end this process before it has ended PostgreSQL
    with (
        open_one_socket_per_worker(settings.host, settings.port, settings.workers) as listeners,
        open_server_database_and_yield_url(settings, terminate_this_process) as url,
    ):
        upgrade_schema(url)
        for listener in listeners:
            listener.listen(2048)  # from here on, connections wait instead of being refused
        base_url = server_url(settings, listeners[0].getsockname()[1])
        welcome_text, key = asyncio.run(
            prepare_database_returning_welcome_and_key(
                url, base_url, with_demo=with_demo, shows_login_link=sys.stdout.isatty()
            )
        )
        click.echo(welcome_text)
        # Workers are new processes and get these values from the environment, so they need no database to start: a
        # worker that fails to start, because PostgreSQL is away, would end the whole server.
        set_environment_of_child_processes("database_url", url)
        if settings.secret_key is None:
            set_environment_of_child_processes("secret_key", key)
        with publish_server_url_during_context(settings, base_url):
            serve_until_stopped(settings, listeners, stop_request)


def raise_limit_of_open_files() -> None:
    """Raise this process's limit of open files, connections included; child processes inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def terminate_this_process() -> None:
    """End this process as a signal from outside would. Call it from any thread."""
    os.kill(os.getpid(), signal.SIGTERM)


# The port and the address


@contextmanager
def open_one_socket_per_worker(host: str, port: int, workers: int) -> Iterator[list[socket.socket]]:
    """Yield a socket for each worker, all bound to the port. Raises StartupProblem.

    The kernel spreads connections evenly over sockets that share a port. With a single socket, the first worker to wake
    would accept all concurrent connections and keep them.
    """
    with ExitStack() as stack:
        try:
            listeners = [stack.enter_context(create_bound_socket(host, port))]
            if workers > 1:
                # First bound without sharing: a port that another Easel shares among its workers would seem free.
                port = listeners[0].getsockname()[1]
                stack.close()
                shared = (create_bound_socket(host, port, socket.SO_REUSEPORT) for _ in range(workers))
                listeners = [stack.enter_context(listener) for listener in shared]
        except OSError as problem:
            raise startup_problem_of_listening(host, port, problem) from None
        yield listeners


def create_bound_socket(host: str, port: int, *options: int) -> socket.socket:
    family, kind, protocol, _, socket_address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        for option in (socket.SO_REUSEADDR, *options):
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind(socket_address)
    except OSError:
        listener.close()
        raise
    return listener


def startup_problem_of_listening(host: str, port: int, problem: OSError) -> StartupProblem:
    if problem.errno == errno.EADDRINUSE:
        return StartupProblem(
            f"Port {port} on {host} is in use by another program, perhaps another Easel. Choose another, "
            f"such as `EASEL_PORT={neighbouring_port_to_suggest(port)} make run`, or with --port; 0 takes a free one."
        )
    if problem.errno == errno.EACCES:
        return StartupProblem(
            f"Port {port} needs administrator rights. Choose a port from 1024 on with --port or EASEL_PORT."
        )
    return StartupProblem(f"Easel cannot listen on {host}: {problem.strerror}. Set --host or EASEL_HOST.")


def neighbouring_port_to_suggest(port: int) -> int:
    return port + 1 if port < MAX_PORT else port - 1


# What is said at the start


async def prepare_database_returning_welcome_and_key(
    url: str, base_url: str, *, with_demo: bool, shows_login_link: bool
) -> tuple[str, str]:
    """Prepare the database for serving, and return the welcome text and the signing key.

    Only a person at a terminal gets a login link: others may read a log, which is kept.
    """
    engine = create_engine(url, pool_size=1)
    now = datetime.now(UTC)
    try:
        async with engine.begin() as connection:
            await reset_restored_transaction_ids(connection)
            if with_demo:
                # Imported here because it takes as long to import as all else in this module.
                from app.imports.demo import find_or_launch_demo_campaign

                await find_or_launch_demo_campaign(connection, now=now)
            lines = [f"Easel is running at {base_url}. Ctrl-C stops it; the data stay.", ""]
            if shows_login_link:
                token = await create_one_time_login_and_return_secret(connection, now=now)
                lines += [f"  Researchers  {base_url}{one_time_login_path(token)}  (works once, for a day)"]
            else:
                command = f"{easel_command_to_type()} login"
                lines += [f"  Researchers  {base_url}/admin  (`{command}` prints a link that logs you in)"]
            welcome_text = "\n".join([*lines, *await load_lines_on_running_campaigns(connection, base_url), ""])
            return welcome_text, await load_or_create_installation_key(connection)
    finally:
        await engine.dispose()


async def load_lines_on_running_campaigns(connection: AsyncConnection, base_url: str) -> list[str]:
    """Return a line for each of the newest running campaigns; the arms of an experiment share one."""
    conditions = campaigns.c.status == "running", campaigns.c.rehearsal_of.is_(None)
    experiment, experiment_link_key = experiment_arms.c.experiment, experiment_arms.c.link_key
    name = func.coalesce("experiment " + experiment + ", to one of its arms at random", campaigns.c.name)
    campaign_link_key = case((experiment.is_(None), campaigns.c.link_key))
    statement = (
        select(name, campaign_link_key, experiment_link_key)
        .outerjoin_from(campaigns, experiment_arms)
        .where(*conditions)
    )
    newest = func.max(campaigns.c.id).desc()
    running = await connection.execute(
        statement.group_by(name, campaign_link_key, experiment_link_key).order_by(newest).limit(MAX_CAMPAIGN_LINKS)
    )
    return [
        f"  Annotators   {open_link_url_of_campaign(*annotator_link_base_url_and_key(base_url, *keys))}  ({name})"
        for name, *keys in running
    ]
