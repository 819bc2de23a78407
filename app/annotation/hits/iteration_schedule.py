"""HITs of the selection `iterations`: free places of the current iteration's schedule, and the next schedule."""

import asyncio
import json
from collections import Counter
from dataclasses import asdict
from datetime import datetime

import numpy as np
from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.assignment_sql import (
    HIT_IS_ANSWERED,
    HIT_IS_OPEN,
    HIT_IS_OPEN_IN_INDEX,
    HIT_IS_OPEN_OR_ANSWERED,
)
from app.annotation.hits.campaign_index import CampaignIndex, PosteriorCache
from app.annotation.hits.hit_proposal import (
    HitProposal,
    items_seen_or_held_in_other_visit,
    shuffled_items_with_always_shown,
)
from app.database.campaign import is_item_open_sql
from app.database.session import (
    Driver,
    Record,
    execute_statement,
    fetch_first_column,
    fetch_first_row_or_none,
    fetch_first_value_or_none,
)
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.selection.rule import Draw, ItemValues

REPLACED_LEADER_REASON = "leader_is_gone"  # the scheduled leader needs no more judgments
SCHEDULED_ITEM_IS_OPEN = is_item_open_sql("p", judgments_wanted_sql=":wanted", unjudged_limit_sql=":people")

# A place in the schedule is free if no open lease and no answer has it. Its items that reached the wanted number
# through late answers, or left the pool, are dropped; a place without any other item is over. Places that this process
# is not about to lease come first. Among them, places without an item that this annotator has scored come first, then
# places with some, and last places where every item is one that this annotator is never asked about again.
SELECT_FREE_PLACE = text(f"""
    SELECT place.ordinal, place.leader, place.drawn_because, place.leader_probability,
           ARRAY(SELECT i FROM unnest(place.items) WITH ORDINALITY AS u (i, position)
                 JOIN posteriors p ON {PRESENT_POSTERIORS_CONDITION} AND p.subject = i AND p.subject = ANY(place.items)
                 WHERE {SCHEDULED_ITEM_IS_OPEN} ORDER BY position) AS place_items
    FROM planned_hits place
    WHERE place.campaign_id = :campaign AND place.iteration = :iteration AND NOT EXISTS (
        SELECT 1 FROM hits h
        WHERE h.campaign_id = :campaign AND h.iteration = place.iteration AND h.ordinal = place.ordinal
        AND {HIT_IS_OPEN_OR_ANSWERED})
    AND EXISTS (SELECT 1 FROM posteriors p
                WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(place.items) AND {SCHEDULED_ITEM_IS_OPEN}
                OFFSET 0)  -- keeps PostgreSQL from turning this into a join: each place finds its items by the index
    ORDER BY place.leader = ANY(CAST(:leases_pending AS int[])), place.items <@ CAST(:not_judged AS int[]),
             place.items && CAST(:seen AS int[]), place.items <@ CAST(:seen AS int[]), place.ordinal LIMIT 1
""")

# The open HITs that an iteration waits for: all but those held for more than three times the median time that answers
# of this iteration and the one before took. Annotators can still answer these.
COUNT_AWAITED_HITS = text(f"""
    WITH answered AS (
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY h.closed_at - h.issued_at) AS took
        FROM hits h
        WHERE h.campaign_id = :campaign AND h.iteration IN (:iteration, :iteration - 1) AND {HIT_IS_ANSWERED}
    )
    SELECT count(*) AS hits FROM hits h, answered
    WHERE h.campaign_id = :campaign AND h.iteration = :iteration AND {HIT_IS_OPEN}
    AND (answered.took IS NULL OR h.issued_at > CAST(:now AS timestamptz) - greatest(3 * took, interval '1 minute'))
""")

SELECT_ITEMS_OF_OPEN_HITS = text(
    f"SELECT unnest(h.items) AS item FROM hits h WHERE h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX}"
)

SELECT_ITEMS_OF_FREE_PLACES = text(f"""
    SELECT unnest(p.items) AS item FROM planned_hits p
    WHERE p.campaign_id = :campaign AND p.iteration = :iteration AND NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.iteration = p.iteration AND h.ordinal = p.ordinal
        AND {HIT_IS_OPEN_OR_ANSWERED})
""")

LOCK_ITERATION = text("SELECT iteration FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE")

INSERT_SCHEDULED_HITS = text("""
    INSERT INTO planned_hits (campaign_id, iteration, ordinal, leader, items, drawn_because, leader_probability)
    SELECT :campaign, :iteration, ordinal, (draw ->> 'leader')::int,
           ARRAY(SELECT jsonb_array_elements_text(draw -> 'items')::int),
           draw ->> 'reason', (draw ->> 'probability')::float8
    FROM jsonb_array_elements(CAST(:draws AS jsonb)) WITH ORDINALITY AS drawn (draw, ordinal)
""")

SET_ITERATION = text("UPDATE campaigns SET iteration = :iteration WHERE id = :campaign")


class FreePlaceRow(Record):
    """A place of the schedule, and its items that still need judgments."""

    ordinal: int
    leader: int
    drawn_because: str | None
    leader_probability: float | None
    place_items: list[int]


async def propose_scheduled_hit_or_extend_schedule(
    connection: Driver,
    assignment: AssignmentState,
    campaign_index: CampaignIndex,
    cache: PosteriorCache,
    *,
    now: datetime,
) -> HitProposal | None:
    """Return a free place of the current iteration. Schedule the next iteration if this one waits for no HIT."""
    iteration = assignment.iteration
    if iteration >= 0:
        proposal, finished = await propose_scheduled_hit_with_done_flag(
            connection, assignment, campaign_index, iteration, cache, now=now
        )
        if proposal is not None or not finished:
            return proposal
    async with connection.transaction():
        current: int = await fetch_first_value_or_none(connection, LOCK_ITERATION, {"campaign": assignment.campaign_id})
        if current == iteration:
            current += 1
            # Loaded again: the schedule must use the answers that completed the previous iteration.
            campaign_index = await cache.load_current_index(connection, assignment)
            if not await try_to_draw_and_store_iteration_hits(connection, assignment, campaign_index, current):
                return None
    proposal, _ = await propose_scheduled_hit_with_done_flag(
        connection, assignment, campaign_index, current, cache, now=now
    )
    return proposal


async def propose_scheduled_hit_with_done_flag(
    connection: Driver,
    assignment: AssignmentState,
    campaign_index: CampaignIndex,
    iteration: int,
    cache: PosteriorCache,
    *,
    now: datetime,
) -> tuple[HitProposal | None, bool]:
    """Return the free place that suits this annotator best, and whether the iteration waits for no HIT."""
    key = {"campaign": assignment.campaign_id, "iteration": iteration}
    preferences = {
        "wanted": assignment.judgments_per_item,
        "people": assignment.unjudged_people,
        "seen": list(items_seen_or_held_in_other_visit(assignment)),
        "not_judged": assignment.not_judged or [],
        "leases_pending": [lease.leader for lease in cache.pending_leases(assignment.campaign_id)],
    }
    place = await fetch_first_row_or_none(connection, SELECT_FREE_PLACE, key | preferences, FreePlaceRow)
    if place is None:
        awaited_hits: int = await fetch_first_value_or_none(connection, COUNT_AWAITED_HITS, {**key, "now": now})
        return None, awaited_hits == 0
    barred = assignment.not_judged or () if assignment.repeat_items else items_seen_or_held_in_other_visit(assignment)
    items = [item for item in place.place_items if item not in barred]
    if not items:
        return None, False
    if len(items) < min(max(2, assignment.fewest_items), assignment.selection_settings.items_per_hit):
        items = await fill_up_place_with_unneeded_items(connection, assignment, campaign_index, items, iteration)
    if len(items) < assignment.fewest_items:
        return None, False
    keeps_leader = place.leader in items
    proposal = HitProposal(
        leader=place.leader if keeps_leader else items[0],
        items=shuffled_items_with_always_shown(assignment, items, campaign_index.rng),
        reason=place.drawn_because if keeps_leader else REPLACED_LEADER_REASON,
        probability=place.leader_probability if keeps_leader else None,
        iteration=iteration,
        ordinal=place.ordinal,
        shared_leader=True,
    )
    return proposal, False


async def fill_up_place_with_unneeded_items(
    connection: Driver,
    assignment: AssignmentState,
    campaign_index: CampaignIndex,
    remaining_items: list[int],
    iteration: int,
) -> list[int]:
    """Return the remaining items of a place, filled up with items that no open HIT and no other free place needs."""
    key = {"campaign": assignment.campaign_id}
    reserved_items: list[int] = [
        *await fetch_first_column(connection, SELECT_ITEMS_OF_OPEN_HITS, key),
        *await fetch_first_column(connection, SELECT_ITEMS_OF_FREE_PLACES, {**key, "iteration": iteration}),
    ]
    draw = campaign_index.index.draw_hit_or_none(
        assignment.selection_settings.items_per_hit,
        seen=items_seen_or_held_in_other_visit(assignment),
        full=campaign_index.index.full_items(Counter(reserved_items)).union(assignment.not_judged or ()),
        leaders_to_avoid=set(),
        seen_as_last_resort=assignment.repeat_items,
        initial_items=remaining_items,
        rng=campaign_index.rng,
    )
    return remaining_items if draw is None else draw.items


async def try_to_draw_and_store_iteration_hits(
    connection: Driver, assignment: AssignmentState, campaign_index: CampaignIndex, iteration: int
) -> bool:
    """Draw and store all HITs of an iteration. Return False if open HITs hold everything that is still needed.

    The caller must hold the lock on the campaign's row.
    """
    index = campaign_index.index
    judgments = index.judgments.copy()
    key = {"campaign": assignment.campaign_id}
    held_items: list[int] = await fetch_first_column(connection, SELECT_ITEMS_OF_OPEN_HITS, key)
    np.add.at(judgments, held_items, 1)
    # A thread, because drawing many HITs takes a while; copies, because answers keep coming in meanwhile.
    draws = await asyncio.to_thread(
        draw_iteration_hits,
        assignment,
        ItemValues(index.score.copy(), index.variance.copy(), judgments, index.status),
        iteration,
    )
    if not draws:
        return False
    document = json.dumps([asdict(draw) for draw in draws])
    await execute_statement(
        connection,
        INSERT_SCHEDULED_HITS,
        {"campaign": assignment.campaign_id, "iteration": iteration, "draws": document},
    )
    await execute_statement(connection, SET_ITERATION, {"campaign": assignment.campaign_id, "iteration": iteration})
    return True


def draw_iteration_hits(assignment: AssignmentState, values: ItemValues, iteration: int) -> list[Draw]:
    """Return the HITs of one iteration. The seed and the iteration's number decide every random choice."""
    rng = np.random.default_rng([assignment.seed, iteration])
    return assignment.rule.schedule_hits_of_iteration(
        values, assignment.selection_settings, iteration=iteration, rng=rng
    )
