"""One HIT under `easl-aware`: what is known of its items and their annotators is read, changed and stored."""

from collections.abc import Sequence

from app.database import learned
from app.database.session import Driver, Record
from app.inference import annotator_aware_online as aware
from app.inference.law import Columns


async def learn(connection: Driver, hit: Record, scores: Sequence[float]) -> Columns:
    """Both parameters of the HIT's items after these scores, in [0, 1]; the campaign's row of `learned` is locked."""
    campaign, shown = hit.campaign_id, hit.hit_items
    items = await learned.states(connection, campaign, "item", shown)
    totals = await learned.states(connection, campaign, "campaign", [0])
    around = [items.get(number, []) for number in shown]
    people = aware.concerned(hit.annotator_id, around)
    change = aware.apply(
        hit.annotator_id,
        scores,
        priors=await learned.priors(connection, campaign, shown),
        items=around,
        annotators=await learned.states(connection, campaign, "annotator", people),
        totals=totals[0],
    )
    changed: dict[learned.Kind, dict[int, list[float]]] = {
        "campaign": {0: change.totals},
        "item": dict(zip(shown, change.items, strict=True)),
        "annotator": change.annotators,
    }
    await learned.keep(connection, campaign, changed)
    return change.a, change.b
