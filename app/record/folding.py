"""Many answers at once on stored posteriors: locked, read, changed and stored together."""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import driver_of
from app.designs.registry import design_of
from app.inference.online import annotator_aware_online as aware
from app.inference.online.annotator_aware_learned import Learned
from app.inference.online.laws import Replay
from app.record import states
from app.record.law import law_of, parameters_of
from app.record.states import Revision
from app.record.store import UPDATE_POSTERIORS
from app.record.stream import Response

Judgments = tuple[Sequence[int], Sequence[float]]
"""Of a HIT: its items, by their places among others, and their scores in [0, 1]."""

LOCK_POSTERIORS = text("""
    SELECT subject AS number, state[1] AS a, state[2] AS b FROM posteriors
    WHERE campaign_id = :campaign AND revision = :revision AND criterion = 0
    AND subject = ANY(CAST(:numbers AS int[])) ORDER BY subject FOR NO KEY UPDATE
""")


@dataclass(frozen=True)
class Locked:
    """Posteriors, in number order, that nobody else can change."""

    of: Revision
    rows: Sequence[Row[Any]]


async def lock_present(connection: AsyncConnection, campaign: Row[Any], answers: Sequence[Response]) -> Locked:
    """Take the locks that annotators wait for: the campaign's present revision, the state that a law learns, then the
    posteriors.
    """
    revision = (await connection.execute(states.HOLD, {"campaign": campaign.id})).scalar_one()
    await connection.execute(states.LOCK, {"campaign": campaign.id})
    return await lock(connection, campaign, Revision(campaign.id, revision), answers)


async def lock(connection: AsyncConnection, campaign: Row[Any], of: Revision, answers: Sequence[Response]) -> Locked:
    """The posteriors that these answers change, and perhaps others."""
    touched = {number for answer in answers for number in answer.items}
    touched |= await turned_to(connection, campaign, of, answers)
    rows = await connection.execute(LOCK_POSTERIORS, {**of.parameters, "numbers": sorted(touched)})
    return Locked(of, rows.all())


async def fold(
    connection: AsyncConnection, campaign: Row[Any], answers: Sequence[Response], locked: Locked
) -> dict[int, int]:
    """Apply answers to locked posteriors; the judgments that the answers' items have then."""
    if not answers:
        return {}
    of, posteriors = locked.of, locked.rows
    numbers = [posterior.number for posterior in posteriors]
    place = {number: k for k, number in enumerate(numbers)}
    shares = design_of(campaign).shares
    judged = [([place[number] for number in answer.items], shares(answer.values)) for answer in answers]
    who = [answer.annotator for answer in answers]
    law = law_of(campaign)
    a, b = np.array([posterior.a for posterior in posteriors]), np.array([posterior.b for posterior in posteriors])
    replay = Replay(law, a, b, parameters_of(campaign))
    changed: Sequence[int] = range(len(numbers))
    if replay.learned is None:
        await asyncio.to_thread(replay.take, judged, who)
    else:
        replay.learned = before = await learned_before(connection, of, numbers, judged, who)
        before = before.copy()
        await asyncio.to_thread(replay.take, judged, who)
        changed = await keep_learned(connection, of, numbers, before, replay.learned)
    counts = Counter(chain.from_iterable(places for places, _ in judged))
    a, b = replay.a[changed], replay.b[changed]
    values = {
        **of.parameters,
        "numbers": [numbers[k] for k in changed],
        "a": a.tolist(),
        "b": b.tolist(),
        "score": law.score(a, b).tolist(),
        "variance": law.variance(a, b).tolist(),
        "more": [counts[k] for k in changed],
    }
    after = {row.number: row.judgments for row in await connection.execute(UPDATE_POSTERIORS, values)}
    return {numbers[place]: after[numbers[place]] for place in counts}


async def turned_to(
    connection: AsyncConnection, campaign: Row[Any], of: Revision, answers: Sequence[Response]
) -> set[int]:
    """Items that `easl-aware` may look at again with these HITs, and perhaps more."""
    if law_of(campaign).update is not None:
        return set()
    driver = await driver_of(connection)
    last, may = aware.turn(await states.of_campaign(driver, of))
    limit = sum(aware.AGAIN + len(answer.items) + 1 for answer in answers) if may else 0
    return {number for number, *_ in await states.following(driver, of, last, limit)}


async def learned_before(
    connection: AsyncConnection, of: Revision, items: Sequence[int], hits: Sequence[Judgments], who: Sequence[int]
) -> Learned:
    """What `easl-aware` knows of these items, in this order, and of everybody whom these HITs of theirs concern."""
    driver = await driver_of(connection)
    known = await states.items(driver, of, items)
    totals = await states.of_campaign(driver, of)
    before = Learned(
        priors=await states.priors(driver, of.campaign, items),
        items=[aware.ItemState(*known.get(number, ())) for number in items],
        annotators={},
        totals=aware.in_terms_of(totals, lambda last: last_place(items, last)),
    )
    places = await asyncio.to_thread(before.will_look_at, [shown for shown, _ in hits])
    long = await states.looked(driver, of, [items[place] for place in places])
    for place in places:
        before.items[place] = before.items[place]._replace(looked=long.get(items[place]))
    looked = [before.items[place] for place in places]
    around = {*who, *aware.concerned(who[0], looked, totals, again=len(looked))}
    before.annotators = await states.states(driver, of, "annotator", around)
    return before


def last_place(items: Sequence[int], last: int) -> int:
    """Where the item that had its turn last stands among these, which are in order; it need not be one of them, and
    then it is the place before it, -1 if that is before all.
    """
    return bisect_right(items, last) - 1


async def keep_learned(
    connection: AsyncConnection, of: Revision, items: Sequence[int], before: Learned, after: Learned
) -> list[int]:
    """Store what has changed; the places of the items that have."""
    driver = await driver_of(connection)
    last, _ = aware.turn(await states.of_campaign(driver, of))
    unmoved = last_place(items, last)
    pairs = list(zip(before.items, after.items, strict=True))
    changed = [place for place, (then, now) in enumerate(pairs) if now is not then]
    await states.keep(
        driver,
        of,
        campaign=aware.in_terms_of(after.totals, lambda place: last if place == unmoved else items[place]),
        annotators={
            number: state for number, state in after.annotators.items() if state is not before.annotators.get(number)
        },
        items={
            items[place]: (now.since, None if now.looked is then.looked else now.looked)
            for place in changed
            for then, now in pairs[place : place + 1]
        },
    )
    return changed
