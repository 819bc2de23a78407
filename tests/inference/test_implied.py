"""Pairs implied by other answers: by hand, by a closure made another way, and that their store stays small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from app.inference.preferences import implied_pairs
from app.inference.preferences.implied_pairs import (
    Implications,
    ImpliedCounts,
    implications_and_implied_outcomes,
    pair_outcome_from_scale_shares,
)

ANSWERS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from([1, 1, 0, -1])).filter(lambda it: it[0] != it[1]),
    max_size=60,
)


def order_of(*answers):
    order = Implications()
    for answer in answers:
        order.add_outcome_and_return_implied_or_none(*answer)
    return order


def not_asked(order):
    return {
        (item, other)
        for item in order.items_in_order_of_arrival()
        for other in order.implied_items_below(item).tolist()
    }


def closed(edges):
    """Return all pairs (better, worse) that follow from these pairs, found by walking from each item."""
    below: dict[int, set[int]] = {}
    for better, worse in edges:
        below.setdefault(better, set()).add(worse)

    def reached(item, known):
        for worse in below.get(item, ()):
            if worse not in known:
                known.add(worse)
                reached(worse, known)
        return known

    return {(item, worse) for item in below for worse in reached(item, set())}


def test_of_three_items_two_preferences_imply_the_third():
    order = order_of((1, 2, 1), (3, 2, -1))
    assert (order.implied_outcome_or_none(1, 3), order.implied_outcome_or_none(3, 1)) == (1, -1)
    assert order.tally == ImpliedCounts(answered=2, not_asked=1)
    assert not_asked(order) == {(1, 3)}


def test_two_chains_that_meet_imply_all_pairs_between_them():
    order = order_of((0, 1, 1), (1, 2, 1), (3, 4, 1), (4, 5, 1), (2, 3, 1))
    assert order.tally == ImpliedCounts(answered=5, not_asked=10)
    assert all(order.implied_outcome_or_none(one, other) == 1 for one in range(6) for other in range(one + 1, 6))


def test_a_tie_carries_nothing_over():
    order = order_of((0, 1, 1), (1, 2, 0))
    assert (order.implied_outcome_or_none(0, 2), order.implied_outcome_or_none(1, 2)) == (None, None)
    assert order.tally == ImpliedCounts(answered=2)


def test_two_items_above_the_same_one_are_not_told_apart():
    assert order_of((0, 2, 1), (1, 2, 1)).implied_outcome_or_none(0, 1) is None


@pytest.mark.parametrize(
    ("answer", "tally"),
    [(1, ImpliedCounts(3, 0, 1, 0, 0)), (0, ImpliedCounts(3, 0, 1, 1, 0)), (-1, ImpliedCounts(3, 0, 1, 1, 1))],
)
def test_an_implied_pair_that_is_asked_anyway_tells_whether_that_was_right_and_changes_nothing_else(answer, tally):
    order = order_of((0, 1, 1), (1, 2, 1))
    assert order.add_outcome_and_return_implied_or_none(0, 2, answer) == 1
    assert order.tally == tally
    assert (
        order.implied_outcome_or_none(0, 1),
        order.implied_outcome_or_none(1, 2),
        order.implied_outcome_or_none(0, 2),
    ) == (1, 1, 1)


def test_of_a_pair_that_was_answered_twice_the_first_answer_counts():
    order = order_of((0, 1, 1), (1, 0, 1), (0, 1, 0))
    assert order.tally == ImpliedCounts(answered=1)
    assert order.implied_outcome_or_none(0, 1) == 1


@given(ANSWERS)
def test_it_is_what_a_walk_through_the_answers_finds(answers):
    order = Implications()
    edges: list[tuple[int, int]] = []
    told: set[frozenset[int]] = set()
    for first, second, outcome in answers:
        before = closed(edges)
        expected = 1 if (first, second) in before else -1 if (second, first) in before else None
        new = frozenset((first, second)) not in told
        assert order.add_outcome_and_return_implied_or_none(first, second, outcome) == (expected if new else None)
        if new and expected is None and outcome:
            edges.append((first, second) if outcome > 0 else (second, first))
        told.add(frozenset((first, second)))
    pairs = closed(edges)
    assert order.tally.not_asked == len({pair for pair in pairs if frozenset(pair) not in told})
    assert not_asked(order) == {pair for pair in pairs if frozenset(pair) not in told}
    for item in range(12):
        beside = {one if other == item else other for one, other in pairs if item in (one, other)}
        compared = {other for pair in told if item in pair for other in pair if other != item}
        assert set(order.items_already_compared_with(item).tolist()) == compared
        assert set(order.unanswered_items_implied_with(item).tolist()) == beside - compared
    assert not {(other, one) for one, other in pairs} & pairs  # it never contradicts itself


@given(ANSWERS)
def test_the_order_stays_the_same_whatever_the_items_are_called(answers):
    order = order_of(*answers)
    other = order_of(*((7_000_000 - first, 7_000_000 - second, outcome) for first, second, outcome in answers))
    assert order.tally == other.tally


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(implied_pairs, "MAX_IMPLIED_ITEMS", 16)
    order = order_of(*((k, k + 1, 1) for k in range(100)))
    assert order.nbytes < 10_000
    assert (order.implied_outcome_or_none(0, 15), order.implied_outcome_or_none(0, 16)) == (1, None)
    assert order.tally.answered == 15


def test_a_consistent_annotator_who_sorts_answers_few_of_all_pairs_and_implies_the_rest_rightly():
    rng = np.random.default_rng(4)
    value, order = rng.random(60), Implications()
    pairs = rng.permutation([(a, b) for a in range(60) for b in range(a)]).tolist()
    for a, b in pairs:
        if order.implied_outcome_or_none(a, b) is None:
            order.add_outcome_and_return_implied_or_none(a, b, pair_outcome_from_scale_shares([value[a], value[b]]))
    assert order.tally.answered + order.tally.not_asked == len(pairs)
    assert order.tally.answered < 0.3 * len(pairs)
    assert all(
        order.implied_outcome_or_none(a, b) == pair_outcome_from_scale_shares([value[a], value[b]]) for a, b in pairs
    )


def test_the_share_answered_otherwise_has_wilsons_interval(subtests):
    for otherwise, asked in ((0, 3), (1, 7), (20, 100), (5, 5)):
        with subtests.test(otherwise=otherwise, asked=asked):
            expected = binomtest(otherwise, asked).proportion_ci(method="wilson")
            assert ImpliedCounts(asked, 0, asked, otherwise).contradicted_share_and_interval_or_none() == pytest.approx(
                (otherwise / asked, expected.low, expected.high), abs=1e-12
            )


def test_where_nothing_was_asked_anyway_nobody_knows_how_often_it_was_wrong():
    assert ImpliedCounts(answered=9, not_asked=4).contradicted_share_and_interval_or_none() is None


def test_each_annotators_answers_imply_for_them_alone():
    orders, before = implications_and_implied_outcomes([0, 1, 0, 0], [1, 2, 2, 2], [1, 1, -1, 1], [5, 5, 5, 6])
    assert before == [None, None, 1, None]
    assert (orders[5].tally, orders[6].tally) == (ImpliedCounts(3, 0, 1, 1, 1), ImpliedCounts(1))
    assert sum((order.tally for order in orders.values()), ImpliedCounts()) == ImpliedCounts(4, 0, 1, 1, 1)


@pytest.mark.parametrize(
    ("items", "shares", "implied"), [([3, 4], [0.0, 1.0], -1), ([3], [0.5], None), ([3, 4], [np.nan, 1.0], None)]
)
def test_an_answer_tells_something_where_the_values_of_two_items_are_known(items, shares, implied):
    order = Implications()
    order.add_answer(items, shares)
    assert order.implied_outcome_or_none(3, 4) == implied
