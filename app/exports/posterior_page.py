"""A campaign's posteriors, a page at a time, with their intervals."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis import calibrated_intervals
from app.analysis.result_types import columns_to_cell_rows
from app.database.tables import current_posteriors as posteriors
from app.database.tables import items
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.exports.items import likeliest_label_or_none_of_items
from app.inference.ground.arrays import Array
from app.inference.online.law import Law
from app.inference.ratings.moderated_means import ModeratedMeans
from app.inference.ratings.shrunken_means import ItemShrinkage

PosteriorOrder = Literal["number", "score", "-score", "variance", "-variance", "judgments", "-judgments"]


@dataclass(frozen=True)
class PosteriorEstimate:
    """One item's posterior, on the scale of the scores, 0 to 1.

    `state` holds the numbers that the update law keeps, and `a` and `b` are the first two of them. `label` is the
    likeliest one if classes are counted and one leads, else None. `as_shown` has the same numbers in the units of
    pages and files; like these, it has no score of an item without judgments.

    The fields from `mean_score` on are `CALIBRATED_COLUMNS` and `SHRUNKEN_COLUMNS` of `calibrated_intervals`, None if
    unknown.
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
    shrunken_score: float | None
    shrunken_low_95: float | None
    shrunken_high_95: float | None
    label: str | None
    as_shown: dict[str, float | None]


async def load_posterior_total_and_page(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    intervals: ModeratedMeans,
    shrinkage: ItemShrinkage,
    *,
    offset: int,
    limit: int,
    order: PosteriorOrder,
    level: float,
) -> tuple[int, list[PosteriorEstimate]]:
    """Return the total number of posteriors (0 before the launch), and a page of them by one criterion.

    Args:
        connection: A snapshot.
        criterion: The criterion.
        intervals: Calibrated intervals of all items.
        shrinkage: Shrunken means of all items.
        offset: Number of posteriors to skip.
        limit: Number of posteriors on the page.
        order: Column to sort by.
        level: Mass of the posterior's central interval, between 0 and 1.

    """
    is_own_posterior = (posteriors.c.campaign_id == criterion.campaign.id) & (
        posteriors.c.criterion == criterion.number
    )
    total = (
        await connection.execute(select(func.count()).select_from(posteriors).where(is_own_posterior))
    ).scalar_one()
    column = posteriors.c[order.removeprefix("-")]
    statement = (
        select(items.c.external_id, items.c.shown, posteriors)
        .join(items, (items.c.campaign_id == posteriors.c.campaign_id) & (items.c.number == posteriors.c.number))
        .where(is_own_posterior)
        .order_by(column.desc() if order.startswith("-") else column, posteriors.c.number)
    )
    rows = (await connection.execute(statement.offset(offset).limit(limit))).all()
    family = criterion.law.family
    state = family.columns_of_item_states([row.state for row in rows])
    low, high = family.interval(*state, level=level)
    judgments = np.array([row.judgments for row in rows], np.intp)
    labels = (
        likeliest_label_or_none_of_items(criterion, state, judgments) if family.counts_classes else [None] * len(rows)
    )
    page_intervals = intervals.select_items([row.number for row in rows])
    calibrated_cells = calibrated_intervals.mean_error_and_interval_rows(page_intervals)
    shrunken = calibrated_intervals.shrunken_scores_and_interval_ends(
        shrinkage.shrink_items([row.number for row in rows])
    )
    scores, variances = [row.score for row in rows], [row.variance for row in rows]
    numbers = np.where(judgments > 0, np.array([scores, variances, low, high]), np.nan)
    as_shown = posterior_number_dicts_in_units(criterion.design, criterion.law, numbers, page_intervals, shrunken)
    return total, [
        PosteriorEstimate(
            id=row.external_id,
            text=row.shown,
            state=row.state,
            a=row.state[0],
            b=row.state[1] if len(row.state) > 1 else None,
            score=row.score,
            variance=row.variance,
            low=ends[0],
            high=ends[1],
            judgments=row.judgments,
            mean_score=calibrated[0],
            standard_error=calibrated[1],
            calibrated_low_95=calibrated[2],
            calibrated_high_95=calibrated[3],
            **dict(zip(calibrated_intervals.SHRUNKEN_COLUMNS, shrunken_cells, strict=True)),
            label=label,
            as_shown=shown,
        )
        for row, ends, calibrated, shrunken_cells, label, shown in zip(
            rows,
            zip(low.tolist(), high.tolist(), strict=True),
            calibrated_cells,
            columns_to_cell_rows(*shrunken),
            labels,
            as_shown,
            strict=True,
        )
    ]


def posterior_number_dicts_in_units(
    design: Design, law: Law, numbers: Array, intervals: ModeratedMeans, shrunken: tuple[Array, Array, Array]
) -> list[dict[str, Any]]:
    """Return the numbers of some items by name, in the units of pages and files.

    Args:
        design: The campaign's design.
        law: Its update law.
        numbers: Scores, variances and both ends of intervals, (4, n).
        intervals: Calibrated intervals of these items.
        shrunken: Their `SHRUNKEN_COLUMNS`.

    """
    unit, mean_unit = design.score_unit(law), design.unit
    score, variance, low, high = numbers
    mean, error, *ends = calibrated_intervals.mean_error_and_interval_columns(intervals)
    missing = np.full(len(score), np.nan)
    columns = {
        "score": unit.shares_to_unit_values(score),
        "standard_deviation": unit.shares_to_unit_values(np.sqrt(variance))
        if unit.can_express_standard_errors
        else missing,
        "low": unit.shares_to_unit_values(low),
        "high": unit.shares_to_unit_values(high),
        "mean": mean_unit.shares_to_unit_values(mean),
        "standard_error": mean_unit.shares_to_unit_values(error) if mean_unit.can_express_standard_errors else missing,
        "calibrated_low_95": mean_unit.shares_to_unit_values(ends[0]),
        "calibrated_high_95": mean_unit.shares_to_unit_values(ends[1]),
    }
    shrunken_in_unit = map(mean_unit.shares_to_unit_values, shrunken)
    columns |= dict(zip(calibrated_intervals.SHRUNKEN_COLUMNS, shrunken_in_unit, strict=True))
    return [dict(zip(columns, row, strict=True)) for row in columns_to_cell_rows(*columns.values())]
