import numpy as np
import pytest

from app.designs.best_worst import BestWorst
from app.designs.categories import Categories
from app.designs.magnitude import Magnitude
from app.designs.pairwise import Pairwise
from app.designs.ranking import Ranking
from app.designs.registry import DESIGNS
from app.designs.slider import Slider
from app.designs.unit import PERCENT_BEATEN_UNIT, POINTS_UNIT, RATIO_UNIT
from app.inference.online.laws import ONLINE_LAWS


def test_an_answer_is_told_as_it_was_given(subtests):
    for design, values, said in (
        (Slider(), [71.0, 20.5], ["71", "20.5"]),
        (Categories(), [0.0, 2.0], ["yes", "unclear"]),
        (Magnitude(), [1000.0, 50.0], ["1,000, 10 × the reference", "50, 0.5 × the reference"]),
        (Pairwise(), [2.0, 1.0], ["not chosen, left", "chosen, right"]),
        (Pairwise(), [1.0, 1.0], ["tie", "tie"]),
        (Ranking(), [3.0, 1.0, 1.0, 4.0], ["3rd of 4", "1st of 4, tied", "1st of 4, tied", "4th of 4"]),
        (BestWorst(), [2.0, 1.0, 3.0, 2.0], ["neither", "best", "worst", "neither"]),
    ):
        with subtests.test(design=design, values=values, said=said):
            assert [design.format_value_at_position(values, place) for place in range(len(values))] == said


def test_scores_from_an_order_alone_never_share_an_axis_with_means(subtests):
    for law in ONLINE_LAWS.values():
        for design in DESIGNS.values():
            with subtests.test(law=law, design=design):
                made = design()
                assert made.has_same_unit_as_scores_of(law) == (made.is_ordered and law.reads in ("points", "ratio"))


def test_a_ratio_stands_at_its_share_of_the_axis_and_is_written_in_three_digits():
    assert [RATIO_UNIT.format_value(place) for place in (50.0, 100 * 10 / 11, 100 / 3)] == ["1.00", "10.0", "0.500"]
    assert [RATIO_UNIT.format_value(100.0 * ratio / (1.0 + ratio)) for ratio in (123.4, 1234.5)] == ["123", "1,230"]
    assert RATIO_UNIT.format_number_at_place_rounded(80.0) == "4.0"
    assert RATIO_UNIT.shares_to_unit_values(np.array([0.5, 0.75])) == pytest.approx([1.0, 3.0])
    assert (50.0, "1") in RATIO_UNIT.ticks


def test_a_typical_interval_is_points_a_share_or_a_factor_and_nothing_where_it_is_the_whole_scale():
    assert [unit.half_width_text_or_empty(10.0) for unit in (POINTS_UNIT, PERCENT_BEATEN_UNIT, RATIO_UNIT)] == [
        "± 10.0 points",
        "± 10.0 %",
        "×/÷ 1.50",
    ]
    assert {unit.half_width_text_or_empty(50.0) for unit in (POINTS_UNIT, PERCENT_BEATEN_UNIT, RATIO_UNIT)} == {
        "not known yet"
    }


def test_ends_of_intervals_near_zero_have_no_sign():
    assert POINTS_UNIT.format_number_at_place_rounded(-0.3) == "0"
