"""How a visit ends: what came of it, and how whoever came returns."""

from datetime import datetime

from sqlalchemy import text

from app.crowd.platform import Completion, Outcome
from app.crowd.registry import PLATFORMS
from app.crowd.settings import WAYS_BACK
from app.database.session import Driver, Record, fetch_one
from app.serving.leases import Work, given_back, next_hit
from app.serving.posterior_cache import PosteriorCache
from app.serving.standing import AssignmentKey, Standing, standing

CHOSEN = text(f"SELECT {', '.join(WAYS_BACK)} FROM campaigns WHERE id = :campaign")  # noqa: S608  (made of constants)


def may_leave(here: Standing) -> bool:
    """Whether somebody may end their visit after any HIT; without a limit nothing else may ever end it."""
    return here.leave_early or (PLATFORMS[here.platform].returns and not here.hits_per_annotator)


async def stop(connection: Driver, cache: PosteriorCache, key: AssignmentKey, *, now: datetime) -> Work:
    """An annotator says that they are done: others may have the HIT they held, and they may still come back to it.

    Where they may not say so, or are held, it is as if they had asked for a HIT: nobody gets a code by asking.
    """
    here = await standing(connection, cache, key)
    if here.held_back or not may_leave(here):
        return await next_hit(connection, cache, key, now=now)
    return await given_back(connection, here, "stopped", now=now)


def outcome_of(work: Work) -> Outcome | None:
    """How a visit ended; None while it goes on, and where somebody left before they had answered anything."""
    if work.reason == "held":
        return "failed_checks"
    if not work.finished:
        return None
    if work.assignment.answered_here:
        return "completed"
    return None if work.reason == "stopped" else "nothing_left"


async def completion(connection: Driver, work: Work) -> Completion | None:
    """How whoever has ended their visit returns; None where there is nothing to hand in, or the visit goes on."""
    outcome = outcome_of(work)
    return None if outcome is None else await way_back(connection, work.assignment, outcome)


async def way_back(connection: Driver, here: Standing, outcome: Outcome) -> Completion:
    """How whoever stands there returns after such an end."""
    chosen = await fetch_one(connection, CHOSEN, {"campaign": here.id}, Record)
    assert chosen is not None  # noqa: S101  (the assignment was found in this campaign)
    return PLATFORMS[here.platform].complete(here.arrival, dict(chosen), outcome)
