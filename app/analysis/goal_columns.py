"""What the export of items says of a campaign's goal: on which side of its line each item is, how sure that is, and the
scores by which the update law measures it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis import calibrated
from app.analysis.calibrated import Counted
from app.analysis.findings import columns_of
from app.database.bulk import Numbers, numbers_of
from app.database.pool import judgeable
from app.database.session import driver_of
from app.designs.scale import POINTS, in_points
from app.goals.evidence import MEANS, Measured, law_may
from app.goals.progress import chances, counting
from app.goals.settings import NONE
from app.inference.ground.arrays import Array, Integers
from app.inference.ratings.moderated import Moderated
from app.record.law import law_of
from app.record.store import present
from app.selection.cut import best_among

MOST_CHANCES = 100_000  # items, whose chances take up to two seconds
SIDES = {"best": "among_best", "threshold": "above_threshold"}  # goals that draw a line
IN_CELLS = (False, True, None)
CHANCE = "side_probability"
OF_LAW = ("goal_score", "goal_standard_error", "goal_low_95", "goal_high_95")

SCORES = f"""
    SELECT p.score, CASE WHEN {judgeable("p", people="$2::int")} THEN 1 ELSE 0 END AS in_pool
    FROM posteriors p WHERE {present("$1")} ORDER BY p.subject
"""  # noqa: S608  (made of constants)


async def posterior_scores(connection: AsyncConnection, campaign: Any) -> tuple[Integers, Array]:
    """The numbers of the items that count for a goal, and their scores, (n,)."""
    driver = await driver_of(connection)
    found = await numbers_of(driver, SCORES, (campaign.id, campaign.unjudged_people), score="f8", in_pool="i4")
    items = counting(campaign, found["in_pool"] > 0)
    score: Array = found["score"]
    return items, score[items]


@dataclass(frozen=True, eq=False)
class GoalColumns:
    """By name, (N,) each, by item number. sides: places in `IN_CELLS`. numbers: NaN where there is nothing to say."""

    sides: Mapping[str, npt.NDArray[np.int8]]
    numbers: Mapping[str, Array]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.sides, *self.numbers)

    def cells(self, items: Numbers) -> list[list[Any]]:
        """Columns of cells, of the items with these numbers."""
        sides = [[IN_CELLS[side] for side in of_all[items].tolist()] for of_all in self.sides.values()]
        return sides + columns_of(*(of_all[items] for of_all in self.numbers.values()))


NOTHING = GoalColumns({}, {})


async def goal_columns(connection: AsyncConnection, campaign: Any, counted: Counted) -> GoalColumns:
    """Of all items; nothing without a goal, and of a goal that says nothing of single items. Give it the snapshot of
    which `counted` is.
    """
    by_law = law_of(campaign).fit is not None and law_may(campaign)
    if campaign.goal == NONE or not (by_law or campaign.goal in SIDES):
        return NOTHING
    measured = await counted.measured(campaign)
    fitted = of_law(measured) if by_law else {}
    if campaign.goal not in SIDES:
        return GoalColumns({}, fitted)
    items, score = await posterior_scores(connection, campaign)
    return await asyncio.to_thread(sides, campaign, measured.known, items, score, fitted)


def of_law(measured: Measured) -> dict[str, Array]:
    """Return the law's scores in points; nothing in them as long as the goal is measured by plain means."""
    found = map(in_points, calibrated.columns(measured.known))
    empty = np.full(len(measured.known.mean), np.nan)
    return {name: empty if measured.by == MEANS else of_all for name, of_all in zip(OF_LAW, found, strict=True)}


def sides(campaign: Any, known: Moderated, items: Integers, score: Array, fitted: Mapping[str, Array]) -> GoalColumns:
    """known: of all N items. items, score: of those that count, (n,)."""
    mine, above = known.of(items), np.zeros(len(items), np.int8)
    if campaign.goal == "best":
        above[np.argsort(-score, kind="stable")[: best_among(campaign.best_items, len(items))]] = 1
    else:
        above[mine.mean > campaign.threshold / POINTS] = 1
        above[np.isnan(mine.mean)] = -1
    side = np.full(len(known.mean), -1, np.int8)
    side[items] = above
    chance = {}
    if len(items) <= MOST_CHANCES:
        chance[CHANCE] = np.full(len(side), np.nan)
        chance[CHANCE][items] = chances(campaign, mine, score)
    return GoalColumns({SIDES[campaign.goal]: side}, chance | dict(fitted))
