"""A campaign's posteriors, a page at a time, with their intervals."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis import calibrated
from app.analysis.export import likeliest_labels
from app.analysis.findings import rows_of
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.designs.criteria import number_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.inference.ground.arrays import Array
from app.inference.online.law import Law
from app.inference.ratings.moderated import Moderated
from app.record.law import law_of

Order = Literal["number", "score", "-score", "variance", "-variance", "judgments", "-judgments"]


@dataclass(frozen=True)
class Estimate:
    """One item's posterior: `state` is the numbers that the update law keeps, `a` and `b` the first two of them; the
    rest is on the scale of the scores, 0 to 1.

    label: the likeliest one where classes are counted and one leads, else None. as_shown: the same numbers in the units
    of pages and files.

    Those from `mean_score` on are those of `calibrated.COLUMNS`, None where nothing is known.
    """

    id: str
    text: str
    state: list[float]
    a: float
    b: float | None
    score: float
    variance: float
    low: float
    high: float
    judgments: int
    mean_score: float | None
    standard_error: float | None
    calibrated_low_95: float | None
    calibrated_high_95: float | None
    label: str | None
    as_shown: dict[str, float | None]


async def estimates(
    connection: AsyncConnection,
    campaign: Any,
    known: Moderated,
    *,
    offset: int,
    limit: int,
    order: Order,
    level: float,
) -> tuple[int, list[Estimate]]:
    """How many there are (none before the launch), and a page of them, by the criterion by which the campaign is read.

    known: the calibrated intervals of all items; level: of the posterior's central interval.
    """
    mine = (posteriors.c.campaign_id == campaign.id) & (posteriors.c.criterion == number_of(campaign))
    total = (await connection.execute(select(func.count()).select_from(posteriors).where(mine))).scalar_one()
    column = posteriors.c[order.removeprefix("-")]
    statement = (
        select(items.c.external_id, items.c.shown, posteriors)
        .join(items, (items.c.campaign_id == posteriors.c.campaign_id) & (items.c.number == posteriors.c.number))
        .where(mine)
        .order_by(column.desc() if order.startswith("-") else column, posteriors.c.number)
    )
    rows = (await connection.execute(statement.offset(offset).limit(limit))).all()
    family = law_of(campaign).family
    state = family.columns([row.state for row in rows])
    low, high = family.interval(*state, level=level)
    judgments = np.array([row.judgments for row in rows], np.intp)
    labels = likeliest_labels(campaign, state, judgments) if family.counts_classes else [None] * len(rows)
    ends = zip(low.tolist(), high.tolist(), strict=True)
    mine_known = known.of([row.number for row in rows])
    told = calibrated.cells(mine_known)
    scores, variances = [row.score for row in rows], [row.variance for row in rows]
    found = np.array([scores, variances, low, high])
    as_shown = in_units(design_of(campaign), law_of(campaign), found, mine_known)
    return total, [
        Estimate(
            *(row.external_id, row.shown, row.state, *[*row.state, None][:2], row.score, row.variance),
            *(*end, row.judgments, *mine, label, shown),
        )
        for row, end, mine, label, shown in zip(rows, ends, told, labels, as_shown, strict=True)
    ]


def in_units(design: Design, law: Law, found: Array, known: Moderated) -> list[dict[str, Any]]:
    """Return the numbers of some items as pages and files show them, by name. found: (4, n) scores,
    variances and both ends of intervals.
    """
    unit, of_means = design.unit_of(law), design.unit
    score, variance, low, high = found
    mean, error, *ends = calibrated.columns(known)
    nothing = np.full(len(score), np.nan)
    columns = {
        "score": unit.in_files(score),
        "standard_deviation": unit.in_files(np.sqrt(variance)) if unit.standard_errors else nothing,
        "low": unit.in_files(low),
        "high": unit.in_files(high),
        "mean": of_means.in_files(mean),
        "standard_error": of_means.in_files(error) if of_means.standard_errors else nothing,
        "calibrated_low_95": of_means.in_files(ends[0]),
        "calibrated_high_95": of_means.in_files(ends[1]),
    }
    return [dict(zip(columns, row, strict=True)) for row in rows_of(*columns.values())]
