"""A look at how near a campaign is to its goal, in the background after answers came; where it is reached, what the
researcher wished is done, once for each goal. Items that are to be `released` as they settle are, after each look.

A goal's chance may be looked at after every answer: see `inference.ratings.settled`.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis import calibrated
from app.analysis.calibrated import Counted
from app.campaigns import lifecycle
from app.database.alerts import raise_alert
from app.database.audit_log import ACTING, SERVER
from app.database.bulk import numbers_of, snapshot
from app.database.campaign import finish_if_complete
from app.database.pool import judgeable
from app.database.session import driver_of
from app.errors import Conflict
from app.goals.evidence import Measured
from app.goals.progress import Progress, counting, progress
from app.goals.settings import NONE
from app.inference.ground.arrays import Array, Integers
from app.quality.look import look as look_at_annotators
from app.record.store import present
from app.stopping import released

STOPS = ("pause", "finish")  # that may be done when a goal is reached

CAMPAIGN = text("SELECT * FROM campaigns WHERE id = :campaign")

SCORES = f"""
    SELECT p.score, CASE WHEN {judgeable("p", people="$2::int")} THEN 1 ELSE 0 END AS in_pool
    FROM posteriors p WHERE {present("$1")} ORDER BY p.subject
"""  # noqa: S608  (made of constants)

# Of several processes that find it at once, and several looks, one acts.
REACHED = text(f"""
    UPDATE campaigns SET goal_reached = :reached
    WHERE id = :campaign AND status = 'running' AND goal_reached IS DISTINCT FROM :reached AND {released.SAME_GOAL}
    RETURNING id
""")  # noqa: S608  (made of constants)


@dataclass(frozen=True)
class Watched:
    """What a look read, for the next one; None where there is no goal."""

    counted: Counted | None


async def look(engine: AsyncEngine, campaign_id: int, *, now: datetime, last: Watched | None = None) -> Watched | None:
    """Look whether a campaign has reached its goal, and which items are settled, and act on it. None where another
    process was faster, which may not have seen the last answers.
    """
    async with snapshot(engine) as connection:
        campaign = (await connection.execute(CAMPAIGN, {"campaign": campaign_id})).one()
        if campaign.status != "running" or (campaign.goal == NONE and not campaign.releases):
            return Watched(None)
        counted = await calibrated.newest(connection, campaign, last.counted if last else None)
        found = await progress_of(connection, campaign, await counted.measured(campaign))
        change = await released.change(connection, campaign, found)
    if found is not None and found.reached and campaign.goal_reached != found.goal:
        await reached(engine, campaign, found, now=now)
    if len(change.items):
        if not await released.put(engine, campaign, change):
            return None
        async with engine.begin() as connection:
            await finish_if_complete(connection, campaign_id, now=now)
    return Watched(counted)


async def progress_of(connection: AsyncConnection, campaign: Row[Any], measured: Measured) -> Progress | None:
    """How far a campaign is, by the items that count for it; None without a goal. measured: of all its items."""
    if campaign.goal == NONE:
        return None
    items, score = await scores(connection, campaign)
    found = await asyncio.to_thread(progress, campaign, measured.known.of(items), score, measured.by)
    return found and found.of(items)


async def scores(connection: AsyncConnection, campaign: Any) -> tuple[Integers, Array]:
    """The numbers of the items that count for a goal, and their scores, (n,)."""
    driver = await driver_of(connection)
    found = await numbers_of(driver, SCORES, (campaign.id, campaign.unjudged_people), score="f8", in_pool="i4")
    items = counting(campaign, found["in_pool"] > 0)
    score: Array = found["score"]
    return items, score[items]


async def reached(engine: AsyncEngine, campaign: Row[Any], found: Progress, *, now: datetime) -> None:
    """Say so, and stop the campaign if that was wished."""
    ACTING.set(SERVER)
    async with engine.begin() as connection:
        this = {"campaign": campaign.id, "reached": found.goal} | released.goal_of(campaign)
        if not (await connection.execute(REACHED, this)).all():
            return
        await raise_alert(connection, campaign.id, "goal", found.goal, about=f"{found.goal[0].lower()}{found.goal[1:]}")
        if campaign.when_reached in STOPS:
            with suppress(Conflict):  # somebody was faster
                await lifecycle.transition(connection, campaign.slug, campaign.when_reached, now=now)


LOOKS = look_at_annotators, look  # at a campaign, after answers came
