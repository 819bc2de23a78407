"""Ranking: places in any numbers are an order, ties are allowed or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.designs.answer import Answer, Form, Touch
from app.designs.ranking import Ranking
from app.errors import Invalid
from tests.unsaved import unsaved

ITEMS = [7, 3, 12]
TIES, STRICT = Ranking(), Ranking(ties_allowed=False)


def values(form, design=TIES, items=ITEMS):
    return design.checked_values_in_item_order_or_refuse(design.parse_answer(Form(form, "form"), items), items)


def outcome(form, design):
    """Return the values that are stored of a form, or its refusal."""
    try:
        return values(form, design)
    except Invalid as refusal:
        return refusal


def fields(*places):
    return {f"score-{item}": str(place) for item, place in zip(ITEMS, places, strict=True)}


def test_a_form_reads_as_places_and_how_they_came_about():
    answer = TIES.parse_answer(Form(fields(2, 1, 3) | {"changes-3": "2", "input_kind-3": "keyboard"}, "page"), ITEMS)
    assert answer.values == {7: 2.0, 3: 1.0, 12: 3.0}
    assert answer.touches == {3: Touch(None, 2, "keyboard")}


def test_places_are_stored_as_competition_ranks(subtests):
    for entered, stored in (
        ((2, 1, 3), [2.0, 1.0, 3.0]),
        ((1, 1, 2), [1.0, 1.0, 3.0]),
        ((2, 2, 2), [1.0, 1.0, 1.0]),
        ((3, 1, 3), [2.0, 1.0, 2.0]),
    ):
        with subtests.test(entered=entered, stored=stored):
            assert values(fields(*entered)) == stored


def test_equal_places_are_refused_where_ties_are_not_allowed():
    with pytest.raises(Invalid) as refusal:
        values(fields(1, 1, 2), STRICT)
    assert refusal.value.code == "answer_impossible"
    assert "What you entered is kept." in str(refusal.value)
    assert values(fields(3, 1, 2), STRICT) == [3.0, 1.0, 2.0]


def test_what_has_no_place_is_named():
    with pytest.raises(Invalid, match="Not all items have a place yet: 2 of 3") as refusal:
        values(fields(1, "", 2))
    assert (refusal.value.code, refusal.value.details) == ("scores_missing", {"missing": [2]})


def test_a_place_is_a_whole_number_from_1(subtests):
    for place, code in (
        ("0", "score_out_of_range"),
        ("1.5", "score_out_of_range"),
        ("11", "score_out_of_range"),
        ("-1", "score_out_of_range"),
        ("first", "score_not_a_number"),
    ):
        with subtests.test(place=place, code=code):
            with pytest.raises(Invalid) as refusal:
                values(fields(place, 1, 2))
            assert refusal.value.code == code


CODES = ("scores_missing", "scores_unknown", "score_out_of_range", "score_not_a_number", "answer_impossible")
NUMBERS = st.text(max_size=3) | st.integers(-1, 12).map(str) | st.sampled_from(["1e0", " 2 ", "0x1", "nan"])
FORMS = st.dictionaries(st.sampled_from(["score-7", "score-3", "score-12", "score-5", "score-", "best"]), NUMBERS)


@given(FORMS, st.booleans())
def test_whatever_a_browser_sends_is_an_order_or_refused_with_a_code(form, ties_allowed):
    design = Ranking(ties_allowed=ties_allowed)
    found = outcome(form, design)
    if isinstance(found, Invalid):
        assert found.code in CODES
    else:
        assert found == [1.0 + sum(other < place for other in found) for place in found]
        assert ties_allowed or sorted(found) == [1.0, 2.0, 3.0]
        assert values({f"score-{i}": f"{v:g}" for i, v in zip(ITEMS, found, strict=True)}, design) == found


def test_annotators_are_told_of_ties_where_there_may_be_some():
    assert "equal ones may share a place" in TIES.task_message_for_first_page(unsaved())
    assert "equal" not in STRICT.task_message_for_first_page(unsaved())


def test_a_program_may_send_any_places():
    assert TIES.checked_values_in_item_order_or_refuse(Answer({7: 10, 3: 4, 12: 4}), ITEMS) == [3.0, 1.0, 1.0]
