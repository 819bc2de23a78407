"""How a command runs: on which database, what it prints, and what it says when it is refused."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import IO, Any, TypeVar

import click
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import server
from app.database.chosen import any_database
from app.database.session import create_engine
from app.errors import Refusal, StartupProblem
from app.settings import SettingsProblem, read_settings

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]


class Failure(click.ClickException):
    """One line on stderr, and exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"easel: {' '.join(self.message.split())}", err=True, file=file)


class Commands(click.Group):
    """Says what Easel expects to go wrong in one line; what nobody expected keeps its traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Refusal as refusal:
            raise Failure(f"{refusal.message} ({refusal.code})") from refusal
        except (StartupProblem, SettingsProblem) as problem:
            raise Failure(f"{problem} ({problem.code})") from problem


def now() -> datetime:
    return datetime.now(UTC)


def on_engine(work: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    """Run `work` on the database that the environment names, or the embedded one."""
    with any_database(read_settings()) as url:

        async def run() -> T:
            engine = create_engine(url, pool_size=2)
            try:
                return await work(engine)
            finally:
                await engine.dispose()

        return asyncio.run(run())


def in_transaction(work: Work[T]) -> T:
    """Run `work` and commit."""

    async def run(engine: AsyncEngine) -> T:
        async with engine.begin() as connection:
            return await work(connection)

    return on_engine(run)


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
    return url.rstrip("/") if url else server.usual_address(read_settings())


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
