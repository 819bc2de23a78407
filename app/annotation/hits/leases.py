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

from app.annotation.hits import check_placement
from app.annotation.hits.assignment import (
    DATABASE_TIME,
    HIT_IS_OPEN_IN_INDEX,
    AssignmentQuery,
    AssignmentState,
    load_assignment,
)
from app.annotation.hits.campaign_index import CampaignIndex, PosteriorCache
from app.annotation.hits.draw_hit import draw_systems_hit, propose_hit
from app.annotation.hits.hit_proposal import HitProposal, items_never_repeated
from app.annotation.hits.lease_sql import (
    SELECT_SHOWN_ITEMS,
    SELECT_SHOWN_OUTPUTS,
    ShownItems,
    capped_items,
    lease_hit,
    renew_lease,
)
from app.annotation.onboarding import visit_progress
from app.annotation.platforms.assignments import AssignmentId
from app.annotation.platforms.visit_limit import Visitor
from app.database.campaign import FINISH_IF_COMPLETE, finish_campaign_statement
from app.database.open_items import is_open_sql
from app.database.session import Driver, Record, execute_statement, fetch_first_row, fetch_rows
from app.designs.content import SourceAndReference
from app.designs.item_names import draft_by_position
from app.quality.checks import CheckItem, load_checks_of_hit
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.selection.registry import selection_settings
from app.selection.segments import distinct_items

MAX_LEASE_ATTEMPTS = 25  # times a proposal may lose a race before the annotator is asked to wait

NoHitReason = Literal[
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
class HitOnPage:
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
    source_and_reference: SourceAndReference | None = None
    items_without_checks: Sequence[int] = ()


@dataclass(frozen=True)
class NextHit:
    """Where an assignment stands: a HIT to answer, or the reason why there is none.

    Reasons: `not_open` (draft), `paused`, `all_done`, `limit` (HITs per annotator), `assignment_done` (the platform's
    assignment is answered), `seen_all` (nothing left for this annotator), `wait` (others hold what is left),
    `crowded` (too many hold HITs that they have not touched), `stopped` (the annotator said that they are done),
    `visit` (a step is to be passed before the work), `held` (the annotator gets no more; whoever runs the campaign may
    let them go on).
    """

    assignment: AssignmentState
    hit: HitOnPage | None = None
    reason: NoHitReason | None = None

    @property
    def should_check_goal(self) -> bool:
        """Whether the campaign may have ended, or ask about more items, once its goal is looked at: answers ask for
        that, but a server that was killed has not come to it, the goal may be another one since, and a campaign that
        ends as somebody asks for a HIT may have missed it.
        """
        return self.reason in {"seen_all", "wait", "all_done"}

    @property
    def is_finished(self) -> bool:
        """Whether this annotator can return to where they came from."""
        return self.reason in ("all_done", "limit", "assignment_done", "held", "seen_all", "stopped")


# An item has the wanted judgments although a lease holds it: an import brought them, or a clock went back.
HAS_FULLY_JUDGED_ITEM = f"""
    EXISTS (SELECT 1 FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:capped AS int[]))
            AND p.judgments >= :wanted)"""  # noqa: S608  (made of constants)

SELECT_HELD_ITEMS, SELECT_HELD_OUTPUTS = (
    text(f"SELECT shown.*, {HAS_FULLY_JUDGED_ITEM} AS overtaken FROM ({shown}) AS shown")  # noqa: S608  (made of constants)
    for shown in (SELECT_SHOWN_ITEMS, SELECT_SHOWN_OUTPUTS)
)

CLOSE_HELD_HIT = text(f"""
    UPDATE hits SET closed_at = :now, untouched_by = NULL
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL AND (expires_at <= {DATABASE_TIME} OR {HAS_FULLY_JUDGED_ITEM})
""")  # noqa: S608  (made of constants)

TAKE_OVER_HIT = text("""
    UPDATE hits SET assignment_id = :assignment
    WHERE campaign_id = :campaign AND closed_at IS NULL AND id = (
        SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator
        AND assignment_id IS DISTINCT FROM :assignment AND closed_at IS NULL
        ORDER BY expires_at DESC LIMIT 1)
""")

END_LEASE = text(f"""
    UPDATE hits SET expires_at = {DATABASE_TIME}
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL AND expires_at > {DATABASE_TIME}
""")  # noqa: S608  (made of constants)

COMPLETE_ASSIGNMENT = text("""
    UPDATE assignments SET completed_at = :now
    WHERE campaign_id = :campaign AND id = :assignment AND completed_at IS NULL
""")

SELECT_OPEN_ITEMS = text(f"""
    SELECT p.subject AS number FROM posteriors p
    WHERE {PRESENT_POSTERIORS_CONDITION} AND {is_open_sql("p", judgments_wanted=":wanted", unjudged_limit=":people")} AND p.subject <> ALL(CAST(:always AS int[]))
""")  # noqa: S608  (made of constants)

# What is left are systems that cannot be compared. Others may have joined since, in another revision.
FINISH_INCOMPARABLE = finish_campaign_statement("revision = :revision")

SELECT_ANY_OPEN_HIT = text(f"""
    SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX} LIMIT 1
""")  # noqa: S608  (made of constants)


class HeldHitItems(ShownItems):
    """What is shown of the items of a HIT, and whether one of them has the wanted judgments already."""

    overtaken: bool


class ItemNumber(Record):
    """An item."""

    number: int


async def find_next_hit(connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, now: datetime) -> NextHit:
    """The HIT this assignment holds, else a new lease, else the reason why there is none.

    `connection` is in no transaction: every step commits what it does. `now` is what is noted as the time; how long a
    HIT is held is for the database's clock to say.
    """
    for attempt in range(MAX_LEASE_ATTEMPTS):
        found_hit = await try_next_hit(connection, cache, query, now=now, refresh=attempt > 0)
        if found_hit is not None:
            return found_hit
    return NextHit(await load_assignment(connection, cache, query), reason="wait")


async def try_next_hit(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, now: datetime, refresh: bool = False
) -> NextHit | None:
    """One try of `next_hit`; None when it must be asked afresh, `anew`: not by what is remembered of open HITs."""
    assignment = await load_assignment(connection, cache, query, refresh=refresh)
    if assignment.held_back or not assignment.admitted:
        if refusal := await refuse_or_admit(connection, assignment, now=now):
            return refusal
        assignment = await load_assignment(connection, cache, query, refresh=refresh)
    if assignment.hit_id is None and assignment.begun_elsewhere and not assignment.one_hit:
        await take_over_hit(connection, assignment)
        assignment = await load_assignment(connection, cache, query, refresh=refresh)
    if assignment.hit_id is not None:
        return await resume_held_hit(connection, assignment, query.visitor, now=now)
    if reason := closed_reason(assignment) or crowded_reason(assignment, query.visitor):
        return await refuse_hit(connection, assignment, reason, now=now)
    return await lease_new_hit(connection, cache, assignment, query.visitor, now=now)


async def lease_new_hit(
    connection: Driver, cache: PosteriorCache, assignment: AssignmentState, visitor: Visitor | None, *, now: datetime
) -> NextHit | None:
    """A HIT for somebody who holds none, or why there is none; None as `hold_or_lease` has it."""
    checks = (
        () if not assignment.has_checks else await check_placement.checks_for_next_hit(connection, assignment, cache)
    )
    check_count = check_placement.count_check_slots(assignment, checks)
    proposal = await propose_hit(connection, assignment, cache, now=now, check_count=check_count)
    if used_cached_open_hits(assignment) and should_retry_fresh(assignment, proposal, check_count):
        return None
    if proposal is None:
        return await refuse_hit(
            connection, assignment, await find_no_hit_reason(connection, assignment, cache, now=now), now=now
        )
    if checks:
        proposal = check_placement.insert_checks(assignment, cache, proposal, checks)
        if proposal is None:
            return None
    if proposal.leader is None:  # all are checks, which nobody else waits for
        return await lease_proposal(connection, assignment, proposal, visitor, now=now, checks=checks)
    with cache.reserve_items(assignment.id, proposal.leader, proposal.items, proposal.segment):
        leased_hit = await lease_proposal(connection, assignment, proposal, visitor, now=now, checks=checks)
    if leased_hit is not None:
        cache.record_lease(assignment.id, proposal.leader, proposal.items, proposal.segment)
    return leased_hit


async def refuse_or_admit(connection: Driver, assignment: AssignmentState, *, now: datetime) -> NextHit | None:
    """Whether somebody is barred, or has a step to pass before the work; who has none is let in until that changes."""
    if assignment.held_back:
        return await release_lease(connection, assignment, closed_reason(assignment) or "held", now=now)
    if reason := closed_reason(assignment):
        return NextHit(assignment, reason=reason)
    visit = await visit_progress.load_visit_and_admit(connection, AssignmentId(assignment.id, assignment.assignment_id))
    return NextHit(assignment, reason="visit") if visit.next_step else None


def used_cached_open_hits(assignment: AssignmentState) -> bool:
    """Whether what open HITs hold was not read for this request."""
    return assignment.selection == "streaming" and assignment.held is None


def should_retry_fresh(assignment: AssignmentState, proposal: HitProposal | None, check_count: int) -> bool:
    """Whether there may be more to ask than this, if others have given HITs back or answered them.

    Of who has to wait, nobody reads that: many wait at a time, and all of them look again soon.
    """
    return proposal is not None and (
        len(proposal.items) + check_count < assignment.items_per_hit or proposal.shared_leader
    )


async def take_over_hit(connection: Driver, assignment: AssignmentState) -> None:
    """Let this visit have the HIT that the same person left open in another one, with what they entered there."""
    # Another request of this visit may have got a HIT meanwhile: it has one then, and goes on with that.
    with suppress(UniqueViolationError):
        parameters = {
            "campaign": assignment.id,
            "assignment": assignment.assignment_id,
            "annotator": assignment.annotator_id,
        }
        await execute_statement(connection, TAKE_OVER_HIT, parameters)


async def release_lease(
    connection: Driver, assignment: AssignmentState, reason: NoHitReason, *, now: datetime
) -> NextHit:
    """No HIT: what was held, perhaps since the moment in which that was decided, others may have."""
    await execute_statement(connection, END_LEASE, {"campaign": assignment.id, "hit": assignment.hit_id})
    return await refuse_hit(connection, assignment, reason, now=now)


def closed_reason(assignment: AssignmentState) -> NoHitReason | None:
    """The reason why this assignment gets no HIT whatever is left to ask, or None."""
    if assignment.one_hit and assignment.answered_here:
        return "assignment_done"
    if assignment.held_back:
        return "held"
    if (
        assignment.hits_per_annotator is not None
        and assignment.hits_answered + assignment.open_elsewhere >= assignment.hits_per_annotator
    ):
        return "limit"
    by_status: dict[str, NoHitReason] = {"draft": "not_open", "paused": "paused", "finished": "all_done"}
    return by_status.get(assignment.status)


def crowded_reason(assignment: AssignmentState, visitor: Visitor | None) -> NoHitReason | None:
    """Whether too many HITs lie with people who have touched nothing. Requests at one instant can each add one more."""
    if visitor is None or (assignment.hit_id is not None and not assignment.hit_untouched):
        return None
    limits = visitor.limits
    too_many = (
        assignment.untouched_here >= max(limits.untouched_per_address, assignment.people_per_address or 0)
        or assignment.untouched_everywhere >= limits.untouched_per_campaign
    )
    return "crowded" if too_many else None


async def resume_held_hit(
    connection: Driver, assignment: AssignmentState, visitor: Visitor | None, *, now: datetime
) -> NextHit | None:
    """The HIT that this assignment has already, with what was entered so far, for as long as its items can be had.

    None when it was given up. What may be had instead is asked afresh: a late answer may have changed that.
    """
    items = distinct_items(assignment.hit_items, assignment.hit_shown_as)
    parameters = {
        "campaign": assignment.id,
        "hit": assignment.hit_id,
        "items": assignment.hit_items,
        "shown": items,
        "segment": assignment.hit_segment,
        "capped": capped_items(assignment, assignment.hit_items),
        "wanted": assignment.judgments_per_item,
        "now": now,
    }
    expires_at: datetime | None = assignment.expires_at
    if not assignment.hit_is_open:
        if reason := closed_reason(assignment) or crowded_reason(assignment, visitor):
            return await refuse_hit(connection, assignment, reason, now=now)
        expires_at = await renew_lease(connection, assignment, visitor if assignment.hit_untouched else None)
    statement = SELECT_HELD_ITEMS if assignment.hit_segment is None else SELECT_HELD_OUTPUTS
    (row,) = await fetch_rows(connection, statement, parameters, HeldHitItems)
    if expires_at is None or row.overtaken:
        await execute_statement(connection, CLOSE_HELD_HIT, parameters)
        return None
    assert assignment.hit_id is not None  # noqa: S101  (this is asked of whoever has a HIT)
    page_items = items, row.ids, row.texts
    if assignment.has_checks:
        page_items = check_placement.items_with_checks(
            *page_items, *await load_checks_of_hit(connection, assignment.id, assignment.hit_id)
        )
    draft = draft_by_position(assignment.draft or {}, page_items[0])
    return NextHit(
        assignment,
        HitOnPage(
            assignment.hit_id, *page_items, draft, expires_at, assignment.hit_segment, row.source_and_reference, items
        ),
    )


async def lease_proposal(
    connection: Driver,
    assignment: AssignmentState,
    proposal: HitProposal,
    visitor: Visitor | None,
    *,
    now: datetime,
    checks: Sequence[CheckItem] = (),
) -> NextHit | None:
    """A new HIT of the proposed items, or None when another request took some of them first. checks: those in it."""
    row = await lease_hit(connection, assignment, proposal, visitor, now=now)
    if row is None:
        return None
    page_items = proposal.visible_items, row.ids, row.texts
    if proposal.checks:
        page_items = check_placement.items_with_checks(
            *page_items, proposal.checks, {check.number: check for check in checks}
        )
    return NextHit(
        assignment,
        HitOnPage(
            row.id, *page_items, {}, row.expires_at, proposal.segment, row.source_and_reference, proposal.visible_items
        ),
    )


def is_last_hit(cache: PosteriorCache, next_hit: NextHit) -> bool:
    """Whether this annotator gets no HIT after the one they have, as far as this process knows."""
    assignment, campaign_index = next_hit.assignment, cache.indexes.get(next_hit.assignment.id)
    if assignment.one_hit or assignment.hits_answered + 1 == assignment.hits_per_annotator:
        return True
    if next_hit.hit is None or campaign_index is None:
        return False
    return not has_items_left(assignment, campaign_index, next_hit.hit.items_without_checks, next_hit.hit.segment)


def has_items_left(
    assignment: AssignmentState, campaign_index: CampaignIndex, items: Collection[int], segment: int | None = None
) -> bool:
    """Whether anything can be asked of this annotator, or will be once these items (of a segment) are answered."""
    if campaign_index.segments is not None:
        segments_seen = {*assignment.seen} if segment is None else {*assignment.seen, segment}
        full_items, rng = (
            campaign_index.index.full_items(Counter(items)),
            np.random.default_rng(0),
        )  # of a draw that nobody gets to see
        return (
            draw_systems_hit(
                assignment,
                campaign_index,
                full_items=full_items,
                leading_items=set(),
                leases_by_segment={},
                segments_seen=segments_seen,
                rng=rng,
            )
            is not None
        )
    return campaign_index.index.has_items_after(
        items, seen=assignment.seen, barred=assignment.not_judged or (), allow_seen=assignment.repeat_items
    )


async def refuse_hit(connection: Driver, assignment: AssignmentState, reason: NoHitReason, *, now: datetime) -> NextHit:
    refusal = NextHit(assignment, reason=reason)
    if refusal.is_finished and assignment.answered_here:
        await execute_statement(
            connection,
            COMPLETE_ASSIGNMENT,
            {"campaign": assignment.id, "assignment": assignment.assignment_id, "now": now},
        )
    return refusal


async def find_no_hit_reason(
    connection: Driver, assignment: AssignmentState, cache: PosteriorCache, *, now: datetime
) -> NoHitReason:
    """`all_done` (and the campaign is closed), `seen_all`, or `wait`."""
    campaign_index = cache.indexes.get(assignment.id)
    is_all_implied = campaign_index is not None and has_only_implied_pairs(assignment, campaign_index)
    if (
        campaign_index is not None
        and assignment.selection == "streaming"
        and not is_all_implied
        and has_items_left(assignment, campaign_index, ())
    ):
        return "wait"  # the copy is as new as `here` is: no need to ask which of perhaps many items are wanted
    parameters = {
        "campaign": assignment.id,
        "wanted": assignment.judgments_per_item,
        "people": assignment.unjudged_people,
        "always": assignment.always_shown,
        "revision": assignment.revision,
        "now": now,
    }
    open_items = {row.number for row in await fetch_rows(connection, SELECT_OPEN_ITEMS, parameters, ItemNumber)}
    if len(open_items) < assignment.fewest_items:
        await execute_statement(connection, FINISH_IF_COMPLETE, parameters)
        return "all_done"
    if assignment.segment_count:
        return await find_no_systems_reason(connection, assignment, campaign_index, open_items, parameters)
    barred = items_never_repeated(assignment)
    some_barred = not assignment.repeat_items or barred
    items_left = open_items.difference(barred)
    if some_barred and (len(items_left) < assignment.fewest_items or await is_plan_stuck(connection, assignment)):
        return "seen_all"
    return "seen_all" if is_all_implied else "wait"


async def find_no_systems_reason(
    connection: Driver,
    assignment: AssignmentState,
    campaign_index: CampaignIndex | None,
    open_systems: Collection[int],
    parameters: Mapping[str, Any],
) -> NoHitReason:
    """The same where items are systems: it is also over when those that are `wanted` cannot be compared."""
    if (
        campaign_index is None
        or campaign_index.segments is None
        or max(open_systems) >= campaign_index.segments.systems
    ):  # others have just joined
        return "wait"
    asking, always_shown = selection_settings(assignment), assignment.always_shown
    if campaign_index.segments.can_compare(
        open_systems, always_shown, n=asking.items_per_hit, min_outputs=asking.min_items + len(always_shown)
    ):
        return "seen_all"
    await execute_statement(connection, FINISH_INCOMPARABLE, parameters)
    return "all_done"


def has_only_implied_pairs(assignment: AssignmentState, campaign_index: CampaignIndex) -> bool:
    """Whether this annotator's answers tell of all pairs of items that are still wanted."""
    own_answers = campaign_index.own_answers.get(assignment.annotator_id)
    return own_answers is not None and own_answers.implied_pairs.exhausted_leaders.union(
        items_never_repeated(assignment)
    ).issuperset(campaign_index.index.open_items())


async def is_plan_stuck(connection: Driver, assignment: AssignmentState) -> bool:
    """Whether only other annotators than this one can go on with a plan, and none of them is at work."""
    if assignment.selection != "iterations":
        return False
    return await fetch_first_row(connection, SELECT_ANY_OPEN_HIT, {"campaign": assignment.id}, Record) is None
