"""Chances of people who guess: to meet a check, and to be flagged by the rule on agreement."""

from dataclasses import replace

import numpy as np
import pytest

from app.designs.ordinal import Ordinal
from app.designs.registry import DESIGNS
from app.quality.caught_guessers import probabilities_of_being_flagged, share_of_guessers_flagged
from app.quality.check_expectations import criterion_designs
from app.quality.expected_answers import ExpectedAnswer
from app.quality.guess_chances import (
    chance_that_guess_is_accepted,
    chance_that_guess_meets_check,
    chance_that_guess_meets_order,
)
from app.quality.guesser_reach import sentence_on_judgments_until_guessers_are_flagged_or_empty
from app.quality.rule import RuleAssessment
from app.quality.sequential_limits import (
    ends_of_sequential_correlation_interval,
    ends_of_sequential_share_interval,
    is_event_share_above_limit,
)
from app.quality.share_of_cases import text_on_share_of_cases
from app.quality.workload import (
    AnnotatorWorkload,
    distribution_of_checks_met,
    largest_workload_of_one_annotator,
)
from tests.annotation.hits.criteria import criteria_settings
from tests.unsaved import unsaved

LABELS = ("very negative", "negative", "neutral", "positive", "very positive")


@pytest.mark.parametrize(
    ("design", "expected", "chance"),
    [
        (Ordinal(labels=LABELS), ExpectedAnswer(labels=("very positive",)), 1 / 5),
        (Ordinal(labels=LABELS), ExpectedAnswer(labels=("very positive",), tolerance=1), 2 / 5),
        (Ordinal(labels=LABELS), ExpectedAnswer(labels=("negative", "neutral")), 2 / 5),
        (DESIGNS["slider"](), ExpectedAnswer(value=50), 0.3),
        (DESIGNS["slider"](), ExpectedAnswer(value=100, tolerance=10), 0.1),
        (DESIGNS["magnitude"](), ExpectedAnswer(value=2), 0.5),
    ],
)
def test_a_guess_is_accepted_as_often_as_the_accepted_part_of_the_scale_is_long(design, expected, chance):
    assert chance_that_guess_is_accepted(design, expected) == pytest.approx(chance)


def test_a_guess_has_to_meet_what_is_expected_by_every_criterion():
    campaign = unsaved(criteria=criteria_settings(2))
    names = campaign.criterion_names
    expected = {"criteria": {names[0]: {"value": 50.0}, names[1]: {"value": 100.0, "tolerance": 10.0}}}
    assert chance_that_guess_meets_check(criterion_designs(campaign), expected) == pytest.approx(0.03)


def test_a_random_order_is_as_expected_as_often_as_chance_puts_the_better_ones_first():
    designs = (("", DESIGNS["ranking"]()),)
    for places, chance in (((1, 2), 1 / 2), ((1, 2, 2), 1 / 3), ((1, 2, 3), 1 / 6), ((1, 1), 1.0)):
        stored = [{"place": place} for place in places]
        assert chance_that_guess_meets_order(designs, stored) == pytest.approx(chance), places


def test_the_interval_of_a_share_has_the_shares_that_neither_test_excludes():
    low, high = ends_of_sequential_share_interval(30, 40, 0.01)
    assert is_event_share_above_limit(30, 40, low - 0.001, 0.005)
    assert not is_event_share_above_limit(30, 40, low + 0.001, 0.005)
    assert is_event_share_above_limit(10, 40, 1 - high - 0.001, 0.005)
    assert low < 0.75 < high
    assert ends_of_sequential_share_interval(0, 0, 0.01) == (0.0, 1.0)
    assert ends_of_sequential_share_interval(0, 40, 0.01)[0] == 0.0


def assessed(usual):
    return {7: {"agreement": RuleAssessment("unknown", "", {"usual": usual})}}


def test_the_page_says_after_how_many_judgments_people_who_guess_are_flagged_with_this_limit():
    campaign = unsaved(design="slider", hits_per_annotator=12, items_per_hit=5)
    workload = largest_workload_of_one_annotator(campaign, 100, {})
    sentence = sentence_on_judgments_until_guessers_are_flagged_or_empty(campaign, workload, assessed(0.9))
    assert sentence == (
        "With the usual agreement of 0.90, half of the people who guess are flagged by 66 judgments, 9 of 10 by 115. "
        "One person gives at most 60 here, so the rule flags about 4 of 10 such people."
    )
    short_visit = largest_workload_of_one_annotator(
        unsaved(design="slider", hits_per_annotator=4, items_per_hit=5), 100, {}
    )
    rarely = sentence_on_judgments_until_guessers_are_flagged_or_empty(campaign, short_visit, assessed(0.9))
    assert rarely.endswith("One person gives at most 20 here, so the rule flags hardly any such people.")
    ends = [ends_of_sequential_correlation_interval(0.0, judgments, 0.004)[1] for judgments in (65, 66)]
    assert ends[0] >= 0.45 > ends[1]
    unknown = sentence_on_judgments_until_guessers_are_flagged_or_empty(campaign, workload, {})
    assert unknown.startswith("If the usual agreement is 0.80, half of the people")
    low = sentence_on_judgments_until_guessers_are_flagged_or_empty(campaign, workload, assessed(0.05))
    assert low.endswith("people who guess cannot be told from the others.")


def test_the_page_says_more_than_ten_thousand_where_no_number_of_judgments_that_it_tries_is_enough():
    workload = largest_workload_of_one_annotator(unsaved(), 100, {})
    endings = [
        sentence_on_judgments_until_guessers_are_flagged_or_empty(
            unsaved(quality_rules=[f"agreement.share_percent: {percent}"]), workload, assessed(0.1)
        ).partition("0.10, ")[2]
        for percent in (50, 1)
    ]
    assert endings == [
        "half of the people who guess are flagged by 7,260 judgments, 9 of 10 only after more than 10,000.",
        "half of the people who guess are flagged only after more than 10,000 judgments.",
    ]


def test_nothing_is_promised_where_the_rule_is_off_or_reads_labels_without_an_order():
    for settings in ({"quality_preset": "off"}, {"design": "categories"}):
        campaign = unsaved(**settings)
        workload = largest_workload_of_one_annotator(campaign, 100, {})
        assert not sentence_on_judgments_until_guessers_are_flagged_or_empty(campaign, workload, {})


def test_half_of_the_people_who_guess_are_flagged_by_the_number_that_the_page_says():
    rng, agreed = np.random.default_rng(3), 0
    truth = rng.random(66)
    for _ in range(400):
        guessed = np.corrcoef(rng.random(66), truth)[0, 1]
        agreed += ends_of_sequential_correlation_interval(float(guessed), 66, 0.004)[1] < 0.45
    assert 160 <= agreed <= 260


def test_who_guesses_is_caught_as_often_as_chance_lets_them_fail_enough():
    one_of_five = probabilities_of_being_flagged(3, 0.6, 0.05, 0.002)
    assert one_of_five.tolist() == pytest.approx([0.0, 0.0, 0.0, 0.6**3])
    assert probabilities_of_being_flagged(4, 1.0, 0.2, 0.002)[-1] == 0.0
    assert probabilities_of_being_flagged(5, 1.0, 0.2, 0.002)[-1] == 1.0
    shares = (0.001, 0.125, 0.216, 0.296, 0.5, 0.71, 0.99)
    assert [text_on_share_of_cases(share) for share in shares] == [
        "hardly ever",
        "in about 1 of 8 cases",
        "in about 1 of 5 cases",
        "in about 3 of 10 cases",
        "in about 5 of 10 cases",
        "in about 7 of 10 cases",
        "nearly always",
    ]


def test_the_number_of_gold_items_that_are_met_decides_how_many_guessers_are_caught():
    strict = unsaved(quality_rules=["gold.careful_percent: 5"], checks_percent=25, items_per_hit=5)
    fixed = AnnotatorWorkload(12, 5, {"gold": 3}, 25.0, is_visit_fixed=True)
    assert share_of_guessers_flagged(strict, fixed, "gold", 0.4) == pytest.approx(0.216)
    by_chance = share_of_guessers_flagged(strict, replace(fixed, is_visit_fixed=False), "gold", 0.4)
    assert by_chance == pytest.approx(
        0.216 * distribution_of_checks_met(replace(fixed, is_visit_fixed=False), "gold")[3]
    )
    assert 0.12 < by_chance < 0.14  # about 1 of 8, as long as chance decides who meets all three
    unlimited = replace(fixed, max_hits=None)
    assert share_of_guessers_flagged(strict, unlimited, "gold", 0.4) == pytest.approx(0.216)


def test_the_checks_that_one_person_meets_are_drawn_from_all_kinds_alike():
    workload = AnnotatorWorkload(10, 5, {"gold": 3, "attention": 2}, 20.0, is_visit_fixed=True)
    assert distribution_of_checks_met(workload, "gold").tolist() == pytest.approx([0.1, 0.6, 0.3, 0.0])
    assert sum(distribution_of_checks_met(replace(workload, is_visit_fixed=False), "gold")) == pytest.approx(1.0)
    assert distribution_of_checks_met(replace(workload, checks_percent=12.0), "gold").sum() == pytest.approx(1.0)
