from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.ground.inestimable import Inestimable
from app.inference.observations.comparisons import (
    comparison_arrays_and_item_count_or_raise,
    connected_group_number_of_each_item,
    count_pair_outcomes,
    pair_outcome_columns_from_hits,
    position_pairs_of_all_equal_keys,
)

judgments = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-1, 1)).filter(
        lambda judgment: judgment[0] != judgment[1]
    ),
    min_size=1,
    max_size=40,
)


def test_judgments_of_a_pair_are_counted_whichever_item_comes_first():
    counts = count_pair_outcomes([3, 1, 1, 3, 0], [1, 3, 3, 1, 3], [1, 1, 0, -1, -1])
    assert counts.low.tolist() == [0, 1]
    assert counts.high.tolist() == [3, 3]
    assert counts.low_won.tolist() == [0, 2]
    assert counts.high_won.tolist() == [1, 1]
    assert counts.tied.tolist() == [0, 1]
    assert counts.n_items == 4
    assert counts.compared_items_mask.tolist() == [True, True, False, True]


@given(judgments)
def test_counts_are_those_of_counting_one_by_one(rows):
    first, second, outcomes = zip(*rows, strict=True)
    wins = np.zeros((6, 6))
    ties = np.zeros((6, 6))
    for i, j, outcome in rows:
        wins[i, j] += outcome == 1
        wins[j, i] += outcome == -1
        ties[min(i, j), max(i, j)] += outcome == 0
    # Few numbers are counted in a table, many are sorted: the same counts either way.
    for spread in (1, 1000):
        counts = count_pair_outcomes(np.array(first) * spread, np.array(second) * spread, outcomes)
        low, high = counts.low // spread, counts.high // spread
        assert counts.low_won.tolist() == wins[low, high].tolist()
        assert counts.high_won.tolist() == wins[high, low].tolist()
        assert counts.tied.tolist() == ties[low, high].tolist()
        assert counts.judgment_counts.sum() == len(rows)
        assert list(zip(low, high, strict=True)) == sorted(set(zip(low, high, strict=True)))


def test_what_is_no_judgment_is_refused(subtests):
    for arrays, message in (
        (([0, 1], [1], [1]), "first 2, second 1"),
        (([0], [0], [1]), "item 0 was compared with itself"),
        (([0], [1], [2]), "outcomes are -1, 0 or 1"),
        (([0.5], [1], [1]), "whole numbers"),
        (([-1], [1], [1]), "numbered from 0"),
        (([[0]], [[1]], [[1]]), "shape"),
    ):
        with subtests.test(arrays=arrays, message=message), pytest.raises(ValueError, match=message):
            comparison_arrays_and_item_count_or_raise(*arrays)


def test_an_item_beyond_the_number_of_items_is_refused():
    with pytest.raises(ValueError, match="second are numbered from 0 to 2"):
        comparison_arrays_and_item_count_or_raise([0], [3], [1], 3)


def test_no_judgments_at_all_are_told_apart_from_mistakes():
    with pytest.raises(Inestimable) as refusal:
        count_pair_outcomes([], [], [], n_items=3)
    assert refusal.value.code == "no_judgments"


def test_scores_of_a_hit_become_its_pairs_in_the_order_of_presentation():
    first, second, outcomes, hits = pair_outcome_columns_from_hits(
        [7, 4, 7, 7], [0, 9, 2, 1], [0.55, 0.3, 0.5, 0.9], tie_margin=0.05
    )
    assert hits.tolist() == [7, 7, 7]
    assert list(zip(first, second, outcomes, strict=True)) == [(0, 2, 0), (0, 1, -1), (2, 1, -1)]


def test_pairs_within_runs_are_those_of_combinations():
    keys = np.array([1, 1, 1, 4, 5, 5, 5, 5])
    expected = [(i, j) for i, j in combinations(range(8), 2) if keys[i] == keys[j]]
    assert sorted(zip(*(side.tolist() for side in position_pairs_of_all_equal_keys(keys)), strict=True)) == expected


def test_items_that_were_never_compared_fall_into_groups_the_largest_first():
    counts = count_pair_outcomes([0, 3, 4, 4], [1, 4, 5, 3], [1, 1, 1, 1], n_items=7)
    assert connected_group_number_of_each_item(counts, strongly_connected=False).tolist() == [1, 1, -1, 0, 0, 0, -1]


def test_items_are_together_both_ways_only_if_they_beat_or_tie_each_other_round():
    # 0 > 1 > 2 > 0 goes round; 3 ties 4; 2 beats 3 and nothing leads back; 5 only loses.
    counts = count_pair_outcomes([0, 1, 2, 3, 2, 0], [1, 2, 0, 4, 3, 5], [1, 1, 1, 0, 1, 1])
    assert connected_group_number_of_each_item(counts, strongly_connected=True).tolist() == [0, 0, 0, 1, 1, -1]
