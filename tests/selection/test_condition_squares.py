"""Latin squares of conditions, by hand for a few conditions and by their properties for 2 to 12."""

from collections import Counter
from itertools import pairwise

import pytest

from app.selection.condition_squares import ConditionSquare, RowUse, choose_least_used_row, williams_orders

NUMBERS_OF_CONDITIONS = range(2, 13)


def test_two_conditions_come_in_both_orders():
    assert williams_orders(2) == [(0, 1), (1, 0)]


def test_three_conditions_come_in_all_six_orders():
    assert williams_orders(3) == [(0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (0, 2, 1), (1, 0, 2)]


def test_four_conditions_have_the_square_of_williams():
    assert williams_orders(4) == [(0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (3, 0, 2, 1)]


@pytest.mark.parametrize("n", NUMBERS_OF_CONDITIONS)
def test_every_condition_is_equally_often_at_each_place_and_after_each_other_one(n):
    orders = williams_orders(n)
    assert len(orders) == (n if n % 2 == 0 else 2 * n)
    assert all(sorted(order) == list(range(n)) for order in orders)
    times = len(orders) // n
    assert {*Counter((place, c) for order in orders for place, c in enumerate(order)).values()} == {times}
    followers = Counter(pair for order in orders for pair in pairwise(order))
    assert len(followers) == n * (n - 1)
    assert {*followers.values()} == {times}


@pytest.mark.parametrize("n", NUMBERS_OF_CONDITIONS)
def test_a_list_shows_each_content_once_and_all_lists_show_it_under_every_condition(n):
    square = ConditionSquare(n, "none", has_contents=True)
    assert square.row_count == n
    for content in range(2 * n):
        assert {square.condition_of_content(row, content) for row in range(n)} == {*range(n)}
    for row in range(n):
        assert {*Counter(square.condition_of_content(row, content) for content in range(2 * n)).values()} == {2}


@pytest.mark.parametrize("n", NUMBERS_OF_CONDITIONS)
def test_every_list_comes_in_every_order_and_each_run_of_rows_is_balanced(n):
    square = ConditionSquare(n, "balanced", has_contents=True)
    rows = [
        (square.index_of_list_of_square_row(row), square.block_order_of_row(row)) for row in range(square.row_count)
    ]
    assert len({*rows}) == square.row_count == n * len(williams_orders(n))
    for first in range(0, square.row_count, n):
        run = rows[first : first + n]
        assert {number for number, _ in run} == {*range(n)}
        assert all({order[place] for _, order in run} == {*range(n)} for place in range(n))


def test_orders_without_lists_are_the_rows():
    square = ConditionSquare(3, "balanced", has_contents=False)
    assert [square.block_order_of_row(row) for row in range(square.row_count)] == williams_orders(3)
    assert {square.index_of_list_of_square_row(row) for row in range(6)} == {0}


def test_a_fixed_order_is_that_of_the_items_and_a_random_one_depends_on_the_seed():
    fixed, shuffled = (ConditionSquare(5, name, has_contents=False) for name in ("fixed", "random"))
    assert fixed.row_count == shuffled.row_count == 1
    assert fixed.block_order_of_row(0) == (0, 1, 2, 3, 4)
    orders = [shuffled.block_order_of_row(0, (2018, annotator)) for annotator in range(50)]
    assert orders[7] == shuffled.block_order_of_row(0, (2018, 7))
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert len({*orders}) > 20


def test_the_row_with_the_fewest_people_who_stay_is_next_then_the_one_with_the_fewest_at_all():
    assert choose_least_used_row(3, {}) == 0
    assert choose_least_used_row(3, {0: RowUse(1, 1)}) == 1
    assert choose_least_used_row(3, {0: RowUse(1, 1), 1: RowUse(0, 1), 2: RowUse(1, 1)}) == 1
    assert choose_least_used_row(3, {0: RowUse(0, 2), 1: RowUse(0, 1), 2: RowUse(0, 2)}) == 1


@pytest.mark.parametrize("n", NUMBERS_OF_CONDITIONS)
def test_rows_given_out_one_by_one_differ_by_one_person_at_most(n):
    square = ConditionSquare(n, "balanced", has_contents=False)
    use: dict[int, RowUse] = {}
    for _ in range(5 * n + 3):
        row = choose_least_used_row(square.row_count, use)
        use[row] = RowUse(*(count + 1 for count in use.get(row, RowUse())))
        totals = [use.get(row, RowUse()).total for row in range(square.row_count)]
        assert max(totals) - min(totals) <= 1
