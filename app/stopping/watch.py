"""A look at how near a campaign is to its goal, in the background after answers came; where it is reached, what the
researcher wished is done, once for each goal. Items that are to be `released` as they settle are, after each look. Who
has a campaign that ended before its goal is told so, unless it is reached by the last answer.

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
from app.analysis.goal_columns import posterior_scores
from app.campaigns import lifecycle
from app.database.alerts import raise_alert, raised_from
from app.database.audit_log import ACTING, SERVER
from app.database.bulk import snapshot
from app.database.campaign import finish_if_complete
from app.errors import Conflict
from app.goals.evidence import Measured
from app.goals.progress import Progress, figure, progress, words
from app.goals.settings import NONE
from app.quality.look import look as look_at_annotators
from app.stopping import released

STOPS = ("pause", "finish")  # that may be done when a goal is reached

CAMPAIGN = text("SELECT * FROM campaigns WHERE id = :campaign")

# Of several processes that find it at once, and several looks, one acts.
REACHED = text(f"""
    UPDATE campaigns SET goal_reached = :reached
    WHERE id = :campaign AND status IN ('running', 'finished') AND goal_reached IS DISTINCT FROM :reached
    AND {released.SAME_GOAL}
    RETURNING id
""")  # noqa: S608  (made of constants)

# Of a campaign that a person finished, they know how near it was.
MISSED = f"""
    (SELECT ended.campaign_id, 'missed' AS kind, ended.occasion, CAST(:about AS text) AS about,
            CAST(:because AS text) AS because
    FROM alerts ended JOIN campaigns ON ended.campaign_id = campaigns.id
    WHERE ended.campaign_id = :campaign AND ended.kind = 'finished' AND campaigns.status = 'finished'
    AND ended.occasion = CAST(campaigns.finished_at AS text) AND goal_reached IS DISTINCT FROM :goal_words
    AND {released.SAME_GOAL})
"""  # noqa: S608  (made of constants)
RAISE_MISSED = text(f"WITH {raised_from(MISSED)} SELECT 1")


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
        if not is_watched(campaign):
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
            ends = await finish_if_complete(connection, campaign_id, now=now)
        if ends:  # answers may have come meanwhile
            return await look(engine, campaign_id, now=now, last=Watched(counted))
    if campaign.status == "finished" and found is not None and not found.reached:
        await missed(engine, campaign, found)
    return Watched(counted)


def is_watched(campaign: Row[Any]) -> bool:
    """Whether answers can bring it nearer to a goal, or items out of release, or its last ones may have reached it."""
    if campaign.status == "finished":
        return bool(campaign.goal != NONE and campaign.goal_reached != words(campaign))
    return bool(campaign.status == "running" and (campaign.goal != NONE or campaign.releases))


async def progress_of(connection: AsyncConnection, campaign: Row[Any], measured: Measured) -> Progress | None:
    """How far a campaign is, by the items that count for it; None without a goal. measured: of all its items."""
    if campaign.goal == NONE:
        return None
    items, score = await posterior_scores(connection, campaign)
    found = await asyncio.to_thread(progress, campaign, measured.known.of(items), score, measured.by)
    return found and found.of(items)


async def reached(engine: AsyncEngine, campaign: Row[Any], found: Progress, *, now: datetime) -> None:
    """Say so, and stop the campaign if that was wished."""
    ACTING.set(SERVER)
    async with engine.begin() as connection:
        this = {"campaign": campaign.id, "reached": found.goal} | released.goal_of(campaign)
        if not (await connection.execute(REACHED, this)).all():
            return
        await raise_alert(connection, campaign.id, "goal", found.goal, about=within(found.goal))
        if campaign.when_reached in STOPS:
            with suppress(Conflict):  # somebody was faster
                await lifecycle.transition(connection, campaign.slug, campaign.when_reached, now=now)


async def missed(engine: AsyncEngine, campaign: Row[Any], found: Progress) -> None:
    """Say of a campaign that ended by itself that its goal is not reached, and how near it is."""
    more = "To go on, ask for more judgments per item and reopen the campaign."
    said = {
        "campaign": campaign.id,
        "goal_words": found.goal,
        "about": within(found.goal),
        "because": f"At the end it was {figure(campaign, found)}. {more}",
    }
    async with engine.begin() as connection:
        await connection.execute(RAISE_MISSED, said | released.goal_of(campaign))


def within(goal: str) -> str:
    """A goal in words, as it stands within a sentence."""
    return f"{goal[0].lower()}{goal[1:]}"


LOOKS = look_at_annotators, look  # at a campaign, after answers came
