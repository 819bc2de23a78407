"""Promises of every selection rule, those of the tests included: a new one is checked by being registered."""

from collections import Counter

import numpy as np
import pytest

from app.selection.item_sets import MaskedItems
from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemStatus, ItemValues, SelectionSettings
from tests.selection.pairs_with_comparisons import PairsWithComparisons
from tests.selection.test_index import assert_drawn_from
from tests.toys.in_order import IN_ORDER

ITEMS = 23
ASKING = SelectionSettings(judgments_per_item=3, items_per_hit=4, gamma=0.1)
ANYBODY = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}


@pytest.fixture(params=[*SELECTION_RULES.values(), IN_ORDER, PairsWithComparisons], ids=lambda rule: rule.name)
def rule(request):
    return request.param


def item_knowledge(seed=1, most=3):
    rng = np.random.default_rng(seed)
    return rng.random(ITEMS), rng.random(ITEMS) / 12 + 0.001, rng.integers(0, most, ITEMS)


def test_it_is_registered_by_its_name():
    assert {name: rule.name for name, rule in SELECTION_RULES.items()} == {name: name for name in SELECTION_RULES}


def test_a_draw_is_of_different_items_that_are_wanted_and_is_led_by_one_of_them(rule):
    score, variance, judgments = item_knowledge(most=4)
    index, rng = rule.make_selection_index(ItemValues(score, variance, judgments), ASKING), np.random.default_rng(2)
    for _ in range(50):
        draw = index.draw_hit_or_none(4, **ANYBODY, rng=rng)
        assert len(set(draw.items)) == len(draw.items) == 4
        assert draw.leader in draw.items
        assert (judgments[draw.items] < 3).all()


def test_what_is_full_or_seen_is_not_drawn_while_there_is_something_else(rule):
    index, rng = rule.make_selection_index(ItemValues(*item_knowledge()), ASKING), np.random.default_rng(2)
    seen, full = set(range(8)), set(range(8, 16))
    for _ in range(50):
        draw = index.draw_hit_or_none(
            4, seen=seen, full=full, leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng
        )
        assert not {*draw.items} & (seen | full)


def test_the_draws_are_the_same_whether_full_items_are_a_set_or_a_mask(rule):
    draws = []
    mask = np.isin(np.arange(ITEMS), [*range(8, 20)])
    for full in ({*range(8, 20)}, MaskedItems(mask)):
        index, rng = rule.make_selection_index(ItemValues(*item_knowledge()), ASKING), np.random.default_rng(2)
        draws.append(
            [
                index.draw_hit_or_none(
                    4, seen=seen, full=full, leaders_to_avoid={1, 8}, seen_as_last_resort=seen_as_last_resort, rng=rng
                )
                for seen in (set(), {0, 1, 2, 8, 9})
                for seen_as_last_resort in (False, True)
                for _ in range(10)
            ]
        )
    assert draws[0] == draws[1]
    assert not {item for draw in draws[0] for item in draw.items} & {*range(8, 20)}
    assert np.flatnonzero(mask).tolist() == [*range(8, 20)]


def test_what_was_seen_comes_back_only_where_it_may(rule):
    index, rng = rule.make_selection_index(ItemValues(*item_knowledge()), ASKING), np.random.default_rng(2)
    everything = set(range(ITEMS))
    assert (
        index.draw_hit_or_none(
            4, seen=everything, full=set(), leaders_to_avoid=set(), seen_as_last_resort=False, rng=rng
        )
        is None
    )
    again = index.draw_hit_or_none(
        4, seen=everything, full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng
    )
    assert len(again.items) == 4


def test_a_hit_that_is_begun_keeps_its_items(rule):
    index = rule.make_selection_index(ItemValues(*item_knowledge()), ASKING)
    draw = index.draw_hit_or_none(4, **ANYBODY, initial_items=[9, 2], rng=np.random.default_rng(2))
    assert {9, 2} <= {*draw.items}
    assert draw.leader == 9


def test_with_nothing_wanted_there_is_nothing_to_draw(rule):
    score, variance, _ = item_knowledge()
    index = rule.make_selection_index(ItemValues(score, variance, np.full(ITEMS, 3)), ASKING)
    assert index.draw_hit_or_none(4, **ANYBODY, rng=np.random.default_rng(2)) is None
    assert not index.has_open_items_left_after_hit((), seen_items=(), seen_as_last_resort=True)


def test_it_follows_what_changes(rule):
    score, variance, judgments = item_knowledge()
    index = rule.make_selection_index(ItemValues(score, variance, judgments), ASKING)
    index.update(range(20), score[:20], variance[:20], [3] * 20)
    assert index.judgments.tolist() == [3] * 20 + judgments[20:].tolist()
    draw = index.draw_hit_or_none(4, **ANYBODY, rng=np.random.default_rng(2))
    assert sorted(draw.items) == [20, 21, 22]


@pytest.mark.parametrize("status", ItemStatus)
def test_what_has_left_the_pool_is_not_asked_about(rule, status):
    score, variance, judgments = item_knowledge()
    there = np.where(np.arange(ITEMS) < 8, status, 0)
    values = ItemValues(score, variance, judgments, there)
    index = rule.make_selection_index(values, ASKING)
    index.update(range(8, 16), score[8:16], variance[8:16], judgments[8:16], [status] * 8)
    index.update([9], [0.5], [0.05], [0])
    assert index.open_items() == [*range(16, ITEMS)]
    assert index.judgments[[*range(9), *range(10, 16)]].tolist() == judgments[[*range(9), *range(10, 16)]].tolist()
    assert index.full_items(dict.fromkeys(range(ITEMS), 0)) == {*range(16)}
    draws = [index.draw_hit_or_none(4, **ANYBODY, rng=np.random.default_rng(seed)) for seed in range(20)]
    for iteration in (0, 1):
        schedule = rule.schedule_hits_of_iteration(values, ASKING, iteration=iteration, rng=np.random.default_rng(3))
        assert {item for draw in schedule for item in draw.items} <= {*range(8, ITEMS)}
    assert all(min(draw.items) >= 16 for draw in draws)


def test_the_same_chance_leads_to_the_same_draws_and_another_to_another_order(rule):
    index = rule.make_selection_index(ItemValues(*item_knowledge()), ASKING)
    draws = [
        [index.draw_hit_or_none(4, **ANYBODY, rng=rng) for _ in range(20)]
        for rng in map(np.random.default_rng, (5, 5, 6))
    ]
    assert draws[0] == draws[1] != draws[2]
    assert len({draw.items.index(draw.leader) for draw in draws[0]}) > 1  # the leader does not always stand first


def test_what_leads_an_open_hit_leads_another_only_if_all_do(rule):
    score, variance, _ = item_knowledge()
    index, rng = (
        rule.make_selection_index(ItemValues(score, variance, np.zeros(ITEMS)), ASKING),
        np.random.default_rng(2),
    )
    leading = set(range(ITEMS)) - {4, 9}
    leaders = {
        index.draw_hit_or_none(4, **(ANYBODY | {"leaders_to_avoid": leading}), rng=rng).leader for _ in range(30)
    }
    assert leaders <= {4, 9}
    assert index.draw_hit_or_none(4, **(ANYBODY | {"leaders_to_avoid": set(range(ITEMS))}), rng=rng) is not None


def test_items_in_leases_are_full_once_they_would_have_all_judgments(rule):
    score, variance, _ = item_knowledge()
    index = rule.make_selection_index(ItemValues(score, variance, [2, 1, 0, *[0] * (ITEMS - 3)]), ASKING)
    assert index.full_items({0: 1, 1: 1, 2: 3, 3: 2}) == {0, 2}


def test_it_tells_whether_anything_is_left_after_a_hit(rule):
    score, variance, _ = item_knowledge()
    index = rule.make_selection_index(ItemValues(score, variance, [*[2] * 4, *[3] * (ITEMS - 4)]), ASKING)
    assert index.has_open_items_left_after_hit([0, 1], seen_items=(), seen_as_last_resort=True)
    assert not index.has_open_items_left_after_hit([0, 1, 2, 3], seen_items=(), seen_as_last_resort=True)
    assert not index.has_open_items_left_after_hit([0, 1], seen_items=[2, 3], seen_as_last_resort=False)
    assert index.has_open_items_left_after_hit([0, 1], seen_items=[2, 3], barred=[2], seen_as_last_resort=True)
    assert not index.has_open_items_left_after_hit([0, 1], seen_items=[2, 3], barred=[2, 3], seen_as_last_resort=True)


def test_what_changed_is_there_to_be_read(rule):
    score, variance, judgments = item_knowledge()
    index = rule.make_selection_index(ItemValues(score, variance, judgments), ASKING)
    index.update([3], [0.875], [0.03125], [2])
    assert (index.score[3], index.variance[3], index.judgments[3]) == (0.875, 0.03125, 2)


def test_leaders_come_as_often_as_they_are_said_to(rule):
    """Five items that nobody knows anything about, and one that is known well."""
    index = rule.make_selection_index(ItemValues([0.5] * 5 + [0.9], [1 / 12] * 5 + [0.001], [0] * 5 + [2]), ASKING)
    rng = np.random.default_rng(7)
    hits = [index.draw_hit_or_none(2, **ANYBODY | {"full": {1}}, rng=rng) for _ in range(1200)]
    assert {hit.reason for hit in hits} == {hits[0].reason}
    said = {hit.leader: hit.probability for hit in hits}
    assert sum(said.values()) == pytest.approx(1)
    drawn = Counter(hit.leader for hit in hits)
    if len(said) > 1:
        assert_drawn_from(said, drawn)


def test_of_a_schedule_as_many_are_expected_to_lead_as_do(rule):
    score, variance, _ = item_knowledge()
    for iteration, judgments in ((0, [0] * ITEMS), (2, [1] * ITEMS)):
        schedule = rule.schedule_hits_of_iteration(
            ItemValues(score, variance, judgments), ASKING, iteration=iteration, rng=np.random.default_rng(3)
        )
        assert all(0 < hit.probability <= 1 and hit.reason for hit in schedule)


@pytest.mark.parametrize("iteration", [0, 1])
def test_no_schedule_asks_for_more_judgments_than_are_wanted(rule, iteration):
    score, variance, judgments = item_knowledge(most=4)
    values = ItemValues(score, variance, judgments)
    schedule = rule.schedule_hits_of_iteration(values, ASKING, iteration=iteration, rng=np.random.default_rng(3))
    scheduled = np.bincount([item for draw in schedule for item in draw.items], minlength=ITEMS)
    assert schedule
    assert (judgments + scheduled <= np.maximum(judgments, 3)).all()
    assert all(len(set(draw.items)) == len(draw.items) <= 4 and draw.leader in draw.items for draw in schedule)
