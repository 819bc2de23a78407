"""What to ask next: a draw from the newest posteriors (`streaming`) or a place in a plan (`iterations`)."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from itertools import chain

import numpy as np

from app.database.session import Driver
from app.selection.registry import asking_of
from app.selection.rule import Apart, Draw, together
from app.serving.asked_before import not_asked, tell_labels
from app.serving.plans import place_in_plan
from app.serving.posterior_cache import Copy, PosteriorCache
from app.serving.proposal import Proposal, known_to, with_those_always_shown
from app.serving.standing import Standing


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
    return Proposal(draw.leader, items, draw.reason, draw.probability, shared_leader=draw.leader in leading)


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
            return Proposal(
                draw.leader,
                items,
                draw.reason,
                None if passed_over else draw.probability,
                shared_leader=draw.leader in leading,
                segment=segment,
                shown_as=copy.segments.shown_as(segment, items),
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
