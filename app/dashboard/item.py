"""One item: its posterior as a curve, now and after its first judgments, and who said what."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.classes import Given, given, leading
from app.dashboard.course import Course
from app.dashboard.table import SAME_ITEM
from app.database.session import driver_of
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.designs.content import DrawnItems
from app.designs.criteria import criteria_of, number_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.designs.unjudged import EXTRA
from app.errors import NotFound, shortened
from app.inference.ground.arrays import Array
from app.inference.online.law import Family
from app.inference.ratings.moderated import Moderated
from app.media.shown import drawn
from app.record import remarks
from app.record.known import Known
from app.record.law import law_of
from app.record.states import Revision
from app.record.stream import COUNTING, Response

STEPS = 200
MOST_REMARKS = 5  # beside an item; their page has all

# No index holds the items of a response: one would cost every answer more than this look costs (30 ms in 200,000).
ANSWERS = text(f"""
    SELECT a.name AS annotator, r.annotator_id, r.seq, r.items, r.values, r.received_at, r.counts,
           r.extra -> '{EXTRA}' ->> CAST(:number AS text) AS reason
    FROM (SELECT *, {COUNTING} AS counts FROM responses WHERE campaign_id = :campaign AND :number = ANY(items)) AS r
    JOIN named_annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
    ORDER BY r.seq DESC
""")  # noqa: S608  (made of constants)


@dataclass(frozen=True)
class Curve:
    """A posterior after a number of judgments: score and the ends of its 95 % interval as places of their unit, 0 to
    100, and its density along these. label: the likeliest one, where classes are counted.
    """

    judgments: int
    score: float
    low: float
    high: float
    density: list[float]
    label: str = ""

    @property
    def outside(self) -> bool:
        """Whether the score lies beside its interval, as the mode of a skewed Beta can."""
        return not self.low <= self.score <= self.high


@dataclass(frozen=True)
class Judgment:
    """One judgment of the item, as it was given; weight (0 to 1) and corrected score, in points, are None where all
    that count do alike.

    counts: whether no decision leaves it out. value: as it was stored. by_criterion: as it was given by each of several
    criteria.
    """

    annotator: str
    said: str
    received_at: datetime
    counts: bool
    value: float
    by_criterion: Sequence[str] = ()
    weight: float | None = None
    corrected: float | None = None


@dataclass(frozen=True)
class Unable:
    """Somebody who could not judge the item, and why."""

    annotator: str
    reason: str
    received_at: datetime
    counts: bool


@dataclass(frozen=True)
class ItemPage:
    """An item with its posterior (`row`: texts, state, judgments), its curve now and those before, over `x`, places of
    the unit of its scores; the answers, newest first; their mean and the ends of its calibrated interval, places of the
    unit of means, None if there is none. labels: how often each class was given, where values are classes. unable: who
    could not judge it. drawn: the item as annotators see it. criteria: of several, its posterior now by each, by name,
    without densities. remarks: the newest things that annotators said of it besides, None where nobody is
    asked and nobody was.
    """

    row: Row[Any]
    x: list[float]
    now: Curve
    earlier: list[Curve]
    answers: Sequence[Judgment]
    calibrated: tuple[float, float, float] | None
    labels: Sequence[Given]
    unable: Sequence[Unable]
    drawn: DrawnItems
    criteria: Mapping[str, Curve]
    remarks: remarks.FoundRemarks | None

    @property
    def weighted_mean(self) -> float | None:
        """Of the corrected scores; None where all count alike."""
        counted = [answer for answer in self.answers if answer.counts]
        weight = np.array([answer.weight for answer in counted], np.float64)
        corrected = np.array([answer.corrected for answer in counted], np.float64)
        return float(weight @ corrected / weight.sum()) if len(weight) and np.isfinite(weight).all() else None

    @property
    def curves(self) -> dict[str, Any]:
        """What the script draws."""
        return {"x": self.x, "now": asdict(self.now), "earlier": [asdict(curve) for curve in self.earlier]}


async def item_of(
    connection: AsyncConnection, campaign: Any, external_id: str, course: Course, intervals: Moderated
) -> ItemPage:
    """The item its researcher calls `external_id`; give it a `snapshot`. Raises `NotFound` (`item_not_found`)."""
    statement = select(posteriors, items.c.external_id, items.c.shown).join_from(items, posteriors, SAME_ITEM)
    this = statement.where(items.c.campaign_id == campaign.id, items.c.external_id == external_id)
    rows = (await connection.execute(this.order_by(posteriors.c.criterion))).all()
    if not rows:
        said = shortened(external_id)
        raise NotFound(f"“{campaign.name}” has no item “{said}”.", code="item_not_found", item=said)
    row, law = rows[number_of(campaign)], law_of(campaign)
    answers, unable = await answers_to(connection, campaign, row.number)
    if asking := law.counted(row.number):
        known = Known(await driver_of(connection), Revision(campaign.id, row.revision, row.criterion), law, {})
        answers = weighted(answers, *await known.found(asking))
    family = law.family
    x = grid(family.support, row.score, row.variance)
    classes = design_of(campaign).classes
    now = curve(family, row.judgments, row.state, x, classes)
    earlier = [curve(family, *moment, x, classes) for moment in course.earlier(row.number)]
    labels = given(classes, [answer.value for answer in answers if answer.counts], family, row.state)
    told = None if family.counts_classes else calibrated(intervals.of([row.number]))
    shown = await drawn(await driver_of(connection), campaign, [row.number], [row.shown])
    beside = by_each(campaign, rows) if campaign.criteria else {}
    besides = await said_of(connection, campaign, external_id)
    return ItemPage(row, (x * POINTS).tolist(), now, earlier, answers, told, labels, unable, shown, beside, besides)


async def said_of(connection: AsyncConnection, campaign: Any, external_id: str) -> remarks.FoundRemarks | None:
    """The newest comments and flags on an item."""
    if not await remarks.are_there(connection, campaign):
        return None
    return await remarks.page_of(connection, campaign.id, remarks.WantedRemarks(item=external_id), size=MOST_REMARKS)


def by_each(campaign: Any, rows: Sequence[Row[Any]]) -> dict[str, Curve]:
    """An item's posterior by each criterion, without its density. rows: one for each, in their order."""
    family, nowhere = law_of(campaign).family, np.zeros(0)
    return {
        one.criterion_name: curve(family, row.judgments, row.state, nowhere, design_of(one).classes)
        for one, row in zip(criteria_of(campaign), rows, strict=True)
    }


async def answers_to(connection: AsyncConnection, campaign: Any, number: int) -> tuple[list[Judgment], list[Unable]]:
    """Who said what of an item, and who could not judge it, newest first."""
    designs = [design_of(one) for one in criteria_of(campaign)]
    rows = (await connection.execute(ANSWERS, {"campaign": campaign.id, "number": number})).all()
    unable = [Unable(row.annotator, row.reason, row.received_at, row.counts) for row in rows if row.reason is not None]
    told = [(row, by_criterion(row, len(designs))) for row in rows]
    judged = [(row, said) for row, said in told if number in said[0].items]
    return [judgment_of(number_of(campaign), designs, row, said, number) for row, said in judged], unable


def by_criterion(row: Row[Any], criteria: int) -> list[Response]:
    """An answer by each of so many criteria."""
    size = len(row.items)
    parts = [row.values[k * size : (k + 1) * size] for k in range(criteria)]
    return [Response.of(row.seq, row.annotator_id, row.items, part) for part in parts]


def judgment_of(
    criterion: int, designs: Sequence[Design], row: Row[Any], said: Sequence[Response], number: int
) -> Judgment:
    places = [one.items.index(number) for one in said]
    words = [design.said(one.values, place) for design, one, place in zip(designs, said, places, strict=True)]
    value = said[criterion].values[places[criterion]]
    beside = words if len(words) > 1 else ()
    return Judgment(row.annotator, words[criterion], row.received_at, row.counts, value, beside)


def weighted(answers: Sequence[Judgment], weights: Sequence[float], corrected: Sequence[float]) -> list[Judgment]:
    """With what those that count do count for, which is told first to last."""
    told, found = list(zip(weights, corrected, strict=True)), []
    for answer in answers:
        if answer.counts:
            weight, score = told.pop()
            found.append(replace(answer, weight=weight, corrected=POINTS * score))
        else:
            found.append(answer)
    return found


def calibrated(one: Moderated) -> tuple[float, float, float] | None:
    """Mean, low and high of one item, as places of their unit."""
    mean, low, high = (POINTS * float(value[0]) for value in (one.mean, *one.interval()))
    return (mean, low, high) if low <= high else None


def curve(family: Family, judgments: int, state: Sequence[float], x: Array, classes: Sequence[str]) -> Curve:
    """A posterior at `x`, both on the scale of the law; classes: what they are called, if there are any."""
    score, low, high = (float(value) * POINTS for value in (family.score(*state), *family.interval(*state)))
    label = leading(classes, family.likeliest(family.columns([state])))[0] if family.counts_classes else ""
    return Curve(judgments, score, low, high, (family.density(*state, x) / POINTS).tolist(), label)


def grid(support: tuple[float, float], score: float, variance: float) -> Array:
    """Where the curve is drawn: the middles of equal steps, since a density may be infinite at the very ends."""
    low, high = support
    if not np.isfinite(low) or not np.isfinite(high):
        reach = 4 * variance**0.5
        low, high = min(0.0, score - reach), max(1.0, score + reach)
    middles: Array = low + (np.arange(STEPS) + 0.5) / STEPS * (high - low)
    return middles
