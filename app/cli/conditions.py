"""`easel campaign conditions`: how many people have each list and order of conditions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from app.cli.run_command import current_utc_time, json_option, print_json, run_in_transaction
from app.cli.text_table import print_text_table, shorten_cell_text
from app.errors import Conflict

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from app.annotation.hits.condition_counts import SquareCounts


@click.command("conditions")
@click.argument("slug")
@json_option
def print_square_counts(slug: str, *, as_json: bool) -> None:
    """Count the judgments of each condition, and the people with each list and order of blocks. People who left early
    are counted separately: new people get their lists and orders first.
    """
    from app.annotation.hits.condition_counts import load_square_counts_or_none
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> SquareCounts:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        counts = await load_square_counts_or_none(connection, campaign, now=current_utc_time())
        if counts is None:
            raise Conflict(f"The items of “{campaign.name}” have no conditions.", code="no_conditions")
        return counts

    counts = run_in_transaction(work)
    if as_json:
        print_json(asdict(counts))
        return
    # Whole names are in the JSON.
    condition_rows = [
        (shorten_cell_text(one.condition, 60), f"{one.items:,}", f"{one.judgments:,}") for one in counts.conditions
    ]
    print_text_table(("Condition", "Items", "Judgments"), condition_rows, right_columns={1, 2})
    if counts.lists:
        list_rows = [(f"List {one.number}", f"{one.at_work_or_done:,}", f"{one.left_early:,}") for one in counts.lists]
        print_text_table(("List", "People", "Left early"), list_rows, right_columns={1, 2})
    if counts.orders:
        order_rows = [
            (
                " > ".join(shorten_cell_text(name, 24) for name in one.conditions),
                f"{one.at_work_or_done:,}",
                f"{one.left_early:,}",
            )
            for one in counts.orders
        ]
        print_text_table(("Order of blocks", "People", "Left early"), order_rows, right_columns={1, 2})
