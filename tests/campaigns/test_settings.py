"""The prior of a campaign: as many numbers as its law takes, and the two settings that it was before."""

import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings

TWO_CRITERIA = [{"name": name, "question": f"Which one has better {name}?"} for name in ("fluency", "adequacy")]


def settings(**more):
    return CampaignSettings.model_validate({"name": "Verbs", "question": "How?"} | more)


def test_without_a_prior_it_is_left_to_the_update_law():
    assert settings().prior is None
    assert settings(update_law="trueskill").prior is None


@pytest.mark.parametrize("given", [[2, 3], "2, 3", " 2,3.0 "])
def test_a_prior_is_a_list_of_numbers_or_a_text_of_them(given):
    assert settings(prior=given).prior == [2.0, 3.0]


@pytest.mark.parametrize("given", [None, "", " "])
def test_an_empty_prior_is_none(given):
    assert settings(prior=given).prior is None


def test_a_prior_that_the_law_cannot_have_is_refused(subtests):
    for given in ([1], [1, 1, 1], [0, 1], [1, -1]):
        with (
            subtests.test(given=given),
            pytest.raises(ValidationError, match="not possible with the update law easl"),
        ):
            settings(prior=given)


def test_what_is_no_list_of_numbers_is_refused_at_the_prior(subtests):
    for given in ("1, x", "1 1", [float("nan"), 1], [1, float("inf")], [], 5):
        with subtests.test(given=given):
            with pytest.raises(ValidationError) as problem:
                settings(prior=given)
            assert {error["loc"][0] for error in problem.value.errors()} == {"prior"}


def test_the_two_former_settings_are_the_prior():
    assert settings(prior_a=2, prior_b=3).prior == [2.0, 3.0]


def test_of_the_two_former_settings_one_may_be_named_alone():
    assert settings(prior_a=2).prior == [2.0, 1.0]
    assert settings(update_law="trueskill", prior_b=0.5).prior == [0.5, 0.5]


def test_the_two_former_settings_change_a_prior_that_was_there():
    before = settings(prior=[2, 3]).model_dump()
    assert CampaignSettings.model_validate(before | {"prior_a": 5, "prior_b": 6}).prior == [5.0, 6.0]
    assert CampaignSettings.model_validate(before | {"prior_b": 6}).prior == [2.0, 6.0]
    assert CampaignSettings.model_validate(settings().model_dump() | {"prior_a": 5, "prior_b": 6}).prior == [5.0, 6.0]


@pytest.mark.parametrize("given", [{"prior_a": "x"}, {"prior_a": None}, {"prior_a": 2, "prior": 5, "prior_b": []}])
def test_former_settings_that_are_no_numbers_are_refused_at_the_prior(given):
    with pytest.raises(ValidationError) as problem:
        settings(**given)
    assert {error["loc"][0] for error in problem.value.errors()} == {"prior"}


def test_former_settings_of_an_unknown_law_are_refused_for_the_law():
    with pytest.raises(ValidationError) as problem:
        settings(update_law="none", prior_a=1, prior_b=1)
    assert {error["loc"][:1] for error in problem.value.errors()} == {("update_law",)}


@pytest.mark.parametrize("rule", ["entropy", "information"])
def test_rules_that_read_labels_need_a_law_that_counts_them(rule):
    assert settings(design="categories", rule=rule).rule == rule
    with pytest.raises(ValidationError, match="only the update law dirichlet keeps") as problem:
        settings(design="rating", rule=rule)
    assert [error["loc"] for error in problem.value.errors()] == [("rule",)]
    with pytest.raises(ValidationError, match="one task at a time") as problem:
        settings(design="categories", rule=rule, selection="iterations")
    assert [error["loc"] for error in problem.value.errors()] == [("selection",)]


def test_the_rule_for_comparisons_needs_a_law_that_reads_orders():
    for design in ("pairwise", "ranking", "best_worst"):
        assert settings(design=design, rule="pairs").rule == "pairs"
    assert settings(design="slider", update_law="trueskill", rule="pairs").rule == "pairs"
    for more, field, words in (
        ({"design": "slider"}, "rule", "for comparisons: choose the update law ra or trueskill"),
        ({"design": "categories"}, "rule", "for comparisons: choose the update law ra or trueskill"),
        ({"design": "pairwise", "selection": "iterations"}, "selection", "one task at a time"),
        ({"design": "pairwise", "criteria": TWO_CRITERIA}, "rule", "reads the answers to one question"),
    ):
        with pytest.raises(ValidationError, match=words) as problem:
            settings(**{"rule": "pairs"} | more)
        assert [error["loc"] for error in problem.value.errors()] == [(field,)]


def test_implied_pairs_can_be_skipped_where_any_two_items_are_compared():
    assert settings(design="pairwise").implied_asked_percent is None
    assert settings(design="pairwise", implied_asked_percent=10).implied_asked_percent == 10


def test_where_nothing_can_be_implied_that_is_refused(subtests):
    for more, words in (
        ({"design": "slider"}, "only if any two items may be compared"),
        ({"design": "ranking"}, "only if any two items may be compared"),
        ({"design": "baseline"}, "only if any two items may be compared"),
        ({"selection": "iterations"}, "use streaming"),
        ({"repeat_items": False}, "Show items again"),
        ({"implied_asked_percent": 0}, "greater than or equal to 1"),
        ({"implied_asked_percent": 101}, "less than or equal to 100"),
    ):
        with subtests.test(more=more, words=words):
            with pytest.raises(ValidationError, match=words) as problem:
                settings(**({"design": "pairwise", "implied_asked_percent": 10} | more))
            assert [error["loc"] for error in problem.value.errors()] == [("implied_asked_percent",)]
