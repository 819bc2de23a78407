"""`easel campaign ...`: create campaigns, import their items and answers, and change their status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.campaigns.question_names import QUESTION_NAMES
from app.cli.campaign_state import print_campaign_state, print_goal_progress, print_or_mark_alerts
from app.cli.command_group import CommandGroup
from app.cli.conditions import print_square_counts
from app.cli.import_files import import_item_file, import_response_file
from app.cli.items import items_group
from app.cli.participants import change_or_count_participants
from app.cli.run_command import (
    current_utc_time,
    given_or_likely_server_url,
    json_option,
    output_option,
    print_json,
    run_in_transaction,
    run_with_engine,
    write_chunks_to_file_or_print,
)
from app.cli.settings_options import (
    READABLE_FILE,
    CommandWithSettingsOptions,
    settings_of_given_options,
    validated_settings_after_overrides,
)
from app.cli.text_table import print_text_table, terminal_width, wrap_text_into_lines

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from app.campaigns import experiment_arms
    from app.campaigns.settings import CampaignSettings
    from app.designs.campaign import Campaign

FIXED_AFTER_LAUNCH_TEXT = (
    "Can’t be changed later: the uploaded items, the question and its scale, the items per HIT, {rule}, and "
    "how answers become scores."
)
CAMPAIGN_ACTION_HELP = {
    "pause": "Give out no more HITs. Open HITs can still be answered.",
    "resume": "Open a paused campaign again.",
    "finish": "Close a campaign to annotators.",
    "reopen": "Open a finished campaign again.",
    "archive": "Remove a campaign that is not running from the list.",
    "restore": "Bring an archived campaign back into the list.",
}


@click.group(cls=CommandGroup)
def campaign() -> None:
    """Create campaigns, import into them and change their status."""


campaign.add_command(items_group)
campaign.add_command(change_or_count_participants)
campaign.add_command(print_square_counts)
campaign.add_command(print_campaign_state)
campaign.add_command(print_goal_progress)
campaign.add_command(print_or_mark_alerts)


@campaign.command("create", cls=CommandWithSettingsOptions)
@click.argument("path", metavar="[FILE]", required=False, type=READABLE_FILE)
@click.option(
    "--template",
    metavar="NAME",
    type=click.Choice(QUESTION_NAMES),
    help="Question template to start from; see `easel campaign templates`.",
)
@click.option("--items", "table", type=READABLE_FILE, help="Table of items, instead of the one named in FILE.")
@click.option(
    "--id",
    "identifier",
    metavar="COLUMN",
    help="With --items: its column of unique ids; see `easel campaign import`.",
)
@click.option("--shown", metavar="COLUMN", help="With --items: its column that annotators see.")
def create_campaign_draft(
    path: Path | None,
    template: str | None,
    table: Path | None,
    settings_file: Path | None,
    *,
    identifier: str | None,
    shown: str | None,
    **options: Any,
) -> None:
    """Create a draft and print its slug. Its settings come from a campaign FILE in YAML or a zip with one
    (docs/reference/campaign-file.md), from a question template, from JSON, or from options alone. Options override the
    other sources.
    """
    from app.campaigns import hints, lifecycle
    from app.campaigns.starter_questions import path_of_starter_question_file

    if sum(source is not None for source in (path, template, settings_file)) > 1:
        raise click.UsageError("Give only one of FILE, --template and --settings.")
    path = path_of_starter_question_file(template) if template else path
    if path is None and table is not None:
        raise click.UsageError("Use --items only with FILE or --template.")
    columns = {name: column for name, column in (("id", identifier), ("shown", shown)) if column is not None}
    if columns and table is None:
        raise click.UsageError("Use --id and --shown only with --items.")
    if path is not None:
        row = create_draft_from_file(path, table, columns, options)
    else:
        settings = validated_settings_after_overrides({}, settings_file, options)
        row = run_in_transaction(
            partial(lifecycle.create_draft_campaign_or_refuse, settings=settings, now=current_utc_time())
        )
    click.echo(row.slug)
    if advice := hints.advice_to_use_better_rule_or_empty(row):
        click.echo(advice, err=True)  # the slug alone is what scripts read


def create_draft_from_file(
    path: Path, table: Path | None, columns: Mapping[str, str], options: Mapping[str, Any]
) -> Campaign:
    """Create a draft from a campaign file or a zip; a table that it names is in the zip or next to the file.

    Args:
        path: The campaign file, or the zip.
        table: Table of items to read instead.
        columns: Columns of this table, by the name of the field that names each in a campaign file.
        options: Options with settings.

    """
    from app.imports import campaign_file_io, campaign_zip
    from app.imports.campaign_zip import ItemTable
    from app.settings import read_settings

    limits = read_settings()
    with path.open("rb") as file, ExitStack() as stack:
        upload = campaign_zip.read_campaign_file_or_zip(file, path.name, limits, settings_of_given_options(options))
        table_name = upload.parsed_file.content.items and upload.parsed_file.content.items.file
        if table is None and upload.table is None and table_name:
            table = campaign_file_io.file_path_in_folder_or_refuse(path.parent, table_name)
        if table:
            upload = upload._replace(table=ItemTable(table.name, stack.enter_context(table.open("rb"))))
        if columns:
            upload = upload._replace(parsed_file=upload.parsed_file.with_columns_of_items(columns))
        create_draft = partial(campaign_file_io.create_draft_from_campaign_file, sent=upload)
        return run_in_transaction(partial(create_draft, now=current_utc_time(), max_mb=limits.max_upload_mb))


@campaign.command("templates")
@json_option
def print_question_templates(*, as_json: bool) -> None:
    """List the question templates that come with Easel."""
    from app.campaigns.starter_questions import load_starter_questions

    if as_json:
        print_json([{"name": question.name} | question.about.model_dump() for question in load_starter_questions()])
        return
    for question in load_starter_questions():
        click.echo(
            "\n".join([question.name, *wrap_text_into_lines(question.about.description, terminal_width(), "  ")])
        )


@campaign.command("file")
@click.argument("slug")
@click.option("--items", "with_items", is_flag=True, help="Include the items, at most 10,000.")
@output_option
def write_campaign_file(slug: str, output: Path | None, *, with_items: bool) -> None:
    """Write a campaign as one YAML file, from which `create` makes a campaign with the same settings.

    If items name images, recordings or videos, --items writes a zip that contains these files.
    """
    from app.imports import campaign_file_io

    archive = run_in_transaction(partial(campaign_file_io.build_campaign_yaml_or_zip, slug=slug, with_items=with_items))
    if archive.ending == "zip" and output is None and sys.stdout.isatty():
        raise click.UsageError("This is a zip. Name a file for it with -o.")

    async def pieces() -> AsyncIterator[bytes]:
        for piece in campaign_file_io.iterate_archive_bytes_then_close(archive):
            yield piece

    asyncio.run(write_chunks_to_file_or_print(pieces(), output))


@campaign.command("copy")
@click.argument("slug")
@click.option("--name", default="", help="Name of the copy. Default: the name of the campaign, with “(copy)”.")
@click.option("--without-items", is_flag=True, help="Copy only the settings.")
def copy_campaign_and_print_slug(slug: str, *, name: str, without_items: bool) -> None:
    """Create a draft with the settings and items of a campaign, and print its slug. Members and read-only links are not
    copied.
    """
    from app.campaigns import lifecycle
    from app.campaigns.setting_types import MAX_CAMPAIGN_NAME_CHARACTERS

    chosen = lifecycle.CampaignCopy(name=name[:MAX_CAMPAIGN_NAME_CHARACTERS], items=not without_items)
    copy = partial(lifecycle.create_copy_of_campaign, slug=slug, now=current_utc_time(), chosen=chosen)
    click.echo(run_in_transaction(copy).slug)


@campaign.command("edit", cls=CommandWithSettingsOptions)
@click.argument("slug")
def edit_campaign_settings(slug: str, settings_file: Path | None, **options: Any) -> None:
    """Change settings of a draft, or those settings of a launched campaign that can still be changed."""
    from app.annotation.platforms.closed_links import load_notes_on_closed_links
    from app.campaigns import hints, settings_edits

    def change(before: CampaignSettings) -> CampaignSettings:
        return validated_settings_after_overrides(before.model_dump(), settings_file, options)

    async def store(connection: AsyncConnection) -> tuple[Campaign, list[str]]:
        changed = await settings_edits.store_changed_settings_or_refuse(connection, slug, change)
        return changed, await load_notes_on_closed_links(connection, changed)

    row, notes = run_in_transaction(store)
    click.echo("\n".join([f"Saved the settings of {slug}.", *notes]))
    if advice := hints.advice_to_use_better_rule_or_empty(row):
        click.echo(advice)


@campaign.command("list")
@click.option("--archived", "only_archived", is_flag=True, help="List archived campaigns instead.")
@json_option
def print_campaigns(*, only_archived: bool, as_json: bool) -> None:
    """List the campaigns that are not archived, newest first."""
    from app.campaigns import summaries

    rows = run_in_transaction(partial(summaries.load_campaigns_with_progress, only_archived=only_archived))
    if as_json:
        print_json([summaries.campaign_progress_as_dict(row) for row in rows])
    elif rows:
        titles = ["Campaign", "Status", "Items", "Judgments", "of"]
        cells = [
            [row.slug, row.status, f"{row.item_count:,}", f"{row.judgments_taken:,}", f"{row.judgments_wanted:,}"]
            for row in rows
        ]
        print_text_table(titles, cells, right_columns={2, 3, 4})
    elif only_archived:
        click.echo("No campaign is archived.")
    else:
        click.echo("There are no campaigns yet. Create one: easel campaign create --help")


campaign.add_command(import_item_file)
campaign.add_command(import_response_file)


def is_at_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty()


def add_command_for_campaign_action(action: str, help_text: str) -> None:
    @campaign.command(action, help=help_text)
    @click.argument("slug")
    def change_status(slug: str) -> None:
        from app.campaigns import lifecycle

        row = run_in_transaction(
            partial(lifecycle.change_campaign_status_or_refuse, slug=slug, action=action, now=current_utc_time())
        )
        click.echo(f"{slug} is {'archived' if row.archived_at else row.status}.")


for _action, _words in CAMPAIGN_ACTION_HELP.items():
    add_command_for_campaign_action(_action, _words)


@campaign.command("launch")
@click.argument("slug")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def launch_campaign_after_asking(slug: str, *, yes: bool) -> None:
    """Open a draft to annotators. This fixes its items and most settings. At a terminal, the command asks first."""
    from app.annotation.platforms.registry import open_link_url_of_campaign
    from app.campaigns import experiment_arms, hints, lifecycle
    from app.campaigns.launch import load_launch_notes
    from app.campaigns.totals import sentences_on_totals
    from app.record.campaign import load_campaign_for_page_or_refuse

    draft = run_in_transaction(partial(load_campaign_for_page_or_refuse, slug=slug))
    for note in run_in_transaction(partial(load_launch_notes, campaign=draft)):
        click.echo(note)
    if not yes and is_at_terminal():
        if draft.item_count:
            click.echo(sentences_on_totals(draft))
        if goal := hints.goal_sentences_before_launch_or_empty(draft):
            click.echo(f"{goal} To estimate the judgments needed: easel plan {slug}")
        if advice := hints.advice_to_use_better_rule_or_empty(draft):
            click.echo(advice)
        click.confirm(
            f"Launch {slug}? {FIXED_AFTER_LAUNCH_TEXT.format(rule=hints.describe_rule_fixed_by_launch(draft))}",
            abort=True,
        )

    async def work(connection: AsyncConnection) -> tuple[Campaign, experiment_arms.CampaignArm | None]:
        row = await lifecycle.change_campaign_status_or_refuse(connection, slug, "launch", now=current_utc_time())
        return row, await experiment_arms.load_experiment_arm_or_none(connection, row.id, None)

    row, arm = run_in_transaction(work)
    link = open_link_url_of_campaign(
        *experiment_arms.annotator_link_base_and_key_of_campaign(given_or_likely_server_url(), row, arm)
    )
    click.echo(f"{slug} is {row.status}.\nAnnotators: {link} (while Easel is running)")
    if row.checks_percent and not row.has_checks:
        click.echo(
            f"{row.checks_percent:g} % of HITs should show a check, but the campaign has no checks. Import items "
            "that include checks."
        )


@campaign.command("revert")
@click.argument("slug")
def revert_campaign_to_draft(slug: str) -> None:
    """Make a launched campaign without answers a draft again. Open HITs end."""
    from app.campaigns import empty_campaigns

    run_in_transaction(partial(empty_campaigns.revert_unanswered_to_draft_or_refuse, slug=slug))
    click.echo(f"{slug} is a draft again.")


@campaign.command("recompute")
@click.argument("slug")
def recompute_scores_by_newest_law(slug: str) -> None:
    """Recompute all scores from the same answers, under the newest edition of the campaign's update law."""
    from app.record.law_editions import move_to_newest_edition_and_return_former

    before = run_with_engine(
        lambda engine: move_to_newest_edition_and_return_former(engine, slug, now=current_utc_time())
    )
    click.echo(f"{slug} moved from edition {before.edition} to edition {before.newest} of {before.law}.")


@campaign.command("delete")
@click.argument("slug")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_campaign_after_asking(slug: str, *, yes: bool) -> None:
    """Delete a draft, or a finished campaign without answers, with its items. Answers are never deleted."""
    from app.campaigns import empty_campaigns

    if not yes:
        run_in_transaction(partial(empty_campaigns.lock_and_load_deletable_campaign_or_refuse, slug=slug))
        click.confirm(f"Delete {slug} with its items?", abort=True)
    run_in_transaction(partial(empty_campaigns.delete_empty_campaign_or_refuse, slug=slug))
    click.echo(f"Deleted {slug}.")
