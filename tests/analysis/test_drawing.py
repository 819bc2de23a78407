"""Where things stand in the analysis page's pictures."""

import warnings

import numpy as np
import pytest

from app.analysis import drawing
from app.analysis.drawing import Dot, around, axis, labelled


def test_ticks_stand_at_round_numbers_inside_the_axis():
    assert axis("", -1.0, 1.0).ticks == ((0.0, "−1.0"), (25.0, "−0.5"), (50.0, "0.0"), (75.0, "0.5"), (100.0, "1.0"))
    assert [words for _, words in axis("", 3.0, 97.0).ticks] == ["20", "40", "60", "80"]


def test_the_head_of_a_column_has_room_for_a_few_ticks():
    assert [words for _, words in axis("", -1.0, 1.0).few_ticks] == ["−1.0", "0.0", "1.0"]
    assert [words for _, words in axis("", -6.1, 6.2).few_ticks] == ["−5", "0", "5"]
    rng = np.random.default_rng(3)
    for low, width in zip(rng.normal(0, 10, 200), rng.lognormal(0, 3, 200), strict=True):
        assert 2 <= len(axis("", low, low + width).few_ticks) <= 4


def test_an_axis_of_no_width_is_widened():
    assert axis("", 4.0, 4.0).at(4.0) == 50
    assert axis("", 1e17, 1e17).at(1e17) == 50


def test_an_axis_whose_width_is_only_rounding_is_widened_too():
    assert axis("", 0.0, 1e-17).few_ticks == axis("", 0.0, 0.0).few_ticks
    assert all(len(words) < 10 for _, words in axis("", 0.5, 0.5 + 1e-16).ticks)


def test_what_lies_beyond_the_frame_stands_just_outside():
    assert axis("", 0.0, 1.0).at(7.0) == 102
    assert axis("", 0.0, 1.0).at(-7.0) == -2


def test_an_axis_holds_all_values_but_not_the_widest_interval():
    values = np.array([0.0, 10.0, 5.0, np.nan])
    half = np.array([1.0, 1.0, 500.0, np.nan])
    found = around("", values, values - half, values + half)
    assert found.low < 0
    assert found.high > 10
    assert found.high - found.low < 20


def test_without_any_value_there_is_still_an_axis():
    nothing = np.full(3, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert around("", nothing, nothing, nothing).at(0.5) == 50


def test_squares_count_every_dot_once_and_the_fullest_is_darkest():
    x = axis("", 0.0, 1.0)
    found = drawing.squares(x, x, np.array([0.01, 0.011, 0.99]), np.array([0.01, 0.011, 0.99]))
    assert len(found) == 2
    assert max(square.shade for square in found) == 1
    lower = min(found, key=lambda square: square.x)
    assert lower.shade == 1
    assert lower.y + lower.side == pytest.approx(100, abs=0.01)


def test_a_padded_axis_keeps_its_ticks_at_their_values():
    found = axis("reliability", 0.0, 1.0).padded(0.05)
    assert [words for _, words in found.ticks] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [at for at, _ in found.ticks] == [found.at(value) for value in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert 0 < found.at(0.0) < found.at(1.0) < 100


def test_a_title_is_cut_before_the_unit():
    assert axis("Elo: rating points, start 1500", 0.0, 1.0).lines == ["Elo", "rating points, start 1500"]
    assert axis("reliability", 0.0, 1.0).lines == ["reliability"]


def test_names_do_not_cover_dots_or_each_other():
    crowded = [Dot(50 + i * 0.5, 50.0, "") for i in range(10)] + [Dot(10.0, 10.0, "")]
    found = labelled(crowded, [f"annotator {i}" for i in range(11)])
    assert found[10].label == "annotator 10"
    assert sum(bool(dot.label) for dot in found) <= 3
    boxes = [drawing.label_box(dot, dot.label, dot.side) for dot in found if dot.label]
    assert not any(drawing.overlap(one, other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_a_name_at_the_right_edge_stands_at_the_left_of_its_dot():
    (found,) = labelled([Dot(98.0, 50.0, "")], ["somebody"])
    assert (found.label, found.side) == ("somebody", -1)


def test_on_a_phone_the_furthest_dot_is_named_and_no_names_cover_each_other():
    rng = np.random.default_rng(5)
    names = [f"annotator{i}" for i in range(30)]
    found = labelled(
        [Dot(float(x), float(y), "") for x, y in rng.uniform(40, 60, (29, 2))] + [Dot(5.0, 95.0, "")], names
    )
    narrow = [dot for dot in found if dot.everywhere]
    assert found[29] in narrow
    assert len(narrow) < sum(bool(dot.label) for dot in found)
    for room, shown in ((drawing.NARROW, narrow), (drawing.WIDE, [dot for dot in found if dot.label])):
        boxes = [drawing.label_box(dot, dot.label, dot.side, room) for dot in shown]
        assert not any(drawing.overlap(one, other) for i, one in enumerate(boxes) for other in boxes[:i])
