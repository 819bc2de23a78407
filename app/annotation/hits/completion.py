"""End of a visit: its outcome, and how the annotator returns to the platform."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentQuery, AssignmentState, load_assignment_and_update_cache
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.leases import find_or_lease_next_hit
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.no_hit_replies import end_lease_and_build_no_hit_reply
from app.annotation.platforms.platform import Completion, Platform, VisitOutcome
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.settings import CrowdSettings
from app.database.session import Driver, Record, fetch_first_row_or_none

SELECT_CROWD_SETTINGS = text("SELECT slug, crowd_settings FROM campaigns WHERE id = :campaign")


def may_end_visit_after_any_hit(assignment: AssignmentState) -> bool:
    """Return whether the annotator may end the visit after any HIT. Without a limit on HITs nothing else may end it."""
    return is_leaving_early_allowed(
        PLATFORMS[assignment.platform], assignment.leave_early, assignment.hits_per_annotator
    )


def is_leaving_early_allowed(platform: Platform, leave_early: bool, hits_per_annotator: float | None) -> bool:  # noqa: FBT001
    """Return whether a campaign with these settings lets annotators of a platform end the visit after any HIT."""
    return leave_early or (platform.has_return_page and not hits_per_annotator)


async def end_visit_or_find_next_hit(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, now: datetime
) -> NextHit:
    """End the visit: other annotators may get the held HIT, and this one may still come back to it.

    If leaving is not allowed or the annotator is held, treat it as a request for a HIT, so no completion code leaks.
    """
    assignment = await load_assignment_and_update_cache(connection, cache, query)
    if assignment.held_back or not may_end_visit_after_any_hit(assignment):
        return await find_or_lease_next_hit(connection, cache, query, now=now)
    return await end_lease_and_build_no_hit_reply(connection, assignment, "stopped", now=now)


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


async def load_completion_if_visit_is_over(connection: Driver, next_hit: NextHit) -> Completion | None:
    """Return the way back after the visit; None if there is nothing to hand in, or the visit goes on."""
    outcome = outcome_of_finished_visit_or_none(next_hit)
    return None if outcome is None else await load_completion_for_outcome(connection, next_hit.assignment, outcome)


async def load_completion_for_outcome(
    connection: Driver, assignment: AssignmentState, outcome: VisitOutcome
) -> Completion:
    row = await fetch_first_row_or_none(connection, SELECT_CROWD_SETTINGS, {"campaign": assignment.campaign_id}, Record)
    assert row is not None  # noqa: S101  (the assignment was found in this campaign)
    return build_completion_of_campaign(
        PLATFORMS[assignment.platform], assignment.arrival, row["crowd_settings"], row["slug"], outcome
    )


def build_completion_of_campaign(
    platform: Platform,
    arrival_details: Mapping[str, str],
    crowd_settings: Mapping[str, Any],
    slug: str,
    outcome: VisitOutcome,
) -> Completion:
    """Return the way back to a platform, as the campaign with these stored settings has it."""
    return_settings = dict(CrowdSettings.model_construct(**crowd_settings)) | {"slug": slug}
    return platform.build_completion(arrival_details, return_settings, outcome)
