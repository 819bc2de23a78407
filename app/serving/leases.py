"""Which HIT an annotator holds: the one they have, the one they had, or a new one.

A HIT is a lease on its items. `races` decides who gets what when several ask at once.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
from asyncpg import UniqueViolationError
from sqlalchemy import text

from app.crowd.annotators import AssignmentId
from app.crowd.doors import Visitor
from app.database.campaign import FINISH, finish_where
from app.database.pool import wants
from app.database.session import Driver, Record, execute, fetch, fetch_one
from app.designs.content import Above
from app.designs.item_names import draft_by_position
from app.quality.checks import CheckItem, of_hit
from app.record.store import PRESENT
from app.selection.registry import asking_of
from app.selection.segments import shown_once
from app.serving import mixed
from app.serving.posterior_cache import Copy, PosteriorCache
from app.serving.proposal import Proposal, never_again
from app.serving.proposals import of_outputs, propose
from app.serving.races import SHOWN, SHOWN_OUTPUTS, ShownItems, capped, lease, renew
from app.serving.standing import ALL_OPEN, CLOCK, AssignmentKey, Standing, standing
from app.visit import progress

PATIENCE = 25  # times a proposal may lose a race before the annotator is asked to wait

Reason = Literal[
    "not_open",
    "paused",
    "all_done",
    "limit",
    "assignment_done",
    "seen_all",
    "wait",
    "crowded",
    "stopped",
    "visit",
    "held",
]


@dataclass(frozen=True)
class ShownHit:
    """A HIT as an annotator sees it: items in presentation order, by number, by the researcher's id and as text, and
    what was entered before.

    segment: where the items are systems, the one whose outputs are shown, each once; `above` is what stands above them.
    own: the items without the checks among them.
    """

    id: int
    items: list[int]
    ids: list[str]
    texts: list[str]
    draft: Mapping[str, Any]
    expires_at: datetime
    segment: int | None = None
    above: Above | None = None
    own: Sequence[int] = ()


@dataclass(frozen=True)
class Work:
    """Where an assignment stands: a HIT to answer, or the reason why there is none.

    Reasons: `not_open` (draft), `paused`, `all_done`, `limit` (HITs per annotator), `assignment_done` (the platform's
    assignment is answered), `seen_all` (nothing left for this annotator), `wait` (others hold what is left),
    `crowded` (too many hold HITs that they have not touched), `stopped` (the annotator said that they are done),
    `visit` (a step is to be passed before the work), `held` (the annotator gets no more; whoever runs the campaign may
    let them go on).
    """

    assignment: Standing
    hit: ShownHit | None = None
    reason: Reason | None = None

    @property
    def wants_a_look(self) -> bool:
        """Whether the campaign may have ended, or ask about more items, once its goal is looked at: answers ask for
        that, but a server that was killed has not come to it, the goal may be another one since, and a campaign that
        ends as somebody asks for a HIT may have missed it.
        """
        return self.reason in {"seen_all", "wait", "all_done"}

    @property
    def finished(self) -> bool:
        """Whether this annotator can return to where they came from."""
        return self.reason in ("all_done", "limit", "assignment_done", "held", "seen_all", "stopped")


# An item has the wanted judgments although a lease holds it: an import brought them, or a clock went back.
OVERTAKEN = f"""
    EXISTS (SELECT 1 FROM posteriors p WHERE {PRESENT} AND p.subject = ANY(CAST(:capped AS int[]))
            AND p.judgments >= :wanted)"""  # noqa: S608  (made of constants)

HELD, HELD_OUTPUTS = (
    text(f"SELECT shown.*, {OVERTAKEN} AS overtaken FROM ({shown}) AS shown")  # noqa: S608  (made of constants)
    for shown in (SHOWN, SHOWN_OUTPUTS)
)

GIVE_UP = text(f"""
    UPDATE hits SET closed_at = :now, untouched_by = NULL
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL AND (expires_at <= {CLOCK} OR {OVERTAKEN})
""")  # noqa: S608  (made of constants)

TAKE_OVER = text("""
    UPDATE hits SET assignment_id = :assignment
    WHERE campaign_id = :campaign AND closed_at IS NULL AND id = (
        SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator
        AND assignment_id IS DISTINCT FROM :assignment AND closed_at IS NULL
        ORDER BY expires_at DESC LIMIT 1)
""")

END_LEASE = text(f"""
    UPDATE hits SET expires_at = {CLOCK}
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL AND expires_at > {CLOCK}
""")  # noqa: S608  (made of constants)

COMPLETE = text("""
    UPDATE assignments SET completed_at = :now
    WHERE campaign_id = :campaign AND id = :assignment AND completed_at IS NULL
""")

WANTED = text(f"""
    SELECT p.subject AS number FROM posteriors p
    WHERE {PRESENT} AND {wants("p", judgments=":wanted", people=":people")} AND p.subject <> ALL(CAST(:always AS int[]))
""")  # noqa: S608  (made of constants)

# What is left are systems that cannot be compared. Others may have joined since, in another revision.
FINISH_LEFT = finish_where("revision = :revision")

ANY_OPEN = text(f"""
    SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND {ALL_OPEN} LIMIT 1
""")  # noqa: S608  (made of constants)


class HeldItems(ShownItems):
    """What is shown of the items of a HIT, and whether one of them has the wanted judgments already."""

    overtaken: bool


class ItemNumber(Record):
    """An item."""

    number: int


async def next_hit(connection: Driver, cache: PosteriorCache, key: AssignmentKey, *, now: datetime) -> Work:
    """The HIT this assignment holds, else a new lease, else the reason why there is none.

    `connection` is in no transaction: every step commits what it does. `now` is what is noted as the time; how long a
    HIT is held is for the database's clock to say.
    """
    for tries in range(PATIENCE):
        work = await hold_or_lease(connection, cache, key, now=now, anew=tries > 0)
        if work is not None:
            return work
    return Work(await standing(connection, cache, key), reason="wait")


async def hold_or_lease(
    connection: Driver, cache: PosteriorCache, key: AssignmentKey, *, now: datetime, anew: bool = False
) -> Work | None:
    """One try of `next_hit`; None when it must be asked afresh, `anew`: not by what is remembered of open HITs."""
    here = await standing(connection, cache, key, anew=anew)
    if here.held_back or not here.admitted:
        if work := await not_let_in(connection, here, now=now):
            return work
        here = await standing(connection, cache, key, anew=anew)
    if here.hit_id is None and here.begun_elsewhere and not here.one_hit:
        await take_over(connection, here)
        here = await standing(connection, cache, key, anew=anew)
    if here.hit_id is not None:
        return await held(connection, here, key.visitor, now=now)
    if reason := closed_because(here) or crowded(here, key.visitor):
        return await without_hit(connection, here, reason, now=now)
    return await new_hit(connection, cache, here, key.visitor, now=now)


async def new_hit(
    connection: Driver, cache: PosteriorCache, here: Standing, visitor: Visitor | None, *, now: datetime
) -> Work | None:
    """A HIT for somebody who holds none, or why there is none; None as `hold_or_lease` has it."""
    checks = () if not here.has_checks else await mixed.due(connection, here, cache)
    places = mixed.places_of(here, checks)
    proposal = await propose(connection, here, cache, now=now, places=places)
    if from_memory(here) and falls_short(here, proposal, places):
        return None
    if proposal is None:
        return await without_hit(connection, here, await why_none(connection, here, cache, now=now), now=now)
    if checks:
        proposal = mixed.into(here, cache, proposal, checks)
        if proposal is None:
            return None
    if proposal.leader is None:  # all are checks, which nobody else waits for
        return await leased(connection, here, proposal, visitor, now=now, checks=checks)
    with cache.about_to_lease(here.id, proposal.leader, proposal.items, proposal.segment):
        work = await leased(connection, here, proposal, visitor, now=now, checks=checks)
    if work is not None:
        cache.note_lease(here.id, proposal.leader, proposal.items, proposal.segment)
    return work


async def not_let_in(connection: Driver, here: Standing, *, now: datetime) -> Work | None:
    """Whether somebody is barred, or has a step to pass before the work; who has none is let in until that changes."""
    if here.held_back:
        return await given_back(connection, here, closed_because(here) or "held", now=now)
    if reason := closed_because(here):
        return Work(here, reason=reason)
    visiting = await progress.find_or_admit(connection, AssignmentId(here.id, here.assignment_id))
    return Work(here, reason="visit") if visiting.step else None


def from_memory(here: Standing) -> bool:
    """Whether what open HITs hold was not read for this request."""
    return here.selection == "streaming" and here.held is None


def falls_short(here: Standing, proposal: Proposal | None, places: int) -> bool:
    """Whether there may be more to ask than this, if others have given HITs back or answered them.

    Of who has to wait, nobody reads that: many wait at a time, and all of them look again soon.
    """
    return proposal is not None and (len(proposal.items) + places < here.items_per_hit or proposal.shared_leader)


async def take_over(connection: Driver, here: Standing) -> None:
    """Let this visit have the HIT that the same person left open in another one, with what they entered there."""
    # Another request of this visit may have got a HIT meanwhile: it has one then, and goes on with that.
    with suppress(UniqueViolationError):
        parameters = {"campaign": here.id, "assignment": here.assignment_id, "annotator": here.annotator_id}
        await execute(connection, TAKE_OVER, parameters)


async def given_back(connection: Driver, here: Standing, reason: Reason, *, now: datetime) -> Work:
    """No HIT: what was held, perhaps since the moment in which that was decided, others may have."""
    await execute(connection, END_LEASE, {"campaign": here.id, "hit": here.hit_id})
    return await without_hit(connection, here, reason, now=now)


def closed_because(here: Standing) -> Reason | None:
    """The reason why this assignment gets no HIT whatever is left to ask, or None."""
    if here.one_hit and here.answered_here:
        return "assignment_done"
    if here.held_back:
        return "held"
    if here.hits_per_annotator is not None and here.hits_answered + here.open_elsewhere >= here.hits_per_annotator:
        return "limit"
    by_status: dict[str, Reason] = {"draft": "not_open", "paused": "paused", "finished": "all_done"}
    return by_status.get(here.status)


def crowded(here: Standing, visitor: Visitor | None) -> Reason | None:
    """Whether too many HITs lie with people who have touched nothing. Requests at one instant can each add one more."""
    if visitor is None or (here.hit_id is not None and not here.hit_untouched):
        return None
    limits = visitor.limits
    too_many = (
        here.untouched_here >= max(limits.untouched_per_address, here.people_per_address or 0)
        or here.untouched_everywhere >= limits.untouched_per_campaign
    )
    return "crowded" if too_many else None


async def held(connection: Driver, here: Standing, visitor: Visitor | None, *, now: datetime) -> Work | None:
    """The HIT that this assignment has already, with what was entered so far, for as long as its items can be had.

    None when it was given up. What may be had instead is asked afresh: a late answer may have changed that.
    """
    items = shown_once(here.hit_items, here.hit_shown_as)
    parameters = {
        "campaign": here.id,
        "hit": here.hit_id,
        "items": here.hit_items,
        "shown": items,
        "segment": here.hit_segment,
        "capped": capped(here, here.hit_items),
        "wanted": here.judgments_per_item,
        "now": now,
    }
    expires_at: datetime | None = here.expires_at
    if not here.hit_is_open:
        if reason := closed_because(here) or crowded(here, visitor):
            return await without_hit(connection, here, reason, now=now)
        expires_at = await renew(connection, here, visitor if here.hit_untouched else None)
    statement = HELD if here.hit_segment is None else HELD_OUTPUTS
    (shown,) = await fetch(connection, statement, parameters, HeldItems)
    if expires_at is None or shown.overtaken:
        await execute(connection, GIVE_UP, parameters)
        return None
    assert here.hit_id is not None  # noqa: S101  (this is asked of whoever has a HIT)
    seen = items, shown.ids, shown.texts
    if here.has_checks:
        seen = mixed.shown(*seen, *await of_hit(connection, here.id, here.hit_id))
    draft = draft_by_position(here.draft or {}, seen[0])
    return Work(here, ShownHit(here.hit_id, *seen, draft, expires_at, here.hit_segment, shown.above, items))


async def leased(
    connection: Driver,
    here: Standing,
    proposal: Proposal,
    visitor: Visitor | None,
    *,
    now: datetime,
    checks: Sequence[CheckItem] = (),
) -> Work | None:
    """A new HIT of the proposed items, or None when another request took some of them first. checks: those in it."""
    row = await lease(connection, here, proposal, visitor, now=now)
    if row is None:
        return None
    seen = proposal.shown, row.ids, row.texts
    if proposal.checks:
        seen = mixed.shown(*seen, proposal.checks, {check.number: check for check in checks})
    return Work(here, ShownHit(row.id, *seen, {}, row.expires_at, proposal.segment, row.above, proposal.shown))


def is_last(cache: PosteriorCache, work: Work) -> bool:
    """Whether this annotator gets no HIT after the one they have, as far as this process knows."""
    here, copy = work.assignment, cache.copies.get(work.assignment.id)
    if here.one_hit or here.hits_answered + 1 == here.hits_per_annotator:
        return True
    if work.hit is None or copy is None:
        return False
    return not something_left(here, copy, work.hit.own, work.hit.segment)


def something_left(here: Standing, copy: Copy, items: Collection[int], segment: int | None = None) -> bool:
    """Whether anything can be asked of this annotator, or will be once these items (of a segment) are answered."""
    if copy.segments is not None:
        had = {*here.seen} if segment is None else {*here.seen, segment}
        full, rng = copy.index.full(Counter(items)), np.random.default_rng(0)  # of a draw that nobody gets to see
        return of_outputs(here, copy, full=full, leading=set(), leases={}, had=had, rng=rng) is not None
    return copy.index.leaves_something(
        items, seen=here.seen, barred=here.not_judged or (), allow_seen=here.repeat_items
    )


async def without_hit(connection: Driver, here: Standing, reason: Reason, *, now: datetime) -> Work:
    work = Work(here, reason=reason)
    if work.finished and here.answered_here:
        await execute(connection, COMPLETE, {"campaign": here.id, "assignment": here.assignment_id, "now": now})
    return work


async def why_none(connection: Driver, here: Standing, cache: PosteriorCache, *, now: datetime) -> Reason:
    """`all_done` (and the campaign is closed), `seen_all`, or `wait`."""
    copy = cache.copies.get(here.id)
    over = copy is not None and nothing_unknown(here, copy)
    if copy is not None and here.selection == "streaming" and not over and something_left(here, copy, ()):
        return "wait"  # the copy is as new as `here` is: no need to ask which of perhaps many items are wanted
    parameters = {
        "campaign": here.id,
        "wanted": here.judgments_per_item,
        "people": here.unjudged_people,
        "always": here.always_shown,
        "revision": here.revision,
        "now": now,
    }
    wanted = {row.number for row in await fetch(connection, WANTED, parameters, ItemNumber)}
    if len(wanted) < here.fewest_items:
        await execute(connection, FINISH, parameters)
        return "all_done"
    if here.segment_count:
        return await why_no_systems(connection, here, copy, wanted, parameters)
    barred = never_again(here)
    some_barred = not here.repeat_items or barred
    left = wanted.difference(barred)
    if some_barred and (len(left) < here.fewest_items or await waits_for_nobody(connection, here)):
        return "seen_all"
    return "seen_all" if over else "wait"


async def why_no_systems(
    connection: Driver, here: Standing, copy: Copy | None, wanted: Collection[int], parameters: Mapping[str, Any]
) -> Reason:
    """The same where items are systems: it is also over when those that are `wanted` cannot be compared."""
    if copy is None or copy.segments is None or max(wanted) >= copy.segments.systems:  # others have just joined
        return "wait"
    asking, always = asking_of(here), here.always_shown
    if copy.segments.can_compare(wanted, always, n=asking.n, fewest=asking.fewest + len(always)):
        return "seen_all"
    await execute(connection, FINISH_LEFT, parameters)
    return "all_done"


def nothing_unknown(here: Standing, copy: Copy) -> bool:
    """Whether this annotator's answers tell of all pairs of items that are still wanted."""
    known = copy.own_answers.get(here.annotator_id)
    return known is not None and known.not_asked.spent.union(never_again(here)).issuperset(copy.index.open_items())


async def waits_for_nobody(connection: Driver, here: Standing) -> bool:
    """Whether only other annotators than this one can go on with a plan, and none of them is at work."""
    if here.selection != "iterations":
        return False
    return await fetch_one(connection, ANY_OPEN, {"campaign": here.id}, Record) is None
