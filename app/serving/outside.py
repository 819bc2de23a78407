"""HITs for annotators whom a researcher's program names, with items by the researcher's own ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import text

from app.crowd.annotators import arrive
from app.crowd.platforms import Arrival
from app.database.campaign import no_campaign
from app.database.session import Driver, fetch_one
from app.errors import Invalid, NotFound

PLATFORM = "api"

T = TypeVar("T")  # Python 3.11 has no other way

KNOWN = text("""
    SELECT c.id AS campaign_id, s.id AS assignment_id FROM campaigns c
    LEFT JOIN annotators a ON a.campaign_id = c.id AND a.platform = :platform AND a.worker_id = :annotator
    LEFT JOIN assignments s ON s.annotator_id = a.id AND s.external_id = :platform
    WHERE c.slug = :slug
""")

THEIRS = text("""
    SELECT h.assignment_id, h.items AS hit_items,
           ARRAY(SELECT i.external_id FROM unnest(h.items) WITH ORDINALITY AS shown (number, place)
                 JOIN items i ON i.campaign_id = h.campaign_id AND i.number = shown.number ORDER BY place) AS ids
    FROM hits h JOIN annotators a ON a.id = h.annotator_id
    WHERE h.id = :hit AND a.platform = :platform AND a.worker_id = :annotator
""")


@dataclass(frozen=True)
class Theirs:
    """A HIT that was given to a program: `ids` are those of `items`, both in presentation order."""

    assignment_id: int
    items: list[int]
    ids: list[str]


async def assignment_of(connection: Driver, slug: str, annotator: str, *, now: datetime) -> int:
    """The one assignment of this annotator, made when they are new. Raises `NotFound` (`campaign_not_found`)."""
    known = await fetch_one(connection, KNOWN, {"slug": slug, "platform": PLATFORM, "annotator": annotator})
    if known is None:
        raise no_campaign(slug)
    if known.assignment_id is not None:
        return int(known.assignment_id)
    arrival = Arrival(annotator, assignment_id=PLATFORM)
    return await arrive(connection, known.campaign_id, PLATFORM, arrival, now=now)


async def hit_of(connection: Driver, hit_id: int, annotator: str) -> Theirs:
    """Raises `NotFound` (`hit_not_found`) unless this annotator got the HIT through the API."""
    key = {"hit": hit_id, "platform": PLATFORM, "annotator": annotator}
    hit = await fetch_one(connection, THEIRS, key)
    if hit is None:
        raise NotFound(
            f"There is no HIT {hit_id} of the annotator “{annotator}”. Nothing was stored.", code="hit_not_found"
        )
    return Theirs(hit.assignment_id, hit.hit_items, hit.ids)


def scores_by_number(hit: Theirs, scores: Mapping[str, float] | Sequence[float]) -> dict[int, float]:
    """Scores by item number, from scores by id or in the order of the HIT.

    Raises `Invalid` (`scores_unknown`) for other items or another number of scores; missing ids are found later.
    """
    if not isinstance(scores, Mapping):
        if len(scores) != len(hit.items):
            raise Invalid(
                f"This HIT has {len(hit.items)} items, and the answer {len(scores)} scores. Nothing was stored.",
                code="scores_unknown",
            )
        return dict(zip(hit.items, scores, strict=True))
    return by_number(hit, scores)


def by_number(hit: Theirs, values: Mapping[str, T]) -> dict[int, T]:
    """Values by item number, from values by id. Raises `Invalid` (`scores_unknown`)."""
    numbers = dict(zip(hit.ids, hit.items, strict=True))
    unknown = [external_id for external_id in values if external_id not in numbers]
    if unknown:
        raise Invalid(
            f"“{unknown[0]}” is not in this HIT. Nothing was stored.", code="scores_unknown", items=unknown[:20]
        )
    return {numbers[external_id]: value for external_id, value in values.items()}
