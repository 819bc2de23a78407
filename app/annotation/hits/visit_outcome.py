"""How a visit ends, and the row of a call that tells the platform's server so (`app.server_calls`)."""

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.next_hit import NextHit
from app.annotation.platforms.platform import Platform, VisitOutcome
from app.annotation.platforms.registry import PLATFORMS, names_of_platforms_with_server_calls
from app.database.session import Driver, execute_statement

# One call for each outcome of an assignment, and none after that of completion: a person who was held and released may
# complete, but the platform hears nothing else of a person who completed. The address is read when the call is made.
STORE_SERVER_CALL_SQL = """
    INSERT INTO server_calls (campaign_id, annotator_id, assignment_id, outcome)
    SELECT s.campaign_id, s.annotator_id, s.id, CAST(:outcome AS text)
    FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN campaigns c ON c.id = s.campaign_id
    WHERE s.campaign_id = :campaign AND s.id = :assignment AND a.platform = ANY(CAST(:calling AS text[]))
    AND s.arrival <> '{}' AND coalesce(
        c.crowd_settings ->> ('call_' || CAST(:outcome AS text)),
        CASE CAST(:outcome AS text) WHEN 'quota_full' THEN c.crowd_settings ->> 'call_screened_out' END) IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM server_calls o
        WHERE o.campaign_id = s.campaign_id AND o.assignment_id = s.id AND o.outcome = 'completed')
    ON CONFLICT (campaign_id, assignment_id, outcome) DO NOTHING
"""
STORE_SERVER_CALL = text(STORE_SERVER_CALL_SQL)

# In one statement, so that no annotator completes without their call.
COMPLETE_ASSIGNMENT_AND_STORE_SERVER_CALL = text(f"""
    WITH completed AS (
        UPDATE assignments SET completed_at = :now
        WHERE campaign_id = :campaign AND id = :assignment AND completed_at IS NULL)
    {STORE_SERVER_CALL_SQL}
""")


def may_end_visit_after_any_hit(assignment: AssignmentState) -> bool:
    """Return whether the annotator may end the visit after any HIT. Without a limit on HITs nothing else may end it."""
    return is_leaving_early_allowed(
        PLATFORMS[assignment.platform], assignment.leave_early, assignment.hits_per_annotator
    )


def is_leaving_early_allowed(platform: Platform, leave_early: bool, hits_per_annotator: float | None) -> bool:  # noqa: FBT001
    """Return whether a campaign with these settings lets annotators of a platform end the visit after any HIT."""
    return leave_early or (platform.has_return_page and not hits_per_annotator)


def outcome_of_finished_visit_or_none(next_hit: NextHit) -> VisitOutcome | None:
    """Return how the visit ended; None while it goes on, and if the annotator left before any answer."""
    if next_hit.reason == "held":
        return "failed_checks"
    if next_hit.reason == "withdrawn":  # a withdrawal can be taken back: it gives no code that stopping would not give
        can_be_paid = next_hit.was_finished or may_end_visit_after_any_hit(next_hit.assignment)
        return "completed" if next_hit.assignment.answered_here and can_be_paid else None
    if not next_hit.is_finished:
        return None
    if next_hit.assignment.answered_here:
        return "completed"
    return None if next_hit.reason == "stopped" else "nothing_left"


async def store_server_call_of_outcome(connection: Driver, assignment: AssignmentState, outcome: VisitOutcome) -> None:
    """Store that the platform's server is to be told of an outcome, once."""
    parameters = {
        "campaign": assignment.campaign_id,
        "assignment": assignment.assignment_id,
        "outcome": outcome,
        "calling": names_of_platforms_with_server_calls(),
    }
    await execute_statement(connection, STORE_SERVER_CALL, parameters)
