"""The items that annotators could not judge, with their reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.table import SAME_ITEM
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.record import unjudged

MOST = 20  # on the page; the export of items has all


@dataclass(frozen=True)
class NotJudged:
    """An item with how many people could not judge it, how many gave each reason, and whether it is asked no more."""

    external_id: str
    shown: str
    people: int
    reasons: Mapping[str, int]
    gone: bool
    always_shown: bool


@dataclass(frozen=True)
class NotJudgedItems:
    """Those that most people could not judge. found: how many there are in all; gone: how many left the pool."""

    lines: Sequence[NotJudged]
    found: int
    gone: int


async def listed(connection: AsyncConnection, campaign: Any) -> NotJudgedItems:
    """Of a campaign that was launched."""
    if not campaign.cannot_be_judged:
        return NotJudgedItems((), 0, 0)
    reasons = await unjudged.reasons(connection, campaign.id)
    statement = (
        select(items.c.number, items.c.external_id, items.c.shown, posteriors.c.unjudged)
        .join_from(items, posteriors, SAME_ITEM)
        .where(items.c.campaign_id == campaign.id, items.c.number.in_(reasons), posteriors.c.criterion == 0)
        .order_by(posteriors.c.unjudged.desc(), items.c.number)
    )
    rows: Sequence[Any] = (await connection.execute(statement)).all()
    lines = [line_of(campaign, row, reasons[row.number]) for row in rows]
    return NotJudgedItems(lines[:MOST], len(lines), sum(line.gone for line in lines))


def line_of(campaign: Any, row: Row[Any], reasons: Mapping[str, int]) -> NotJudged:
    stays = row.number in campaign.always_shown
    gone = row.unjudged >= campaign.unjudged_people and not stays
    return NotJudged(row.external_id, row.shown, row.unjudged, reasons, gone, stays)
