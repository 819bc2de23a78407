"""One item: its posterior as a curve, and who said what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import items, posteriors
from app.errors import NotFound
from app.inference.online import ONLINE

STEPS = 200

# No index holds the items of a response: one would cost every answer more than this look costs (30 ms in 200,000).
ANSWERS = text("""
    SELECT a.pseudonym, r.scores[array_position(r.items, :number)] AS score, r.received_at
    FROM responses r JOIN annotators a ON a.id = r.annotator_id
    WHERE r.campaign_id = :campaign AND :number = ANY(r.items) ORDER BY r.seq DESC
""")


@dataclass(frozen=True)
class Item:
    """An item with its posterior (`row`: texts, a, b, score, variance, judgments) and the answers, newest first."""

    row: Row[Any]
    low: float
    high: float
    x: list[float]
    density: list[float]
    answers: Sequence[Row[Any]]


async def item_of(connection: AsyncConnection, campaign: Row[Any], external_id: str) -> Item:
    """The item its researcher calls `external_id`. Raises `NotFound` (`item_not_found`)."""
    statement = select(posteriors, items.c.external_id, items.c.shown).join_from(items, posteriors)
    row = (
        await connection.execute(
            statement.where(items.c.campaign_id == campaign.id, items.c.external_id == external_id)
        )
    ).one_or_none()
    if row is None:
        raise NotFound(f"“{campaign.name}” has no item “{external_id}”.", code="item_not_found", item=external_id)
    answers = (await connection.execute(ANSWERS, {"campaign": campaign.id, "number": row.number})).all()
    law = ONLINE[campaign.update_law]
    low, high = law.interval(row.a, row.b)
    x = grid(law.support, row.score, row.variance)
    return Item(row, float(low), float(high), x.tolist(), law.density(row.a, row.b, x).tolist(), answers)


def grid(support: tuple[float, float], score: float, variance: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Where the curve is drawn: the middles of equal steps, since a density may be infinite at the very ends."""
    low, high = support
    if not np.isfinite(low) or not np.isfinite(high):
        reach = 4 * variance**0.5
        low, high = min(0.0, score - reach), max(1.0, score + reach)
    return low + (np.arange(STEPS) + 0.5) / STEPS * (high - low)
