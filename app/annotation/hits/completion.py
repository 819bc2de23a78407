"""End of a visit: its outcome, and how the annotator returns to the platform."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.annotation.hits.assignment import (
    AssignmentQuery,
    AssignmentState,
    load_assignment_updating_posteriors_or_refuse,
)
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.leases import find_or_lease_next_hit
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.no_hit_replies import end_lease_and_build_no_hit_reply
from app.annotation.hits.visit_outcome import (
    may_end_visit_after_any_hit,
    outcome_of_finished_visit_or_none,
    store_server_call_of_outcome,
)
from app.annotation.platforms.platform import Completion, Platform, VisitOutcome
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.settings import CrowdSettings
from app.database.session import Driver, Record, fetch_first_row_or_none

SELECT_CROWD_SETTINGS = text("SELECT slug, crowd_settings FROM campaigns WHERE id = :campaign")


async def end_visit_or_find_next_hit(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, now: datetime
) -> NextHit:
    """End the visit: other annotators may get the held HIT, and this one may still come back to it.

    If leaving is not allowed or the annotator is held, treat it as a request for a HIT, so no completion code leaks.
    """
    assignment = await load_assignment_updating_posteriors_or_refuse(connection, cache, query)
    if assignment.held_back or not may_end_visit_after_any_hit(assignment):
        return await find_or_lease_next_hit(connection, cache, query, now=now)
    return await end_lease_and_build_no_hit_reply(connection, assignment, "stopped", now=now)


async def load_completion_storing_call_or_none(connection: Driver, next_hit: NextHit) -> Completion | None:
    """Return the way back after the visit; None if there is nothing to hand in, or the visit goes on."""
    outcome = outcome_of_finished_visit_or_none(next_hit)
    if outcome is None:
        return None
    return await load_completion_and_store_server_call(connection, next_hit.assignment, outcome)


async def load_completion_and_store_server_call(
    connection: Driver, assignment: AssignmentState, outcome: VisitOutcome
) -> Completion:
    """Return the way back. If it says that the platform is told of the outcome, the row of that call is stored."""
    row = await fetch_first_row_or_none(connection, SELECT_CROWD_SETTINGS, {"campaign": assignment.campaign_id}, Record)
    assert row is not None  # noqa: S101  (the assignment was found in this campaign)
    completion = build_completion_of_campaign(
        PLATFORMS[assignment.platform], assignment.arrival, row["crowd_settings"], row["slug"], outcome
    )
    if completion.is_reported:
        await store_server_call_of_outcome(connection, assignment, outcome)
    return completion


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
