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
from app.inference.ground.arrays import Array
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated import Moderated, moderated
from app.record.news import Watermark, look

COLUMNS = ("mean_score", "standard_error", "calibrated_low_95", "calibrated_high_95")  # for programs


@dataclass(frozen=True)
class Counted:
    """What all judgments that count and were written before a watermark add up to, and the intervals they give."""

    tally: Tally
    intervals: Moderated
    watermark: Watermark


def columns(of_some: Moderated) -> tuple[Array, ...]:
    """The `COLUMNS` of these items, NaN where there is nothing to say."""
    return of_some.mean, of_some.standard_error, *of_some.interval()


def columns_in(unit: Unit, of_some: Moderated) -> dict[str, Array]:
    """The same by name, in a unit, without what cannot be said in it."""
    mean, error, *ends = columns(of_some)
    named = {unit.mean_column: unit.in_files(mean)}
    named |= {COLUMNS[1]: error} if unit.standard_errors else {}
    return named | dict(zip(COLUMNS[2:], map(unit.in_files, ends), strict=True))


def cells(of_some: Moderated) -> list[tuple[Any, ...]]:
    """Each item's `COLUMNS`."""
    return rows_of(*columns(of_some))


async def intervals(connection: AsyncConnection, campaign: Any) -> Moderated:
    """By item number, on 0 to 1, of the criterion by which the campaign is read; give it a `snapshot`. Time: some
    microseconds a judgment, in a thread.
    """
    return (await newest(connection, campaign)).intervals


async def newest(connection: AsyncConnection, campaign: Any, known: Counted | None = None) -> Counted:
    """As of now; what was `known` spares reading it again. Give it a `snapshot`."""
    if known is not None and not known.tally.judgments.any():
        known = None  # before the launch there may be more items since
    now, first, since = await look(connection, campaign.id, known.watermark if known else None)
    if known is None or since is None:
        tally, after = Tally.nothing(await item_count(connection, campaign.id)), 0
    elif first is None:
        return replace(known, watermark=now)
    else:
        tally, after = known.tally, first - 1
    design = design_of(campaign)
    if not design.ordered:  # then there are no means
        return Counted(tally, await asyncio.to_thread(moderated, tally), now)
    async for rows in in_pieces(connection, campaign, after=after, since=since):
        tally = await asyncio.to_thread(plus, tally, rows, design)
    return Counted(tally, await asyncio.to_thread(moderated, tally), now)


def plus(tally: Tally, rows: Mapping[str, Numbers], design: Design) -> Tally:
    """With these judgments too."""
    points = design.points(rows["value"], rows["seq"])
    return tally.after(rows["item"], rows["annotator"], points / POINTS)
