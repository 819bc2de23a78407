"""Which HIT an annotator holds: the one they have, the one they had, or a new one.

A HIT is a lease on its items. `races` decides who gets what when several ask at once.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from asyncpg import UniqueViolationError
from sqlalchemy import text

from app.crowd.doors import Visitor
from app.crowd.platforms import PLATFORMS
from app.database.campaign import FINISH
from app.database.session import Driver, Record, fetch, fetch_one
from app.serving.newest import Newest
from app.serving.proposals import Proposal, propose
from app.serving.races import SHOWN, lease, renew
from app.serving.standing import AssignmentKey, standing

PATIENCE = 25  # times a proposal may lose a race before the annotator is asked to wait

Reason = Literal["not_open", "paused", "all_done", "limit", "assignment_done", "seen_all", "wait", "crowded", "stopped"]


@dataclass(frozen=True)
class Hit:
    """A HIT as an annotator sees it: items in presentation order, by number, by the researcher's id and as text, and
    what was entered before.
    """

    id: int
    items: list[int]
    ids: list[str]
    texts: list[str]
    draft: dict[str, Any]
    expires_at: datetime


@dataclass(frozen=True)
class Work:
    """Where an assignment stands: a HIT to answer, or the reason why there is none.

    Reasons: `not_open` (draft), `paused`, `all_done`, `limit` (HITs per annotator), `assignment_done` (the platform's
    assignment is answered), `seen_all` (nothing left for this annotator), `wait` (others hold what is left),
    `crowded` (too many hold HITs that they have not touched), `stopped` (the annotator said that they are done).
    """

    assignment: Record
    hit: Hit | None = None
    reason: Reason | None = None

    @property
    def finished(self) -> bool:
        """Whether this annotator can return to where they came from."""
        return self.reason in ("all_done", "limit", "assignment_done", "seen_all", "stopped")


HELD = text(SHOWN)

GIVE_UP = text("""
    UPDATE hits SET closed_at = :now, untouched_by = NULL WHERE id = :hit AND closed_at IS NULL AND expires_at <= :now
""")

TAKE_OVER = text("""
    UPDATE hits SET assignment_id = :assignment
    WHERE closed_at IS NULL AND id = (
        SELECT id FROM hits WHERE annotator_id = :annotator AND assignment_id <> :assignment AND closed_at IS NULL
        ORDER BY expires_at DESC LIMIT 1)
""")

END_LEASE = text("UPDATE hits SET expires_at = :now WHERE id = :hit AND closed_at IS NULL AND expires_at > :now")

COMPLETE = text("UPDATE assignments SET completed_at = :now WHERE id = :assignment AND completed_at IS NULL")

WANTED = text("SELECT number FROM posteriors WHERE campaign_id = :campaign AND judgments < :wanted")

ANY_OPEN = text("""
    SELECT 1 FROM hits WHERE campaign_id = :campaign AND closed_at IS NULL AND expires_at > :now LIMIT 1
""")

# The first touch makes a short lease a whole one.
SAVE_DRAFT = text("""
    UPDATE hits h SET draft = CAST(:draft AS jsonb), untouched_by = NULL,
        expires_at = CASE WHEN h.untouched_by IS NULL OR h.expires_at <= :now THEN h.expires_at
                          ELSE :now + c.lease_minutes * interval '1 minute' END
    FROM campaigns c, hits before
    WHERE h.id = :hit AND h.annotator_id = (SELECT annotator_id FROM assignments WHERE id = :assignment)
      AND h.closed_at IS NULL AND c.id = h.campaign_id
      AND before.id = h.id
    RETURNING c.id, c.judgments_per_item, c.lease_minutes, h.id AS hit_id, h.items AS hit_items,
              h.iteration AS hit_iteration, h.ordinal AS hit_ordinal,
              before.untouched_by IS NOT NULL AND h.expires_at <= :now AS came_late
""")


async def next_hit(connection: Driver, newest: Newest, who: AssignmentKey, *, now: datetime) -> Work:
    """The HIT this assignment holds, else a new lease, else the reason why there is none.

    `connection` is in no transaction: every step commits what it does.
    """
    for _ in range(PATIENCE):
        work = await hold_or_lease(connection, newest, who, now=now)
        if work is not None:
            return work
    return Work(await standing(connection, newest, who, now=now), reason="wait")


async def hold_or_lease(connection: Driver, newest: Newest, who: AssignmentKey, *, now: datetime) -> Work | None:
    """One try of `next_hit`; None when it must be asked afresh."""
    here = await standing(connection, newest, who, now=now)
    if here.hit_id is None and here.begun_elsewhere and not PLATFORMS[here.platform].one_hit_per_assignment:
        await take_over(connection, here)
        here = await standing(connection, newest, who, now=now)
    if here.hit_id is not None and here.expires_at > now:
        return await held(connection, here, here.expires_at)
    if reason := closed_because(here) or crowded(here, who.visitor):
        return await without_hit(connection, here, reason, now=now)
    if here.hit_id is not None:
        end = lease_end(here, now, who.visitor if here.hit_untouched else None)
        if await renew(connection, here, now=now, expires_at=end):
            return await held(connection, here, end)
        await fetch(connection, GIVE_UP, {"hit": here.hit_id, "now": now})
        return None  # asked afresh: a late answer may have changed what this assignment may get
    proposal = await propose(connection, here, newest, now=now)
    if proposal is None:
        return await without_hit(connection, here, await why_none(connection, here, now=now), now=now)
    with newest.about_to_lease(here.id, proposal.leader, proposal.items):
        return await leased(connection, here, proposal, who.visitor, now=now)


async def take_over(connection: Driver, here: Record) -> None:
    """Let this visit have the HIT that the same person left open in another one, with what they entered there."""
    # Another request of this visit may have got a HIT meanwhile: it has one then, and goes on with that.
    with suppress(UniqueViolationError):
        await fetch(connection, TAKE_OVER, {"assignment": here.assignment_id, "annotator": here.annotator_id})


async def stop(connection: Driver, newest: Newest, who: AssignmentKey, *, now: datetime) -> Work:
    """An annotator says that they are done: others may have the HIT they held, and they may still come back to it."""
    here = await standing(connection, newest, who, now=now)
    await fetch(connection, END_LEASE, {"hit": here.hit_id, "now": now})
    return await without_hit(connection, here, "stopped", now=now)


def closed_because(here: Record) -> Reason | None:
    """The reason why this assignment gets no HIT whatever is left to ask, or None."""
    if PLATFORMS[here.platform].one_hit_per_assignment and here.answered_here:
        return "assignment_done"
    # Two visits of one person that ask at the same instant can both pass here: one HIT more for them, for no item.
    if here.hits_per_annotator is not None and here.hits_answered + here.open_elsewhere >= here.hits_per_annotator:
        return "limit"
    by_status: dict[str, Reason] = {"draft": "not_open", "paused": "paused", "finished": "all_done"}
    return by_status.get(here.status)


def crowded(here: Record, visitor: Visitor | None) -> Reason | None:
    """Whether too many HITs lie with people who have touched nothing. Requests at one instant can each add one more."""
    if visitor is None or (here.hit_id is not None and not here.hit_untouched):
        return None
    limits = visitor.limits
    too_many = (
        here.untouched_here >= limits.untouched_per_address
        or here.untouched_everywhere >= limits.untouched_per_campaign
    )
    return "crowded" if too_many else None


def lease_end(campaign: Record, now: datetime, visitor: Visitor | None = None) -> datetime:
    """When a lease ends that begins now; a visitor's is short until the first touch."""
    minutes = campaign.lease_minutes
    return now + timedelta(minutes=min(minutes, visitor.limits.untouched_minutes) if visitor else minutes)


async def held(connection: Driver, here: Record, expires_at: datetime) -> Work:
    """The HIT that this assignment has already, with what was entered so far."""
    (shown,) = await fetch(connection, HELD, {"campaign": here.id, "items": here.hit_items})
    return Work(here, Hit(here.hit_id, here.hit_items, shown.ids, shown.texts, here.draft or {}, expires_at))


async def leased(
    connection: Driver, here: Record, proposal: Proposal, visitor: Visitor | None, *, now: datetime
) -> Work | None:
    """A new HIT of the proposed items, or None when another request took some of them first."""
    expires_at = lease_end(here, now, visitor)
    untouched_by = visitor.address if visitor else None
    row = await lease(connection, here, proposal, now=now, expires_at=expires_at, visitor=untouched_by)
    if row is None:
        return None
    return Work(here, Hit(row.id, proposal.items, row.ids, row.texts, {}, expires_at))


async def without_hit(connection: Driver, here: Record, reason: Reason, *, now: datetime) -> Work:
    work = Work(here, reason=reason)
    if work.finished and here.answered_here:
        await fetch(connection, COMPLETE, {"assignment": here.assignment_id, "now": now})
    return work


async def why_none(connection: Driver, here: Record, *, now: datetime) -> Reason:
    """`all_done` (and the campaign is closed), `seen_all`, or `wait`."""
    parameters = {"campaign": here.id, "wanted": here.judgments_per_item, "now": now}
    wanted = {row.number for row in await fetch(connection, WANTED, parameters)}
    if not wanted:
        await fetch(connection, FINISH, parameters)
        return "all_done"
    if not here.repeat_items and (wanted <= set(here.seen) or await waits_for_nobody(connection, here, now=now)):
        return "seen_all"
    return "wait"


async def waits_for_nobody(connection: Driver, here: Record, *, now: datetime) -> bool:
    """Whether only other annotators than this one can go on with a plan, and none of them is at work."""
    if here.selection != "iterations":
        return False
    return await fetch_one(connection, ANY_OPEN, {"campaign": here.id, "now": now}) is None


async def save_draft(
    connection: Driver, assignment_id: int, hit_id: int, draft: dict[str, Any], *, now: datetime
) -> bool:
    """Keep what was entered so far; False when the HIT is not this annotator's or is closed.

    Somebody is at work, so the lease is a whole one from now on, also when it has just run out and nobody needs its
    items. `connection` is in no transaction.
    """
    parameters = {"hit": hit_id, "assignment": assignment_id, "draft": json.dumps(draft), "now": now}
    hit = await fetch_one(connection, SAVE_DRAFT, parameters)
    if hit is not None and hit.came_late:
        await renew(connection, hit, now=now, expires_at=lease_end(hit, now))
    return hit is not None
