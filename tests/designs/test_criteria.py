"""Criteria: a criterion of a campaign reads like a campaign with another question."""

from types import SimpleNamespace

import pytest

from app.designs.answer import Form
from app.designs.criteria import (
    criterion_fields,
    criterion_forms,
    criterion_names,
    criterion_number,
    criterion_order,
    criterion_view,
    criterion_views,
    find_criterion,
    split_submission,
)
from app.designs.registry import DESIGNS, design_of
from app.errors import NotFound


def campaign(criteria=(), **settings):
    usual = {"name": "Verbs", "design": "ordinal", "design_settings": {"labels": ["a", "b", "c"]}, "seed": 4}
    labels = {"question": "How good?", "low_label": "low", "middle_label": None, "high_label": "high"}
    return SimpleNamespace(**usual | labels | {"criteria": [*criteria]} | settings)


BOTH = (
    {"name": "adequacy", "question": "How much is said?"},
    {
        "name": "fluency",
        "question": "How does it read?",
        "high_label": "well",
        "design_settings": {"labels": ["x", "y"]},
    },
)


def test_a_campaign_without_criteria_is_its_own():
    alone = campaign()
    assert criterion_views(alone) == [alone]
    assert criterion_view(alone, 0) is alone
    assert (criterion_number(alone), criterion_names(alone)) == (0, [])
    assert [(one.campaign, one.prefix) for one in criterion_forms(alone, 7)] == [(alone, "")]


def test_what_a_criterion_does_not_say_is_the_campaigns():
    first, second = criterion_views(campaign(BOTH))
    assert (first.question, first.low_label, first.high_label) == ("How much is said?", "low", "high")
    assert (second.question, second.low_label, second.high_label) == ("How does it read?", "low", "well")
    assert [criterion_number(view) for view in (first, second)] == [0, 1]
    assert [design_of(view).classes for view in (first, second)] == [["a", "b", "c"], ["x", "y"]]
    assert second.seed == 4


def test_a_criterion_is_found_by_its_name_and_the_first_without_one():
    both = campaign(BOTH)
    assert find_criterion(both, "fluency").criterion == 1
    assert find_criterion(both, None).criterion_name == find_criterion(both, "").criterion_name == "adequacy"
    assert find_criterion(campaign(), None).question == "How good?"
    for of in (both, campaign()):
        with pytest.raises(NotFound) as refused:
            find_criterion(of, "style")
        assert refused.value.code == "criterion_not_found"


def test_a_form_has_a_part_for_each_and_what_is_said_of_all_is_in_every_part():
    both = campaign(BOTH)
    fields = {
        "hit": "3",
        "score-9": "5",
        "viewport": "390x844",
        "unjudged-7": "broken",
        "c0-score-7": "1",
        "c1-score-7": "2",
        "c0-changes-7": "1",
    }
    first, second = (criterion_fields(fields, view) for view in criterion_views(both))
    of_all = {"unjudged-7": "broken", "viewport": "390x844"}
    assert first == of_all | {"score-7": "1", "changes-7": "1"}
    assert second == of_all | {"score-7": "2"}
    assert split_submission(Form(fields, "page"), both) == [Form(first, "page"), Form(second, "page")]
    assert criterion_fields(fields, campaign()) is fields


def test_what_is_asked_stands_in_the_order_of_the_annotator():
    both = campaign(BOTH)
    for annotator in range(8):
        order = criterion_order(both, annotator)
        assert sorted(order) == [0, 1]
        assert [(one.campaign.criterion, one.prefix) for one in criterion_forms(both, annotator)] == [
            (number, f"c{number}-") for number in order
        ]
    assert {tuple(criterion_order(both, annotator)) for annotator in range(8)} == {(0, 1), (1, 0)}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda design: design.name)
def test_every_design_reads_each_of_two_criteria_as_it_reads_one_question(design):
    items = [7, 3, 5, 12, 4, 9, 1, 8, 6, 2][: design.default_items]
    both = campaign((*BOTH[:1], {"name": "style", "question": "How is its style?"}), design=design.name)
    both.design_settings = {}
    for view, part in zip(criterion_views(both), split_submission(Form({}, "form"), both), strict=True):
        asked = design_of(view)
        assert asked == design()
        assert asked.parse_answer(part, items).values == {}
