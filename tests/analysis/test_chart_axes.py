"""Where values stand on the scales and axes of drawings."""

import warnings

import numpy as np

from app.analysis.chart_axes import LinearScale, axis_around_intervals, axis_with_round_ticks


def test_a_scale_maps_its_ends_to_the_ends_of_the_drawing():
    x = LinearScale(20, 60, 64, 616)
    assert (x(20), x(60), x(40)) == (64, 616, 340)
    assert [words for _, words in x.evenly_spaced_ticks()] == ["20", "30", "40", "50", "60"]


def test_a_scale_of_no_width_divides_by_nothing():
    assert LinearScale(5, 5, 64, 616)(5) == 64


def test_ticks_stand_at_round_numbers_inside_the_axis():
    assert axis_with_round_ticks("", -1.0, 1.0).ticks == (
        (0.0, "−1.0"),
        (25.0, "−0.5"),
        (50.0, "0.0"),
        (75.0, "0.5"),
        (100.0, "1.0"),
    )
    assert [words for _, words in axis_with_round_ticks("", 3.0, 97.0).ticks] == ["20", "40", "60", "80"]


def test_the_head_of_a_column_has_room_for_a_few_ticks():
    assert [words for _, words in axis_with_round_ticks("", -1.0, 1.0).at_most_four_ticks] == ["−1.0", "0.0", "1.0"]
    assert [words for _, words in axis_with_round_ticks("", 0.0, 1.0).at_most_four_ticks] == ["0.0", "1.0"]
    assert [words for _, words in axis_with_round_ticks("", -6.1, 6.2).at_most_four_ticks] == ["−5", "0", "5"]
    rng = np.random.default_rng(3)
    for low, width in zip(rng.normal(0, 10, 200), rng.lognormal(0, 3, 200), strict=True):
        assert 2 <= len(axis_with_round_ticks("", low, low + width).at_most_four_ticks) <= 4


def test_an_axis_of_no_width_is_widened():
    assert axis_with_round_ticks("", 4.0, 4.0).percent_of(4.0) == 50
    assert axis_with_round_ticks("", 1e17, 1e17).percent_of(1e17) == 50


def test_an_axis_whose_width_is_only_rounding_is_widened_too():
    assert (
        axis_with_round_ticks("", 0.0, 1e-17).at_most_four_ticks
        == axis_with_round_ticks("", 0.0, 0.0).at_most_four_ticks
    )
    assert all(len(words) < 10 for _, words in axis_with_round_ticks("", 0.5, 0.5 + 1e-16).ticks)


def test_what_lies_beyond_the_frame_stands_just_outside():
    assert axis_with_round_ticks("", 0.0, 1.0).percent_of(7.0) == 102
    assert axis_with_round_ticks("", 0.0, 1.0).percent_of(-7.0) == -2


def test_an_axis_holds_all_values_but_not_the_widest_interval():
    values = np.array([0.0, 10.0, 5.0, np.nan])
    half = np.array([1.0, 1.0, 500.0, np.nan])
    found = axis_around_intervals("", values, values - half, values + half)
    assert found.low < 0
    assert found.high > 10
    assert found.high - found.low < 20


def test_without_any_value_there_is_still_an_axis():
    nothing = np.full(3, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert axis_around_intervals("", nothing, nothing, nothing).percent_of(0.5) == 50


def test_a_padded_axis_keeps_its_ticks_at_their_values():
    found = axis_with_round_ticks("reliability", 0.0, 1.0).with_padding(0.05)
    assert [words for _, words in found.ticks] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [at for at, _ in found.ticks] == [found.percent_of(value) for value in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert 0 < found.percent_of(0.0) < found.percent_of(1.0) < 100


def test_a_title_is_cut_before_the_unit():
    assert axis_with_round_ticks("Elo: rating points, start 1500", 0.0, 1.0).title_lines == [
        "Elo",
        "rating points, start 1500",
    ]
    assert axis_with_round_ticks("reliability", 0.0, 1.0).title_lines == ["reliability"]
