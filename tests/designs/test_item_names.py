"""Item ids come from position on a page; pages and drafts from before an upgrade, which name them by number, count."""

from hypothesis import given
from hypothesis import strategies as st

from app.designs.answer import Form
from app.designs.best_worst import BestWorst
from app.designs.item_names import (
    item_names,
    item_number_of_page_name_or_none,
    rename_draft_items_to_positions,
    rename_form_items_to_positions,
)
from app.designs.pairwise import Pairwise
from app.designs.remarks import Remark
from app.designs.slider import Slider

HIT = [12, 0, 3, 7, 1]
FIELDS = ("score-", "c0-score-", "first_touch_ms-", "unjudged-", "comment-", "flag-")


def read(fields, design=None, items=HIT):
    return (design or Slider()).parse_answer(Form(fields, "page"), items)


def test_names_are_positions_in_two_digits():
    assert [str(name) for name in item_names(3)] == ["00", "01", "02"]


def test_a_form_by_position_reads_as_an_answer_by_number():
    fields = {f"score-0{place}": str(10 * place) for place in range(5)}
    fields |= {"changes-02": "4", "unjudged-01": "broken", "comment-04": "Hm.", "flag-hit": "wrong"}
    answer = read(fields)
    assert answer.values == {12: 0.0, 3: 20.0, 7: 30.0, 1: 40.0}
    assert {item: touch.changes for item, touch in answer.touches.items()} == {3: 4}
    assert answer.unjudged == {0: "broken"}
    assert answer.remarks == {"1": Remark("Hm."), "hit": Remark(flag="wrong")}


def test_a_form_of_a_page_from_before_an_upgrade_reads_the_same():
    old = read({f"score-{item}": str(item) for item in HIT} | {"changes-7": "2", "comment-12": "Hm.", "token": "9"})
    assert old.values == {12: 12.0, 0: 0.0, 3: 3.0, 7: 7.0, 1: 1.0}
    assert old.touches[7].changes == 2
    assert old.remarks == {"12": Remark("Hm.")}


def test_choices_name_items_by_position_and_by_number_from_before_an_upgrade():
    assert read({"preferred": "01"}, Pairwise(), [1, 0]).values == {1: 2.0, 0: 1.0}
    assert read({"preferred": "1"}, Pairwise(), [1, 0]).values == {1: 1.0, 0: 2.0}
    assert read({"best": "00", "worst": "03"}, BestWorst(), [3, 2, 1, 0]).values == {3: 1, 2: 2, 1: 2, 0: 3}
    assert read({"best": "0", "worst": " 3 "}, BestWorst(), [3, 2, 1, 0]).values == {3: 3, 2: 2, 1: 2, 0: 1}


@given(st.permutations(range(9)), st.sampled_from(FIELDS), st.sets(st.integers(0, 4)))
def test_no_page_of_today_is_taken_for_an_earlier_one(items, field, places):
    hit = items[:5]
    today = {f"{field}0{place}": "x" for place in places} | {"token": "1", "hit": "3"}
    earlier = {f"{field}{hit[place]}": "x" for place in places} | {"token": "1", "hit": "3"}
    assert rename_form_items_to_positions(today, hit) == today
    assert rename_form_items_to_positions(earlier, hit) == today


def test_a_draft_from_before_an_upgrade_is_shown_at_its_items(subtests):
    for saved, shown in (
        ({"12": {"score": 4}, "7": {"score": 3}}, {"00": {"score": 4}, "03": {"score": 3}}),
        ({"c1-12": {"score": 4}}, {"c1-00": {"score": 4}}),
        ({"score-3": {"value": "12"}}, {"score-02": {"value": "12"}}),
        ({"c0-preferred": {"value": "1"}}, {"c0-preferred": {"value": "04"}}),
        ({"preferred": {"value": "tie"}}, {"preferred": {"value": "tie"}}),
        ({"flag-hit": {"value": "1"}}, {"flag-hit": {"value": "1"}}),
        ({"comment-0": {"value": "3"}}, {"comment-01": {"value": "3"}}),
        ({"02": {"score": 4}}, {"02": {"score": 4}}),
        ({"99": {"score": 4}}, {"99": {"score": 4}}),
        ({}, {}),
    ):
        with subtests.test(saved=saved, shown=shown):
            assert rename_draft_items_to_positions(saved, HIT) == shown


def test_an_item_is_found_by_its_name_and_by_its_number_from_before_an_upgrade():
    assert [item_number_of_page_name_or_none(name, HIT) for name in ("00", "04", "12")] == [12, 1, 12]
    assert [item_number_of_page_name_or_none(name, HIT) for name in ("05", "4", "", "\u0663")] == [None] * 4
