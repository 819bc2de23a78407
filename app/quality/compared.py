"""How each annotator goes with the others, and what can be learned of them from that.

It is worked out when somebody looks, in another process where that takes long, and kept until there are other answers.
Of very many judgments those of some items are enough, drawn at random.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.background.tasks import KeyedTasks
from app.database.bulk import Numbers
from app.database.campaign import campaign_by_slug
from app.database.session import create_engine
from app.designs.criteria import criteria_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.coarsening import Reads
from app.inference.online.law import AnnotatorDescribed
from app.inference.ratings import annotator_aware, with_others
from app.quality import gather
from app.quality.conduct import Conduct
from app.quality.evidence import interval
from app.quality.rules.agreement import AgreementWithOthers
from app.record.apart import apart
from app.record.news import Watermark, look
from app.record.stream import judgments

AT_ONCE = 2_000  # answers that are compared while somebody waits
MOST_JUDGMENTS = 200_000
MOST_ROUNDS = 60  # of learning; after fewer, little changes where anything can be learned
ALARM = 0.05
MOST_KEPT = 50  # campaigns

FEW = text("""
    SELECT count(*) <= :most FROM (
        SELECT FROM responses WHERE campaign_id = :campaign LIMIT :most + 1) AS some_of_them
""")


class GoesWithOthers(NamedTuple):
    """The correlation with the others' means, and the ends of its 95 % interval; of labels the share that most others
    gave, too, without an interval.
    """

    value: float
    low: float | None = None
    high: float | None = None


class ComparedOne(NamedTuple):
    """An annotator beside the others; None where too little is known. reliability: 0 to 1, the expected correlation of
    their answers with what items are worth. bias: how much higher they score the same items, in points.
    """

    goes: GoesWithOthers | None = None
    reliability: float | None = None
    bias: float | None = None


@dataclass(frozen=True)
class ComparedAll:
    """All annotators by their rows' ids, from the judgments of `items` of the `of_items` that were judged."""

    by: Mapping[int, ComparedOne]
    items: int
    of_items: int


class NewestComparison(NamedTuple):
    """What was compared last, None if nothing was yet; whether newer answers are being compared."""

    found: ComparedAll | None
    under_way: bool

    @property
    def learned(self) -> bool:
        """Whether it tells of anybody's reliability."""
        return self.found is not None and any(one.reliability is not None for one in self.found.by.values())

    def of(self, annotator: int) -> ComparedOne:
        """By their row's id."""
        return self.found.by.get(annotator, ComparedOne()) if self.found else ComparedOne()


@dataclass
class AnnotatorComparisons:
    """What this process has compared, by campaign; one at a time is compared in another process."""

    engine: AsyncEngine
    kept: dict[int, tuple[Watermark, ComparedAll]] = field(default_factory=dict)
    tasks: KeyedTasks[int] = field(default_factory=lambda: KeyedTasks("annotator comparisons"))
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def newest(self, connection: AsyncConnection, campaign: Any) -> NewestComparison:
        """As of now, if that is known or quickly found."""
        before, found = self.kept.get(campaign.id, (None, None))
        now, first, _ = await look(connection, campaign.id, before)
        if found is not None and first is None:
            return NewestComparison(found, under_way=False)
        key = {"campaign": campaign.id, "most": AT_ONCE}
        if (await connection.execute(FEW, key)).scalar_one():
            found = await compare(connection, campaign)
            self.keep(campaign.id, now, found)
            return NewestComparison(found, under_way=False)
        if campaign.id not in self.tasks:
            self.tasks.start(campaign.id, partial(self.beside, campaign, now))
        return NewestComparison(found, under_way=True)

    async def beside(self, campaign: Any, now: Watermark) -> None:
        """Compare in another process."""
        async with self.turn:
            url = self.engine.url.render_as_string(hide_password=False)
            self.keep(campaign.id, now, await apart(compare_on, url, campaign.slug))

    def keep(self, campaign: int, now: Watermark, found: ComparedAll) -> None:
        self.kept.pop(campaign, None)
        self.kept[campaign] = now, found
        while len(self.kept) > MOST_KEPT:
            del self.kept[next(iter(self.kept))]

    async def stop(self) -> None:
        """What is under way is broken off."""
        await self.tasks.stop()


async def compare_on(url: str, slug: str) -> ComparedAll:
    """`compare`, in a process that has no engine."""
    engine = create_engine(url, pool_size=1)
    try:
        async with engine.connect() as connection:
            return await compare(connection, await campaign_by_slug(connection, slug))
    finally:
        await engine.dispose()


async def compare(connection: AsyncConnection, campaign: Any) -> ComparedAll:
    """All annotators, by the first criterion and the answers that count; those without judgments are not there."""
    view = criteria_of(campaign)[0]
    limit = gather.MOST // max(1, campaign.items_per_hit)
    found = await judgments(connection, campaign.id, limit=limit)
    some, items, of_items = some_items(found, np.random.default_rng(campaign.seed))
    by_law = await gather.described(connection, campaign, np.unique(some["annotator"]).tolist())
    by = await asyncio.to_thread(side_by_side, design_of(view), some, by_law)
    return ComparedAll(by, items, of_items)


def some_items(found: Mapping[str, Numbers], rng: np.random.Generator) -> tuple[Mapping[str, Numbers], int, int]:
    """The judgments of as many items, drawn at random, as have `MOST_JUDGMENTS` together; how many these are, and of
    how many.
    """
    items, which, counts = np.unique(found["item"], return_inverse=True, return_counts=True)
    if len(which) <= MOST_JUDGMENTS:
        return found, len(items), len(items)
    order = rng.permutation(len(items))
    chosen = order[np.cumsum(counts[order]) <= MOST_JUDGMENTS]
    kept = np.isin(which, chosen)
    return {name: column[kept] for name, column in found.items()}, len(chosen), len(items)


def side_by_side(
    design: Design, found: Mapping[str, Numbers], by_law: Mapping[int, AnnotatorDescribed]
) -> dict[int, ComparedOne]:
    """By annotator. Where the campaign's law has learned nothing of them, from all judgments at once."""
    known = gather.conducts(design, gather.RecordRead(found, gather.NO_SECONDS, {}))
    learned = {number: (one.reliability, one.bias) for number, one in by_law.items()} or learned_of(known)
    going = with_others_of(known)
    return {number: ComparedOne(going[number], *told(*learned.get(number, (math.nan, math.nan)))) for number in known}


def told(reliability: float, bias: float) -> tuple[float | None, float | None]:
    """The bias in points."""
    return (None, None) if math.isnan(reliability) else (reliability, 100.0 * bias)


def learned_of(known: Mapping[int, Conduct]) -> dict[int, tuple[float, float]]:
    """Reliability and bias of annotators who score, as in the analysis."""
    if yields_of(known) != "points":
        return {}
    try:
        found = annotator_aware.fit(*long_form(known), max_iterations=MOST_ROUNDS)
    except Inestimable:
        return {}
    return dict(zip(known, zip(found.reliability.tolist(), found.bias.tolist(), strict=True), strict=True))


def with_others_of(known: Mapping[int, Conduct]) -> dict[int, GoesWithOthers | None]:
    """Return each annotator's correlation with the means of the others, as in the analysis, with its interval; of
    labels the share that most others gave, too.
    """
    if yields_of(known) in (None, "classes"):
        return {number: labels_with_others(conduct) for number, conduct in known.items()}
    items, who, shares = long_form(known)
    found = with_others.fit(items, who, shares, n_items=int(items.max(initial=-1)) + 1, n_annotators=len(known))
    each = zip(known, found.correlation.tolist(), found.shared.tolist(), strict=True)
    return {number: None if math.isnan(value) else with_interval(value, shared) for number, value, shared in each}


def with_interval(value: float, shared: int) -> GoesWithOthers:
    return GoesWithOthers(value, *interval(value, shared, ALARM))


def labels_with_others(conduct: Conduct) -> GoesWithOthers | None:
    value = AgreementWithOthers().measure(conduct)
    return None if math.isnan(value) else GoesWithOthers(value)


def yields_of(known: Mapping[int, Conduct]) -> Reads | None:
    """Return the kind of answers of these annotators, None without any."""
    return next((conduct.yields for conduct in known.values()), None)


def long_form(known: Mapping[int, Conduct]) -> tuple[Integers, Integers, Array]:
    """Return item, annotator and share of each judgment, (J,); items and annotators numbered from 0."""
    conducts = [*known.values()]
    numbers = np.unique(np.concatenate([one.item for one in conducts]), return_inverse=True)[1]
    who = np.repeat(np.arange(len(conducts)), [len(one.item) for one in conducts])
    return numbers, who, np.concatenate([one.share for one in conducts])
