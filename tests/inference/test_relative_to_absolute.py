from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.ground.inestimable import Inestimable
from app.inference.preferences import relative_to_absolute


def test_the_example_of_the_paper():
    fit = relative_to_absolute.fit([0, 0, 1], [1, 2, 2], [1, 1, 1])
    assert fit.score.tolist() == [2, 1, 0]
    assert fit.cycle == ()
    assert fit.notes == ()


def test_tied_items_share_a_score():
    assert relative_to_absolute.fit([0, 0, 1], [1, 2, 2], [0, 1, 1]).score.tolist() == [2, 2, 0]


def test_every_relation_of_four_items_has_a_scale_or_a_cycle_that_forbids_it():
    first, second = zip(*combinations(range(4), 2), strict=True)
    scales = 0
    for outcomes in product((-1, 0, 1), repeat=6):
        at_least = np.eye(4, dtype=bool)
        at_least[first, second] = np.array(outcomes) >= 0
        at_least[second, first] = np.array(outcomes) <= 0
        fit = relative_to_absolute.fit(first, second, outcomes)
        if fit.cycle:
            a, b, c = fit.cycle
            assert len({a, b, c}) == 3
            assert at_least[a, b]
            assert at_least[b, c]
            assert not at_least[a, c]
            assert np.isnan(fit.score).all()
            assert f"item {c} is better than item {a}" in fit.notes[-1]
        else:
            scales += 1
            np.testing.assert_array_equal(fit.score[:, None] >= fit.score, at_least)
    assert scales == 75  # weak orders of four items


@given(st.lists(st.integers(0, 4), min_size=2, max_size=9))
def test_preferences_by_scores_give_a_scale_in_their_order(scores):
    pairs = np.array(list(combinations(range(len(scores)), 2)))
    values = np.array(scores)
    fit = relative_to_absolute.fit(pairs[:, 0], pairs[:, 1], np.sign(values[pairs[:, 0]] - values[pairs[:, 1]]))
    np.testing.assert_array_equal(fit.score[:, None] >= fit.score, values[:, None] >= values)


def test_the_majority_decides_where_a_pair_was_judged_more_than_once():
    fit = relative_to_absolute.fit([0, 1, 0, 0, 1], [1, 0, 1, 2, 2], [1, 1, 1, 1, 1])
    assert fit.score.tolist() == [2, 1, 0]


def test_missing_pairs_are_counted_with_one_for_an_example():
    fit = relative_to_absolute.fit([0, 0, 0], [1, 2, 3], [1, 1, 1], n_items=5)
    assert not fit.estimable.any()
    assert np.isnan(fit.score).all()
    assert fit.cycle == ()
    assert "item 4" in fit.notes[0]
    assert fit.notes[1].endswith(
        "3 of 6 pairs of items were compared; a scale needs all of them. Not compared, for example: items 1 and 2."
    )
    many = relative_to_absolute.fit([0] * 199, range(1, 200), [1] * 199)
    assert "199 of 19,900 pairs" in many.notes[0]


def test_items_outside_the_relation_have_no_score_and_do_not_count():
    fit = relative_to_absolute.fit([1, 1, 4], [4, 6, 6], [1, 1, 1], n_items=8)
    assert fit.score[[1, 4, 6]].tolist() == [2, 1, 0]
    assert fit.estimable.sum() == 3


def test_no_judgments_are_inestimable():
    with pytest.raises(Inestimable):
        relative_to_absolute.fit([], [], [])
