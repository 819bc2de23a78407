from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from app.dashboard.drawings import (
    DRAWING_BOTTOM,
    DRAWING_LEFT,
    DRAWING_RIGHT,
    DRAWING_TOP,
    bar_chart_drawing,
    pace_drawing,
    score_distribution_drawing,
    typical_interval_curve_drawing,
    vertical_scale_and_ticks,
)
from app.designs.unit import POINTS_UNIT, RATIO_UNIT
from app.http.templating import english_environment


def test_the_highest_bar_reaches_the_top_and_all_stand_on_the_axis():
    figure = bar_chart_drawing("t", "x", "y", [], [1.25, 5])
    (_, low_y, width, low), (second_x, high_y, _, high) = figure.bars
    assert (high_y, high) == (DRAWING_TOP, DRAWING_BOTTOM - DRAWING_TOP)
    assert low == pytest.approx(high / 4)
    assert low_y + low == DRAWING_BOTTOM
    assert second_x == DRAWING_LEFT + (DRAWING_RIGHT - DRAWING_LEFT) / 2 == DRAWING_LEFT + width + 1


def test_upright_axes_have_round_ticks(subtests):
    for highest, ticks in (
        (47, ["0", "10", "20", "30", "40", "50"]),
        (1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0.0271, ["0", "0.01", "0.02", "0.03"]),
        (9, ["0", "2", "4", "6", "8", "10"]),
        (0, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ):
        with subtests.test(highest=highest, ticks=ticks):
            y, marks = vertical_scale_and_ticks(highest)
            assert [words for _, words in marks] == ticks
            assert y(highest) >= DRAWING_TOP


def test_bars_of_nothing_lie_on_the_axis():
    assert [height for *_, height in bar_chart_drawing("t", "x", "y", [], [0, 0]).bars] == [0, 0]


def test_times_of_a_drawing_are_utc_and_say_so():
    figure = pace_drawing({"pace": {"start": 1767603600, "minutes": 60, "bars": [3, 1, 2, 1]}})
    assert "UTC, from 2026-01-05 09:00" in figure.x_title
    assert figure.x_ticks[0][1] == "09:00"


def test_the_curve_of_uncertainty_starts_at_the_left_and_ends_with_the_newest_answer():
    figure = typical_interval_curve_drawing(
        {"uncertainty": {"points": [[0, 50.0], [20, 25.0], [30, 20.0]], "changes": []}}, POINTS_UNIT
    )
    (first_x, first_y), *_, (last_x, last_y) = figure.curve
    assert (first_x, last_x) == (DRAWING_LEFT, DRAWING_RIGHT)
    assert DRAWING_TOP == first_y < last_y < DRAWING_BOTTOM


def test_without_answers_the_curve_is_its_first_point():
    assert (
        typical_interval_curve_drawing({"uncertainty": {"points": [[0, 56.6]], "changes": []}}, POINTS_UNIT).curve[0][0]
        == DRAWING_LEFT
    )


def test_a_factor_that_nobody_knows_yet_leaves_an_empty_drawing():
    assert typical_interval_curve_drawing({"uncertainty": {"points": [], "changes": []}}, RATIO_UNIT).curve == [
        (DRAWING_LEFT, DRAWING_BOTTOM)
    ]


def test_ratios_stand_on_their_axis_at_round_numbers_with_one_in_the_middle():
    figure = score_distribution_drawing({"histogram": {"low": 0.0, "high": 100.0, "counts": [1, 2]}}, RATIO_UNIT)
    assert figure.x_title == "ratio to the reference"
    assert ((DRAWING_LEFT + DRAWING_RIGHT) / 2, "1") in figure.x_ticks


def test_drawings_are_xml_whatever_words_they_hold():
    histogram = {"low": 0.0, "high": 100.0, "counts": [1, 2]}
    figure = score_distribution_drawing({"histogram": histogram}, replace(POINTS_UNIT, axis_title="mode <&>"))
    drawn = ET.fromstring(english_environment.get_template("admin/_dashboard_figure.xml").render(figure=figure))
    assert any("mode <&>" in (element.text or "") for element in drawn.iter())
