from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.dashboard.charts import (
    COURSE_BOTTOM,
    COURSE_LABEL_HEIGHT,
    label_heights_without_overlap,
    offered_chart_title_by_name,
    score_history_drawing,
)
from app.dashboard.judgment_dots import judgment_dots
from app.designs.registry import make_design


@pytest.mark.parametrize(
    ("items", "names"), [(3, ["match", "uncertainty", "pace"]), (60, ["match", "distribution", "uncertainty", "pace"])]
)
def test_a_few_items_have_no_distribution_and_match_quality_comes_first(items, names):
    figures: dict[str, Any] = {"heatmap": {}, "classes": None, "course": []}
    assert list(offered_chart_title_by_name(figures, items, is_ordered=True)) == names


def test_labels_have_neither_match_quality_nor_uncertainty():
    figures = {"heatmap": None, "classes": [["bank", 1]], "course": []}
    assert list(offered_chart_title_by_name(figures, 3, is_ordered=False)) == ["distribution", "pace"]


def test_labels_keep_their_distance_and_stay_in_the_chart():
    spread = label_heights_without_overlap(np.array([20.0, 21.0, 100.0, 210.0, 212.0, 214.0]))
    assert np.diff(spread).min() >= COURSE_LABEL_HEIGHT
    assert spread[-1] <= COURSE_BOTTOM
    np.testing.assert_allclose(spread[:3], [20, 38, 100])


def test_the_course_goes_from_the_first_judgment_to_now_on_an_axis_of_round_places():
    drawing = score_history_drawing(
        [{"name": "a", "places": [52, None, None, 61]}, {"name": "b", "places": [75, 70, None, 72]}]
    )
    assert (drawing.low, drawing.high) == (50, 80)
    assert [(line.name, [moment for moment, _ in line.points]) for line in drawing.lines] == [
        ("b", [0, 1, 3]),
        ("a", [0, 3]),
    ]


def judgment(annotator, value, *, counts=True):
    return SimpleNamespace(annotator=annotator, answer_text=f"{value:g}", value=value, counts=counts)


def test_judgments_close_together_are_stacked():
    dots = judgment_dots(
        make_design("slider", {}), [judgment("A1", 50), judgment("A2", 51), judgment("A3", 54, counts=False)]
    )
    assert [(dot.annotator, dot.place, dot.level, dot.counts) for dot in dots] == [
        ("A1", 50, 0, True), ("A2", 51, 1, True), ("A3", 54, 0, False),
    ]  # fmt: skip


def test_points_of_an_ordinal_scale_are_spread_over_it_and_answers_without_a_scale_have_no_dots():
    assert [dot.place for dot in judgment_dots(make_design("ordinal", {}), [judgment("A1", 1)])] == [25]
    assert judgment_dots(make_design("pairwise", {}), [judgment("A1", 1)]) == []
