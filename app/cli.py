"""The `easel` command: over the same functions that the web calls."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

import click
import numpy as np
from pydantic import ValidationError
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import server
from app.analysis.export import EXPORTS, Format
from app.analysis.export import export as export_of
from app.analysis.replay import Verification
from app.analysis.replay import verify as verify_posteriors
from app.auth.login import create_one_time_login, one_time_login_path
from app.campaigns import form, items, lifecycle, responses_import
from app.campaigns.settings import CampaignSettings
from app.crowd.platforms import links
from app.database.bulk import snapshot
from app.database.migrate import upgrade
from app.database.session import create_engine
from app.errors import Invalid, Refusal, StartupProblem
from app.settings import Settings, SettingsProblem, read_settings
from app.simulation.crowd import simulate as simulate_crowd

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
METAVARS = {"integer": "INTEGER", "number": "NUMBER", "string": "TEXT"}
ACTIONS = {
    "launch": "Open a draft to annotators; its settings and items are fixed from then on.",
    "pause": "Hand out no more HITs; open ones can still be answered.",
    "resume": "Open a paused campaign again.",
    "finish": "Close a campaign for good.",
}


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
            raise Failure(f"{problem} ({problem_code(problem)})") from problem


def problem_code(problem: Exception) -> str:
    return "settings_problem" if isinstance(problem, SettingsProblem) else "startup_problem"


def now() -> datetime:
    return datetime.now(UTC)


def on_engine(work: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    """Run `work` on the database that the environment names, or the embedded one."""
    with server.any_database(read_settings()) as url:

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


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=Commands)
@click.version_option(package_name="easel", message="%(version)s")
def main() -> None:
    """Easel: crowdsourced scalar annotation with live posteriors.

    Every command works on the database that DATABASE_URL names, or on Easel's own.
    """


# The server


def server_option(name: str, kind: Any) -> Callable[[Any], Any]:
    """An option for one of `Settings`, which it overrides."""
    return click.option(f"--{name}", type=kind, help=Settings.model_fields[name].description)


@main.command()
@click.option("--demo", "with_demo", is_flag=True, help="Make a demo campaign of 150 verbs, if there is none yet.")
@server_option("host", str)
@server_option("port", click.IntRange(0, 65535))
@server_option("workers", click.IntRange(1, 64))
def serve(*, with_demo: bool, **given: Any) -> None:
    """Start the server, and PostgreSQL with it unless DATABASE_URL is set."""
    chosen = {name: value for name, value in given.items() if value is not None}
    with suppress(KeyboardInterrupt):
        server.serve(read_settings().model_copy(update=chosen), with_demo=with_demo)
    click.echo("Stopped.")


@main.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    with server.own_database(read_settings()) as url:
        upgrade(url)
    click.echo("The database has the newest schema.")


@main.command()
@click.option("--url", help="Where the server is reached, if not at its usual address.")
def login(url: str | None) -> None:
    """Print a fresh login link for researchers; it works once."""
    token = in_transaction(partial(create_one_time_login, now=now()))
    click.echo(base_of(url) + one_time_login_path(token))


def base_of(url: str | None = None) -> str:
    settings = read_settings()
    return url.rstrip("/") if url else server.address(settings, settings.port)


# Campaigns


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """An option for each setting of a campaign, and one for a file of them."""
    properties = CampaignSettings.model_json_schema()["properties"]
    for name in reversed(properties):
        command = settings_option(name, properties[name])(command)
    help_ = "JSON file with settings, such as `easel export SLUG settings` writes; options win over it."
    return click.option("--settings", "settings_file", type=FILE, help=help_)(command)


def settings_option(name: str, schema: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Numbers are checked with all other rules by `CampaignSettings`, so an empty option can mean none."""
    option = "--" + name.replace("_", "-")
    rules = schema["anyOf"][0] if "anyOf" in schema else schema
    help_ = schema["description"] + default_words(name, schema.get("default"))
    if rules.get("type") == "boolean":
        return click.option(f"{option}/--no-{option[2:]}", name, default=None, help=help_)
    if "enum" in rules:
        return click.option(option, name, type=click.Choice(rules["enum"]), help=help_)
    return click.option(option, name, metavar=METAVARS[rules["type"]], help=help_)


def default_words(name: str, default: Any) -> str:
    if name in form.PRIORS:
        return "  [default: the update law's]"
    if default in (None, ""):
        return ""
    return f"  [default: {default if not isinstance(default, bool) else 'yes' if default else 'no'}]"


def settings_from(before: Mapping[str, Any], file: Path | None, options: Mapping[str, Any]) -> CampaignSettings:
    """Settings as they were, overlaid by the file's and by the options given. Raises `Invalid`."""
    given = {name: value_of(name, value) for name, value in options.items() if value is not None}
    try:
        return CampaignSettings.model_validate({**before, **(settings_in(file) if file else {}), **given})
    except ValidationError as error:
        problems = form.problems(error)
        message = " ".join(f"--{name.replace('_', '-')}: {problem}" for name, problem in problems.items())
        raise Invalid(message, code="settings_invalid", fields=problems) from None


def value_of(name: str, value: Any) -> Any:
    """An empty option means none, where a setting may be none."""
    return None if value == "" and CampaignSettings.model_fields[name].default is None else value


def settings_in(file: Path) -> dict[str, Any]:
    """A JSON object of settings, or one that holds them as `settings`. Raises `Invalid` (`settings_unreadable`)."""
    try:
        document = json.loads(file.read_text("utf-8-sig"))
    except ValueError as problem:
        raise Invalid(f"{file} is not JSON: {problem}.", code="settings_unreadable") from problem
    settings = document.get("settings", document) if isinstance(document, dict) else None
    if not isinstance(settings, dict):
        raise Invalid(f"{file} is not a JSON object of settings.", code="settings_unreadable")
    return settings


@main.group()
def campaign() -> None:
    """Set campaigns up and lead them through their life."""


@campaign.command()
@settings_options
def create(settings_file: Path | None, **options: Any) -> None:
    """Create a draft; its slug is printed."""
    settings = settings_from({}, settings_file, options)
    click.echo(in_transaction(partial(lifecycle.create, settings=settings, now=now())).slug)


@campaign.command()
@click.argument("slug")
@settings_options
def edit(slug: str, settings_file: Path | None, **options: Any) -> None:
    """Change settings of a draft; those not named stay."""

    def change(before: CampaignSettings) -> CampaignSettings:
        return settings_from(before.chosen(), settings_file, options)

    in_transaction(partial(lifecycle.edit, slug=slug, change=change))
    click.echo(f"Saved the settings of {slug}.")


@campaign.command("list")
@as_json
def list_(*, as_json: bool) -> None:
    """List all campaigns, newest first."""
    rows = in_transaction(lifecycle.listed)
    if as_json:
        show_json([summary(row) for row in rows])
        return
    for row in rows:
        counts = f"{row.item_count} items\t{row.judgments_taken}/{row.judgments_wanted} judgments"
        click.echo(f"{row.slug}\t{row.status}\t{counts}")


def summary(row: Row[Any]) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "name": row.name,
        "status": row.status,
        "items": row.item_count,
        "judgments_taken": row.judgments_taken,
        "judgments_wanted": row.judgments_wanted,
        "created_at": row.created_at,
        "launched_at": row.launched_at,
        "finished_at": row.finished_at,
    }


@campaign.command()
@click.argument("slug")
@as_json
def show(slug: str, *, as_json: bool) -> None:
    """Show a campaign: its state, its settings, and the links for annotators."""
    row = in_transaction(partial(lifecycle.find_counted, slug=slug))
    addresses = links(base_of(), row.link_key)
    settings = lifecycle.settings_of(row).model_dump()
    if as_json:
        show_json(summary(row) | {"settings": settings, "links": addresses})
        return
    for part in (summary(row), settings, {f"{name} link": link for name, link in addresses.items()}):
        for name, value in part.items():
            click.echo(f"{name.replace('_', ' ')}: {'' if value is None else value}")


@campaign.command("import")
@click.argument("slug")
@click.argument("file", type=FILE)
@click.option("--shown", metavar="COLUMN", help="The column that annotators see.")
@click.option("--template", metavar="TEMPLATE", help="Or words around columns, such as '{premise} → {hypothesis}'.")
@click.option("--replace", is_flag=True, help="In the place of the items the draft has; otherwise they are added.")
def import_(slug: str, file: Path, **how: Any) -> None:
    """Import items into a draft, all of a FILE or none: CSV, TSV or JSONL with an `id`."""
    with file.open("rb") as opened, progress_bar(opened) as progress:
        count = in_transaction(
            partial(
                items.import_items,
                slug=slug,
                file=opened,
                name=file.name,
                max_mb=read_settings().max_upload_mb,
                progress=progress,
                **how,
            )
        )
    click.echo(f"Imported {count:,} items.")


@contextmanager
def progress_bar(file: BinaryIO) -> Iterator[items.Progress]:
    """A bar for people; how far it is goes by bytes, since nobody knows the number of rows."""
    if not sys.stderr.isatty():
        yield lambda _rows: None
        return
    size = os.fstat(file.fileno()).st_size
    with click.progressbar(length=size, label="Importing", file=sys.stderr) as bar:
        yield lambda _rows: bar.update(file.tell() - bar.pos)


@campaign.command("import-responses")
@click.argument("slug")
@click.argument("file", type=FILE)
def import_responses(slug: str, file: Path) -> None:
    """Import a result file of Mechanical Turk (Input.id1.., Answer.range1..) as responses, all of it or nothing."""
    max_mb = read_settings().max_upload_mb
    with file.open("rb") as opened:
        work = partial(
            responses_import.import_results, slug=slug, file=opened, name=file.name, now=now(), max_mb=max_mb
        )
        done = in_transaction(work)
    click.echo(f"Imported {done.responses:,} responses on {done.items:,} items.")
    if done.over_wanted:
        click.echo(f"{done.over_wanted:,} items now have more judgments than you wanted; all of them count.")
    if done.finished:
        click.echo("Every item has the judgments you wanted, so the campaign is finished.")


def add_action(action: str, words: str) -> None:
    @campaign.command(action, help=words)
    @click.argument("slug")
    def lead(slug: str) -> None:
        row = in_transaction(partial(lifecycle.transition, slug=slug, action=action, now=now()))
        click.echo(f"{slug} is {row.status}.")
        if action == "launch":
            click.echo(f"Annotators: {links(base_of(), row.link_key)['link']}")


for _action, _words in ACTIONS.items():
    add_action(_action, _words)


@campaign.command()
@click.argument("slug")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(slug: str, *, yes: bool) -> None:
    """Delete a draft with its items. A launched campaign holds people's answers and is never deleted."""
    if not yes:
        click.confirm(f"Delete the draft {slug} with its items?", abort=True)
    in_transaction(partial(lifecycle.remove, slug=slug))
    click.echo(f"Deleted {slug}.")


# Rehearsal


@main.command()
@click.argument("slug")
@click.option("--hits", type=click.IntRange(1), default=100, show_default=True, help="HITs to answer at most.")
@click.option("--annotators", type=click.IntRange(1), default=12, show_default=True, help="How many take part.")
@click.option("--noise", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Their error, on 0 to 1.")
@click.option("--truth", "truth_column", metavar="COLUMN", help="What they believe; default: random values.")
@click.option("--pace", type=click.FloatRange(0), default=0.1, show_default=True, help="Seconds between answers.")
@click.option("--seed", type=click.IntRange(0), default=2018, show_default=True, help="Start of their random choices.")
def simulate(slug: str, pace: float, seed: int, **crowd: Any) -> None:
    """Let made-up annotators answer a campaign that no person has answered: to rehearse it, or to see it live."""

    async def work(engine: AsyncEngine) -> int:
        async with engine.begin() as connection:
            found = await lifecycle.find(connection, slug)
        rng = np.random.default_rng(seed)
        return await simulate_crowd(engine, found, rng=rng, clock=now, answered=partial(asyncio.sleep, pace), **crowd)

    click.echo(f"Made-up annotators answered {on_engine(work):,} HITs of {slug}.")


# What comes out


@main.command()
@click.argument("slug")
@as_json
def verify(slug: str, *, as_json: bool) -> None:
    """Replay all responses from the prior and compare every posterior bit for bit."""

    async def work(engine: AsyncEngine) -> Verification:
        async with snapshot(engine) as connection:
            return await verify_posteriors(connection, await lifecycle.find(connection, slug))

    found = on_engine(work)
    if as_json:
        show_json(asdict(found) | {"clean": found.clean})
    elif found.clean:
        click.echo(f"Replayed {found.responses:,} responses: the posteriors of {found.items:,} items are the same.")
    for mismatch in () if as_json else found.mismatches:
        words = f"item {mismatch.external_id}: {mismatch.column} is {mismatch.stored!r}"
        click.echo(f"{words}, replayed {mismatch.replayed!r}")
    if not found.clean:
        raise Failure(f"{found.mismatch_count:,} stored numbers differ from the replay. (verify_failed)")


@main.command()
@click.argument("slug")
@click.argument("what", type=click.Choice([*EXPORTS, "settings"]))
@click.option("--format", "format_", type=click.Choice(["csv", "jsonl"]), default="csv", show_default=True)
@click.option("--spreadsheet", is_flag=True, help="CSV in which no text is taken for a formula.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout.")
def export(slug: str, what: str, format_: Format, output: Path | None, *, spreadsheet: bool) -> None:
    """Write items with posteriors, responses in long form, settings, or the EASL program's file."""

    async def work(engine: AsyncEngine) -> None:
        file = await export_of(engine, slug, what, format_, spreadsheet=spreadsheet)
        await (written(file.chunks, output) if output else printed(file.chunks))

    on_engine(work)


async def printed(chunks: AsyncIterator[str]) -> None:
    async for chunk in chunks:
        click.echo(chunk.encode(), nl=False)


async def written(chunks: AsyncIterator[str], output: Path) -> None:
    """Into a file beside it first, so that no half of an export is ever taken for the whole."""
    part = output.with_name(output.name + ".part")
    try:
        with part.open("wb") as file:
            async for chunk in chunks:
                file.write(chunk.encode())
        part.replace(output)
    except OSError as problem:
        raise Failure(f"{output} cannot be written: {problem.strerror}. (file_not_written)") from problem
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
