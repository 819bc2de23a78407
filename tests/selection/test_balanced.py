"""The balanced rule: every item equally often, and no pair twice before it must be."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.selection.balanced_plan import BalancedPlan
from app.selection.balanced_rule import BALANCED_RULE, full_hits_and_regrouped_short_hits
from app.selection.rule import ItemStatus, ItemValues, SelectionSettings


def draw_hit(index, rng, *, seen=frozenset(), leaders_to_avoid=frozenset()):
    return index.draw_hit_or_none(
        4, seen={*seen}, full=set(), leaders_to_avoid={*leaders_to_avoid}, seen_as_last_resort=False, rng=rng
    )


def pair_counts(hits):
    return Counter(frozenset(pair) for hit in hits for pair in combinations(hit, 2))


def values(judgments, status=0):
    count = len(judgments)
    return ItemValues(np.full(count, 0.5), np.full(count, 0.05), judgments, status)


def settings(**more):
    return SelectionSettings(**{"judgments_per_item": 8, "items_per_hit": 4, "gamma": 0.1} | more)


@given(st.integers(2, 70), st.integers(2, 6), st.integers(0, 40))
def test_a_round_shows_every_item_once_in_hits_that_differ_by_one(items, size, number):
    hits = BalancedPlan(items, size).hits_of_round(number)
    assert sorted(item for hit in hits for item in hit) == [*range(items)]
    assert all(1 <= len(hit) <= size for hit in hits)
    if items >= size * (size - 1):
        assert {len(hit) for hit in hits} <= {size, size - 1}


@given(st.integers(2, 60), st.integers(2, 5), st.integers(0, 30))
def test_each_hit_of_a_round_is_led_by_its_first_item(items, size, number):
    plan = BalancedPlan(items, size)
    hits = {hit[0]: hit for hit in plan.hits_of_round(number)}
    assert {item: plan.planned_hit_of_leader_or_none(item, number) for item in range(items)} == {
        item: hits.get(item) for item in range(items)
    }


@pytest.mark.parametrize(("items", "size", "rounds"), [(20, 4, 5), (40, 4, 8), (60, 4, 12), (100, 5, 10), (151, 4, 12)])
def test_no_pair_comes_back_in_the_rounds_of_a_usual_study(items, size, rounds):
    plan = BalancedPlan(items, size)
    assert set(pair_counts(hit for number in range(rounds) for hit in plan.hits_of_round(number)).values()) == {1}


def test_pairs_come_back_only_after_half_of_all_pairs_were_asked():
    plan = BalancedPlan(24, 2)
    counts = pair_counts(hit for number in range(12) for hit in plan.hits_of_round(number))
    assert len(counts) == 12 * 12
    assert set(counts.values()) == {1}


def test_items_of_a_column_meet_once_all_other_pairs_are_used():
    plan = BalancedPlan(16, 2)
    pairs = pair_counts(hit for number in range(40) for hit in plan.hits_of_round(number))
    assert len(pairs) > 0.85 * 16 * 15 / 2


def test_the_plan_depends_on_nothing_but_the_sizes():
    one, again = BalancedPlan(50, 4), BalancedPlan(50, 4)
    assert again.hits_of_round(7) == one.hits_of_round(7)  # in any order
    assert [one.hits_of_round(k) for k in range(8)] == [again.hits_of_round(k) for k in range(8)]


def test_the_plan_of_a_running_campaign_stays_the_same_in_every_version():
    plan = BalancedPlan(7, 3)
    assert [plan.hits_of_round(number) for number in range(4)] == [
        [[6, 3, 2], [1, 0], [4, 5]],
        [[6, 0], [1, 5, 2], [4, 3]],
        [[6, 5], [1, 3], [4, 0, 2]],
        [[0, 3, 2], [4, 6], [1, 5]],
    ]


def test_drawn_one_at_a_time_items_are_shown_equally_often_and_no_pair_twice():
    index, rng = BALANCED_RULE.make_selection_index(values([0] * 48), settings()), np.random.default_rng(1)
    hits = []
    for _ in range(12 * 8):
        draw = draw_hit(index, rng)
        hits.append(draw.items)
        index.update(draw.items, [0.5] * 4, [0.05] * 4, (index.judgments[draw.items] + 1).tolist())
        assert np.ptp(index.judgments) <= 1
    assert set(index.judgments.tolist()) == {8}
    assert set(pair_counts(hits).values()) == {1}
    assert draw_hit(index, rng) is None


def test_concurrent_annotators_get_different_hits_of_the_round():
    index, rng = BALANCED_RULE.make_selection_index(values([0] * 40), settings()), np.random.default_rng(1)
    leaders_to_avoid: set[int] = set()
    hits = []
    for _ in range(10):
        draw = draw_hit(index, rng, leaders_to_avoid=leaders_to_avoid)
        leaders_to_avoid.add(draw.leader)
        hits.append(draw.items)
    assert sorted(item for hit in hits for item in hit) == [*range(40)]


def test_an_annotator_who_has_seen_an_item_of_each_hit_gets_the_least_judged_others():
    index, rng = BALANCED_RULE.make_selection_index(values([0] * 12), settings()), np.random.default_rng(1)
    seen = {hit[1] for hit in BalancedPlan(12, 4).hits_of_round(0)}
    draw = draw_hit(index, rng, seen=seen)
    assert not seen & {*draw.items}


@pytest.mark.parametrize("items", [45, 46, 47])
def test_counts_stay_close_if_items_do_not_fill_the_hits(items):
    index, rng = BALANCED_RULE.make_selection_index(values([0] * items), settings()), np.random.default_rng(1)
    for _ in range(items * 6 // 4):
        draw = draw_hit(index, rng)
        assert len(draw.items) == 4
        index.update(draw.items, [0.5] * 4, [0.05] * 4, (index.judgments[draw.items] + 1).tolist())
    assert np.ptp(index.judgments) <= 2


def test_each_iteration_is_a_round_and_no_pair_comes_back():
    judgments, hits = np.zeros(48, np.int64), []
    for iteration in range(8):
        schedule = BALANCED_RULE.schedule_hits_of_iteration(
            values(judgments), settings(), iteration=iteration, rng=np.random.default_rng(iteration)
        )
        for draw in schedule:
            judgments[draw.items] += 1
            hits.append(draw.items)
        assert set(judgments.tolist()) == {iteration + 1}
    assert set(pair_counts(hits).values()) == {1}


def test_short_iterations_go_through_the_plan_one_after_another():
    plan, asking = BalancedPlan(24, 4), settings(hits_per_iteration=4)
    hits = [
        {*draw.items}
        for iteration in range(3)
        for draw in BALANCED_RULE.schedule_hits_of_iteration(
            values([0] * 24), asking, iteration=iteration, rng=np.random.default_rng(1)
        )
    ]
    assert hits == [{*hit} for number in (0, 1) for hit in plan.hits_of_round(number)]


def test_a_short_iteration_does_not_ask_for_more_than_is_wanted():
    asking = settings(hits_per_iteration=9, judgments_per_item=1)
    schedule = BALANCED_RULE.schedule_hits_of_iteration(
        values([0] * 24), asking, iteration=0, rng=np.random.default_rng(1)
    )
    assert sorted(item for draw in schedule for item in draw.items) == [*range(24)]


def test_items_that_fell_behind_are_asked_though_the_plan_has_passed_them():
    judgments, asking = np.full(24, 8), settings(hits_per_iteration=1)
    behind = [item for hit in BalancedPlan(24, 4).hits_of_round(0)[2:4] for item in hit]
    judgments[behind] = 7
    schedule = BALANCED_RULE.schedule_hits_of_iteration(
        values(judgments), asking, iteration=0, rng=np.random.default_rng(1)
    )
    assert len(schedule) == 1
    assert {*schedule[0].items} <= {*behind}


def test_items_that_left_the_pool_are_not_asked_and_the_others_share_hits():
    status = [ItemStatus.GONE] * 6 + [0] * 18
    schedule = BALANCED_RULE.schedule_hits_of_iteration(
        values([0] * 24, np.array(status, np.int8)), settings(), iteration=0, rng=np.random.default_rng(1)
    )
    assert sorted(item for draw in schedule for item in draw.items) == [*range(6, 24)]
    assert {len(draw.items) for draw in schedule} <= {3, 4}


def test_short_hits_are_put_together():
    hits = full_hits_and_regrouped_short_hits([[1, 2, 3], [4], [5, 6], [7]], 3, np.random.default_rng(1))
    assert hits[0] == [1, 2, 3]
    assert sorted(map(len, hits[1:])) == [2, 2]
    assert full_hits_and_regrouped_short_hits([[]], 3, np.random.default_rng(1)) == []
