"""Simulated annotators, for laws that learn about annotators."""

import numpy as np

from app.inference.observations.long_judgments import LongJudgments
from app.planning.crowd_model import group_consecutive_judgments_into_hits


def test_judgments_in_a_row_by_one_annotator_are_a_hit_until_it_is_full_or_an_item_comes_again():
    items, who = np.array([0, 1, 2, 3, 3, 0, 1]), np.array([4, 4, 4, 4, 5, 5, 4])
    said = LongJudgments(4, items, who, np.linspace(0, 0.6, 7).round(1))
    assert [(hit.annotator, hit.items) for hit in group_consecutive_judgments_into_hits(said, 3)] == [
        (4, [0, 1, 2]),
        (4, [3]),
        (5, [3, 0]),
        (4, [1]),
    ]
    again = LongJudgments(2, np.array([0, 1, 0]), np.array([4, 4, 4]), np.zeros(3))
    assert [hit.items for hit in group_consecutive_judgments_into_hits(again, 3)] == [[0, 1], [0]]
