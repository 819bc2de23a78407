"""Positions in the pictures of the analysis page."""

import numpy as np
import pytest

from app.analysis import scatter
from app.analysis.chart_axes import axis_with_round_ticks
from app.analysis.scatter import Dot, label_dots_where_room


def test_squares_count_every_dot_once_and_the_fullest_is_darkest():
    x = axis_with_round_ticks("", 0.0, 1.0)
    found = scatter.squares_shaded_by_dot_count(x, x, np.array([0.01, 0.011, 0.99]), np.array([0.01, 0.011, 0.99]))
    assert len(found) == 2
    assert max(square.shade for square in found) == 1
    lower = min(found, key=lambda square: square.x)
    assert lower.shade == 1
    assert lower.y + lower.side == pytest.approx(100, abs=0.01)


def test_names_do_not_cover_dots_or_each_other():
    crowded = [Dot(50 + i * 0.5, 50.0, "") for i in range(10)] + [Dot(10.0, 10.0, "")]
    found = label_dots_where_room(crowded, [f"annotator {i}" for i in range(11)])
    assert found[10].label == "annotator 10"
    boxes = [scatter.label_left_right_top_bottom(dot) for dot in found if dot.label]
    assert not any(scatter.has_overlap(one, other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_a_name_at_the_right_edge_stands_at_the_left_of_its_dot():
    (found,) = label_dots_where_room([Dot(98.0, 50.0, "")], ["somebody"])
    assert (found.label, found.side) == ("somebody", -1)


def test_on_a_phone_the_furthest_dot_is_named_and_no_names_cover_each_other():
    rng = np.random.default_rng(5)
    names = [f"annotator{i}" for i in range(30)]
    found = label_dots_where_room(
        [Dot(float(x), float(y), "") for x, y in rng.uniform(40, 60, (29, 2))] + [Dot(5.0, 95.0, "")], names
    )
    narrow = [dot for dot in found if dot.everywhere]
    assert found[29] in narrow
    assert len(narrow) < sum(bool(dot.label) for dot in found)
    for room, shown in (
        (scatter.PHONE_LABEL_METRICS, narrow),
        (scatter.WIDE_LABEL_METRICS, [dot for dot in found if dot.label]),
    ):
        boxes = [scatter.label_left_right_top_bottom(dot, room) for dot in shown]
        assert not any(scatter.has_overlap(one, other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_of_few_dots_each_has_a_name_and_it_is_plain_which():
    rng = np.random.default_rng(7)
    dots = [Dot(float(x), float(y), "") for x, y in rng.uniform(45, 60, (6, 2))]
    found = label_dots_where_room(dots, [f"A{i}" for i in range(6)])
    assert [dot.label for dot in found] == [f"A{i}" for i in range(6)]
    for dot in found:
        left, right, top, bottom = scatter.label_left_right_top_bottom(dot)
        near = {
            other: np.hypot(other.x - np.clip(other.x, left, right), other.y - np.clip(other.y, top, bottom))
            for other in found
        }
        assert dot.end or min(near, key=near.__getitem__) is dot
