"""Replies to annotators who get no HIT, and what they change: the lease that ends, the assignment that is complete."""

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.assignment_sql import DATABASE_TIME
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.no_hit_reasons import NoHitReason
from app.annotation.hits.visit_outcome import (
    COMPLETE_ASSIGNMENT_AND_STORE_SERVER_CALL,
    outcome_of_finished_visit_or_none,
)
from app.annotation.onboarding import visit_progress
from app.annotation.platforms.assignments import AssignmentId
from app.annotation.platforms.registry import names_of_platforms_with_server_calls
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, Record, execute_statement, fetch_first_row_or_none

END_LEASE = text(f"""
    UPDATE hits SET expires_at = {DATABASE_TIME}
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL AND expires_at > {DATABASE_TIME}
""")

# The reason is `withdrawn` by the annotator, who can take that back, or `erased`.
SELECT_ERASURE_REASON = text("""
    SELECT a.barred_reason AS reason, s.completed_at IS NOT NULL AS was_finished
    FROM annotators a JOIN assignments s ON s.campaign_id = a.campaign_id AND s.id = :assignment
    WHERE a.campaign_id = :campaign AND a.id = :annotator AND a.barred = 'erased'
""")

STORE_END_OF_BLOCKS = text("""
    UPDATE annotators SET square_done = true
    WHERE campaign_id = :campaign AND id = :annotator AND square_row IS NOT NULL AND square_done IS NOT TRUE
""")

StepBeforeDraw = Literal["admit", "resume_held_hit", "take_over_hit"] | NoHitReason

REASONS_AFTER_ALL_TASKS: Collection[NoHitReason] = {"limit", "seen_all", "all_done"}


def step_before_draw_or_none(
    assignment: AssignmentState, visitor: Visitor | None, *, has_looked_elsewhere: bool = False
) -> StepBeforeDraw | None:
    """Return what comes before a draw for this assignment, or why it gets no HIT; None if a HIT can be drawn now.

    Args:
        assignment: The assignment.
        visitor: Origin of the request, if no platform vouches for the annotator.
        has_looked_elsewhere: True if the HIT of another visit was moved to this one, or could not be.

    """
    if assignment.held_back or not assignment.admitted:
        return "admit"
    if assignment.hit_id is not None:
        return "resume_held_hit"
    if assignment.begun_elsewhere and not assignment.one_hit and not has_looked_elsewhere:
        return "take_over_hit"
    return no_hit_reason_code_of_assignment_or_none(assignment) or crowded_reason_code_or_none(assignment, visitor)


async def no_hit_reply_or_none_after_admitting(
    connection: Driver, assignment: AssignmentState, *, now: datetime
) -> NextHit | None:
    """Return why the annotator gets no HIT (blocked, or an onboarding step is open), or None after admitting them."""
    if assignment.held_back:
        if erasure := await load_reply_after_erasure_or_none(connection, assignment):
            return erasure
        return await end_lease_and_build_no_hit_reply(
            connection, assignment, no_hit_reason_code_of_assignment_or_none(assignment) or "held", now=now
        )
    if reason := no_hit_reason_code_of_assignment_or_none(assignment):
        return NextHit(assignment, reason=reason)
    visit = await visit_progress.load_visit_and_admit(
        connection, AssignmentId(assignment.campaign_id, assignment.assignment_id)
    )
    return NextHit(assignment, reason="visit") if visit.next_step_or_none else None


async def load_reply_after_erasure_or_none(connection: Driver, assignment: AssignmentState) -> NextHit | None:
    """Return the reply to a person who withdrew or was erased; None if something else holds them back, or nothing."""
    key = {
        "campaign": assignment.campaign_id,
        "annotator": assignment.annotator_id,
        "assignment": assignment.assignment_id,
    }
    row = await fetch_first_row_or_none(connection, SELECT_ERASURE_REASON, key, Record)
    return None if row is None else NextHit(assignment, reason=row["reason"], was_finished=row["was_finished"])


async def end_lease_and_build_no_hit_reply(
    connection: Driver, assignment: AssignmentState, reason: NoHitReason, *, now: datetime
) -> NextHit:
    """End the lease of the held HIT, so that other annotators may get its items, and return the refusal."""
    await execute_statement(connection, END_LEASE, {"campaign": assignment.campaign_id, "hit": assignment.hit_id})
    return await build_no_hit_reply_completing_assignment(connection, assignment, reason, now=now)


def no_hit_reason_code_of_assignment_or_none(assignment: AssignmentState) -> NoHitReason | None:
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


def crowded_reason_code_or_none(assignment: AssignmentState, visitor: Visitor | None) -> NoHitReason | None:
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


async def build_no_hit_reply_completing_assignment(
    connection: Driver, assignment: AssignmentState, reason: NoHitReason, *, now: datetime
) -> NextHit:
    """Return the refusal. Store that the assignment is complete, and that the annotator has done all blocks, if so."""
    refusal = NextHit(assignment, reason=reason)
    if assignment.square_row is not None and assignment.hits_answered and reason in REASONS_AFTER_ALL_TASKS:
        key = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
        await execute_statement(connection, STORE_END_OF_BLOCKS, key)
    if refusal.is_finished and assignment.answered_here:
        parameters = {
            "campaign": assignment.campaign_id,
            "assignment": assignment.assignment_id,
            "now": now,
            "outcome": outcome_of_finished_visit_or_none(refusal),
            "calling": names_of_platforms_with_server_calls(),
        }
        await execute_statement(connection, COMPLETE_ASSIGNMENT_AND_STORE_SERVER_CALL, parameters)
    return refusal
