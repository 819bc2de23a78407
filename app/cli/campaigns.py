"""`easel campaign ...`: set campaigns up and lead them through their life."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, get_args

import click
from pydantic import ValidationError
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.campaigns import (
    campaign_zip,
    counted,
    experiment_arms,
    form,
    groups,
    hints,
    items,
    lifecycle,
    responses_import,
    stored_file,
)
from app.campaigns.answer_options import AnswerFileOptions
from app.campaigns.campaign_zip import Table
from app.campaigns.columns import ROW_NUMBERS, Matching, column_of_ids
from app.campaigns.progress import Progress
from app.campaigns.questions import QUESTIONS, path_of, questions
from app.campaigns.settings import CampaignSettings
from app.cli.interrupts import STOPPED
from app.cli.layout import aligned, terminal_width, wrapped
from app.cli.running import (
    as_json,
    base_of,
    in_transaction,
    in_words,
    now,
    on_engine,
    output_option,
    progress_bar,
    put_out,
    show_json,
)
from app.crowd.places import place_of
from app.crowd.registry import links, public_link
from app.errors import Invalid
from app.media.archive import Packed
from app.settings import read_settings
from app.upload import ReadAs

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
METAVARS = {"integer": "INTEGER", "number": "NUMBER", "string": "TEXT", "array": "JSON", "object": "JSON"}
FIXED = (
    "Fixed from then on: the items that are there, the question and its scale, how many items a HIT has, {rule}, and "
    "how answers become scores."
)
ACTIONS = {
    "pause": "Hand out no more HITs; open ones can still be answered.",
    "resume": "Open a paused campaign again.",
    "finish": "Close a campaign to annotators.",
    "reopen": "Open a finished campaign again.",
    "archive": "Leave a campaign that does not run out of the list.",
    "restore": "Bring an archived campaign back into the list.",
}


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
    rules = form.rules_of(schema)
    help_ = schema["description"] + default_words(schema.get("default"))
    if rules.get("type") == "boolean":
        return click.option(f"{option}/--no-{option[2:]}", name, default=None, help=help_)
    if "enum" in rules:
        return click.option(option, name, type=click.Choice(rules["enum"]), help=help_)
    metavar = {"string": "LINES", "number": "NUMBERS"}.get(rules.get("items", {}).get("type"), METAVARS[rules["type"]])
    return click.option(option, name, metavar=metavar, help=help_)


def default_words(default: Any) -> str:
    if default in (None, ""):
        return ""
    return f"  [default: {in_words(default)}]"


def settings_from(before: Mapping[str, Any], file: Path | None, options: Mapping[str, Any]) -> CampaignSettings:
    """Settings as they were, overlaid by the file's and by the options given. Raises `Invalid`."""
    try:
        return CampaignSettings.model_validate({**before, **(settings_in(file) if file else {}), **given_in(options)})
    except ValidationError as error:
        problems = form.problems(error)
        message = " ".join(f"--{name.replace('_', '-')}: {problem}" for name, problem in problems.items())
        raise Invalid(message, code="settings_invalid", fields=problems) from None


def given_in(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from the options that were given. Raises `Invalid` (`settings_unreadable`)."""
    return {name: value_of(name, value) for name, value in options.items() if value is not None}


def value_of(name: str, value: Any) -> Any:
    """An empty option means none, where a setting may be none. Raises `Invalid` (`settings_unreadable`)."""
    if name == groups.DESIGN_SETTINGS:
        return json_object(value, "--design-settings")
    if name == groups.CRITERIA:
        return read_json(value, "--criteria") if value else []
    return None if value == "" and CampaignSettings.model_fields[name].default is None else value


def settings_in(file: Path) -> dict[str, Any]:
    """A JSON object of settings, or one that holds them as `settings`. Raises `Invalid` (`settings_unreadable`)."""
    document = json_object(file.read_bytes(), file)
    settings = document.get("settings", document)
    if not isinstance(settings, dict):
        raise Invalid(f"{file} is not a JSON object of settings.", code="settings_unreadable")
    return settings


def read_json(document: str | bytes, name: object) -> Any:
    """Raises `Invalid` (`settings_unreadable`)."""
    try:
        return json.loads(document)
    except ValueError as problem:
        raise Invalid(f"{name} is not JSON: {problem}.", code="settings_unreadable") from problem


def json_object(document: str | bytes, name: object) -> dict[str, Any]:
    """Raises `Invalid` (`settings_unreadable`)."""
    found = read_json(document, name)
    if not isinstance(found, dict):
        raise Invalid(f"{name} is not a JSON object of settings.", code="settings_unreadable")
    return found


@click.group()
def campaign() -> None:
    """Set campaigns up and lead them through their life."""


@campaign.command()
@click.argument("path", metavar="[FILE]", required=False, type=FILE)
@click.option(
    "--template",
    metavar="NAME",
    type=click.Choice(QUESTIONS),
    help="A question that comes with Easel; see `templates`.",
)
@click.option("--items", "table", type=FILE, help="Table of items, in the place of the one that FILE names.")
@settings_options
def create(
    path: Path | None, template: str | None, table: Path | None, settings_file: Path | None, **options: Any
) -> None:
    """Create a draft; its slug is printed. Its settings come from a campaign FILE in YAML, or a zip with one
    (docs/campaign-file.md), from a question template, from JSON or from options alone; options win.
    """
    if sum(source is not None for source in (path, template, settings_file)) > 1:
        raise click.UsageError("Name one of FILE, --template and --settings.")
    path = path_of(template) if template else path
    if path is None and table is not None:
        raise click.UsageError("--items goes with FILE or --template.")
    if path is not None:
        row = from_file(path, table, options)
    else:
        settings = settings_from({}, settings_file, options)
        row = in_transaction(partial(lifecycle.create, settings=settings, now=now()))
    click.echo(row.slug)
    if advice := hints.advice(row):
        click.echo(advice, err=True)  # the slug alone is what scripts read


def from_file(path: Path, table: Path | None, options: Mapping[str, Any]) -> Row[Any]:
    """A draft from a campaign file, or from a zip with one; a table that it names lies in the zip or beside it."""
    limits = read_settings()
    with path.open("rb") as file, ExitStack() as stack:
        sent = campaign_zip.read(file, path.name, limits, given_in(options))
        named = sent.read.content.items and sent.read.content.items.file
        if table is None and sent.table is None and named:
            table = stored_file.beside(path.parent, named)
        found = Table(table.name, stack.enter_context(table.open("rb"))) if table else sent.table
        create = partial(stored_file.create, read=sent.read, table=found, media=sent.media)
        return in_transaction(partial(create, now=now(), max_mb=limits.max_upload_mb))


@campaign.command()
@as_json
def templates(*, as_json: bool) -> None:
    """List the questions to begin with, which come with Easel."""
    if as_json:
        show_json([{"name": question.name} | question.about.model_dump() for question in questions()])
        return
    for question in questions():
        click.echo("\n".join([question.name, *wrapped(question.about.description, terminal_width(), "  ")]))


@campaign.command("file")
@click.argument("slug")
@click.option("--items", "with_items", is_flag=True, help="With its items, at most 10,000.")
@output_option
def file_(slug: str, output: Path | None, *, with_items: bool) -> None:
    """Write a campaign as one YAML file, from which `create` makes an equal one. Where its items name images,
    recordings or videos, --items makes it a zip with these.
    """
    filed = in_transaction(partial(stored_file.filed, slug=slug, with_items=with_items))
    if filed.ending == "zip" and output is None and sys.stdout.isatty():
        raise click.UsageError("This is a zip. Name a file for it with -o.")

    async def pieces() -> AsyncIterator[bytes]:
        for piece in stored_file.pieces_of(filed):
            yield piece

    asyncio.run(put_out(pieces(), output))


@campaign.command()
@click.argument("slug")
def copy(slug: str) -> None:
    """Make a draft with the settings and the items of a campaign; its slug is printed."""
    click.echo(in_transaction(partial(lifecycle.copy, slug=slug, now=now())).slug)


@campaign.command()
@click.argument("slug")
@settings_options
def edit(slug: str, settings_file: Path | None, **options: Any) -> None:
    """Change settings of a draft, or what a launch leaves open; those not named stay."""

    def change(before: CampaignSettings) -> CampaignSettings:
        return settings_from(before.model_dump(), settings_file, options)

    row = in_transaction(partial(lifecycle.edit, slug=slug, change=change))
    click.echo(f"Saved the settings of {slug}.")
    if advice := hints.advice(row):
        click.echo(advice)


@campaign.command("list")
@click.option("--archived", is_flag=True, help="Those that were archived instead of the others.")
@as_json
def list_(*, archived: bool, as_json: bool) -> None:
    """List the campaigns that are not archived, newest first."""
    rows = in_transaction(partial(counted.listed, archived=archived))
    if as_json:
        show_json([counted.summary(row) for row in rows])
    elif rows:
        titles = ["Campaign", "Status", "Items", "Judgments", "of"]
        cells = [
            [row.slug, row.status, f"{row.item_count:,}", f"{row.judgments_taken:,}", f"{row.judgments_wanted:,}"]
            for row in rows
        ]
        click.echo("\n".join(aligned(titles, cells, right={2, 3, 4}, width=terminal_width())))
    elif archived:
        click.echo("No campaign is archived.")
    else:
        click.echo("There are no campaigns yet. Make one: easel campaign create --help")


@campaign.command()
@click.argument("slug")
@as_json
def show(slug: str, *, as_json: bool) -> None:
    """Show a campaign: its state, its settings, and the links for annotators; of an arm of an experiment those that
    lead to one of the arms at random.
    """
    row = in_transaction(partial(counted.find_counted, slug=slug))
    addresses = links(*place_of(base_of(), row.link_key, row.experiment_key))
    settings = lifecycle.settings_of(row).model_dump()
    if as_json:
        show_json(counted.summary(row) | {"settings": settings, "links": addresses})
        return
    for name, value in (counted.summary(row) | settings | addresses).items():
        click.echo(f"{name.replace('_', ' ')}: {in_words(value)}")


encoding_option = click.option(
    "--encoding", metavar="NAME", help="How the file is encoded if not in Unicode, such as windows-1252."
)
quotes_option = click.option(
    "--quotes",
    type=click.Choice(["cells", "text"]),
    help="Whether quotation marks enclose cells, or are part of the text; otherwise the file decides.",
)


@campaign.command("import")
@click.argument("slug")
@click.argument("file", type=FILE)
@click.option(
    "--id",
    "identifier",
    metavar="COLUMN",
    default="id",
    show_default=True,
    help=f"The column of ids, each unlike others; '{ROW_NUMBERS}' to number the rows.",
)
@click.option("--shown", metavar="COLUMN", help="The column that annotators see.")
@click.option("--template", metavar="TEMPLATE", help="Or words around columns, such as '{premise} → {hypothesis}'.")
@click.option("--priors", is_flag=True, help="Begin with the priors in alpha and beta (mu and sigma2, ...).")
@click.option(
    "--ignore",
    metavar="COLUMN",
    multiple=True,
    type=click.Choice(["check", "system", "source", "reference"]),
    help="A column that is kept and has no meaning of its own: check, system, source or reference.",
)
@encoding_option
@quotes_option
@click.option("--replace", is_flag=True, help="In the place of the items the draft has; otherwise they are added.")
@click.option("--media", type=FILE, help="A zip of the images, recordings or videos that items name.")
def import_(
    slug: str, file: Path, media: Path | None, encoding: str | None, quotes: str | None, *, replace: bool, **how: Any
) -> None:
    """Import items into a campaign, all of a FILE or none: CSV, TSV or JSON, perhaps in a gzip or zip; or outputs of
    systems, with `system`, `segment` and `output`.
    """
    limits = read_settings()
    identifier, ignored = column_of_ids(how.pop("identifier")), frozenset(how.pop("ignore"))
    with file.open("rb") as opened, importing(opened) as progress, ExitStack() as stack:
        zip_ = stack.enter_context(media.open("rb")) if media else None
        packed = Packed(zip_, limits.max_media_file_mb, limits.max_media_mb) if zip_ else None
        done = in_transaction(
            partial(
                items.import_items,
                slug=slug,
                file=opened,
                name=file.name,
                matching=Matching(identifier, ignored=ignored, **how),
                read_as=ReadAs(encoding, quotes),
                replace=replace,
                max_mb=limits.max_upload_mb,
                media=packed,
                progress=progress,
            )
        )
    of_systems = in_transaction(partial(lifecycle.find, slug=slug)).segment_count
    for sentence in done.sentences("output" if of_systems else "item"):
        click.echo(sentence)


def at_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty()


@contextmanager
def importing(file: BinaryIO) -> Iterator[Progress]:
    """A bar for people; how far it is goes by bytes, since nobody knows the number of rows."""
    with progress_bar(os.fstat(file.fileno()).st_size, "Importing") as far:
        yield lambda _rows: far(file.tell())


def answer_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for everything that can be said of a file of answers."""
    for name, field in reversed(AnswerFileOptions.model_fields.items()):
        choices = [choice for choice in get_args(field.annotation) if choice]
        option = click.option(
            f"--{name.replace('_', '-')}",
            type=click.Choice(choices) if choices else str,
            default=field.default or None,
            show_default=bool(field.default),
            help=field.description,
        )
        command = option(command)
    return command


@campaign.command("import-responses")
@click.argument("slug")
@click.argument("file", type=FILE)
@answer_file_options
def import_responses(slug: str, file: Path, **said: str | None) -> None:
    """Import answers that were given elsewhere as responses: CSV, TSV or JSON.

    A row for each item of a HIT, with the columns hit, annotator, item and value; an export of responses; or a result
    file of Mechanical Turk (Input.id1.., Answer.range1..). For other tables the options say which column holds what.
    See docs/importing-responses.md.

    A file that is refused changes nothing. If this is interrupted, run it again: it goes on after the HITs it stored.
    """
    options = AnswerFileOptions.model_validate({name: value for name, value in said.items() if value}).reading

    async def work(engine: AsyncEngine) -> responses_import.ImportedResponses:
        max_mb = read_settings().max_upload_mb
        with file.open("rb") as opened:
            return await responses_import.import_results(
                engine, slug, opened, file.name, now=now(), max_mb=max_mb, options=options
            )

    try:
        done = on_engine(work)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{STOPPED} Import the same file again, and it goes on from there.") from None
    for sentence in responses_import.sentences(done):
        click.echo(sentence)


def add_action(action: str, words: str) -> None:
    @campaign.command(action, help=words)
    @click.argument("slug")
    def lead(slug: str) -> None:
        row = in_transaction(partial(lifecycle.transition, slug=slug, action=action, now=now()))
        click.echo(f"{slug} is {'archived' if row.archived_at else row.status}.")


for _action, _words in ACTIONS.items():
    add_action(_action, _words)


@campaign.command()
@click.argument("slug")
@click.option("--yes", is_flag=True, help="Do not ask.")
def launch(slug: str, *, yes: bool) -> None:
    """Open a draft to annotators; its settings and items are fixed from then on. Asks first, at a terminal."""
    draft = in_transaction(partial(lifecycle.find, slug=slug))
    if priors := in_transaction(partial(items.sentence_on_priors, campaign_id=draft.id)):
        click.echo(priors)
    if not yes and at_terminal():
        if goal := hints.goal_before_launch(draft):
            click.echo(f"{goal} How many it will take: easel plan {slug}")
        if advice := hints.advice(draft):
            click.echo(advice)
        click.confirm(f"Launch {slug}? {FIXED.format(rule=hints.fixed_rule(draft))}", abort=True)

    async def work(connection: AsyncConnection) -> tuple[Row[Any], experiment_arms.ArmOfExperiment | None]:
        row = await lifecycle.transition(connection, slug, "launch", now=now())
        return row, await experiment_arms.of_campaign(connection, row.id, None)

    row, arm = in_transaction(work)
    link = public_link(*experiment_arms.where_people_come(base_of(), row, arm))
    click.echo(f"{slug} is {row.status}.\nAnnotators: {link} (while Easel is running)")
    if row.checks_percent and not row.has_checks:
        click.echo(
            f"{row.checks_percent:g} of a hundred HITs are to show a check, and there is none: add items with some."
        )


@campaign.command()
@click.argument("slug")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(slug: str, *, yes: bool) -> None:
    """Delete a draft with its items. A launched campaign holds people's answers and is never deleted."""
    if not yes:
        in_transaction(partial(lifecycle.removable, slug=slug))
        click.confirm(f"Delete the draft {slug} with its items?", abort=True)
    in_transaction(partial(lifecycle.remove, slug=slug))
    click.echo(f"Deleted {slug}.")
