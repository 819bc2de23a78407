"""Rules for campaigns with another goal than the whole scale: the best items, or the items above a threshold."""

from collections.abc import Callable
from functools import partial

from app.inference.ground.arrays import Array
from app.selection.expected_gain import log_gain_from_posterior
from app.selection.index import AlgorithmOne, ItemNumbers
from app.selection.open_items import OpenItems
from app.selection.rule import ItemValues, SelectionSettings
from app.selection.threshold_items import HighestGainCompanions, NearLineLeaders
from app.selection.threshold_line import BelowBestLine, ScaleLine, ThresholdLine

LineFactory = Callable[[SelectionSettings, ItemValues], ScaleLine]


def make_scale_line_below_best_items(settings: SelectionSettings, values: ItemValues) -> ScaleLine:
    """Return the line below the best of the items that the goal of the same name counts."""
    return BelowBestLine(values, settings.best_count, settings.never_drawn)


def make_scale_line_at_threshold(settings: SelectionSettings, _values: ItemValues) -> ScaleLine:
    """Return the line at the campaign's threshold, whatever the scores are."""
    return ThresholdLine(settings.threshold)


def make_near_line_leaders_and_companions(
    make_line: LineFactory, settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[NearLineLeaders, HighestGainCompanions]:
    """Make pools in which the item with the highest gain at the line leads, with the next ones as companions."""
    leaders = NearLineLeaders(
        items, open_items, make_line(settings, open_items), judgments_per_item=settings.judgments_per_item
    )
    return leaders, HighestGainCompanions(leaders)


def log_gain_of_each_item_at_line(make_line: LineFactory, settings: SelectionSettings, values: ItemValues) -> Array:
    """Return the gain of another judgment at the line, (N,)."""
    distance = values.score - make_line(settings, values).position
    return log_gain_from_posterior(distance, values.variance, values.judgments)


BEST_ITEMS_RULE = AlgorithmOne(
    "best",
    "Best items: focus on items that may or may not be among the best",
    needs_ordered_scores=True,
    make_pools=partial(make_near_line_leaders_and_companions, make_scale_line_below_best_items),
    leader_worth=partial(log_gain_of_each_item_at_line, make_scale_line_below_best_items),
    reason="near_the_best",
)
THRESHOLD_RULE = AlgorithmOne(
    "threshold",
    "Threshold: focus on items not yet clearly above or below it",
    needs_ordered_scores=True,
    needs_bounded_scores=True,
    make_pools=partial(make_near_line_leaders_and_companions, make_scale_line_at_threshold),
    leader_worth=partial(log_gain_of_each_item_at_line, make_scale_line_at_threshold),
    reason="near_the_threshold",
)
