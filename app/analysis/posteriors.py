"""A campaign's posteriors, a page at a time, with their intervals."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import items, posteriors
from app.inference.online import ONLINE

Order = Literal["number", "score", "-score", "variance", "-variance", "judgments", "-judgments"]


@dataclass(frozen=True)
class Estimate:
    """One item's posterior: `a` and `b` as the update law has them, the rest on the scale of the scores, 0 to 1."""

    id: str
    text: str
    a: float
    b: float
    score: float
    variance: float
    low: float
    high: float
    judgments: int


async def estimates(
    connection: AsyncConnection, campaign: Row[Any], *, offset: int, limit: int, order: Order, level: float
) -> tuple[int, list[Estimate]]:
    """How many there are (none before the launch), and one page of them; `level` is that of the central interval."""
    mine = posteriors.c.campaign_id == campaign.id
    total = (await connection.execute(select(func.count()).select_from(posteriors).where(mine))).scalar_one()
    column = posteriors.c[order.removeprefix("-")]
    statement = (
        select(items.c.external_id, items.c.shown, posteriors)
        .join(items, (items.c.campaign_id == posteriors.c.campaign_id) & (items.c.number == posteriors.c.number))
        .where(mine)
        .order_by(column.desc() if order.startswith("-") else column, posteriors.c.number)
    )
    rows = (await connection.execute(statement.offset(offset).limit(limit))).all()
    low, high = ONLINE[campaign.update_law].interval(
        np.array([row.a for row in rows], float), np.array([row.b for row in rows], float), level=level
    )
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return total, [
        Estimate(row.external_id, row.shown, row.a, row.b, row.score, row.variance, *end, row.judgments)
        for row, end in zip(rows, ends, strict=True)
    ]
