"""What an export of items says of those that annotators could not judge."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.record import unjudged

UNJUDGED_COLUMNS = ("unjudged_by", "unjudged_reasons", "left_pool")


async def unjudged_cells(
    connection: AsyncConnection, campaign: Row[Any]
) -> Callable[[Sequence[int]], Sequence[Sequence[Any]]] | None:
    """What fills `UNJUDGED_COLUMNS` for items of these numbers; None where annotators are not asked."""
    if not campaign.cannot_be_judged:
        return None
    people = await unjudged.people(connection, campaign)
    reasons = await unjudged.reasons(connection, campaign.id)
    gone = {item for item, count in people.items() if count >= campaign.unjudged_people}.difference(
        campaign.always_shown
    )

    def why(item: int) -> str:
        return "; ".join(f"{reason}: {count}" for reason, count in reasons.get(item, {}).items() if reason)

    return lambda numbers: [
        [people.get(item, 0) for item in numbers],
        [why(item) for item in numbers],
        [item in gone for item in numbers],
    ]
