"""Items that are released as they settle: nobody is asked about them any more. Each look decides anew, so an item that
is no longer settled, since answers came, or count no more, or the goal is another one, is asked about again.

A new revision begins with none; what is settled by its answers, the next look tells.
"""

from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.bulk import fetch_arrays_on_driver
from app.database.session import driver_of
from app.goals.progress import Progress
from app.goals.settings import GoalSettings
from app.inference.ground.arrays import Integers, Mask
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION, present_posteriors_condition

ITEMS_PER_RELEASE_BATCH = 5_000  # items, for whose rows answers may have to wait

LIST_SETTLED_FLAGS = f"""
    SELECT CAST(p.settled AS int) AS settled FROM posteriors p WHERE {present_posteriors_condition("$1")} ORDER BY p.subject
"""  # noqa: S608  (made of constants)

# In the order in which answers lock them.
LOCK_POSTERIORS_OF_ITEMS = text(f"""
    SELECT FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:items AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p
""")

STORE_SETTLED_FLAGS = text(f"""
    UPDATE posteriors p SET settled = new.settled
    FROM unnest(CAST(:items AS int[]), CAST(:settled AS boolean[])) AS new (item, settled)
    WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = new.item AND p.subject = ANY(CAST(:items AS int[]))
""")  # noqa: S608  (made of constants)

# What a look finds is of the goal that it read.
IS_SAME_GOAL_SQL = " AND ".join(f"{name} = :{name}" for name in GoalSettings.model_fields)

# By this others learn of it. Of several processes that have looked, one releases.
COUNT_RELEASE = text(f"""
    UPDATE campaigns SET releases = releases + 1
    WHERE id = :campaign AND status IN ('running', 'finished') AND revision = :revision AND releases = :releases
    AND {IS_SAME_GOAL_SQL}
    RETURNING id
""")  # noqa: S608  (made of constants)


class SettledChange(NamedTuple):
    """Items that are settled now, or no longer, (C,) each."""

    items: Integers
    settled: Mask


async def find_settled_change(
    connection: AsyncConnection, campaign: Row[Any], progress: Progress | None
) -> SettledChange:
    """What a look finds otherwise than the last one."""
    settled_items = progress.settled_items if progress else np.zeros(0, np.intp)
    if not (len(settled_items) or campaign.releases):
        return SettledChange(settled_items, np.zeros(0, bool))
    before = (
        await fetch_arrays_on_driver(await driver_of(connection), LIST_SETTLED_FLAGS, (campaign.id,), settled="i4")
    )["settled"] > 0
    now = np.isin(np.arange(len(before)), settled_items)
    items = np.flatnonzero(now != before)
    return SettledChange(items, now[items])


def goal_parameters(campaign: Row[Any]) -> dict[str, Any]:
    """What `SAME_GOAL` names."""
    return {name: getattr(campaign, name) for name in GoalSettings.model_fields}


async def store_settled_change(engine: AsyncEngine, campaign: Row[Any], settled_change: SettledChange) -> bool:
    """Store it, some items at a time; False where something else has changed the campaign meanwhile."""
    release_parameters = {"campaign": campaign.id, "revision": campaign.revision} | goal_parameters(campaign)
    for count, start in enumerate(range(0, len(settled_change.items), ITEMS_PER_RELEASE_BATCH)):
        batch = slice(start, start + ITEMS_PER_RELEASE_BATCH)
        item_parameters = {"campaign": campaign.id, "items": settled_change.items[batch].tolist()}
        async with engine.begin() as connection:
            await connection.execute(LOCK_POSTERIORS_OF_ITEMS, item_parameters)
            await connection.execute(
                STORE_SETTLED_FLAGS, item_parameters | {"settled": settled_change.settled[batch].tolist()}
            )
            result = await connection.execute(
                COUNT_RELEASE, release_parameters | {"releases": campaign.releases + count}
            )
            if not result.all():
                await connection.rollback()
                return False
    return True
