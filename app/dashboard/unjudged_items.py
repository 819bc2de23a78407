"""The items that annotators could not judge, with their reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.table import JOIN_ITEM_TO_POSTERIOR
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.designs.campaign import Campaign
from app.record import unjudged

MAX_UNJUDGED_SHOWN = 20  # the export of items has all


@dataclass(frozen=True)
class UnjudgedItem:
    """An item that annotators could not judge.

    Attributes:
        external_id: Id that the researcher gave it.
        people: Number of annotators who could not judge it.
        reasons: How many gave each reason.
        gone: True if it left the pool, so no HIT asks about it.
        always_shown: True if every HIT shows it.

    """

    external_id: str
    shown: str
    people: int
    reasons: Mapping[str, int]
    gone: bool
    always_shown: bool


@dataclass(frozen=True)
class UnjudgedItems:
    """The items that most annotators could not judge.

    Attributes:
        lines: The first `MAX_UNJUDGED_SHOWN` of them.
        found: Number of all such items.
        gone: Number of those that left the pool.

    """

    lines: Sequence[UnjudgedItem]
    found: int
    gone: int


async def load_items_annotators_could_not_judge(connection: AsyncConnection, campaign: Campaign) -> UnjudgedItems:
    """List the items of a launched campaign that annotators could not judge."""
    if not campaign.cannot_be_judged:
        return UnjudgedItems((), 0, 0)
    reasons = await unjudged.load_reason_counts_by_unjudged_item(connection, campaign.id)
    statement = (
        select(items.c.number, items.c.external_id, items.c.shown, posteriors.c.unjudged)
        .join_from(items, posteriors, JOIN_ITEM_TO_POSTERIOR)
        .where(items.c.campaign_id == campaign.id, items.c.number.in_(reasons), posteriors.c.criterion == 0)
        .order_by(posteriors.c.unjudged.desc(), items.c.number)
    )
    rows: Sequence[Any] = (await connection.execute(statement)).all()
    lines = [unjudged_item_from_row(campaign, row, reasons[row.number]) for row in rows]
    return UnjudgedItems(lines[:MAX_UNJUDGED_SHOWN], len(lines), sum(line.gone for line in lines))


def unjudged_item_from_row(campaign: Campaign, row: Row[Any], reasons: Mapping[str, int]) -> UnjudgedItem:
    gone = row.unjudged >= campaign.unjudged_people and row.number not in campaign.always_shown
    is_always_shown = row.number in campaign.items_in_every_hit
    return UnjudgedItem(row.external_id, row.shown, row.unjudged, reasons, gone, is_always_shown)
