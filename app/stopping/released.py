"""Items that are released as they settle: nobody is asked about them any more. Each look decides anew, so an item that
is no longer settled, since answers came, or count no more, or the goal is another one, is asked about again.

A new revision begins with none; what is settled by its answers, the next look tells.
"""

from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.bulk import numbers_of
from app.database.session import driver_of
from app.goals.progress import Progress
from app.goals.settings import GoalSettings
from app.inference.ground.arrays import Integers, Mask
from app.record.store import PRESENT, present

AT_ONCE = 5_000  # items, for whose rows answers may have to wait

MARKED = f"""
    SELECT CAST(p.settled AS int) AS settled FROM posteriors p WHERE {present("$1")} ORDER BY p.subject
"""  # noqa: S608  (made of constants)

# In the order in which answers lock them.
LOCK = text(f"""
    SELECT FROM posteriors p WHERE {PRESENT} AND p.subject = ANY(CAST(:items AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p
""")

PUT = text(f"""
    UPDATE posteriors p SET settled = new.settled
    FROM unnest(CAST(:items AS int[]), CAST(:settled AS boolean[])) AS new (item, settled)
    WHERE {PRESENT} AND p.subject = new.item AND p.subject = ANY(CAST(:items AS int[]))
""")  # noqa: S608  (made of constants)

# What a look finds is of the goal that it read.
SAME_GOAL = " AND ".join(f"{name} = :{name}" for name in GoalSettings.model_fields)

# By this others learn of it. Of several processes that have looked, one releases.
COUNT = text(f"""
    UPDATE campaigns SET releases = releases + 1
    WHERE id = :campaign AND status IN ('running', 'finished') AND revision = :revision AND releases = :releases
    AND {SAME_GOAL}
    RETURNING id
""")  # noqa: S608  (made of constants)


class SettledChange(NamedTuple):
    """Items that are settled now, or no longer, (C,) each."""

    items: Integers
    settled: Mask


async def change(connection: AsyncConnection, campaign: Row[Any], found: Progress | None) -> SettledChange:
    """What a look finds otherwise than the last one."""
    settled = found.settled if found else np.zeros(0, np.intp)
    if not (len(settled) or campaign.releases):
        return SettledChange(settled, np.zeros(0, bool))
    before = (await numbers_of(await driver_of(connection), MARKED, (campaign.id,), settled="i4"))["settled"] > 0
    now = np.isin(np.arange(len(before)), settled)
    items = np.flatnonzero(now != before)
    return SettledChange(items, now[items])


def goal_of(campaign: Row[Any]) -> dict[str, Any]:
    """What `SAME_GOAL` names."""
    return {name: getattr(campaign, name) for name in GoalSettings.model_fields}


async def put(engine: AsyncEngine, campaign: Row[Any], new: SettledChange) -> bool:
    """Store it, some items at a time; False where something else has changed the campaign meanwhile."""
    of = {"campaign": campaign.id, "revision": campaign.revision} | goal_of(campaign)
    for count, start in enumerate(range(0, len(new.items), AT_ONCE)):
        some = slice(start, start + AT_ONCE)
        items = {"campaign": campaign.id, "items": new.items[some].tolist()}
        async with engine.begin() as connection:
            await connection.execute(LOCK, items)
            await connection.execute(PUT, items | {"settled": new.settled[some].tolist()})
            counted = await connection.execute(COUNT, of | {"releases": campaign.releases + count})
            if not counted.all():
                await connection.rollback()
                return False
    return True
