"""What to ask next: a draw from the newest posteriors (`streaming`) or a place in a plan (`iterations`)."""

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.database.pool import wants
from app.database.session import Driver, Record, execute, fetch, fetch_one
from app.quality.mixed_in import MixedIn
from app.record.store import PRESENT
from app.selection.registry import asking_of, rule_of
from app.selection.rule import Apart, Draw, together
from app.selection.segments import shown_once
from app.serving.asked_before import not_asked, tell_labels
from app.serving.posterior_cache import Copy, PosteriorCache
from app.serving.standing import ALL_OPEN, ANSWERED, OPEN, TAKEN, Standing


@dataclass(frozen=True)
class Proposal:
    """Items for one HIT; whether they are still free is for the lease to find out."""

    leader: int | None
    items: list[int]
    iteration: int | None = None
    ordinal: int | None = None
    shared_leader: bool = False  # drawn although it leads an open HIT, because every candidate does
    segment: int | None = None  # where the items are systems, that of the outputs that are shown
    shown_as: list[int] | None = None  # of each item the one under which its output is shown; None: its own
    checks: Sequence[MixedIn] = ()

    @property
    def shown(self) -> list[int]:
        """The items of which something is shown: of those with the same output the first."""
        return shown_once(self.items, self.shown_as)


WANTS = wants("p", judgments=":wanted", people=":people")

# A place in the plan is free when no open lease and no answer has it. Items that reached the wanted number through late
# answers, or left the pool, are dropped from it, and a place without others is over. First come places that this
# process is not about to lease to others; of these the ones without an item that this annotator has scored, then those
# with some, and last those that have nothing but items that they are not asked about again.
FREE_PLACE = text(f"""
    SELECT plan.ordinal, plan.leader,
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
    INSERT INTO planned_hits (campaign_id, iteration, ordinal, leader, items)
    SELECT :campaign, :iteration, place, (plan ->> 'leader')::int,
           ARRAY(SELECT jsonb_array_elements_text(plan -> 'items')::int)
    FROM jsonb_array_elements(CAST(:plans AS jsonb)) WITH ORDINALITY AS planned (plan, place)
""")

NEXT_ITERATION = text("UPDATE campaigns SET iteration = :iteration WHERE id = :campaign")


class FreePlace(Record):
    """A place of the plan, and which of its items still want a judgment."""

    ordinal: int
    leader: int
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


def known_to(here: Standing) -> set[int]:
    """The items that this annotator has scored, or holds in another visit; where items are systems, the segments."""
    return {*here.seen, *here.held_elsewhere}


def never_again(here: Standing) -> Collection[int]:
    """The items that this annotator is not asked about again, whatever is left: where items are shown again, those that
    they could not judge. So nobody is asked for ever about these; where items are systems, the segments.
    """
    return (here.not_judged or ()) if here.repeat_items else here.seen


async def propose(
    connection: Driver, here: Standing, cache: PosteriorCache, *, now: datetime, places: int = 0
) -> Proposal | None:
    """What to ask this annotator next; None when there is nothing right now. places: so many that checks take."""
    copy = cache.at_hand(here.id, chain(here.held or (), here.seen)) or await cache.posteriors(connection, here)
    if here.selection == "iterations":
        return await place_in_plan(connection, here, copy, cache, now=now)
    await tell_labels(connection, here, copy)
    return stream(here, copy, cache, await not_asked(connection, here, copy), places)


def stream(here: Standing, copy: Copy, cache: PosteriorCache, apart: Apart | None, places: int = 0) -> Proposal | None:
    """One draw of the campaign's rule on the newest posteriors."""
    open_hits = cache.open_hits(here, copy)
    if open_hits.nothing_left:
        return None
    # What this process is about to lease to others counts as leased: they would only lose the race for it.
    leases_pending = cache.leases_pending(here.id)
    full = open_hits.full_with(chain.from_iterable(lease.items for lease in leases_pending), copy.index)
    leading = together(open_hits.leading, {lease.leader for lease in leases_pending})
    if copy.segments is not None:
        leases = open_hits.segments + Counter(lease.segment for lease in leases_pending if lease.segment is not None)
        return of_outputs(here, copy, full=full, leading=leading, leases=leases, had=known_to(here), rng=copy.rng)
    seen = known_to(here)
    if here.not_judged:
        full = full.union(here.not_judged)
    draw = copy.index.draw(
        asking_of(here).n - places,
        seen=seen,
        full=full,
        leading=leading,
        allow_seen=here.repeat_items,
        apart=apart,
        rng=copy.rng,
    )
    if draw is None:
        open_hits.nothing_left = full is open_hits.full and apart is None and (here.repeat_items or not seen)
        return None
    items = with_those_always_shown(here, draw.items, copy.rng)
    return Proposal(draw.leader, items, shared_leader=draw.leader in leading)


def of_outputs(
    here: Standing,
    copy: Copy,
    *,
    full: set[int],
    leading: set[int],
    leases: Mapping[int, int],
    had: set[int],
    rng: np.random.Generator,
) -> Proposal | None:
    """Systems as the campaign's rule draws them, and a segment for them that this annotator has not `had`.

    A leader whose outputs say nothing beside others' is passed over.
    """
    assert copy.segments is not None  # noqa: S101  (this is asked where items are systems)
    barred, passed_over = copy.segments.used_up(had), set[int]()
    for _ in range(copy.segments.systems):
        draw = copy.index.draw(
            asking_of(here).n,
            seen=barred,
            full=full | passed_over,
            leading=leading,
            allow_seen=here.repeat_items,
            rng=rng,
        )
        if draw is None:
            return None
        if (shown := with_segment(here, copy, draw, full=full, leases=leases, had=had, rng=rng)) is not None:
            items, segment = shown
            shown_as = copy.segments.shown_as(segment, items)
            return Proposal(
                draw.leader, items, shared_leader=draw.leader in leading, segment=segment, shown_as=shown_as
            )
        passed_over.add(draw.leader)
    return None


def with_segment(
    here: Standing,
    copy: Copy,
    draw: Draw,
    *,
    full: set[int],
    leases: Mapping[int, int],
    had: set[int],
    rng: np.random.Generator,
) -> tuple[list[int], int] | None:
    """The systems of a HIT in the order in which they are shown, and its segment; None if there is none that says
    something. Where drawn systems have no output for it, others that have one stand in for them; where their outputs
    are the same, others whose are not.
    """
    assert copy.segments is not None  # noqa: S101  (this is asked where items are systems)
    always, asking = here.always_shown, asking_of(here)
    fewest, systems = asking.fewest + len(always), [*draw.items, *always]
    segment = copy.segments.pick(
        systems,
        [draw.leader, *always],
        had=had,
        never=here.not_judged or (),
        again=here.repeat_items,
        leases=leases,
        different=max(fewest, min(2, len(systems))),
        rng=rng,
    )
    if segment is None:
        return None
    absent = copy.segments.absent(segment)
    there = [draw.leader, *(item for item in draw.items if item not in absent and item != draw.leader)]
    drawn: Draw | None = draw
    if len(there) < len(draw.items):
        drawn = copy.index.draw(asking.n, seen=absent, full=full, leading=set(), allow_seen=False, begun=there, rng=rng)
    if drawn is None or copy.segments.different(segment, [*drawn.items, *always]) < fewest:
        return of_different_outputs(here, copy, draw.leader, full=full, leases=leases, had=had, rng=rng)
    return with_those_always_shown(here, drawn.items, rng), segment


def of_different_outputs(
    here: Standing,
    copy: Copy,
    leader: int,
    *,
    full: set[int],
    leases: Mapping[int, int],
    had: set[int],
    rng: np.random.Generator,
) -> tuple[list[int], int] | None:
    """The same of systems no two of which have the same output for the segment; None only if no HIT with this leader
    says something.
    """
    assert copy.segments is not None  # noqa: S101  (this is asked where items are systems)
    asking, must = asking_of(here), [leader, *here.always_shown]
    fewest = asking.fewest + len(here.always_shown)
    others = [item for item in copy.index.open_items() if item != leader and item not in full]
    segment = copy.segments.pick(
        [*must, *others],
        must,
        had=had,
        never=here.not_judged or (),
        again=here.repeat_items,
        leases=leases,
        different=fewest,
        possible=copy.segments.comparable(must, others, most=asking.n - 1, fewest=fewest),
        rng=rng,
    )
    if segment is None:
        return None
    barred = copy.segments.absent(segment) | copy.segments.doubles(segment, must, rng.permutation(others).tolist())
    drawn = copy.index.draw(asking.n, seen=barred, full=full, leading=set(), allow_seen=False, begun=[leader], rng=rng)
    return None if drawn is None else (with_those_always_shown(here, drawn.items, rng), segment)


def with_those_always_shown(here: Standing, drawn: list[int], rng: np.random.Generator) -> list[int]:
    """All items of a HIT in the random order in which they are shown."""
    return rng.permutation([*drawn, *here.always_shown]).tolist() if here.always_shown else drawn


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
    leader = place.leader if place.leader in items else items[0]
    items = with_those_always_shown(here, items, copy.rng)
    return Proposal(leader, items, iteration, place.ordinal, shared_leader=True), False


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
    document = json.dumps([{"leader": draw.leader, "items": draw.items} for draw in plans])
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
