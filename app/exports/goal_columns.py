"""Columns of the export of items about the goal: side of the line, how sure it is, and the update law's scores."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis import calibrated_intervals
from app.analysis.calibrated_intervals import CalibratedEvidence, load_goal_item_numbers_and_scores
from app.analysis.result_types import to_cell_columns
from app.database.bulk import NumberColumn
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.scale import MAX_POINTS, shares_to_points
from app.goals.estimates import MEASURED_BY_MEANS, GoalEstimates, is_law_reliable_for_goal
from app.goals.progress import right_side_probability_or_nan_of_each_item
from app.goals.settings import NO_GOAL
from app.inference.ground.arrays import Array, Integers
from app.inference.ratings.moderated_means import ModeratedMeans
from app.selection.threshold_line import best_item_count_but_not_all

MAX_ITEMS_WITH_CHANCE = 100_000  # items, whose chances take up to two seconds
SIDE_COLUMN_BY_GOAL = {"best": "among_best", "threshold": "above_threshold"}  # goals that draw a line
SIDE_CELLS = (False, True, None)
CHANCE_COLUMN = "side_probability"
LAW_SCORE_COLUMNS = ("goal_score", "goal_standard_error", "goal_low_95", "goal_high_95")


@dataclass(frozen=True, eq=False)
class GoalColumns:
    """Columns by name, (N,) each, by item number. `sides` are positions in the cell texts; `numbers` are NaN without
    data.
    """

    sides: Mapping[str, npt.NDArray[np.int8]]
    numbers: Mapping[str, Array]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.sides, *self.numbers)

    def cell_columns_of_items(self, item_numbers: NumberColumn) -> list[list[Any]]:
        """Return the columns of cells of the items with these numbers."""
        sides = [[SIDE_CELLS[side] for side in of_all[item_numbers].tolist()] for of_all in self.sides.values()]
        return sides + to_cell_columns(*(of_all[item_numbers] for of_all in self.numbers.values()))


NO_GOAL_COLUMNS = GoalColumns({}, {})


async def load_goal_columns(
    connection: AsyncConnection, criterion: Criterion[Campaign], evidence: CalibratedEvidence
) -> GoalColumns:
    """Return the columns of all items; none without a goal, or for a goal that does not concern single items.

    `connection` is the snapshot from which `evidence` was read.
    """
    has_law_scores = criterion.law.fit is not None and is_law_reliable_for_goal(criterion.campaign)
    if criterion.campaign.goal == NO_GOAL or not (has_law_scores or criterion.campaign.goal in SIDE_COLUMN_BY_GOAL):
        return NO_GOAL_COLUMNS
    goal_estimates = await evidence.estimate_goal_in_thread(criterion.campaign)
    law_scores = law_score_column_by_name(goal_estimates) if has_law_scores else {}
    if criterion.campaign.goal not in SIDE_COLUMN_BY_GOAL:
        return GoalColumns({}, law_scores)
    items, score = await load_goal_item_numbers_and_scores(connection, criterion.campaign)
    return await asyncio.to_thread(
        build_side_probability_columns, criterion.campaign, goal_estimates.estimates, items, score, law_scores
    )


def law_score_column_by_name(goal_estimates: GoalEstimates) -> dict[str, Array]:
    """Return the law's scores in points; none while the goal is measured by plain means."""
    columns = map(shares_to_points, calibrated_intervals.mean_error_and_interval_columns(goal_estimates.estimates))
    empty = np.full(len(goal_estimates.estimates.mean), np.nan)
    return {
        name: empty if goal_estimates.source == MEASURED_BY_MEANS else of_all
        for name, of_all in zip(LAW_SCORE_COLUMNS, columns, strict=True)
    }


def build_side_probability_columns(
    campaign: Campaign,
    intervals: ModeratedMeans,
    item_numbers: Integers,
    scores: Array,
    law_scores: Mapping[str, Array],
) -> GoalColumns:
    """Return on which side of the goal's line each item is, with its probability.

    Args:
        campaign: The campaign.
        intervals: Calibrated intervals of all N items.
        item_numbers: Items that count for the goal, (n,).
        scores: Their scores, (n,).
        law_scores: Columns of the law's scores by name.

    """
    item_intervals, item_sides = intervals.select_items(item_numbers), np.zeros(len(item_numbers), np.int8)
    if campaign.goal == "best":
        item_sides[
            np.argsort(-scores, kind="stable")[: best_item_count_but_not_all(campaign.best_items, len(item_numbers))]
        ] = 1
    else:
        item_sides[item_intervals.mean > campaign.threshold / MAX_POINTS] = 1
        item_sides[np.isnan(item_intervals.mean)] = -1
    sides_of_all = np.full(len(intervals.mean), -1, np.int8)
    sides_of_all[item_numbers] = item_sides
    chance = {}
    if len(item_numbers) <= MAX_ITEMS_WITH_CHANCE:
        chance[CHANCE_COLUMN] = np.full(len(sides_of_all), np.nan)
        chance[CHANCE_COLUMN][item_numbers] = right_side_probability_or_nan_of_each_item(
            campaign, item_intervals, scores
        )
    return GoalColumns({SIDE_COLUMN_BY_GOAL[campaign.goal]: sides_of_all}, chance | dict(law_scores))
