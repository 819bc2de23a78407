"""Columns of the export of items on answers that an item cannot be judged."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.record import unjudged

UNJUDGED_EXPORT_COLUMNS = ("unjudged_by", "unjudged_reasons", "left_pool")


async def load_unjudged_cell_formatter_or_none(
    connection: AsyncConnection, campaign: Campaign
) -> Callable[[Sequence[int]], Sequence[Sequence[Any]]] | None:
    """Return a function from item numbers to `UNJUDGED_EXPORT_COLUMNS`; None if annotators cannot say so."""
    if not campaign.cannot_be_judged:
        return None
    annotators_by_item = await unjudged.load_count_of_unable_people_by_item(connection, campaign)
    reasons = await unjudged.load_reason_counts_by_unjudged_item(connection, campaign.id)
    items_out_of_pool = {
        item for item, count in annotators_by_item.items() if count >= campaign.unjudged_people
    }.difference(campaign.always_shown)

    def format_reasons(item: int) -> str:
        return "; ".join(f"{reason}: {count}" for reason, count in reasons.get(item, {}).items() if reason)

    return lambda numbers: [
        [annotators_by_item.get(item, 0) for item in numbers],
        [format_reasons(item) for item in numbers],
        [item in items_out_of_pool for item in numbers],
    ]
