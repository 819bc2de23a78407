import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dashboard.heatmap import (
    MAX_HEATMAP_ROWS,
    best_matching_row_of_each_row,
    first_row_of_each_group,
    group_means,
    heatmap_row_labels,
    match_quality_heatmap_of_row_groups,
)


def test_items_stand_in_the_order_of_their_scores_and_equal_ones_by_number():
    picture = match_quality_heatmap_of_row_groups(np.array([0.5, 0.1, 0.5, 0.3]), np.full(4, 0.01), 0.1)
    assert picture.order.tolist() == [1, 3, 0, 2]
    assert picture.score.tolist() == [0.1, 0.3, 0.5, 0.5]


def test_a_cell_is_the_match_quality_in_steps_of_a_255th():
    # c^2 = 2 * 0.01 + 0.01 + 0.01 = 0.04. On the diagonal q = sqrt(0.02 / 0.04) = 0.7071 = 180.3 steps; 0.2 apart
    # q = 0.7071 * exp(-0.04 / 0.08) = 0.4289 = 109.4 steps.
    picture = match_quality_heatmap_of_row_groups(np.array([0.6, 0.4]), np.array([0.01, 0.01]), 0.1)
    assert picture.quality_as_bytes.tolist() == [[180, 109], [109, 180]]


def test_more_items_than_cells_are_gathered_and_stand_with_their_means():
    picture = match_quality_heatmap_of_row_groups(
        np.array([0.9, 0.1, 0.3, 0.5]), np.array([0.03, 0.01, 0.02, 0.01]), 0.1, max_rows=2
    )
    assert picture.has_grouped_rows
    assert picture.starts.tolist() == [0, 2]
    np.testing.assert_allclose(picture.score, [0.2, 0.7])
    # Mean variances 0.015 and 0.02, so c^2 = 0.02 + 0.035 off the diagonal: q = sqrt(20/55) exp(-0.25/0.11) = 0.0621.
    assert picture.quality_as_bytes[0, 1] == picture.quality_as_bytes[1, 0] == round(0.06213 * 255)


@given(st.integers(1, 2000), st.integers(1, 300))
def test_groups_hold_every_item_once_and_differ_by_one_at_most(count, groups):
    starts = first_row_of_each_group(count, groups)
    sizes = np.diff(np.append(starts, count))
    assert len(starts) == min(count, groups)
    assert sizes.sum() == count
    assert 1 <= sizes.min() <= sizes.max() <= sizes.min() + 1


def test_means_of_groups_by_hand():
    assert group_means(np.array([1.0, 2.0, 6.0]), np.array([0, 1])).tolist() == [1.0, 4.0]


def test_rows_are_called_by_their_item_or_by_the_ranks_of_their_group():
    score, variance = np.array([0.2, 0.1, 0.3]), np.full(3, 0.01)
    assert heatmap_row_labels(match_quality_heatmap_of_row_groups(score, variance, 0.1), ["b", "a", "c"]) == [
        "a",
        "b",
        "c",
    ]
    assert heatmap_row_labels(match_quality_heatmap_of_row_groups(score, variance, 0.1, max_rows=2), []) == [
        "items 1 to 1",
        "items 2 to 3",
    ]


def test_closest_is_never_the_item_itself_unless_it_is_alone():
    assert best_matching_row_of_each_row(
        match_quality_heatmap_of_row_groups(np.array([0.1, 0.2, 0.9]), np.full(3, 0.01), 0.1)
    ).tolist() == [1, 0, 1]
    assert best_matching_row_of_each_row(
        match_quality_heatmap_of_row_groups(np.array([0.1]), np.array([0.01]), 0.1)
    ).tolist() == [0]


@pytest.mark.parametrize("count", [1, MAX_HEATMAP_ROWS, MAX_HEATMAP_ROWS + 1])
def test_pictures_have_no_more_rows_than_cells(count):
    rng = np.random.default_rng(count)
    picture = match_quality_heatmap_of_row_groups(rng.random(count), rng.random(count) / 12, 0.1)
    assert picture.quality_as_bytes.shape == (min(count, MAX_HEATMAP_ROWS),) * 2
    assert (picture.quality_as_bytes == picture.quality_as_bytes.T).all()
