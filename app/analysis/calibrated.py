"""The calibrated intervals of all items of a campaign, from every stored judgment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.answers import in_pieces, item_count
from app.analysis.findings import rows_of
from app.database.bulk import Numbers
from app.designs.design import Design
from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.designs.unit import Unit
from app.goals.evidence import GoalEvidence, Measured
from app.inference.ground.arrays import Array
from app.inference.observations.tally import Tally
from app.inference.online.law import Law
from app.inference.ratings.moderated import Moderated, moderated
from app.record.law import law_of
from app.record.news import Watermark, look

COLUMNS = ("mean_score", "standard_error", "calibrated_low_95", "calibrated_high_95")  # for programs


@dataclass(frozen=True)
class Counted:
    """What all judgments that count and were written before a watermark say, and the intervals they give."""

    evidence: GoalEvidence
    intervals: Moderated
    watermark: Watermark

    @property
    def tally(self) -> Tally:
        """What they add up to."""
        return self.evidence.tally

    async def measured(self, campaign: Any) -> Measured:
        """By what its goal is measured; in a thread, which the first time takes up to a second."""
        return await asyncio.to_thread(self.evidence.measured, campaign, self.intervals)


def columns(of_some: Moderated) -> tuple[Array, ...]:
    """The `COLUMNS` of these items, NaN where there is nothing to say."""
    return of_some.mean, of_some.standard_error, *of_some.interval()


def columns_in(unit: Unit, of_some: Moderated) -> dict[str, Array]:
    """The same by name, in a unit, without what cannot be said in it."""
    mean, error, *ends = columns(of_some)
    named = {unit.mean_column: unit.in_files(mean)}
    named |= {COLUMNS[1]: unit.in_files(error)} if unit.standard_errors else {}
    return named | dict(zip(COLUMNS[2:], map(unit.in_files, ends), strict=True))


def cells(of_some: Moderated) -> list[tuple[Any, ...]]:
    """Each item's `COLUMNS`."""
    return rows_of(*columns(of_some))


async def newest(
    connection: AsyncConnection, campaign: Any, known: Counted | None = None, *, law: Law | None = None
) -> Counted:
    """As of now; what was `known` spares reading it again. law: that reads them, None for the campaign's. Give it a
    `snapshot`. Time: some microseconds a judgment, in a thread.
    """
    if known is not None and not known.tally.judgments.any():
        known = None  # before the launch there may be more items since
    now, first, since = await look(connection, campaign.id, known.watermark if known else None)
    if known is None or since is None:
        count = await item_count(connection, campaign.id)
        evidence, after = GoalEvidence.nothing(law or law_of(campaign), count), 0
    elif first is None:
        return replace(known, watermark=now)
    else:
        evidence, after = known.evidence, first - 1
    design = design_of(campaign)
    if design.ordered:  # else there are no means
        async for rows in in_pieces(connection, campaign, after=after, since=since):
            evidence = await asyncio.to_thread(plus, evidence, rows, design)
    return Counted(evidence, await asyncio.to_thread(moderated, evidence.tally), now)


def plus(evidence: GoalEvidence, rows: Mapping[str, Numbers], design: Design) -> GoalEvidence:
    """With these judgments too."""
    return evidence.after(rows["item"], rows["annotator"], design.points(rows["value"], rows["seq"]) / POINTS)
