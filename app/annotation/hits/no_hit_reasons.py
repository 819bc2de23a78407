"""Why an annotator gets no HIT, and whether there will be another one for them."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import Literal

import numpy as np
from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.assignment_sql import HIT_IS_OPEN_IN_INDEX
from app.annotation.hits.campaign_index import CampaignIndex, PosteriorCache
from app.annotation.hits.condition_blocks import can_any_list_or_block_fill_task
from app.annotation.hits.draw_systems import SystemsDraw
from app.annotation.hits.fixed_set import unjudged_fixed_items
from app.annotation.hits.hit_proposal import items_never_asked_again
from app.database.campaign import finish_campaign_if_statement, is_item_open_sql, try_to_finish_complete_campaign
from app.database.session import Driver, Record, execute_statement, fetch_first_column, fetch_first_row_or_none
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION

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
    "erased",
    "withdrawn",
]

SELECT_OPEN_ITEMS = text(f"""
    SELECT p.subject AS number FROM posteriors p
    WHERE {PRESENT_POSTERIORS_CONDITION} AND {
    is_item_open_sql("p", judgments_wanted_sql=":wanted", unjudged_limit_sql=":people")
}
      AND p.subject <> ALL(CAST(:always AS int[]))
""")

# For campaigns whose open items cannot be compared. In another revision, further items may have joined.
FINISH_INCOMPARABLE = finish_campaign_if_statement("revision = :revision")

SELECT_ANY_OPEN_HIT = text(f"""
    SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX} LIMIT 1
""")


def has_hit_left_after_answering(
    assignment: AssignmentState,
    campaign_index: CampaignIndex,
    answered_items: Collection[int],
    segment: int | None = None,
) -> bool:
    """Return whether this annotator can get another HIT once these items (of a segment) are answered."""
    if assignment.has_fixed_set and unjudged_fixed_items(assignment, {*assignment.seen, *answered_items}):
        return True
    if campaign_index.segments is not None:
        segments_seen = {*assignment.seen} if segment is None else {*assignment.seen, segment}
        trial_draw = SystemsDraw(
            assignment,
            campaign_index,
            full_items=campaign_index.index.full_items(Counter(answered_items)),
            leading_items=set(),
            leases_by_segment={},
            segments_seen=segments_seen,
            hit_size=assignment.selection_settings.items_per_hit,
            rng=np.random.default_rng(0),  # not the campaign's: this draw is never shown
        )
        return trial_draw.propose_hit_or_none() is not None
    place = assignment.place_in_blocks
    blocks = (
        [*place.later_blocks] if place.is_last_task and answered_items else [place.items_outside, *place.later_blocks]
    )
    return any(
        campaign_index.index.has_open_items_left_after_hit(
            answered_items,
            seen_items=assignment.seen_or_met_as_checks,
            barred=assignment.not_judged or (),
            seen_as_last_resort=assignment.repeat_items,
            never_asked=items.mask,
        )
        for items in (blocks if assignment.condition_column else [assignment.items_of_others])
    )


def no_hit_reason_from_index_or_none(
    assignment: AssignmentState, campaign_index: CampaignIndex
) -> Literal["wait", "seen_all"] | None:
    """Return the reason if the cached index tells it, so that the database need not list all open items.

    The index is as new as the assignment. If so many items with conditions are open that some block of some list has
    enough for a task, the campaign is not finished.
    """
    if has_hit_left_after_answering(assignment, campaign_index, ()):
        return "wait"
    if campaign_index.conditions is None:
        return None
    most_without_task = campaign_index.conditions.square.block_count * (assignment.fewest_items - 1)
    return "seen_all" if campaign_index.index.open_item_count > most_without_task else None


async def finish_if_done_returning_no_hit_reason(
    connection: Driver, assignment: AssignmentState, cache: PosteriorCache, *, now: datetime
) -> NoHitReason:
    """Return `seen_all`, `wait`, or `all_done` after finishing the campaign.

    With conditions, it is also finished if no list or block has as many open items as a task needs.
    """
    campaign_index = cache.indexes.get(assignment.campaign_id)
    is_all_implied = campaign_index is not None and has_only_implied_pairs_left(assignment, campaign_index)
    if (
        campaign_index is not None
        and assignment.selection == "streaming"
        and not is_all_implied
        and (reason := no_hit_reason_from_index_or_none(assignment, campaign_index))
    ):
        return reason
    parameters = {
        "campaign": assignment.campaign_id,
        "wanted": assignment.judgments_per_item,
        "people": assignment.unjudged_people,
        "always": assignment.always_shown,
    }
    open_items: set[int] = {*await fetch_first_column(connection, SELECT_OPEN_ITEMS, parameters)}
    if len(open_items) < assignment.fewest_items:
        await try_to_finish_complete_campaign(connection, assignment.campaign_id, now=now)
        return "all_done"
    if (
        campaign_index is not None
        and campaign_index.conditions is not None
        and not can_any_list_or_block_fill_task(campaign_index.conditions, open_items, assignment.fewest_items)
    ):
        await finish_campaign_with_incomparable_items(connection, assignment, now=now)
        return "all_done"
    if assignment.segment_count:
        return await finish_if_done_returning_no_systems_reason(
            connection, assignment, campaign_index, open_items, now=now
        )
    barred = items_never_asked_again(assignment)
    some_barred = not assignment.repeat_items or barred
    items_left = open_items.difference(barred)
    if some_barred and (len(items_left) < assignment.fewest_items or await is_schedule_stuck(connection, assignment)):
        return "seen_all"
    return "seen_all" if is_all_implied else "wait"


async def finish_if_done_returning_no_systems_reason(
    connection: Driver,
    assignment: AssignmentState,
    campaign_index: CampaignIndex | None,
    open_systems: Collection[int],
    *,
    now: datetime,
) -> NoHitReason:
    """As `finish_if_done_returning_no_hit_reason`, for systems: the campaign also ends if its open systems cannot be
    compared.
    """
    segments = campaign_index.segments if campaign_index is not None else None
    if segments is None or max(open_systems) >= segments.system_count:  # further systems have just joined
        return "wait"
    settings, always_shown = assignment.selection_settings, assignment.always_shown
    if segments.can_any_segment_compare_systems(
        open_systems, always_shown, n=settings.items_per_hit, min_outputs=settings.min_items + len(always_shown)
    ):
        return "seen_all"
    await finish_campaign_with_incomparable_items(connection, assignment, now=now)
    return "all_done"


async def finish_campaign_with_incomparable_items(
    connection: Driver, assignment: AssignmentState, *, now: datetime
) -> None:
    """Finish a campaign whose open items are in no task together, unless it has another revision meanwhile."""
    key = {"campaign": assignment.campaign_id, "revision": assignment.revision, "now": now}
    await execute_statement(connection, FINISH_INCOMPARABLE, key)


def has_only_implied_pairs_left(assignment: AssignmentState, campaign_index: CampaignIndex) -> bool:
    """Return whether this annotator's answers imply all pairs of items that still need judgments."""
    own_answers = campaign_index.own_answers.get(assignment.annotator_id)
    return own_answers is not None and own_answers.implied_pairs.exhausted_leaders.union(
        items_never_asked_again(assignment)
    ).issuperset(campaign_index.index.open_items())


async def is_schedule_stuck(connection: Driver, assignment: AssignmentState) -> bool:
    """Return whether only other annotators could continue the schedule, and none of them holds a HIT."""
    if assignment.selection != "iterations":
        return False
    return (
        await fetch_first_row_or_none(connection, SELECT_ANY_OPEN_HIT, {"campaign": assignment.campaign_id}, Record)
        is None
    )
