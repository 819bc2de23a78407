"""Release of settled items: the campaign stops asking about them.

Each scan decides again. So the campaign asks again about an item that is no longer settled, because answers came,
answers were excluded, or the goal was changed. A new revision begins without settled items; the next scan finds those
that its answers settle.

A release locks the room of the campaign (`lease_sql`): a lease that came first is committed before the items are
released, and a later one does not get them.
"""

import json
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.hits.lease_sql import LOCK_ROOM
from app.database.bulk import fetch_array_by_column_on_driver
from app.database.session import driver_of
from app.designs.campaign import Campaign, pack_section_settings_into_columns
from app.goals.progress import Progress
from app.goals.settings import GoalSettings
from app.inference.ground.arrays import Integers, Mask
from app.record.law_storage import LOCK_LAW_STATE
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION, present_posteriors_condition_sql
from app.record.retired import IS_RETIRED_SQL, is_retired_sql

ITEMS_PER_RELEASE_BATCH = 5_000  # answers may have to wait for the rows of a batch

LIST_SETTLED_FLAGS = f"""
    SELECT CAST(p.settled AS int) AS settled, CAST({is_retired_sql("$1")} AS int) AS retired
    FROM posteriors p WHERE {present_posteriors_condition_sql("$1")}
    ORDER BY p.subject
"""

# In the order in which answers lock these rows, to avoid deadlocks.
LOCK_POSTERIORS_OF_ITEMS = text(f"""
    SELECT FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:items AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p
""")

STORE_SETTLED_FLAGS = text(f"""
    UPDATE posteriors p SET settled = new.settled OR {IS_RETIRED_SQL}
    FROM unnest(CAST(:items AS int[]), CAST(:settled AS boolean[])) AS new (item, settled)
    WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = new.item AND p.subject = ANY(CAST(:items AS int[]))
""")

# A scan may act only while the goal that it read is unchanged.
IS_SAME_GOAL_SQL = "CAST(:default_goal AS jsonb) || goal_settings @> CAST(:goal AS jsonb)"
DEFAULT_GOAL = GoalSettings().model_dump_json()

# Other processes notice a release by this counter. If several processes scanned, one releases.
COUNT_RELEASE = text(f"""
    UPDATE campaigns SET releases = releases + 1
    WHERE id = :campaign AND status IN ('running', 'finished') AND revision = :revision AND releases = :releases
    AND {IS_SAME_GOAL_SQL}
    RETURNING id
""")


class SettledChange(NamedTuple):
    """Items that became settled or unsettled, (C,) each."""

    items: Integers
    settled: Mask


async def load_items_settled_or_unsettled_since_last_scan(
    connection: AsyncConnection, campaign: Campaign, progress: Progress | None
) -> SettledChange:
    """Return which items changed since the last scan."""
    settled_items = progress.settled_items if progress else np.zeros(0, np.intp)
    if not (len(settled_items) or campaign.releases):
        return SettledChange(settled_items, np.zeros(0, bool))
    flags = await fetch_array_by_column_on_driver(
        await driver_of(connection), LIST_SETTLED_FLAGS, (campaign.id,), settled="i4", retired="i4"
    )
    before = flags["settled"] > 0
    now = np.isin(np.arange(len(before)), settled_items)
    items = np.flatnonzero((now != before) & (flags["retired"] == 0))
    return SettledChange(items, now[items])


def same_goal_query_parameters(campaign: Campaign) -> dict[str, Any]:
    """Return the parameters of the condition `IS_SAME_GOAL_SQL`."""
    return {
        "goal": json.dumps(pack_section_settings_into_columns(campaign.column_values_of_campaign())["goal_settings"]),
        "default_goal": DEFAULT_GOAL,
    }


async def try_to_store_settled_flags(engine: AsyncEngine, campaign: Campaign, settled_change: SettledChange) -> bool:
    """Store the change in batches. Return False if something else has changed the campaign meanwhile."""
    release_parameters = {"campaign": campaign.id, "revision": campaign.revision} | same_goal_query_parameters(campaign)
    for count, start in enumerate(range(0, len(settled_change.items), ITEMS_PER_RELEASE_BATCH)):
        batch = slice(start, start + ITEMS_PER_RELEASE_BATCH)
        item_parameters = {"campaign": campaign.id, "items": settled_change.items[batch].tolist()}
        async with engine.begin() as connection:
            for statement in (LOCK_LAW_STATE, LOCK_POSTERIORS_OF_ITEMS):
                await connection.execute(statement, item_parameters)
            await connection.execute(
                STORE_SETTLED_FLAGS, item_parameters | {"settled": settled_change.settled[batch].tolist()}
            )
            await connection.execute(LOCK_ROOM, item_parameters)
            result = await connection.execute(
                COUNT_RELEASE, release_parameters | {"releases": campaign.releases + count}
            )
            if not result.all():
                await connection.rollback()
                return False
    return True
