"""Progress of a campaign towards its goal. Pure: computed from estimates of its items, which `estimates` chooses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import floor

import numpy as np

from app.designs.campaign import Campaign
from app.designs.scale import MAX_POINTS
from app.goals.estimates import MEASURED_BY_MEANS
from app.goals.settings import NO_GOAL, RELEASE_ITEMS
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ratings.goal_probabilities import (
    BelievedMeans,
    beliefs_about_means_with_and_without_prior,
    chance_all_on_believed_side,
    chance_best_are_highest,
    chance_order_is_right,
    expected_split_half_correlation,
    item_chances_of_believed_side,
    item_chances_of_right_side_of_best,
)
from app.inference.ratings.moderated_means import ModeratedMeans
from app.selection.threshold_line import best_item_count_but_not_all

MIN_DEGREES_OF_FREEDOM = 20  # then the estimated spread is half of the true one or less once in 3,600 times
MAX_ITEMS_IN_ORDER = 1_000  # the order of more items is never settled in practice


@dataclass(frozen=True)
class Progress:
    """How far a campaign is from its goal.

    Attributes:
        goal_text: The goal in words.
        value: A probability, a share of items, or a correlation, 0 to 1.
        measured_by: Source of the estimates, see `GoalEstimates`.
        settled_items: Numbers of the items to release.

    """

    goal_text: str
    value: float
    target: float
    measured_by: str = MEASURED_BY_MEANS
    settled_items: Integers = field(default_factory=lambda: np.zeros(0, np.intp))

    @property
    def is_reached(self) -> bool:
        return self.value >= self.target

    @property
    def value_rounded_down_until_reached(self) -> float:
        """The value. Until the target is reached, rounded down to hundredths so that it never looks reached."""
        if self.is_reached:
            return self.value
        hundredths = floor(100 * self.value + 1e-9)  # 1e-9: 0.29 is 29 hundredths
        return (hundredths - (hundredths / 100 >= self.target)) / 100

    def with_item_numbers(self, item_numbers: Integers) -> "Progress":
        """Return the progress with the numbers that its items have in the campaign."""
        return replace(self, settled_items=item_numbers[self.settled_items])


def goal_item_numbers(campaign: Campaign, in_pool: Mask) -> Integers:
    """Return the numbers of the items that count for a goal: items in the pool, (N,), except items that every HIT
    shows.
    """
    is_counted = in_pool.copy()
    is_counted[campaign.always_shown] = False
    return np.flatnonzero(is_counted)


def goal_progress_or_none(
    campaign: Campaign, estimates: ModeratedMeans, scores: Array, measured_by: str = MEASURED_BY_MEANS
) -> Progress | None:
    """Return the progress towards the goal; None without a goal.

    Args:
        campaign: The campaign's row.
        estimates: Estimates of the N items that count for the goal.
        scores: Scores of these items, (N,), 0 to 1.
        measured_by: Source of the estimates.

    """
    if campaign.goal == NO_GOAL:
        return None
    if campaign.when_reached == RELEASE_ITEMS:
        is_settled = mask_of_settled_items(campaign, estimates, scores)
        share = float(is_settled.mean()) if len(is_settled) else 0.0
        return Progress(describe_goal(campaign), share, goal_target(campaign), measured_by, np.flatnonzero(is_settled))
    value = GOAL_MEASURES[campaign.goal](campaign, estimates, scores) if len(scores) else 0.0
    return Progress(describe_goal(campaign), float(value), goal_target(campaign), measured_by)


def mask_of_settled_items(campaign: Campaign, estimates: ModeratedMeans, scores: Array) -> Mask:
    """Return which items are settled one by one, (N,), by the goal of a campaign that releases items.

    No item is settled before the spread of annotators is known: in some campaigns the first ones agree by chance, and
    would be asked nothing more (Chow & Robbins 1965, on intervals of a fixed width).
    """
    if estimates.degrees_of_freedom_limit < MIN_DEGREES_OF_FREEDOM:
        return np.zeros(len(scores), bool)
    if campaign.goal == "intervals":
        return mask_of_items_with_narrow_interval(campaign, estimates)
    return np.asarray(
        right_side_probability_or_nan_of_each_item(campaign, estimates, scores) >= campaign.goal_percent / 100
    )


def right_side_probability_or_nan_of_each_item(campaign: Campaign, estimates: ModeratedMeans, scores: Array) -> Array:
    """Return the probability that each item, (N,), is on the right side of the goal's line: the smaller of two beliefs,
    NaN as long as nothing can be believed.
    """
    probabilities = [
        ITEM_PROBABILITIES_BY_GOAL[campaign.goal](campaign, beliefs, scores)
        for beliefs in beliefs_about_means_with_and_without_prior(estimates)
    ]
    smallest: Array = np.min(probabilities, axis=0) if probabilities else np.full(len(scores), np.nan)
    return smallest


def goal_target(campaign: Campaign) -> float:
    """Return the value that a goal's measure has to reach."""
    if campaign.goal == "halves":
        return float(campaign.goal_correlation)
    needs_all_items = campaign.when_reached == RELEASE_ITEMS and campaign.goal != "intervals"
    return 1.0 if needs_all_items else campaign.goal_percent / 100


def describe_goal(campaign: Campaign) -> str:
    each_text = " for each item" if campaign.when_reached == RELEASE_ITEMS else ""
    tolerance_text = f", up to differences of {campaign.goal_within:g} points" if campaign.goal_within else ""
    certainty_text = f"with {campaign.goal_percent} % probability{each_text}{tolerance_text}"
    by = f" by {campaign.goal_criterion.name}" if campaign.has_criteria else ""
    intervals = f"intervals of ±{campaign.goal_width:g} points or less"
    return {
        "best": f"We know the best {campaign.best_items:,} items{by} {certainty_text}",
        "threshold": f"We know which items are above {campaign.threshold:g}{by} {certainty_text}",
        "order": f"We know the ranking{by} {certainty_text}",
        "intervals": f"{campaign.goal_percent} % of items have {intervals}{by}",
        "halves": f"Two halves of the answers agree{by} with a correlation of {campaign.goal_correlation:g}",
    }[campaign.goal]


def text_that_identifies_goal(campaign: Campaign) -> str:
    """Return the text that campaigns and alerts store for a goal that was reached. It identifies the goal, so it must
    not change; pages show `describe_goal`.
    """
    tolerance_text = f", apart from differences up to {campaign.goal_within:g} points" if campaign.goal_within else ""
    each_text = " for each" if campaign.when_reached == RELEASE_ITEMS else ""
    certainty_text = f"with {campaign.goal_percent} % probability{each_text}"
    return {
        "best": f"The best {campaign.best_items:,} items are settled{tolerance_text}, {certainty_text}",
        "threshold": f"It is settled which items are above {campaign.threshold:g}{tolerance_text}, {certainty_text}",
        "order": f"The order is settled{tolerance_text}, {certainty_text}",
        "intervals": f"Intervals of {campaign.goal_percent} % of items are ±{campaign.goal_width:g} points or less",
        "halves": f"Two halves of the answers agree with a correlation of {campaign.goal_correlation:g}",
    }[campaign.goal]


def format_goal_progress(campaign: Campaign, progress: Progress) -> str:
    return (
        f"{progress.value_rounded_down_until_reached:.2f}"
        if campaign.goal == "halves"
        else f"{100 * progress.value_rounded_down_until_reached:.0f} %"
    )


def make_smallest_probability_measure(
    probability: Callable[[Campaign, BelievedMeans, Array], float],
) -> Callable[[Campaign, ModeratedMeans, Array], float]:
    """Return a measure that takes the smallest probability over all beliefs; 0 as long as nothing can be believed."""

    def measure(campaign: Campaign, estimates: ModeratedMeans, scores: Array) -> float:
        return min(
            (
                probability(campaign, beliefs, scores)
                for beliefs in beliefs_about_means_with_and_without_prior(estimates)
            ),
            default=0.0,
        )

    return measure


def mask_of_items_with_narrow_interval(campaign: Campaign, estimates: ModeratedMeans) -> Mask:
    """Return which items have a narrow interval. Items without an interval do not. The intervals are not cut at the
    scale's ends: a cut would say nothing about their precision.
    """
    low, high = ModeratedMeans(estimates.mean, estimates.standard_error, estimates.freedom, None).interval()
    return np.asarray(high - low <= 2 * campaign.goal_width / MAX_POINTS)


def probability_that_best_set_is_right(campaign: Campaign, beliefs: BelievedMeans, scores: Array) -> float:
    return chance_best_are_highest(
        beliefs,
        scores,
        best_item_count_but_not_all(campaign.best_items, len(scores)),
        campaign.goal_within / MAX_POINTS,
    )


def order_probability_or_zero_if_many(campaign: Campaign, beliefs: BelievedMeans, scores: Array) -> float:
    has_too_many_items = len(scores) > MAX_ITEMS_IN_ORDER
    return 0.0 if has_too_many_items else chance_order_is_right(beliefs, scores, campaign.goal_within / MAX_POINTS)


GOAL_MEASURES: Mapping[str, Callable[[Campaign, ModeratedMeans, Array], float]] = {
    "best": make_smallest_probability_measure(probability_that_best_set_is_right),
    "threshold": make_smallest_probability_measure(
        lambda campaign, beliefs, _: chance_all_on_believed_side(
            beliefs, campaign.threshold / MAX_POINTS, campaign.goal_within / MAX_POINTS
        )
    ),
    "order": make_smallest_probability_measure(order_probability_or_zero_if_many),
    "intervals": lambda campaign, estimates, _: float(mask_of_items_with_narrow_interval(campaign, estimates).mean()),
    "halves": lambda _campaign, estimates, _: expected_split_half_correlation(estimates),
}

# Probability that each item, (N,), is on the right side of the goal's line.
ITEM_PROBABILITIES_BY_GOAL: Mapping[str, Callable[[Campaign, BelievedMeans, Array], Array]] = {
    "best": lambda campaign, beliefs, scores: item_chances_of_right_side_of_best(
        beliefs,
        scores,
        best_item_count_but_not_all(campaign.best_items, len(scores)),
        campaign.goal_within / MAX_POINTS,
    ),
    "threshold": lambda campaign, beliefs, _: item_chances_of_believed_side(
        beliefs, campaign.threshold / MAX_POINTS, campaign.goal_within / MAX_POINTS
    ),
}
