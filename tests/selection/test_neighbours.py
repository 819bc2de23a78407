"""The rule that tells systems apart: the two neighbours that are hardest to tell apart come next."""

from collections import Counter
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.selection.rule import ItemValues, SelectionSettings
from app.selection.systems_rule import SYSTEMS_RULE, gain_and_hardest_neighbour_of_each_system
from tests.selection.test_goals import index_of, item
from tests.selection.test_index import assert_drawn_from

ASKING = SelectionSettings(judgments_per_item=10, items_per_hit=3, gamma=0.1)
ANYBODY = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}


def test_the_gain_by_hand():
    """The first system has one neighbour, .2 away, so a line at half of that; the second one gains more at that line
    than at the one to the third."""
    worth, beside = gain_and_hardest_neighbour_of_each_system(
        ItemValues(score=[0.3, 0.5, 0.9], variance=[0.04, 0.01, 0.01], judgments=[2, 0, 0])
    )
    by_hand = [
        exp(-(0.1**2) / (2 * 0.04)) * 0.2 * (1 - sqrt(5 / 6)),
        exp(-(0.1**2) / (2 * 0.01)) * 0.1 * (1 - sqrt(3 / 4)),
        exp(-(0.2**2) / (2 * 0.01)) * 0.1 * (1 - sqrt(3 / 4)),
    ]
    assert worth == pytest.approx([log(gain) for gain in by_hand])
    assert beside.tolist() == [1, 0, 1]


def test_of_systems_known_alike_the_two_nearest_come_and_one_of_them_leads():
    rows = [(0.9, 0.01, 3), (0.2, 0.01, 3), (0.55, 0.01, 3), (0.6, 0.01, 3), (0.4, 0.01, 3)]
    index, rng = index_of(SYSTEMS_RULE, rows, ASKING), np.random.default_rng(3)
    hits = [index.draw_hit_or_none(3, **ANYBODY, rng=rng) for _ in range(800)]
    assert all({2, 3} <= {*hit.items} and len(hit.items) == 3 for hit in hits)
    assert_drawn_from({2: 0.5, 3: 0.5}, Counter(hit.leader for hit in hits))
    assert {(hit.reason, hit.probability) for hit in hits} == {("hardest_neighbours", 0.5)}


def test_a_neighbour_that_cannot_be_asked_about_is_not_beside_its_leader():
    rows = [(0.5, 0.02, 3), (0.52, 0.01, 10), (0.9, 0.01, 3), (0.1, 0.01, 3)]
    hit = index_of(SYSTEMS_RULE, rows, ASKING).draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(1))
    assert hit.leader == 0
    assert 1 not in hit.items


def test_two_systems_that_nobody_knows_are_told_apart_before_two_that_are_far_apart():
    rows = [(0.5, 1 / 12, 0), (0.5, 1 / 12, 0), (0.9, 0.002, 8), (0.1, 0.002, 8)]
    assert {
        *index_of(SYSTEMS_RULE, rows, ASKING).draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(1)).items
    } == {0, 1}


@given(rows=st.lists(item, min_size=1, max_size=12), news=st.lists(st.tuples(st.integers(0, 11), item), max_size=12))
def test_the_leader_gains_most_of_those_that_are_wanted_whatever_changes(rows, news):
    index = index_of(SYSTEMS_RULE, rows, SelectionSettings(judgments_per_item=3, items_per_hit=1, gamma=0.1))
    for number, values in news:
        index.update([number % len(rows)], *([value] for value in values))
        index.require_consistency()
    hit = index.draw_hit_or_none(1, **ANYBODY, rng=np.random.default_rng(1))
    wanted = index.open_items()
    if hit is None:
        assert not wanted
    else:
        worth, _ = gain_and_hardest_neighbour_of_each_system(index)
        assert worth[hit.leader] == max(worth[wanted])


def test_a_schedule_is_led_by_those_that_gain_most():
    rng = np.random.default_rng(5)
    values = ItemValues(rng.random(12), rng.random(12) / 50 + 0.001, rng.integers(0, 5, 12))
    schedule = SYSTEMS_RULE.schedule_hits_of_iteration(
        values,
        SelectionSettings(judgments_per_item=10, items_per_hit=4, gamma=0.1),
        iteration=2,
        rng=rng,
    )
    worth, _ = gain_and_hardest_neighbour_of_each_system(values)
    leaders = [hit.leader for hit in schedule]
    assert worth[leaders].min() >= np.delete(worth, leaders).max()
