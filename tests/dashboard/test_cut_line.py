import numpy as np
import pytest

from app.goals.cut_line import goal_cut_line_or_none
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import moderated_means_of_tally
from tests.unsaved import unsaved

# Ten annotators agree within two points; items 2 and 3 are level, the others are far apart.
LEVELS = np.array([0.9, 0.8, 0.5, 0.5, 0.3, 0.1])
NUMBERS = np.array([0, 1, 2, 3, 5, 8])
ALL_JUDGED = np.ones(6, bool)


def estimates(levels=LEVELS, annotators=10):
    items = np.repeat(np.arange(len(levels)), annotators)
    people = np.tile(np.arange(annotators), len(levels))
    errors = 0.02 * np.cos(np.pi * (people + items))
    return moderated_means_of_tally(
        Tally.empty(len(levels)).with_judgments_added(items, people, levels[items] + errors)
    )


def line(**settings):
    return goal_cut_line_or_none(unsaved(goal_within=0, **settings), estimates(), LEVELS, NUMBERS, ALL_JUDGED)


def test_between_level_items_both_may_cross_the_line_below_the_best():
    found = line(goal="best", best_items=3)
    assert (found.above_count, found.last_above, found.crossing.tolist()) == (3, 2, [2, 3])
    assert found.description_text == "cut after 3: 2 items may still cross"


def test_items_without_judgments_are_below_the_line_whatever_their_prior_says():
    judged = np.array([False, True, True, True, True, True])
    for settings, last in (({"goal": "best", "best_items": 2}, 2), ({"goal": "threshold", "threshold": 40}, 3)):
        found = goal_cut_line_or_none(unsaved(goal_within=0, **settings), estimates(), LEVELS, NUMBERS, judged)
        assert found is not None
        assert found.last_above == last


def test_where_items_are_far_apart_none_may_cross():
    found = line(goal="best", best_items=2)
    assert (found.last_above, found.crossing.tolist()) == (1, [])
    assert found.description_text == "cut after 2: no item is likely to cross"


def test_items_are_named_by_their_numbers_in_the_campaign():
    assert line(goal="best", best_items=5).last_above == 5


@pytest.mark.parametrize(("threshold", "above", "last"), [(40, 4, 3), (95, 0, None), (5, 6, 8)])
def test_a_threshold_is_a_line_wherever_it_is(threshold, above, last):
    found = line(goal="threshold", threshold=threshold)
    assert (found.above_count, found.last_above) == (above, last)
    assert found.description_text.startswith(f"threshold {threshold}: ")


def test_as_long_as_nothing_is_known_every_item_may_cross():
    unknown = moderated_means_of_tally(Tally.empty(6))
    found = goal_cut_line_or_none(unsaved(goal="best", best_items=2), unknown, np.full(6, 0.5), NUMBERS, ALL_JUDGED)
    assert found is not None
    assert (found.last_above, len(found.crossing)) == (1, 6)


@pytest.mark.parametrize("goal", ["none", "order", "intervals", "halves"])
def test_other_goals_have_no_line(goal):
    assert line(goal=goal) is None
