"""The HIT that an annotator gets: the one they hold, one from an earlier visit, or a new one.

A HIT is a lease on its items. `lease_sql` decides between concurrent requests for the same items.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asyncpg import UniqueViolationError
from sqlalchemy import text

from app.annotation.hits import check_placement
from app.annotation.hits.assignment import (
    DATABASE_TIME,
    AssignmentQuery,
    AssignmentState,
    load_assignment_and_update_cache,
)
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.draw_hit import propose_hit_or_none
from app.annotation.hits.hit_proposal import HitProposal
from app.annotation.hits.lease_sql import (
    items_with_judgment_limit,
    try_to_lease_hit,
    try_to_renew_lease,
)
from app.annotation.hits.no_hit_reasons import (
    NoHitReason,
    finish_if_done_and_name_no_hit_reason,
    has_hit_left_after_answering,
)
from app.annotation.hits.shown_items_sql import SELECT_SHOWN_ITEMS_OF_HIT, SELECT_SHOWN_OUTPUTS_OF_HIT, ShownItems
from app.annotation.onboarding import visit_progress
from app.annotation.platforms.assignments import AssignmentId
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, SharedParameters, execute_statement, fetch_rows
from app.designs.content import SourceAndReference
from app.designs.item_names import draft_entries_by_position
from app.quality.checks import CheckItem, load_placed_checks_and_check_items
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.selection.segments import shown_items_of_hit

MAX_LEASE_ATTEMPTS = 25  # times a proposal may lose a race before the annotator is asked to wait


@dataclass(frozen=True)
class HitOnPage:
    """A HIT as an annotator sees it.

    Attributes:
        items: Numbers of items and checks, in presentation order.
        ids: The researcher's ids, in the same order.
        texts: Texts, in the same order.
        draft: Values entered so far.
        expires_at: End of the lease.
        segment: Segment of the outputs, each shown once, if the items are systems.
        source_and_reference: Texts shown above the outputs, if the items are systems.
        items_without_checks: Numbers of the items alone.

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
    """A HIT to answer, or the reason why there is none, with the state of the assignment.

    Reasons: `not_open` (draft), `paused`, `all_done`, `limit` (HITs per annotator), `assignment_done` (the platform's
    assignment is answered), `seen_all` (nothing left for this annotator), `wait` (others hold the remaining items),
    `crowded` (too many people hold HITs that they have not touched), `stopped` (the annotator ended the visit), `visit`
    (an onboarding step is open), `held` (the annotator gets no more HITs unless the campaign owner releases them).
    """

    assignment: AssignmentState
    hit: HitOnPage | None = None
    reason: NoHitReason | None = None

    @property
    def should_check_goal(self) -> bool:
        """True if a check of the campaign's goal may end the campaign or make it ask about more items.

        Answers already request this check. They may have missed it: the server was killed before it, the goal was
        changed since, or the campaign ended during a request for a HIT.
        """
        return self.reason in {"seen_all", "wait", "all_done"}

    @property
    def is_finished(self) -> bool:
        """True if this annotator can return to the platform."""
        return self.reason in ("all_done", "limit", "assignment_done", "held", "seen_all", "stopped")


# SQL: an item has all wanted judgments although a lease holds it. An import brought them, or a clock went back.
HAS_FULLY_JUDGED_ITEM = f"""
    EXISTS (SELECT 1 FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:capped AS int[]))
            AND p.judgments >= :wanted)"""

SELECT_HELD_ITEMS, SELECT_HELD_OUTPUTS = (
    text(f"SELECT shown.*, {HAS_FULLY_JUDGED_ITEM} AS overtaken FROM ({shown}) AS shown")
    for shown in (SELECT_SHOWN_ITEMS_OF_HIT, SELECT_SHOWN_OUTPUTS_OF_HIT)
)

CLOSE_HELD_HIT = text(f"""
    UPDATE hits SET closed_at = :now, untouched_by = NULL
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL
      AND (expires_at <= {DATABASE_TIME} OR {HAS_FULLY_JUDGED_ITEM})
""")

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
""")

COMPLETE_ASSIGNMENT = text("""
    UPDATE assignments SET completed_at = :now
    WHERE campaign_id = :campaign AND id = :assignment AND completed_at IS NULL
""")


@dataclass(slots=True, kw_only=True)
class HeldHitParameters(SharedParameters):
    """Parameters of the statements that show a held HIT or close it; `shown` are the items on its page."""

    campaign: int
    hit: int | None
    items: Sequence[int]
    shown: Sequence[int]
    segment: int | None
    capped: Sequence[int]
    wanted: int
    now: datetime


class HeldItems(ShownItems):
    """Ids and texts of the items of a HIT, and whether one of them already has all wanted judgments."""

    overtaken: bool


async def find_or_lease_next_hit(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, now: datetime
) -> NextHit:
    """Return the HIT that this assignment holds, else a new one, else the reason why there is none.

    Args:
        connection: In no transaction: every step commits.
        cache: Posteriors of this process.
        query: The assignment.
        now: Time to store. The database's clock decides how long a HIT is held.

    """
    for attempt in range(MAX_LEASE_ATTEMPTS):
        next_hit = await try_to_find_or_lease_next_hit(connection, cache, query, now=now, refresh=attempt > 0)
        if next_hit is not None:
            return next_hit
    return NextHit(await load_assignment_and_update_cache(connection, cache, query), reason="wait")


async def try_to_find_or_lease_next_hit(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, now: datetime, refresh: bool = False
) -> NextHit | None:
    """Try once to find the next HIT; return None if the caller must try again with `refresh`."""
    assignment = await load_assignment_and_update_cache(connection, cache, query, refresh=refresh)
    if assignment.held_back or not assignment.admitted:
        if refusal := await admit_or_build_no_hit_reply(connection, assignment, now=now):
            return refusal
        assignment = await load_assignment_and_update_cache(connection, cache, query, refresh=refresh)
    if assignment.hit_id is None and assignment.begun_elsewhere and not assignment.one_hit:
        await take_over_hit_of_other_visit(connection, assignment)
        assignment = await load_assignment_and_update_cache(connection, cache, query, refresh=refresh)
    if assignment.hit_id is not None:
        return await resume_held_hit_if_available(connection, assignment, query.visitor, now=now)
    if reason := reason_assignment_gets_no_hit_if_any(assignment) or crowded_reason_if_too_many_untouched(
        assignment, query.visitor
    ):
        return await complete_if_finished_and_build_refusal(connection, assignment, reason, now=now)
    return await lease_new_hit_or_build_refusal(connection, cache, assignment, query.visitor, now=now)


async def lease_new_hit_or_build_refusal(
    connection: Driver, cache: PosteriorCache, assignment: AssignmentState, visitor: Visitor | None, *, now: datetime
) -> NextHit | None:
    """Lease a HIT to an annotator who holds none, or return why there is none; None as in
    `try_to_find_or_lease_next_hit`.
    """
    checks = (
        ()
        if not assignment.has_checks
        else await check_placement.draw_checks_for_next_hit(connection, assignment, cache)
    )
    check_count = check_placement.count_check_slots(assignment, checks)
    proposal = await propose_hit_or_none(connection, assignment, cache, now=now, check_count=check_count)
    if did_draw_use_cached_open_hits(assignment) and should_retry_with_fresh_open_hits(
        assignment, proposal, check_count
    ):
        return None
    if proposal is None:
        return await complete_if_finished_and_build_refusal(
            connection,
            assignment,
            await finish_if_done_and_name_no_hit_reason(connection, assignment, cache, now=now),
            now=now,
        )
    if checks:
        proposal = check_placement.proposal_with_checks(assignment, cache, proposal, checks)
        if proposal is None:
            return None
    if proposal.leader is None:  # a HIT of checks, which reserves no items
        return await try_to_lease_proposal(connection, assignment, proposal, visitor, now=now, checks=checks)
    with cache.reserve_items(assignment.campaign_id, proposal.leader, proposal.items, proposal.segment):
        leased_hit = await try_to_lease_proposal(connection, assignment, proposal, visitor, now=now, checks=checks)
    if leased_hit is not None:
        cache.record_lease(assignment.campaign_id, proposal.leader, proposal.items, proposal.segment)
    return leased_hit


async def admit_or_build_no_hit_reply(
    connection: Driver, assignment: AssignmentState, *, now: datetime
) -> NextHit | None:
    """Return why the annotator gets no HIT (blocked, or an onboarding step is open), or None after admitting them."""
    if assignment.held_back:
        return await end_lease_and_build_no_hit_reply(
            connection, assignment, reason_assignment_gets_no_hit_if_any(assignment) or "held", now=now
        )
    if reason := reason_assignment_gets_no_hit_if_any(assignment):
        return NextHit(assignment, reason=reason)
    visit = await visit_progress.load_visit_and_admit(
        connection, AssignmentId(assignment.campaign_id, assignment.assignment_id)
    )
    return NextHit(assignment, reason="visit") if visit.next_step else None


def did_draw_use_cached_open_hits(assignment: AssignmentState) -> bool:
    """Return whether the draw used remembered open HITs instead of reading them for this request."""
    return assignment.selection == "streaming" and assignment.held is None


def should_retry_with_fresh_open_hits(
    assignment: AssignmentState, proposal: HitProposal | None, check_count: int
) -> bool:
    """Return whether a fresh read of open HITs may allow a better HIT than this small or shared one.

    We do not refresh for annotators who have to wait: there may be many of them, and each polls again soon.
    """
    return proposal is not None and (
        len(proposal.items) + check_count < assignment.items_per_hit or proposal.shared_leader
    )


async def take_over_hit_of_other_visit(connection: Driver, assignment: AssignmentState) -> None:
    """Move the HIT that the same person left open in another visit to this one, with its draft."""
    # Another request of this visit may have got a HIT meanwhile. Then the visit continues with that one.
    with suppress(UniqueViolationError):
        parameters = {
            "campaign": assignment.campaign_id,
            "assignment": assignment.assignment_id,
            "annotator": assignment.annotator_id,
        }
        await execute_statement(connection, TAKE_OVER_HIT, parameters)


async def end_lease_and_build_no_hit_reply(
    connection: Driver, assignment: AssignmentState, reason: NoHitReason, *, now: datetime
) -> NextHit:
    """End the lease of the held HIT, so that other annotators may get its items, and return the refusal."""
    await execute_statement(connection, END_LEASE, {"campaign": assignment.campaign_id, "hit": assignment.hit_id})
    return await complete_if_finished_and_build_refusal(connection, assignment, reason, now=now)


def reason_assignment_gets_no_hit_if_any(assignment: AssignmentState) -> NoHitReason | None:
    """Return the reason why this assignment gets no HIT even if items are left, or None."""
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


def crowded_reason_if_too_many_untouched(assignment: AssignmentState, visitor: Visitor | None) -> NoHitReason | None:
    """Return "crowded" if too many HITs are held by people who have not touched them, else None.

    Concurrent requests can each exceed the limit by one.
    """
    if visitor is None or (assignment.hit_id is not None and not assignment.hit_untouched):
        return None
    limits = visitor.limits
    too_many = (
        assignment.untouched_here >= max(limits.untouched_per_address, assignment.people_per_address or 0)
        or assignment.untouched_everywhere >= limits.untouched_per_campaign
    )
    return "crowded" if too_many else None


async def resume_held_hit_if_available(
    connection: Driver, assignment: AssignmentState, visitor: Visitor | None, *, now: datetime
) -> NextHit | None:
    """Return the HIT that this assignment already has, with its draft, as long as its items are available.

    Close it and return None if they are not. The caller then tries again: a late answer may have changed what is open.
    """
    items = shown_items_of_hit(assignment.hit_items, assignment.hit_shown_as)
    parameters = HeldHitParameters(
        campaign=assignment.campaign_id,
        hit=assignment.hit_id,
        items=assignment.hit_items,
        shown=items,
        segment=assignment.hit_segment,
        capped=items_with_judgment_limit(assignment, assignment.hit_items),
        wanted=assignment.judgments_per_item,
        now=now,
    )
    expires_at: datetime | None = assignment.expires_at
    if not assignment.hit_is_open:
        if reason := reason_assignment_gets_no_hit_if_any(assignment) or crowded_reason_if_too_many_untouched(
            assignment, visitor
        ):
            return await complete_if_finished_and_build_refusal(connection, assignment, reason, now=now)
        expires_at = await try_to_renew_lease(connection, assignment, visitor if assignment.hit_untouched else None)
    statement = SELECT_HELD_ITEMS if assignment.hit_segment is None else SELECT_HELD_OUTPUTS
    (row,) = await fetch_rows(connection, statement, parameters, HeldItems)
    if expires_at is None or row.overtaken:
        await execute_statement(connection, CLOSE_HELD_HIT, parameters)
        return None
    assert assignment.hit_id is not None  # noqa: S101  (the caller checked)
    shown, ids, texts = items, row.ids, row.texts
    if assignment.has_checks:
        placed_checks, checks = await load_placed_checks_and_check_items(
            connection, assignment.campaign_id, assignment.hit_id
        )
        shown, ids, texts = check_placement.presented_numbers_ids_and_texts(items, ids, texts, placed_checks, checks)
    hit = HitOnPage(
        id=assignment.hit_id,
        items=shown,
        ids=ids,
        texts=texts,
        draft=draft_entries_by_position(assignment.draft or {}, shown),
        expires_at=expires_at,
        segment=assignment.hit_segment,
        source_and_reference=row.source_and_reference,
        items_without_checks=items,
    )
    return NextHit(assignment, hit)


async def try_to_lease_proposal(
    connection: Driver,
    assignment: AssignmentState,
    proposal: HitProposal,
    visitor: Visitor | None,
    *,
    now: datetime,
    checks: Sequence[CheckItem] = (),
) -> NextHit | None:
    """Lease the proposal with its checks, or return None if another request took some of its items first."""
    row = await try_to_lease_hit(connection, assignment, proposal, visitor, now=now)
    if row is None:
        return None
    shown, ids, texts = proposal.visible_items, row.ids, row.texts
    if proposal.checks:
        check_by_number = {check.number: check for check in checks}
        shown, ids, texts = check_placement.presented_numbers_ids_and_texts(
            shown, ids, texts, proposal.checks, check_by_number
        )
    hit = HitOnPage(
        id=row.id,
        items=shown,
        ids=ids,
        texts=texts,
        draft={},
        expires_at=row.expires_at,
        segment=proposal.segment,
        source_and_reference=row.source_and_reference,
        items_without_checks=proposal.visible_items,
    )
    return NextHit(assignment, hit)


def is_last_hit_as_far_as_known(cache: PosteriorCache, next_hit: NextHit) -> bool:
    """Return whether this annotator gets no HIT after the present one, as far as this process knows."""
    assignment, campaign_index = next_hit.assignment, cache.indexes.get(next_hit.assignment.campaign_id)
    if assignment.one_hit or assignment.hits_answered + 1 == assignment.hits_per_annotator:
        return True
    if next_hit.hit is None or campaign_index is None:
        return False
    return not has_hit_left_after_answering(
        assignment, campaign_index, next_hit.hit.items_without_checks, next_hit.hit.segment
    )


async def complete_if_finished_and_build_refusal(
    connection: Driver, assignment: AssignmentState, reason: NoHitReason, *, now: datetime
) -> NextHit:
    refusal = NextHit(assignment, reason=reason)
    if refusal.is_finished and assignment.answered_here:
        await execute_statement(
            connection,
            COMPLETE_ASSIGNMENT,
            {"campaign": assignment.campaign_id, "assignment": assignment.assignment_id, "now": now},
        )
    return refusal
