"""Places in the plan of an iteration: found for an annotator, and planned when nothing is left of the one before."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.database.pool import wants
from app.database.session import Driver, Record, execute, fetch, fetch_one
from app.record.store import PRESENT
from app.selection.registry import asking_of, rule_of
from app.selection.rule import Draw
from app.serving.posterior_cache import Copy, PosteriorCache
from app.serving.proposal import Proposal, known_to, with_those_always_shown
from app.serving.standing import ALL_OPEN, ANSWERED, OPEN, TAKEN, Standing

LEADER_IS_GONE = "leader_is_gone", None  # of a place in a plan: whoever was to lead it is wanted no more
WANTS = wants("p", judgments=":wanted", people=":people")

# A place in the plan is free when no open lease and no answer has it. Items that reached the wanted number through late
# answers, or left the pool, are dropped from it, and a place without others is over. First come places that this
# process is not about to lease to others; of these the ones without an item that this annotator has scored, then those
# with some, and last those that have nothing but items that they are not asked about again.
FREE_PLACE = text(f"""
    SELECT plan.ordinal, plan.leader, plan.drawn_because, plan.leader_probability,
           ARRAY(SELECT i FROM unnest(plan.items) WITH ORDINALITY AS u (i, place)
                 JOIN posteriors p ON {PRESENT} AND p.subject = i AND p.subject = ANY(plan.items)
                 WHERE {WANTS} ORDER BY place) AS place_items
    FROM planned_hits plan
    WHERE plan.campaign_id = :campaign AND plan.iteration = :iteration AND NOT EXISTS (
        SELECT 1 FROM hits h
        WHERE h.campaign_id = plan.campaign_id AND h.iteration = plan.iteration AND h.ordinal = plan.ordinal
        AND {TAKEN})
    AND EXISTS (SELECT 1 FROM posteriors p WHERE {PRESENT} AND p.subject = ANY(plan.items) AND {WANTS}
                OFFSET 0)  -- so that it is asked of each place, and its items are found by the index
    ORDER BY plan.leader = ANY(CAST(:leases_pending AS int[])), plan.items <@ CAST(:not_judged AS int[]),
             plan.items && CAST(:seen AS int[]), plan.items <@ CAST(:seen AS int[]), plan.ordinal LIMIT 1
""")  # noqa: S608  (made of constants)

# The open HITs that an iteration waits for: not for those that have been held for three times as long as its answers,
# and those of the one before, took. Whoever holds one of these can still answer it.
WAITED_FOR = text(f"""
    WITH answered AS (
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY h.closed_at - h.issued_at) AS took
        FROM hits h WHERE h.campaign_id = :campaign AND h.iteration IN (:iteration, :iteration - 1) AND {ANSWERED}
    )
    SELECT count(*) AS hits FROM hits h, answered
    WHERE h.campaign_id = :campaign AND h.iteration = :iteration AND {OPEN}
    AND (answered.took IS NULL OR h.issued_at > CAST(:now AS timestamptz) - greatest(3 * took, interval '1 minute'))
""")  # noqa: S608  (made of constants)

HELD = text(f"SELECT unnest(h.items) AS item FROM hits h WHERE h.campaign_id = :campaign AND {ALL_OPEN}")  # noqa: S608  (constants)

FREE_ITEMS = text(f"""
    SELECT unnest(p.items) AS item FROM planned_hits p
    WHERE p.campaign_id = :campaign AND p.iteration = :iteration AND NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = p.campaign_id AND h.iteration = p.iteration AND h.ordinal = p.ordinal
        AND {TAKEN})
""")  # noqa: S608  (made of constants)

LOCK_CAMPAIGN = text("SELECT iteration FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE")

STORE_PLAN = text("""
    INSERT INTO planned_hits (campaign_id, iteration, ordinal, leader, items, drawn_because, leader_probability)
    SELECT :campaign, :iteration, place, (plan ->> 'leader')::int,
           ARRAY(SELECT jsonb_array_elements_text(plan -> 'items')::int),
           plan ->> 'reason', (plan ->> 'probability')::float8
    FROM jsonb_array_elements(CAST(:plans AS jsonb)) WITH ORDINALITY AS planned (plan, place)
""")

NEXT_ITERATION = text("UPDATE campaigns SET iteration = :iteration WHERE id = :campaign")


class FreePlace(Record):
    """A place of the plan, and which of its items still want a judgment."""

    ordinal: int
    leader: int
    drawn_because: str | None
    leader_probability: float | None
    place_items: list[int]


class WaitedFor(Record):
    """How many HITs an iteration waits for."""

    hits: int


class Item(Record):
    """An item, once for each HIT that counts on it."""

    item: int


class Iteration(Record):
    """The newest iteration that is planned, -1 before the first."""

    iteration: int


async def place_in_plan(
    connection: Driver, here: Standing, copy: Copy, cache: PosteriorCache, *, now: datetime
) -> Proposal | None:
    """A free place of the current iteration; plans the next iteration when there is nothing to wait for in this one."""
    iteration = here.iteration
    if iteration >= 0:
        proposal, finished = await free_place(connection, here, copy, iteration, cache, now=now)
        if proposal is not None or not finished:
            return proposal
    async with connection.transaction():
        (row,) = await fetch(connection, LOCK_CAMPAIGN, {"campaign": here.id}, Iteration)
        current = row.iteration
        if current == iteration:
            current += 1
            copy = await cache.posteriors(connection, here)  # once more: it is the last answers that this plan is for
            if not await plan(connection, here, copy, current):
                return None
    proposal, _ = await free_place(connection, here, copy, current, cache, now=now)
    return proposal


async def free_place(
    connection: Driver, here: Standing, copy: Copy, iteration: int, cache: PosteriorCache, *, now: datetime
) -> tuple[Proposal | None, bool]:
    """The free place that suits this annotator best, and whether all there is to wait for has been answered."""
    parameters = {
        "campaign": here.id,
        "iteration": iteration,
        "wanted": here.judgments_per_item,
        "people": here.unjudged_people,
        "seen": list(known_to(here)),
        "not_judged": here.not_judged or [],
        "leases_pending": [lease.leader for lease in cache.leases_pending(here.id)],
        "now": now,
    }
    place = await fetch_one(connection, FREE_PLACE, parameters, FreePlace)
    if place is None:
        (waited_for,) = await fetch(connection, WAITED_FOR, parameters, WaitedFor)
        return None, waited_for.hits == 0
    barred = here.not_judged or () if here.repeat_items else known_to(here)
    items = [item for item in place.place_items if item not in barred]
    if not items:
        return None, False
    if len(items) < min(max(2, here.fewest_items), asking_of(here).n):
        items = await filled(connection, here, copy, items, parameters)
    if len(items) < here.fewest_items:
        return None, False
    leader, why = (
        (place.leader, (place.drawn_because, place.leader_probability))
        if place.leader in items
        else (items[0], LEADER_IS_GONE)
    )
    items = with_those_always_shown(here, items, copy.rng)
    return Proposal(leader, items, *why, iteration, place.ordinal, shared_leader=True), False


async def filled(
    connection: Driver, here: Standing, copy: Copy, items: list[int], parameters: Mapping[str, Any]
) -> list[int]:
    """What is left of a place, with companions that neither an open HIT nor another free place counts on."""
    counted = [
        *await fetch(connection, HELD, parameters, Item),
        *await fetch(connection, FREE_ITEMS, parameters, Item),
    ]
    draw = copy.index.draw(
        asking_of(here).n,
        seen=known_to(here),
        full=copy.index.full(Counter(row.item for row in counted)).union(here.not_judged or ()),
        leading=set(),
        allow_seen=here.repeat_items,
        begun=items,
        rng=copy.rng,
    )
    return items if draw is None else draw.items


async def plan(connection: Driver, here: Standing, copy: Copy, iteration: int) -> bool:
    """Draw and store all HITs of an iteration; False when nothing is wanted beyond what is held.

    The campaign's row is locked.
    """
    index = copy.index
    judgments = index.judgments.copy()
    np.add.at(judgments, [row.item for row in await fetch(connection, HELD, {"campaign": here.id}, Item)], 1)
    # A thread, because planning many HITs takes a while; copies, because answers keep coming in meanwhile.
    plans = await asyncio.to_thread(planned, here, index.score.copy(), index.variance.copy(), judgments, iteration)
    if not plans:
        return False
    document = json.dumps([asdict(draw) for draw in plans])
    await execute(connection, STORE_PLAN, {"campaign": here.id, "iteration": iteration, "plans": document})
    await execute(connection, NEXT_ITERATION, {"campaign": here.id, "iteration": iteration})
    return True


def planned(
    here: Standing,
    score: npt.NDArray[np.float64],
    variance: npt.NDArray[np.float64],
    judgments: npt.NDArray[np.int64],
    iteration: int,
) -> list[Draw]:
    """The HITs of one iteration; the seed and the iteration decide every random choice."""
    rng = np.random.default_rng([here.seed, iteration])
    return rule_of(here).plan(score, variance, judgments, asking_of(here), iteration=iteration, rng=rng)
