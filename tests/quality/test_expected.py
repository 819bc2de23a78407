"""Expected answers in every design: an answer that is as expected meets them, another one does not."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from app.designs.best_worst import BestWorst
from app.designs.categories import Categories
from app.designs.magnitude import Magnitude
from app.designs.ordinal import Ordinal
from app.designs.pairwise import Pairwise
from app.designs.ranking import Ranking
from app.designs.registry import DESIGNS, make_design
from app.designs.slider import Slider
from app.errors import Invalid
from app.quality.check_expectations import expectation_cells, parse_expectations_or_refuse
from app.quality.expected_answers import (
    ExpectedAnswer,
    expected_answer_of_cells_or_none,
    feedback_on_check_answers,
    proposed_tolerance_cell_or_empty,
    reason_for_proposed_tolerance_or_empty,
)
from tests.toys.smiley import Smiley


@pytest.fixture(params=[*DESIGNS.values(), Smiley], ids=lambda design: design.name)
def design(request):
    return request.param()


def meets_expectations(design, expected, values):
    return all(item.met for item in feedback_on_check_answers(design, expected, values))


def expected_of(design, values):
    """Return the expectation that these values meet."""
    if design.value_kind == "order":
        return [ExpectedAnswer(place=int(value)) for value in values]
    if design.classes:
        return [ExpectedAnswer(labels=(design.classes[int(value)],)) for value in values]
    return [ExpectedAnswer(value=value) for value in values]


def test_every_answer_of_every_design_is_as_somebody_expects_who_would_give_it(design):
    for shares in np.random.default_rng(3).uniform(0.0, 1.0, (50, design.default_items)).tolist():
        values = design.simulate_answer_values(shares)
        assert meets_expectations(design, expected_of(design, values), values)


def test_in_every_design_some_answer_is_not_as_expected(design):
    low, high = (
        design.simulate_answer_values([share] * (design.default_items - 1) + [1.0 - share]) for share in (0.0, 1.0)
    )
    assert not meets_expectations(design, expected_of(design, low), high)


def test_what_cannot_be_judged_is_not_as_expected_in_any_design(design):
    values = design.simulate_answer_values(np.linspace(0.0, 1.0, design.default_items).tolist())
    told = feedback_on_check_answers(design, expected_of(design, values), [math.nan] * len(values))
    assert told
    assert all(one.unjudged and not one.met for one in told)


def test_of_an_item_of_which_nothing_is_expected_any_value_will_do():
    assert meets_expectations(Slider(), [None, ExpectedAnswer(value=80), None], [0.0, 80.0, 100.0])
    assert feedback_on_check_answers(Slider(), [None, None], [0.0, 100.0]) == []


def test_a_score_may_be_as_far_away_as_its_tolerance(subtests):
    for value, met in ((60.0, True), (80.0, True), (59.9, False), (80.1, False)):
        with subtests.test(value=value, met=met):
            assert meets_expectations(Slider(), [ExpectedAnswer(value=70, tolerance=10)], [value]) is met


def test_the_span_of_a_score_ends_with_the_scale():
    (told,) = feedback_on_check_answers(Slider(), [ExpectedAnswer(value=95)], [40.0])
    assert (told.lowest, told.highest, told.met) == (80.0, 100.0, False)


def test_the_tolerance_of_a_ratio_is_a_factor(subtests):
    for value, met in ((50.0, True), (200.0, True), (49.0, False), (201.0, False)):
        with subtests.test(value=value, met=met):
            assert meets_expectations(Magnitude(), [ExpectedAnswer(value=100)], [value]) is met


def test_one_of_several_labels_will_do():
    design = Categories(labels=("cat", "dog", "neither"))
    expected = [ExpectedAnswer(labels=("cat", "dog"))]
    assert [meets_expectations(design, expected, [value]) for value in (0.0, 1.0, 2.0)] == [True, True, False]
    (told,) = feedback_on_check_answers(design, expected, [2.0])
    assert told.labels == ["cat", "dog"]


def test_a_point_of_an_ordinal_scale_may_be_steps_away():
    design, expected = Ordinal(), [ExpectedAnswer(labels=("agree",), tolerance=1)]
    assert [meets_expectations(design, expected, [value]) for value in (1.0, 2.0, 3.0, 4.0)] == [
        False,
        True,
        True,
        True,
    ]
    assert feedback_on_check_answers(design, expected, [0.0])[0].labels == ["neutral", "agree", "strongly agree"]


def test_an_order_is_read_from_scores_too_and_a_tie_is_not_one():
    expected = [ExpectedAnswer(place=2), None, ExpectedAnswer(place=1)]
    assert meets_expectations(Slider(), expected, [10.0, 99.0, 20.0])
    assert not meets_expectations(Slider(), expected, [20.0, 99.0, 20.0])
    (told,) = feedback_on_check_answers(Slider(), expected, [20.0, 99.0, 10.0])
    assert (told.kind, told.order, told.met) == ("order", [[2], [0]], False)


def test_of_items_with_the_same_place_either_may_be_the_better_one():
    expected = [ExpectedAnswer(place=1), ExpectedAnswer(place=1), ExpectedAnswer(place=2)]
    assert meets_expectations(Ranking(), expected, [2.0, 1.0, 3.0])
    assert not meets_expectations(Ranking(), expected, [1.0, 3.0, 2.0])


def test_what_an_answer_does_not_tell_contradicts_nothing():
    expected = [ExpectedAnswer(place=place) for place in (1, 2, 3, 4)]
    assert meets_expectations(BestWorst(), expected, [1.0, 2.0, 2.0, 3.0])
    assert not meets_expectations(BestWorst(), expected, [2.0, 1.0, 2.0, 3.0])


def test_in_a_pair_the_expected_one_is_to_be_chosen():
    expected = [ExpectedAnswer(place=2), ExpectedAnswer(place=1)]
    assert [meets_expectations(Pairwise(), expected, values) for values in ([2.0, 1.0], [1.0, 2.0], [1.0, 1.0])] == [
        True,
        False,
        False,
    ]


def test_cells_of_a_table_say_what_is_expected(subtests):
    for design, cell, tolerance, expected in (
        (Slider(), "70", "", ExpectedAnswer(value=70)),
        (Slider(), " 70 ", "5", ExpectedAnswer(value=70, tolerance=5)),
        (Slider(), "70", "0", ExpectedAnswer(value=70, tolerance=0)),
        (Slider(), "#2", "", ExpectedAnswer(place=2)),
        (Slider(), "#10", "", ExpectedAnswer(place=10)),
        (Magnitude(), "150", "1.5", ExpectedAnswer(value=150, tolerance=1.5)),
        (Magnitude(), "150", "1", ExpectedAnswer(value=150, tolerance=1)),
        (Categories(labels=("a | b", "a", "b")), "a | b", "", ExpectedAnswer(labels=("a | b",))),
        (Categories(labels=("a", "b", "c")), "a | b", "", ExpectedAnswer(labels=("a", "b"))),
        (
            Categories(labels=("Very polite", "rude")),
            " very POLITE |Rude",
            "",
            ExpectedAnswer(labels=("Very polite", "rude")),
        ),
        (Categories(labels=("us", "US")), "US", "", ExpectedAnswer(labels=("US",))),
        (Ordinal(), "agree", "1", ExpectedAnswer(labels=("agree",), tolerance=1)),
        (Pairwise(), "1", "", ExpectedAnswer(place=1)),
        (Slider(), "  ", "5", None),
    ):
        with subtests.test(design=design, cell=cell, tolerance=tolerance, expected=expected):
            assert expected_answer_of_cells_or_none(design, cell, tolerance) == expected


def test_stored_expectations_are_written_as_the_cells_that_they_were_read_from(subtests):
    for design, cells in (
        (Slider(), {"expected": "70", "tolerance": ""}),
        (Slider(), {"expected": "70.123456789", "tolerance": "5"}),
        (Slider(), {"expected": "#2", "tolerance": ""}),
        (Categories(labels=("a", "b", "c")), {"expected": "a | b", "tolerance": ""}),
        (Ordinal(), {"expected": "agree", "tolerance": "1"}),
    ):
        with subtests.test(design=design, cells=cells):
            assert expectation_cells(parse_expectations_or_refuse((("", design),), cells)) == cells


def test_a_check_without_any_expected_answer_is_refused_and_names_the_columns(subtests):
    scores, choices = (("a", Slider()), ("b", Slider())), (("a", Pairwise()), ("b", Pairwise()))
    for designs, cells, words in (
        ((("", Slider()),), {}, "needs its expected answer in the column “expected”"),
        (scores, {"expected c": " "}, "an expected answer in one of the columns expected a, expected b"),
        (choices, {"expected a": "1"}, "an expected answer in each of the columns expected a, expected b"),
    ):
        with subtests.test(cells=cells), pytest.raises(Invalid, match=words) as refusal:
            parse_expectations_or_refuse(designs, cells)
        assert refusal.value.code == "expected_missing"
    assert parse_expectations_or_refuse(scores, {"expected b": "7"}) == {"criteria": {"b": {"value": 7.0}}}


def test_what_nobody_could_answer_cannot_be_expected(subtests):
    for design, cell, tolerance, code, words in (
        (Slider(), "high", "", "expected_unreadable", "“high” cannot be an expected answer: it is not a number."),
        (Slider(), "70", "a lot", "expected_unreadable", "“a lot” cannot be a tolerance: it must be a number from 0"),
        (Slider(), "70", "-1", "expected_unreadable", "“-1” cannot be a tolerance: it must be a number from 0"),
        (Ordinal(), "agree", "-1", "expected_unreadable", "“-1” cannot be a tolerance: it must be a number from 0"),
        (Slider(), "#2", "5", "expected_unreadable", "“5” cannot be a tolerance: a place has none"),
        (Slider(), "#0", "", "expected_unreadable", "a place is a whole number from 1 to 10"),
        (Slider(), "101", "", "expected_impossible", "101 is not a possible score; it must be between 0 and 100."),
        (Categories(), "perhaps", "", "expected_impossible", "“perhaps” is none of the labels yes, no, unclear."),
        (Categories(), "#1", "", "expected_impossible", "have no order, so no place"),
        (Categories(), "yes", "1", "expected_impossible", "have no order, so a tolerance is not allowed"),
        (Magnitude(), "150", "0.5", "expected_impossible", "a factor of 1 or more"),
        (Magnitude(), "0", "", "expected_impossible", "0 is not a possible value"),
    ):
        with subtests.test(design=design, cell=cell, tolerance=tolerance, code=code, words=words):
            with pytest.raises(Invalid, match=words.replace("|", r"\|")) as refusal:
                expected_answer_of_cells_or_none(design, cell, tolerance)
            assert refusal.value.code == code


def test_an_expectation_says_one_thing(subtests):
    for said in ({}, {"value": 3, "place": 1}, {"labels": ["a"], "value": 1}, {"tolerance": 3}):
        with subtests.test(said=said), pytest.raises(ValidationError, match="one of value, labels and place"):
            ExpectedAnswer.model_validate(said)


@pytest.mark.parametrize(
    ("design", "labels", "tolerance", "reason"),
    [
        ("slider", 0, "", "15 points leave room for people who use the scale a little differently."),
        ("magnitude", 0, "", "Half to twice the expected ratio leaves room for people who use numbers a little"),
        ("ordinal", 9, "1", "1 step leaves room for people who choose a neighbouring label, so one label is enough."),
        ("ordinal", 5, "1", "1 step leaves room for people who choose a neighbouring label, so one label is enough."),
        ("ordinal", 3, "", "With so few labels, only the expected one is right."),
        ("categories", 5, "", ""),
        ("pairwise", 0, "", ""),
    ],
)
def test_a_new_expected_answer_gets_a_tolerance_that_suits_its_scale(design, labels, tolerance, reason):
    settings = {"labels": [f"label {k}" for k in range(labels)]} if labels else {}
    made = make_design(design, settings)
    assert proposed_tolerance_cell_or_empty(made) == tolerance
    assert reason_for_proposed_tolerance_or_empty(made).startswith(reason)
    assert bool(reason_for_proposed_tolerance_or_empty(made)) == bool(reason)
