"""One HIT under `easl-aware`: what is known of its items and their annotators is read, changed and stored."""

import asyncio
from collections.abc import Sequence
from functools import partial

from app.database.session import Driver, Record, fetch
from app.inference.online import annotator_aware_online as aware
from app.inference.online.law import Columns
from app.record import states
from app.record.states import Revision
from app.record.store import UPDATE_POSTERIORS


async def learn(connection: Driver, hit: Record, scores: Sequence[float]) -> Columns:
    """Both parameters of the HIT's items after these scores, in [0, 1]; the campaign's row of `states` is locked.

    Posteriors of the items that are looked at again are stored here.
    """
    of, shown = Revision(hit.campaign_id, hit.revision), hit.hit_items
    totals, again = await turn(connection, of, shown)
    numbers = [*shown, *again]
    items = await states_of(connection, of, numbers, totals, again=len(again))
    people = aware.concerned(hit.annotator_id, items, totals, again=len(again))
    apply = partial(
        aware.apply,
        hit.annotator_id,
        scores,
        priors=await states.priors(connection, of.campaign, numbers),
        items=items,
        annotators=await states.states(connection, of, "annotator", people),
        totals=totals,
        again=len(again),
    )
    change = await asyncio.to_thread(apply)  # some milliseconds
    changed = {
        number: (item.since, item.looked if place in change.looked else None)
        for place, (number, item) in enumerate(zip(numbers, change.items, strict=True))
    }
    await states.keep(connection, of, campaign=change.totals, annotators=change.annotators, items=changed)
    n = len(shown)
    if again:
        await look_again(connection, of, again, (change.a[n:], change.b[n:]))
    return change.a[:n], change.b[:n]


async def turn(connection: Driver, of: Revision, shown: Sequence[int]) -> tuple[aware.State, list[int]]:
    """The campaign's state with its turn moved on, and the items that are looked at again with a HIT of `shown`."""
    totals = await states.of_campaign(connection, of)
    last, may = aware.turn(totals)
    if not may:
        return totals, []
    # One more than can be taken tells that there are more.
    following = await states.following(connection, of, last, aware.AGAIN + len(shown) + 1)
    others = [
        (number, aware.ItemState(since, floats).judgments) for number, since, floats in following if number not in shown
    ]
    again, then = aware.chosen(others, last, may)
    return aware.turned(totals, *then), again


async def states_of(
    connection: Driver, of: Revision, numbers: Sequence[int], totals: aware.State, *, again: int
) -> list[aware.ItemState]:
    """What is known of these items, the last `again` of which are looked at again, with all that is looked at."""
    known = await states.items(connection, of, numbers)
    items = [aware.ItemState(*known.get(number, ())) for number in numbers]
    read = {numbers[place] for place in aware.looked_at(items, again, totals)}
    long = await states.looked(connection, of, read)
    return [item._replace(looked=long.get(number)) for number, item in zip(numbers, items, strict=True)]


async def look_again(connection: Driver, of: Revision, items: Sequence[int], posteriors: Columns) -> None:
    """Store the posteriors of items that were looked at again.

    Whoever locks posteriors holds the campaign's row of `states`, so the order of these does not matter.
    """
    a, b = posteriors
    score, variance = aware.LAW.estimates(a, b)
    parameters = {**of.parameters, "numbers": items, "more": [0] * len(items)}
    columns = {"a": a, "b": b, "score": score, "variance": variance}
    await fetch(connection, UPDATE_POSTERIORS, parameters | columns)
