"""The rule for the whole scale: as many judgments of each item, and items beside others like them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.selection.even_rule import EVEN_RULE
from app.selection.rule import ItemValues, SelectionSettings
from tests.selection.test_goals import index_of, item
from tests.selection.test_index import assert_drawn_from, weights

ASKING = SelectionSettings(judgments_per_item=10, items_per_hit=3, gamma=0.1)
ANYBODY = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}


def rows(judgments):
    rng = np.random.default_rng(4)
    return [(rng.random(), rng.random() / 12, count) for count in judgments]


def test_nobody_is_asked_about_a_second_time_before_all_others_once():
    index, rng = index_of(EVEN_RULE, rows([0] * 31), ASKING), np.random.default_rng(1)
    for _ in range(90):
        hit = index.draw_hit_or_none(3, **ANYBODY, rng=rng)
        index.update(hit.items, rng.random(3), rng.random(3) / 12 + 1e-3, index.judgments[hit.items] + 1)
        assert np.ptp(index.judgments) <= 1


def test_of_those_with_the_fewest_judgments_any_leads_as_often():
    index, rng = index_of(EVEN_RULE, rows([2, 0, 0, 1, 0, 0]), ASKING), np.random.default_rng(1)
    hits = [index.draw_hit_or_none(1, **ANYBODY | {"seen": {5}}, rng=rng) for _ in range(1500)]
    assert_drawn_from(dict.fromkeys((1, 2, 4), 1 / 3), Counter(hit.leader for hit in hits))
    assert {(hit.reason, hit.probability) for hit in hits} == {("fewest_judgments", 1 / 3)}


def test_companions_come_by_match_quality_from_those_with_the_fewest_judgments():
    score, variance = [0.5, 0.52, 0.9, 0.7, 0.5], [0.02, 0.01, 0.02, 0.03, 0.02]
    index = index_of(EVEN_RULE, list(zip(score, variance, [0, 1, 1, 1, 2], strict=True)), ASKING)
    rng = np.random.default_rng(2)
    drawn = Counter(
        *[[({*hit.items} - {0}).pop() for hit in (index.draw_hit_or_none(2, **ANYBODY, rng=rng) for _ in range(2000))]]
    )
    quality = weights(0, score, variance)
    total = sum(quality[k] for k in (1, 2, 3))
    assert_drawn_from({k: quality[k] / total for k in (1, 2, 3)}, drawn)


@given(rows=st.lists(item, min_size=2, max_size=12), news=st.lists(st.tuples(st.integers(0, 11), item), max_size=12))
def test_it_is_arranged_as_its_values_say_whatever_changes(rows, news):
    index = index_of(EVEN_RULE, rows, SelectionSettings(judgments_per_item=3, items_per_hit=2, gamma=0.1))
    for number, values in news:
        index.update([number % len(rows)], *([value] for value in values))
        index.require_consistency()


@pytest.mark.parametrize(("items", "sizes"), [(20, [5] * 4), (22, [5, 5, 4, 4, 4]), (6, [3, 3]), (1, [1])])
def test_an_iteration_asks_about_every_item_once_in_hits_that_are_about_as_long(items, sizes):
    values = ItemValues(*zip(*rows([1] * items), strict=True))
    asking = SelectionSettings(judgments_per_item=4, items_per_hit=5, gamma=0.1)
    hits = EVEN_RULE.schedule_hits_of_iteration(values, asking, iteration=1, rng=np.random.default_rng(1))
    assert sorted(item for hit in hits for item in hit.items) == [*range(items)]
    assert [len(hit.items) for hit in hits] == sizes


def test_an_iteration_of_fewer_hits_asks_about_those_that_were_asked_least():
    values = ItemValues(*zip(*rows([3, 0, 2, 1, 0, 9]), strict=True))
    asking = SelectionSettings(judgments_per_item=9, items_per_hit=2, gamma=0.1, hits_per_iteration=2)
    hits = EVEN_RULE.schedule_hits_of_iteration(values, asking, iteration=3, rng=np.random.default_rng(1))
    assert sorted(item for hit in hits for item in hit.items) == [1, 2, 3, 4]


def test_of_a_leader_of_an_iteration_it_is_stored_how_probable_it_was_that_it_is_asked():
    """One item was asked about less than the others, of which three of five have a place."""
    values = ItemValues(*zip(*rows([1, 0, 1, 1, 1, 1]), strict=True))
    asking, rng = (
        SelectionSettings(judgments_per_item=9, items_per_hit=2, gamma=0.1, hits_per_iteration=2),
        np.random.default_rng(1),
    )
    schedules = [EVEN_RULE.schedule_hits_of_iteration(values, asking, iteration=1, rng=rng) for _ in range(1000)]
    for hit in schedules[0] + schedules[1]:
        assert hit.probability == (1.0 if hit.leader == 1 else 3 / 5)
    asked = Counter(item for schedule in schedules for hit in schedule for item in hit.items)
    assert asked.pop(1) == 1000
    assert_drawn_from(dict.fromkeys((0, 2, 3, 4, 5), 1 / 5), asked)
