"""Criteria: several questions about the same items, each with its own labels."""

import pytest

from app.designs.answer import Form
from app.designs.criteria import submission_of_each_criterion_or_refuse
from app.designs.registry import DESIGNS
from app.errors import NotFound
from tests.unsaved import unsaved


def campaign(criteria=(), **settings):
    usual = {"design": "ordinal", "design_settings": {"labels": ["a", "b", "c"]}, "seed": 4}
    return unsaved(**usual | {"criteria": [*criteria]} | settings)


BOTH = (
    {"name": "adequacy", "question": "How much is said?"},
    {
        "name": "fluency",
        "question": "How does it read?",
        "high_label": "well",
        "design_settings": {"labels": ["x", "y"]},
    },
)


def test_a_campaign_without_criteria_has_one_without_a_name():
    alone = campaign()
    (criterion,) = alone.criteria
    assert (criterion.campaign, criterion.number, criterion.name, criterion.field_prefix) == (alone, 0, "", "")
    assert (criterion.question, criterion.low_label, criterion.design) == ("How good?", "low", alone.design)
    assert (alone.has_criteria, alone.criterion_names) == (False, [])
    assert alone.shuffled_criteria_for_annotator(7) == [criterion]


def test_what_a_criterion_does_not_say_is_the_campaigns():
    first, second = campaign(BOTH).criteria
    assert (first.question, first.low_label, first.high_label) == ("How much is said?", "low", "high")
    assert (second.question, second.low_label, second.high_label) == ("How does it read?", "low", "well")
    assert [criterion.number for criterion in (first, second)] == [0, 1]
    assert [criterion.design.classes for criterion in (first, second)] == [["a", "b", "c"], ["x", "y"]]
    assert second.campaign.seed == 4


def test_a_criterion_is_found_by_its_name_and_the_first_without_one():
    both = campaign(BOTH)
    assert both.find_criterion_or_refuse("fluency").number == 1
    assert both.find_criterion_or_refuse(None).name == both.find_criterion_or_refuse("").name == "adequacy"
    assert campaign().find_criterion_or_refuse(None).question == "How good?"
    for of in (both, campaign()):
        with pytest.raises(NotFound) as refused:
            of.find_criterion_or_refuse("style")
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
    first, second = (view.own_unprefixed_and_shared_fields(fields) for view in both.criteria)
    of_all = {"unjudged-7": "broken", "viewport": "390x844"}
    assert first == of_all | {"score-7": "1", "changes-7": "1"}
    assert second == of_all | {"score-7": "2"}
    assert submission_of_each_criterion_or_refuse(Form(fields, "page"), both) == [
        Form(first, "page"),
        Form(second, "page"),
    ]
    assert campaign().criteria[0].own_unprefixed_and_shared_fields(fields) is fields


def test_what_is_asked_stands_in_the_order_of_the_annotator():
    both = campaign(BOTH)
    orders = [
        tuple(criterion.number for criterion in both.shuffled_criteria_for_annotator(annotator))
        for annotator in range(8)
    ]
    assert {*orders} == {(0, 1), (1, 0)}
    assert orders == [
        tuple(one.number for one in campaign(BOTH).shuffled_criteria_for_annotator(who)) for who in range(8)
    ]
    assert [one.field_prefix for one in both.criteria] == ["c0-", "c1-"]


@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda design: design.name)
def test_every_design_reads_each_of_two_criteria_as_it_reads_one_question(design):
    items = [7, 3, 5, 12, 4, 9, 1, 8, 6, 2][: design.default_items]
    criteria = (*BOTH[:1], {"name": "style", "question": "How is its style?"})
    both = campaign(criteria, design=design.name, design_settings={})
    for view, part in zip(both.criteria, submission_of_each_criterion_or_refuse(Form({}, "form"), both), strict=True):
        asked = view.design
        assert asked == design()
        assert asked.parse_answer(part, items).values == {}
