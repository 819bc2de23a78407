"""How a command runs, on which database, and how it prints what comes out."""

import asyncio
import getpass
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.cli.commands import Failure
from app.cli.interrupts import STOPPED
from app.database.audit_log import ACTING, Actor
from app.database.chosen import any_database
from app.database.session import TROUBLE, create_engine, is_away
from app.errors import Conflict
from app.settings import read_settings

T = TypeVar("T")
AWAY = "The database did not answer. What was stored by then stays; try the same again in a moment."
Work = Callable[[AsyncConnection], Awaitable[T]]


def now() -> datetime:
    return datetime.now(UTC)


def on_engine(work: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    """Run `work` on the database that the environment names, or the embedded one.

    Raises `Conflict` (`database_unavailable`) when it goes away meanwhile.
    """
    ACTING.set(Actor(name_on_machine(), "command"))
    with any_database(read_settings()) as url:

        async def run() -> T:
            engine = create_engine(url, pool_size=2)
            try:
                return await work(engine)
            except TROUBLE as trouble:
                if not is_away(trouble):
                    raise
                raise Conflict(AWAY, code="database_unavailable") from trouble
            finally:
                await engine.dispose()

        return asyncio.run(run())


def name_on_machine() -> str:
    """Who types commands here, as the machine knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return "somebody"


def in_transaction(work: Work[T]) -> T:
    """Run `work` and commit; Ctrl-C before that changes nothing, and after it comes too late."""

    async def run(engine: AsyncEngine) -> T:
        async with engine.connect() as connection:
            found = await work(connection)
            await to_the_end(connection.commit())
            return found

    try:
        return on_engine(run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{STOPPED} Nothing was changed.") from None


async def to_the_end(work: Awaitable[None]) -> None:
    """Wait for `work`, even if we are asked to stop meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task


@contextmanager
def progress_bar(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """A bar for people at a terminal, which is told how far it is, 0 to `length`."""
    if not sys.stderr.isatty():
        yield lambda _far: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield lambda far: bar.update(far - bar.pos)


def unless_interrupted(told: Callable[[int], None]) -> Callable[[int], None]:
    """What tells how far work is that keeps the event loop busy; it ends the work if Ctrl-C was pressed meanwhile.

    The loop asks its task to end, which none can see that never waits.
    """

    def tell(far: int) -> None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        told(far)

    return tell


def show_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=datetime.isoformat))


def in_words(value: Any) -> str:
    """A value for people; further lines of a text are indented, so that each name still starts a line."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.isoformat(" ", "seconds") if isinstance(value, datetime) else str(value).replace("\n", "\n  ")


def base_of(url: str | None = None) -> str:
    """The address given, else where the server is reached."""
    from app import server  # it takes a second to import, and most commands need no address

    return url.rstrip("/") if url else server.usual_address(read_settings())


# What comes out


async def put_out(chunks: AsyncIterator[str | bytes], output: Path | None) -> None:
    """Into the file, or printed if there is none."""
    await (into_file(chunks, output) if output else printed(chunks))


async def printed(chunks: AsyncIterator[str | bytes]) -> None:
    async for chunk in chunks:
        click.echo(as_bytes(chunk), nl=False)


def as_bytes(chunk: str | bytes) -> bytes:
    return chunk.encode() if isinstance(chunk, str) else chunk


async def into_file(chunks: AsyncIterator[str | bytes], output: Path) -> None:
    """Into a file beside it first, so that no half of an export is ever taken for the whole."""
    part = output.with_name(output.name + ".part")
    try:
        with part.open("wb") as file:
            async for chunk in chunks:
                file.write(as_bytes(chunk))
        part.replace(output)
    except OSError as problem:
        raise Failure(f"{output} cannot be written: {problem.strerror}. (file_not_written)") from problem
    finally:
        part.unlink(missing_ok=True)


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
output_option = click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout."
)
