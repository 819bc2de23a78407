"""Run a command on the database, and print its results."""

from __future__ import annotations

import asyncio
import getpass
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from app.cli.commands import CommandFailure
from app.cli.database_refusals import refusal_of_database_error_or_none
from app.cli.interrupts import STOPPED_TEXT

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")
TransactionWork = Callable[["AsyncConnection"], Awaitable[T]]


def current_utc_time() -> datetime:
    return datetime.now(UTC)


def run_with_engine(work: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    """Run `work` on the database that the environment names, or the embedded one.

    Raises:
        Conflict: `database_unavailable` if the connection is lost, `database_full` if its disk is full.

    """
    from app.database.audit_log import CURRENT_ACTOR, Actor
    from app.database.server_database import open_command_database_and_yield_url
    from app.database.session import DATABASE_ERRORS, create_engine
    from app.settings import read_settings

    CURRENT_ACTOR.set(Actor(machine_user_name(), "command"))
    with open_command_database_and_yield_url(read_settings()) as url:

        async def run() -> T:
            engine = create_engine(url, pool_size=2)
            try:
                return await work(engine)
            except DATABASE_ERRORS as trouble:
                if (refusal := refusal_of_database_error_or_none(trouble)) is None:
                    raise
                raise refusal from trouble
            finally:
                await engine.dispose()

        return asyncio.run(run())


def machine_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return "somebody"


def run_in_transaction(work: TransactionWork[T]) -> T:
    """Run `work` and commit. Ctrl-C before the commit changes nothing; after it, it comes too late."""

    async def run(engine: AsyncEngine) -> T:
        async with engine.connect() as connection:
            result = await work(connection)
            await wait_ignoring_cancellation(connection.commit())
            return result

    try:
        return run_with_engine(run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{STOPPED_TEXT} Nothing was changed.") from None


async def wait_ignoring_cancellation(work: Awaitable[None]) -> None:
    """Wait for `work`, even if this task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task


@contextmanager
def progress_bar_at_terminal(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar at a terminal; yield a function that takes the position, 0 to `length`."""
    if not sys.stderr.isatty():
        yield lambda _far: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield lambda far: bar.update(far - bar.pos)


def progress_function_ended_by_interrupt(report_progress: Callable[[int], None]) -> Callable[[int], None]:
    """Return a progress function for work that blocks the event loop; it ends the work if Ctrl-C was pressed.

    The loop only marks the task as cancelled; a task that never waits does not notice.
    """

    def report_or_cancel(position: int) -> None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        report_progress(position)

    return report_or_cancel


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=datetime.isoformat))


def format_value_for_people(value: Any) -> str:
    """Return a value as text; further lines are indented, so that each name still starts a line."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.isoformat(" ", "seconds") if isinstance(value, datetime) else str(value).replace("\n", "\n  ")


def given_or_likely_server_url(url: str | None = None) -> str:
    """Return the given address, else the address of the server."""
    from app.server.addresses import probable_public_server_url
    from app.settings import read_settings

    return url.rstrip("/") if url else probable_public_server_url(read_settings())


# Output


async def write_chunks_to_file_or_print(chunks: AsyncIterator[str | bytes], output: Path | None) -> None:
    """Write chunks to the file, or print them if there is none."""
    await (write_chunks_to_file(chunks, output) if output else print_chunks(chunks))


async def print_chunks(chunks: AsyncIterator[str | bytes]) -> None:
    async for chunk in chunks:
        click.echo(encode_chunk(chunk), nl=False)


def encode_chunk(chunk: str | bytes) -> bytes:
    return chunk.encode() if isinstance(chunk, str) else chunk


async def write_chunks_to_file(chunks: AsyncIterator[str | bytes], output: Path) -> None:
    """Write to a temporary file next to it first, so that half an export is never taken for the whole."""
    partial_file = output.with_name(output.name + ".part")
    try:
        with partial_file.open("wb") as file:
            async for chunk in chunks:
                file.write(encode_chunk(chunk))
        partial_file.replace(output)
    except OSError as problem:
        raise CommandFailure(f"{output} cannot be written: {problem.strerror}. (file_not_written)") from problem
    finally:
        partial_file.unlink(missing_ok=True)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
output_option = click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout."
)
