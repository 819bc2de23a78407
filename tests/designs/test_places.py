"""Places in an order as shares and points: the same in HITs of any length, and fair to ties."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.designs.rank_base import OrderDesign, beaten_share_of_each_item
from app.errors import Invalid


class Podium(OrderDesign):
    """Up to ten items in an order."""

    name: ClassVar[str] = "podium"
    items_per_hit: ClassVar[range] = range(2, 11)
    default_items: ClassVar[int] = 4

    def task_message_for_first_page(self, campaign):
        return f"You order {campaign.items_per_hit} items."


HITS = st.lists(st.lists(st.integers(1, 5).map(float), min_size=1, max_size=7), max_size=8)


def test_a_share_is_how_many_of_the_others_an_item_beats(subtests):
    for places, shares in (
        ([1.0, 2.0], [1.0, 0.0]),
        ([1.0, 1.0], [0.5, 0.5]),
        ([3.0, 1.0, 2.0], [0.0, 1.0, 0.5]),
        ([1.0, 1.0, 3.0], [0.75, 0.75, 0.0]),
        ([1.0, 2.0, 2.0, 2.0, 3.0], [1.0, 0.5, 0.5, 0.5, 0.0]),
        ([1.0], [0.5]),
    ):
        with subtests.test(places=places, shares=shares):
            assert Podium().values_to_scale_shares(places) == shares


@given(HITS, st.randoms(use_true_random=False))
def test_many_hits_at_once_have_the_same_shares_as_one_by_one_in_any_order(hits, chance):
    rows = [(number, place) for number, hit in enumerate(hits) for place in hit]
    expected = [share for hit in hits for share in Podium().values_to_scale_shares(hit)]
    told = list(zip(rows, expected, strict=True))
    chance.shuffle(told)
    numbers = np.array([number for (number, _), _ in told], np.intp)
    values = np.array([place for (_, place), _ in told], np.float64)
    assert beaten_share_of_each_item(values, numbers).tolist() == [share for _, share in told]
    assert Podium().values_to_points(values, numbers).tolist() == [100 * share for _, share in told]


@given(st.lists(st.integers(1, 10).map(float), min_size=1, max_size=10))
def test_only_the_order_counts_and_is_stored_as_places_that_skip_what_ties_took(places):
    stored = Podium().possible_hit_values_or_refuse(places)
    assert [a < b for a in stored for b in stored] == [a < b for a in places for b in places]
    assert Podium().possible_hit_values_or_refuse(stored) == stored
    assert min(stored) == 1.0


def test_without_ties_equal_places_are_refused():
    strict = Podium(ties_allowed=False)
    with pytest.raises(Invalid) as refused:
        strict.possible_hit_values_or_refuse([1.0, 2.0, 1.0])
    assert refused.value.code == "answer_impossible"
    assert strict.possible_hit_values_or_refuse([2.0, 9.0, 1.0]) == [2.0, 3.0, 1.0]


def test_items_that_are_hardly_apart_are_called_equal_by_those_who_may():
    assert Podium().simulate_answer_values([0.21, 0.5, 0.2]) == [2.0, 1.0, 2.0]
    assert Podium(ties_allowed=False).simulate_answer_values([0.21, 0.5, 0.2, 0.2]) == [2.0, 1.0, 3.0, 4.0]


def test_places_are_whole_numbers():
    assert [Podium().stored_value_or_none(value) for value in (0.0, 1.0, 1.5, 10.0, 11.0)] == [
        None,
        1.0,
        None,
        10.0,
        None,
    ]
