"""Items by score: those nearest to a position are found as by a sort, however many items share a score."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.selection.buckets import Buckets
from app.selection.score_order import MAX_REPEATED_SCORES, ItemsByScore, order_items_of_each_cell_by_score

ITEMS = 70
scores = st.sampled_from([0.0, 0.25, 0.5]) | st.floats(-3, 3)
few_scores = st.sampled_from([0.0, 0.25, 0.5])


def assert_items_come_outward(cell, position, score_by_item):
    """Assert that the scores come from a position outward, each once, with all their items."""
    items_by_score = defaultdict(list)
    for item, score in sorted(score_by_item.items()):
        items_by_score[score].append(item)
    found = [(score, sorted(bucket)) for score, bucket in cell.iterate_buckets_outward_from(position)]
    assert sorted(found) == sorted(items_by_score.items())
    distances = [abs(score - position) for score, _ in found]
    assert distances == sorted(distances)


@pytest.mark.parametrize("scores", [scores, few_scores], ids=["many scores", "few scores"])
@given(data=st.data(), position=st.floats(-4, 4))
def test_scores_come_in_the_order_of_their_distance_with_all_their_items(scores, data, position):
    cell = ItemsByScore(Buckets(ITEMS))
    score_by_item: dict[int, float] = {}
    changes = data.draw(st.lists(st.tuples(st.integers(0, ITEMS - 1), scores), max_size=150))
    for item, score in changes:
        if item in score_by_item:
            cell.remove(item, score_by_item.pop(item))
        else:
            cell.add(item, score)
            score_by_item[item] = score
    assert_items_come_outward(cell, position, score_by_item)
    assert sorted({*cell.scores}) == sorted({*score_by_item.values()})


@given(
    cells=st.lists(st.lists(few_scores | st.floats(-3, 3), min_size=1, max_size=60), max_size=3),
    position=st.floats(-4, 4),
    removed_count=st.integers(0, 60),
)
def test_cells_that_begin_with_many_items_are_those_to_which_items_are_added(cells, position, removed_count):
    rows = [(number, score) for number, cell in enumerate(cells) for score in sorted(cell)]
    numbers = np.random.default_rng(1).permutation(len(rows))
    starts = np.flatnonzero(np.diff([number for number, _ in rows], prepend=-1))
    ordered = order_items_of_each_cell_by_score(
        numbers, np.array([score for _, score in rows], np.float64), starts, Buckets(len(rows))
    )
    score_by_item: list[dict[int, float]] = [{} for _ in cells]
    for item, (number, score) in zip(numbers.tolist(), rows, strict=True):
        score_by_item[number][item] = score
    for cell, expected in zip(ordered, score_by_item, strict=True):
        for item in sorted(expected)[:removed_count]:
            cell.remove(item, expected.pop(item))
        assert_items_come_outward(cell, position, expected)


def test_a_score_loses_and_gets_items_one_by_one_from_few_to_many_and_back():
    count = 3 * MAX_REPEATED_SCORES
    cell = ItemsByScore(Buckets(count + 1))
    cell.add(count, 0.75)
    for item in range(count):
        cell.add(item, 0.5)
        assert_items_come_outward(cell, 0.5, dict.fromkeys(range(item + 1), 0.5) | {count: 0.75})
    for item in range(count - 1):
        cell.remove(item, 0.5)
        assert_items_come_outward(cell, 0.5, dict.fromkeys(range(item + 1, count), 0.5) | {count: 0.75})
