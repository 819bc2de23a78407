"""`easel labels ...`: list items on which annotators disagree, and choose their final labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.analysis.queue_filter import QUEUE_FILTER_TITLES, QueueFilter
from app.cli.command_group import CommandGroup
from app.cli.run_command import current_utc_time, json_option, print_json, run_in_transaction, run_with_engine
from app.cli.text_table import print_text_table
from app.errors import Conflict, shorten_echo

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.analysis.adjudicated_item import QueueRow
    from app.analysis.adjudication_state import AdjudicationState

LABEL_LIST_TITLES = ("Item", "Votes", "Easel's label", "Confidence", "Settled as", "By")
criterion_option = click.option("--criterion", default="", help="Criterion; the first if not given.")
reason_option = click.option("--reason", default="", help="Reason; kept with the decision.")


@click.group(cls=CommandGroup)
def labels() -> None:
    """Labels of a campaign's items: list disputed ones, settle them."""


@labels.command("list")
@click.argument("slug")
@click.option(
    "--show",
    type=click.Choice([*QUEUE_FILTER_TITLES]),
    default="disputed",
    show_default=True,
    help="Which items; disputed ones have no majority.",
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Maximum number of rows.")
@criterion_option
@json_option
def print_label_queue(slug: str, *, show: QueueFilter, limit: int, criterion: str, as_json: bool) -> None:
    """List items with their votes and final labels, the least certain first."""
    from app.analysis.adjudication_state import load_adjudication_state
    from app.analysis.fit_cache import FitCache

    async def work(engine: AsyncEngine) -> AdjudicationState:
        return await load_adjudication_state(FitCache(), engine, engine, slug, criterion)

    state = run_with_engine(work)
    rows = state.rows(state.item_numbers(show)[:limit])
    if as_json:
        print_json([json_fields_of_row(row) for row in rows])
        return
    print_text_table(LABEL_LIST_TITLES, [label_list_cells(row) for row in rows], right_columns={3})
    disputed, settled = state.disputed_and_settled_counts
    click.echo(f"{settled:,} of {disputed:,} items without a majority are settled.")


def json_fields_of_row(row: QueueRow) -> dict[str, object]:
    """Return what `--json` prints of an item: the fields of the API."""
    adjudication = row.adjudication
    return {
        "item": row.id,
        "shown": row.shown,
        "votes": dict(row.votes),
        "label": row.label,
        "confidence": row.confidence,
        "no_majority": row.is_disputed,
        "adjudication": adjudication
        and {
            "id": adjudication.id,
            "label": adjudication.label,
            "reason": adjudication.reason,
            "decided_by": adjudication.decided_by,
            "decided_at": adjudication.decided_at,
        },
    }


def label_list_cells(row: QueueRow) -> list[str]:
    return [
        row.id,
        ", ".join(f"{count} {label}" for label, count in row.votes),
        row.label or "-",
        "-" if row.confidence is None else f"{row.confidence:.2f}",
        row.final_label or "-",
        row.adjudication.decided_by if row.adjudication and row.final_label else "-",
    ]


@labels.command("settle")
@click.argument("slug")
@click.argument("item")
@click.argument("label")
@click.option("--change", is_flag=True, help="Change the label of an item that is settled already.")
@criterion_option
@reason_option
def settle_label(slug: str, item: str, label: str, *, change: bool, criterion: str, reason: str) -> None:
    """Choose LABEL as the final label of ITEM, given by its id. Answers and scores stay as they are."""
    store_label(slug, item, label, criterion_name=criterion, reason=reason, can_change=change)
    click.echo(f"{item} of {slug}: settled as {label}.")


@labels.command("reopen")
@click.argument("slug")
@click.argument("item")
@criterion_option
@reason_option
def reopen_label(slug: str, item: str, *, criterion: str, reason: str) -> None:
    """Take the final label of ITEM back. The earlier decision is kept."""
    store_label(slug, item, None, criterion_name=criterion, reason=reason, can_change=True)
    click.echo(f"{item} of {slug}: open again.")


def store_label(slug: str, item: str, label: str | None, *, criterion_name: str, reason: str, can_change: bool) -> None:
    """Store a decision. Raises `Conflict` (`already_settled`) if it would change a label and may not."""
    from app.quality.adjudications import (
        adjudicate_item_or_refuse,
        find_item_number_or_refuse,
        load_latest_adjudication_or_none,
    )
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> None:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        criterion = campaign.find_criterion_or_refuse(criterion_name)
        number = await find_item_number_or_refuse(connection, campaign, item)
        latest = await load_latest_adjudication_or_none(connection, criterion, number)
        if latest and latest.label is not None and not can_change:
            raise Conflict(
                f"“{shorten_echo(item)}” is settled as “{latest.label}” by {latest.decided_by}. Add --change to change "
                "it. Nothing was changed.",
                code="already_settled",
            )
        await adjudicate_item_or_refuse(
            connection,
            criterion,
            item,
            label,
            reason=reason,
            replaces=latest.id if latest else 0,
            now=current_utc_time(),
        )

    run_in_transaction(work)
