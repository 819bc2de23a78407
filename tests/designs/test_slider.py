import pytest

from app.designs.answer import Answer, Form, Touch, telemetry_of_answers_json_or_none
from app.designs.scale import competition_ranks_best_first
from app.designs.slider import Slider
from app.errors import Invalid

SLIDER = Slider()


def read(form, items=(1, 2)):
    return SLIDER.parse_answer(Form(form, "form"), items)


def test_a_form_reads_as_scores_and_touches():
    form = {
        "score-7": "71", "first_touch_ms-7": "1250", "changes-7": "3", "input_kind-7": "touch",
        "score-2": " 0 ", "viewport": "390x844", "token": "t", "hit": "1",
    }  # fmt: skip
    answer = read(form, [7, 2])
    assert answer.values == {7: 71.0, 2: 0.0}
    assert answer.touches == {7: Touch(1250, 3, "touch")}
    assert (answer.viewport, answer.source) == ("390x844", "form")


def test_an_empty_score_counts_as_not_given():
    assert read({"score-1": "", "score-2": "5"}).values == {2: 5.0}


def test_a_score_may_be_written_as_any_decimal(subtests):
    for text, value in (("5", 5.0), ("05.50", 5.5), ("+.5", 0.5), ("5.", 5.0), ("1e1", 10.0)):
        with subtests.test(text=text, value=value):
            assert read({"score-1": text}).values == {1: value}


def test_minus_zero_is_zero():
    assert [
        str(score) for score in SLIDER.checked_values_in_item_order_or_refuse(Answer({1: -0.0, 2: 5.0}), [1, 2])
    ] == [
        "0.0",
        "5.0",
    ]


def test_telemetry_that_does_not_parse_costs_nobody_an_answer(subtests):
    for broken in ("-1", "1e99", "soon", "", "99999999999", "1_0", "٣", "9" * 30):
        with subtests.test(broken=broken):
            answer = read({"score-1": "5", "first_touch_ms-1": broken, "input_kind-1": "telepathy"})
            assert telemetry_of_answers_json_or_none([answer], [1]) is None


def test_a_form_that_makes_no_sense_is_refused(subtests):
    for form, code in (
        ({"score-1": "many"}, "score_not_a_number"),
        ({"score-1": "1_0"}, "score_not_a_number"),
        ({"score-1": "٣"}, "score_not_a_number"),
        ({"score-1": "nan"}, "score_not_a_number"),
        ({"score-1": "inf"}, "score_not_a_number"),
        ({"score-1": "."}, "score_not_a_number"),
        ({"score-٣": "1"}, "scores_unknown"),
        ({"score-1_0": "1"}, "scores_unknown"),
        ({"score-one": "1"}, "scores_unknown"),
        ({"score--1": "1"}, "scores_unknown"),
    ):
        with subtests.test(form=form, code=code):
            with pytest.raises(Invalid) as refusal:
                read(form)
            assert refusal.value.code == code


def test_scores_come_in_the_order_of_the_hit():
    assert SLIDER.checked_values_in_item_order_or_refuse(Answer({1: 10.0, 2: 20.0}), [2, 1]) == [20.0, 10.0]


def test_what_is_missing_is_named_by_its_place():
    with pytest.raises(Invalid, match="1, 3 of 3") as refusal:
        SLIDER.checked_values_in_item_order_or_refuse(Answer({5: 10.0}), [4, 5, 6])
    assert refusal.value.details == {"missing": [1, 3]}


def test_equal_scores_share_a_rank_and_the_next_is_skipped():
    assert competition_ranks_best_first([71, 93, 17, 71]) == [2, 1, 4, 2]
