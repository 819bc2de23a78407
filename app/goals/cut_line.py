"""Line through the ranking that a goal asks about: below the best items, or at a threshold. Pure."""

from dataclasses import dataclass

import numpy as np

from app.designs.campaign import Campaign
from app.designs.scale import MAX_POINTS
from app.errors import pluralize
from app.goals.progress import ITEM_PROBABILITIES_BY_GOAL, right_side_probability_or_nan_of_each_item
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ratings.moderated_means import ModeratedMeans
from app.selection.threshold_line import best_item_count_but_not_all

MAX_ITEMS_FOR_CUT_LINE = 5_000  # for more, the chance of each item takes longer than some milliseconds


@dataclass(frozen=True)
class CutLine:
    """The line of a goal, and the items that may still cross it.

    Attributes:
        above_count: Number of items above the line.
        last_above: Number of the lowest item above the line; None if there is none.
        crossing: Numbers of the items that are not yet on their side with the probability that the goal asks for.
        threshold: Score of the line in points; None for a line below the best items.

    """

    above_count: int
    last_above: int | None
    crossing: Integers
    threshold: float | None = None

    @property
    def description_text(self) -> str:
        """The line in words, as the table of scores shows it."""
        place = f"cut after {self.above_count:,}" if self.threshold is None else f"threshold {self.threshold:g}"
        count = len(self.crossing)
        crossing = f"{pluralize(count, 'item')} may still cross" if count else "no item is likely to cross"
        return f"{place}: {crossing}"


def goal_cut_line_or_none(
    campaign: Campaign, estimates: ModeratedMeans, scores: Array, item_numbers: Integers, is_judged: Mask
) -> CutLine | None:
    """Return the line of a campaign's goal; None if its goal has none, or for more than `MAX_ITEMS_FOR_CUT_LINE` items.

    Args:
        campaign: The campaign.
        estimates: Estimates of the N items that count for the goal.
        scores: Scores of these items, (N,), 0 to 1.
        item_numbers: Their numbers in the campaign, (N,), ascending.
        is_judged: Whether they have judgments, (N,). The others have no score to rank: they come last.

    """
    if campaign.goal not in ITEM_PROBABILITIES_BY_GOAL or not 1 < len(scores) <= MAX_ITEMS_FOR_CUT_LINE:
        return None
    order = np.lexsort((-scores, ~is_judged))
    is_best_goal = campaign.goal == "best"
    above_count = (
        best_item_count_but_not_all(campaign.best_items, len(scores))
        if is_best_goal
        else int(np.count_nonzero(is_judged & (scores > campaign.threshold / MAX_POINTS)))
    )
    # As long as nothing can be believed, probabilities are NaN and every item may cross.
    may_cross = ~(
        right_side_probability_or_nan_of_each_item(campaign, estimates, scores) >= campaign.goal_percent / 100
    )
    return CutLine(
        above_count,
        int(item_numbers[order[above_count - 1]]) if above_count else None,
        item_numbers[may_cross],
        None if is_best_goal else campaign.threshold,
    )
