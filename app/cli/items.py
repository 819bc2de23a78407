"""`easel campaign items ...`: retire, restore, delete and correct single items, and use some as gold items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.campaigns.known_answer_limits import DEFAULT_KNOWN_ANSWER_COLUMN, MAX_GOLD_ITEMS_AT_ONCE, MIN_GOLD_ITEMS
from app.cli.command_group import CommandGroup
from app.cli.run_command import current_utc_time, run_in_transaction
from app.cli.settings_options import READABLE_FILE
from app.errors import join_names, pluralize

if TYPE_CHECKING:
    from app.imports.item_changes import ItemAction

ITEM_ACTION_PHRASES = {"retire": "Retired", "restore": "Restored", "delete": "Deleted"}

item_ids_argument = click.argument("item_ids", metavar="ID...", nargs=-1, required=True)


@click.group("items", cls=CommandGroup)
def items_group() -> None:
    """Retire, restore, delete and correct single items, and use some as gold items."""


def retire_restore_or_delete_and_print_count(slug: str, action: ItemAction, item_ids: Sequence[str]) -> None:
    """Change items, all or none, and print how many were changed."""
    from app.imports import item_changes

    ids = list(dict.fromkeys(item_ids))
    count = run_in_transaction(
        partial(
            item_changes.retire_restore_or_delete_items_and_count,
            slug=slug,
            action=action,
            item_ids=ids,
            now=current_utc_time(),
        )
    )
    click.echo(f"{ITEM_ACTION_PHRASES[action]} {pluralize(count, 'item')} of {slug}.")
    if count < len(ids):
        click.echo(f"{pluralize(len(ids) - count, 'item')} needed no change.")


@items_group.command("retire")
@click.argument("slug")
@item_ids_argument
def retire_items(slug: str, item_ids: tuple[str, ...]) -> None:
    """Stop asking about items, after the launch. Their answers and scores stay. All are changed or none."""
    retire_restore_or_delete_and_print_count(slug, "retire", item_ids)


@items_group.command("restore")
@click.argument("slug")
@item_ids_argument
def restore_items(slug: str, item_ids: tuple[str, ...]) -> None:
    """Ask about retired items again. All are changed or none."""
    retire_restore_or_delete_and_print_count(slug, "restore", item_ids)


@items_group.command("delete")
@click.argument("slug")
@item_ids_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_items_from_draft(slug: str, item_ids: tuple[str, ...], *, yes: bool) -> None:
    """Delete items, gold and attention items from a draft. All are deleted or none."""
    if not yes:
        click.confirm(f"Delete {pluralize(len(set(item_ids)), 'item')} of {slug}?", abort=True)
    retire_restore_or_delete_and_print_count(slug, "delete", item_ids)


@items_group.command("correct")
@click.argument("slug")
@click.argument("item_id", metavar="ID")
@click.argument("new_text", metavar="[TEXT]", required=False)
@click.option("--file", "text_file", type=READABLE_FILE, help="File with the text in UTF-8, instead of TEXT.")
@click.option("--segment", "segment_id", help="For systems: the segment of the output; ID is the system.")
def correct_item_text(
    slug: str, item_id: str, new_text: str | None, *, text_file: Path | None, segment_id: str | None
) -> None:
    """Correct the text of an item. Open HITs still show the former text, and exports say which one was judged."""
    from app.imports import text_corrections

    if (new_text is None) == (text_file is None):
        raise click.UsageError("Give the corrected text, or a file with it by --file.")
    corrected_text = read_text_file(text_file) if text_file else new_text or ""
    version = run_in_transaction(
        partial(
            text_corrections.store_corrected_text_returning_version,
            slug=slug,
            item_id=item_id,
            new_text=corrected_text,
            now=current_utc_time(),
            segment_id=segment_id,
        )
    )
    click.echo(f"Corrected {item_id} of {slug}. This is version {version} of its text.")


@items_group.command("gold")
@click.argument("slug")
@click.option(
    "--column",
    default=DEFAULT_KNOWN_ANSWER_COLUMN,
    show_default=True,
    help="Column of the items with their known answers.",
)
@click.option(
    "--count",
    type=click.IntRange(1, MAX_GOLD_ITEMS_AT_ONCE),
    default=MIN_GOLD_ITEMS,
    show_default=True,
    help="Number of gold items, spread evenly over the known answers.",
)
@click.option("--tolerance", type=click.FloatRange(min=0), help="Largest accepted difference. Default: the design's.")
@click.option("--keep", is_flag=True, help="Keep the items in the study, too; the gold items are copies.")
def use_known_answers_as_gold_items(slug: str, *, column: str, count: int, tolerance: float | None, keep: bool) -> None:
    """Use items of a draft as gold items, by answers that a column of their table holds."""
    from app.campaigns.known_answers import KnownAnswersChoice
    from app.imports import mark_checks

    choice = KnownAnswersChoice(column=column, count=count, tolerance=tolerance, keep=keep)
    ids = run_in_transaction(partial(mark_checks.mark_gold_by_known_answers_returning_ids, slug=slug, choice=choice))
    click.echo(f"Made {pluralize(len(ids), 'gold item')} of {slug}: {join_names(ids)}.")


def read_text_file(file: Path) -> str:
    """Return a file's text, without a last line break."""
    try:
        return file.read_text(encoding="utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not in UTF-8.") from error
