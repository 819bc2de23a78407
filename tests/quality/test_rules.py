"""Annotators that each rule finds, and those that it leaves alone."""

import math
import re
from dataclasses import replace
from math import isnan, nan
from typing import get_args

import numpy as np
import pytest

from app.designs.categories import Categories
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.inputs import NO_SECONDS, RuleInputs, build_behaviours_by_annotator
from app.quality.registry import QUALITY_RULES
from app.quality.rule import QualityRule
from app.quality.rules.agreement import AgreementWithOthers
from app.quality.rules.at_random import AtRandom
from app.quality.rules.contradictions import Contradictions, count_contradicted_and_implied_pairs
from app.quality.rules.ends_or_middle import ScaleEndsRule, ScaleMiddleRule
from app.quality.rules.failed_checks import FailedAttentionRule, FailedGoldRule
from app.quality.rules.pooled_signs import (
    PooledSigns,
    count_repeated_and_comparable_values,
    count_reversed_and_ordered_pairs,
)
from app.quality.rules.straight_lining import StraightLining, count_repeated_and_repeatable_answers
from app.quality.rules.too_fast import TooFast
from app.quality.rules.unplayed import UnplayedRule
from app.quality.sequential_limits import ends_of_sequential_correlation_interval, log_bayes_factor
from app.quality.settings import parse_all_rule_choices_by_name
from tests.quality.people import annotator_behaviour, careful_annotator, careful_crowd
from tests.toys.round_numbers import RoundNumbers

ALARM = 0.002
EVERY_RULE: list[type[QualityRule]] = [*QUALITY_RULES.values(), RoundNumbers]


@pytest.fixture(scope="module")
def others():
    return careful_crowd(np.random.default_rng(7))


def assess(rule, one, others=()):
    return rule.assess_annotator(one, np.array([rule.measure_for_comparison(other) for other in others]), ALARM)


def evaluate(rule, one, others=()):
    """Return the assessment of an annotator whom the rule flags, else None."""
    assessment = assess(rule, one, others)
    return assessment if assessment.state == "flagged" else None


def first_found(rule, one, others):
    """Return after how many HITs of five an annotator is found, None if never."""
    measures = np.array([rule.measure_for_comparison(other) for other in others])
    looks = range(1, len(one.share) // 5 + 1)
    return next(
        (hits for hits in looks if rule.assess_annotator(until(one, hits), measures, ALARM).state == "flagged"), None
    )


def until(one, hits):
    end = 5 * hits
    arrays = {name: getattr(one, name)[:end] for name in ("hit", "item", "share", "others_share", "other_judge_counts")}
    checks = {"gold_met": one.gold_met[: hits // 5], "attention_met": one.attention_met[: hits // 10]}
    return replace(one, **arrays, **checks, seconds=one.seconds[:hits])


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_no_rule_finds_a_careful_person_however_often_it_looks(rule, others):
    rng = np.random.default_rng(11)
    ever = [first_found(rule(), careful_annotator(rng), others) for _ in range(40)]
    assert sum(when is not None for when in ever) <= 1


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_nobody_is_found_before_there_is_anything_to_see(rule, others):
    nobody = annotator_behaviour([])
    assert evaluate(rule(), nobody, others) is None
    assert evaluate(rule(), nobody) is None


def test_every_rule_says_what_it_tells_and_what_its_thresholds_are(subtests):
    for rule in EVERY_RULE:
        with subtests.test(rule=rule):
            assert rule.title
            assert rule.explanation.endswith(".")
            assert all(field.title and field.description for field in rule.model_fields.values())


def test_it_is_registered_by_its_name():
    assert {name: rule.name for name, rule in QUALITY_RULES.items()} == {name: name for name in QUALITY_RULES}


def test_rules_judge_only_the_kinds_of_answers_that_they_can_read():
    on_a_scale = {"points", "ordered_classes"}
    limits = {"contradictions": {"order"}, "ends": on_a_scale, "middle": on_a_scale, "signs": on_a_scale}
    for name, rule in QUALITY_RULES.items():
        if name in limits:
            assert {kind for kind in get_args(JudgmentKind) if rule().supports_answers(kind, 5)} == limits[name], name
    for rule in (ScaleEndsRule, ScaleMiddleRule, PooledSigns):
        assert [rule().supports_answers("ordered_classes", labels) for labels in (3, 4)] == [False, True]


def test_rules_that_compare_nobody_measure_nothing():
    one = annotator_behaviour(np.linspace(0, 1, 30))
    assert [rule().measure_for_comparison(one) for rule in (FailedGoldRule, AtRandom)] == pytest.approx(
        [nan] * 2, nan_ok=True
    )


def worst_annotator(name, count):
    """Return an annotator whose units of work, so many, all look careless to a rule."""
    circles = np.concatenate([3 * k + np.array([0, 1, 1, 2, 2, 0]) for k in range(count)])  # a > b > c > a
    people_by_rule = {
        "gold": lambda: annotator_behaviour([], gold_met=np.zeros(count, bool)),
        "attention": lambda: annotator_behaviour([], attention_met=np.zeros(count, bool)),
        "too_fast": lambda: annotator_behaviour([0.5] * count, n=1, seconds=np.full(count, 0.1)),
        "played": lambda: annotator_behaviour([], played_share=np.zeros(count)),
        "straight_lining": lambda: annotator_behaviour([0.5] * count, n=1),
        "ends": lambda: annotator_behaviour(([0.05, 0.95] * count)[:count], n=1),
        "middle": lambda: annotator_behaviour(([0.45, 0.55] * count)[:count], n=1),
        "contradictions": lambda: annotator_behaviour([1.0, 0.0] * (3 * count), n=2, yields="order", item=circles),
        "signs": lambda: annotator_behaviour([0.5] * count, ([0.0, 1.0] * count)[:count], n=1),
        "at_random": lambda: annotator_behaviour([0.5] * count, n=1, random_answer_probability=1.0),
    }
    if name not in people_by_rule:
        pytest.fail(f"Add a line for “{name}” to `worst_annotator`: an annotator whom this rule finds")
    return people_by_rule[name]()


def test_each_rule_finds_the_worst_annotator_with_just_as_much_work_as_it_says(subtests):
    usual = {"too_fast": [30.0] * 5, "signs": [(0.0, 0.0, nan, nan)] * 2}
    for name, rule in QUALITY_RULES.items():
        if name == "agreement":
            continue  # its requirement is about annotators who answer at random
        with subtests.test(rule=name):
            requirement = rule().least_work_requirement("order" if name == "contradictions" else "points", ALARM)
            others = np.array(usual.get(name, [0.0] * requirement.other_annotators))
            enough, little = (worst_annotator(name, requirement.count - short) for short in (0, 1))
            assert rule().assess_annotator(enough, others, ALARM).state == "flagged"
            assert rule().assess_annotator(little, others, ALARM).state != "flagged"


def test_a_threshold_below_half_way_to_always_asks_for_no_less_work():
    for rule in (StraightLining, ScaleEndsRule, ScaleMiddleRule, Contradictions):
        lowest, half = (rule(least_percent=percent).least_work_requirement("points", ALARM) for percent in (1, 25))
        assert lowest == half, rule.name


def test_agreement_needs_as_many_judgments_as_tell_the_lowest_tenth_of_guessers_from_the_share_that_it_asks_for():
    for percent in range(20, 90, 10):
        count = AgreementWithOthers(share_percent=percent).least_work_requirement("points", ALARM).count
        enough, little = (
            ends_of_sequential_correlation_interval(np.tanh(-1.28 / np.sqrt(judgments - 3)), judgments, 2 * ALARM)[1]
            for judgments in (count, count - 1)
        )
        assert enough < percent / 100
        assert little >= percent / 100 or count == 20, percent


def test_requirements_name_their_units_and_whom_they_need_to_compare_with():
    needs = {name: rule().least_work_requirement("points", ALARM) for name, rule in QUALITY_RULES.items()}
    assert {name: (need.unit, need.count_per_other, need.other_annotators) for name, need in needs.items()} == {
        "gold": ("failed gold item", 0, 0),
        "attention": ("failed attention item", 0, 0),
        "too_fast": ("task", 5, 5),
        "played": ("judgment", 0, 0),
        "straight_lining": ("judgment", 11, 5),
        "ends": ("judgment", 10, 5),
        "middle": ("judgment", 10, 5),
        "signs": ("judgment", 11, 2),
        "agreement": ("judgment", 20, 5),
        "contradictions": ("implied pair", 10, 5),
        "at_random": ("judgment", 0, 0),
    }


def test_annotators_are_compared_from_ten_answers_on():
    few, enough = (annotator_behaviour([0.0, 0.5] * half, n=1) for half in (4, 5))
    order = annotator_behaviour([0.0, 1.0] * 30, n=2, yields="order")
    for rule, share in ((ScaleEndsRule(), 0.5), (ScaleMiddleRule(), 0.5)):
        assert rule.measure_for_comparison(enough) == share
        assert isnan(rule.measure_for_comparison(few))
        assert isnan(rule.measure_for_comparison(order))
    circles = [Contradictions().measure_for_comparison(worst_annotator("contradictions", count)) for count in (9, 10)]
    assert circles == pytest.approx([nan, 1.0], nan_ok=True)
    repeated = [annotator_behaviour([0.5] * count, n=1) for count in (10, 11)]
    assert [StraightLining().measure_for_comparison(one) for one in repeated] == pytest.approx([nan, 1.0], nan_ok=True)
    assert count_repeated_and_repeatable_answers(annotator_behaviour([0.5, 0.5], n=2)) == (1, 1)


def test_values_repeated_in_one_task_are_measured_apart_from_those_of_different_tasks():
    same_in_each_task = annotator_behaviour(np.repeat(np.linspace(0, 1, 20), 2), np.tile([0.0, 1.0], 20), n=2)
    within, overall, *_ = PooledSigns().measure_for_comparison(same_in_each_task)
    assert within == 1.0
    assert overall < 0.6


def test_the_others_choice_of_a_label_is_the_most_frequent_one_and_the_first_of_equals():
    votes = {1: [0, 2], 2: [1, 2], 3: [1, 0]}  # labels of two items by annotator
    columns = {
        "annotator": np.repeat([*votes], 2),
        "seq": np.repeat([*votes], 2),
        "item": np.tile([0, 1], 3),
        "value": np.concatenate([*votes.values()]).astype(float),
    }
    people = build_behaviours_by_annotator(Categories(), RuleInputs(columns, NO_SECONDS, {}))
    assert {number: one.others_share.tolist() for number, one in people.items()} == {
        1: [1.0, 0.0],
        2: [0.0, 0.0],
        3: [0.0, 2.0],
    }
    assert [one.hit.tolist() for one in people.values()] == [[0, 0]] * 3


def test_the_toy_finds_round_scores_alone():
    rng = np.random.default_rng(3)
    round_scores = rng.integers(0, 11, 50) / 10
    assert evaluate(RoundNumbers(), annotator_behaviour(round_scores)).measures == {"round": 50, "judgments": 50}
    assert evaluate(RoundNumbers(), annotator_behaviour(round_scores + 0.01)) is None


def test_one_who_fails_all_gold_items_is_found_after_five_and_one_who_fails_one_in_five_never():
    assert evaluate(FailedGoldRule(), annotator_behaviour([], gold_met=np.zeros(4, bool))) is None
    assert (
        evaluate(FailedGoldRule(), annotator_behaviour([], gold_met=np.zeros(5, bool))).sentence
        == "Failed 5 of 5 gold items."
    )
    assert evaluate(FailedGoldRule(), annotator_behaviour([], gold_met=np.arange(100) % 5 > 0)) is None


def test_who_passes_every_gold_item_is_fine_once_there_are_no_more_and_the_remark_says_how_often_a_guesser_does():
    passed, failed_one = np.ones(3, bool), np.array([True, False, True])
    chances = np.array([0.4, 0.4, 0.2])
    all_passed = assess(FailedGoldRule(), annotator_behaviour([], gold_met=passed, gold_guess_chances=chances))
    assert (all_passed.state, all_passed.final_state, all_passed.figure) == ("unknown", "fine", "0 of 3 failed")
    assert all_passed.final_remark == "Someone who guesses does as well in about 1 of 31 cases."  # .4 * .4 * .2
    few_chances = np.array([0.4, 0.4])
    two_passed = assess(FailedGoldRule(), annotator_behaviour([], gold_met=passed[:2], gold_guess_chances=few_chances))
    assert (two_passed.final_state, two_passed.figure) == (None, "0 of 2 failed")
    assert two_passed.final_remark == "Someone who guesses does as well in about 1 of 6 cases."  # .4 * .4: too many
    one_failed = assess(FailedGoldRule(), annotator_behaviour([], gold_met=failed_one, gold_guess_chances=chances))
    assert (one_failed.state, one_failed.final_state, one_failed.figure) == ("unknown", None, "1 of 3 failed")
    assert one_failed.final_remark == "Someone who guesses does as well in about 1 of 4 cases."


def test_who_has_answered_no_gold_item_is_not_said_to_have_passed_any():
    assessment = assess(FailedGoldRule(), annotator_behaviour([]))
    assert (assessment.state, assessment.final_state, assessment.figure) == ("unknown", None, "")
    assert assessment.sentence == "Has answered no gold item yet."


def test_attention_items_are_easier_so_fewer_failures_tell_more():
    assert evaluate(FailedAttentionRule(), annotator_behaviour([], attention_met=np.zeros(3, bool))).measures == {
        "failed": 3,
        "shown": 3,
    }
    assert evaluate(FailedGoldRule(), annotator_behaviour([], gold_met=np.zeros(3, bool))) is None


def test_one_who_needs_a_tenth_of_the_time_is_found_and_one_who_needs_half_is_not(others):
    quick, hasty = (annotator_behaviour(np.zeros(100), seconds=np.full(20, 25.0 * part)) for part in (0.5, 0.1))
    assert evaluate(TooFast(), quick, others) is None
    assert "Answered 20 of 20 tasks in less than 33 %" in evaluate(TooFast(), hasty, others).sentence


def test_one_who_plays_nothing_is_found_and_one_who_skips_every_tenth_recording_or_the_last_third_is_not():
    played = np.where(np.arange(100) % 10 == 0, 0.0, 0.7)
    assert evaluate(UnplayedRule(), annotator_behaviour([], played_share=played)) is None
    found = evaluate(UnplayedRule(), annotator_behaviour([], played_share=np.zeros(6)))
    assert found.measures == {"unplayed": 6, "judgments": 6}
    assert found.sentence == "Judged 6 of 6 recordings or videos after playing less than 50 %."
    assert evaluate(UnplayedRule(), annotator_behaviour([], played_share=np.zeros(4))) is None
    half, less = (annotator_behaviour([], played_share=np.full(6, share)) for share in (0.5, 0.499))
    assert evaluate(UnplayedRule(), half) is None
    assert evaluate(UnplayedRule(), less) is not None


def test_without_others_nobody_is_too_fast():
    alone = careful_crowd(np.random.default_rng(1), 4)
    assert evaluate(TooFast(), annotator_behaviour(np.zeros(100), seconds=np.full(20, 0.1)), alone) is None


def test_times_that_nobody_knows_are_no_fast_answers(others):
    assert evaluate(TooFast(), annotator_behaviour(np.zeros(100), seconds=np.full(20, np.nan)), others) is None


@pytest.mark.parametrize("pattern", [[0.5] * 5, [0.1, 0.3, 0.5, 0.7, 0.9], [0.0, 1.0, 0.0, 1.0, 0.0]])
def test_a_straight_line_is_found_also_where_it_goes_by_the_rows_of_a_hit(pattern, others):
    line = np.tile(pattern, 20) + 0.004 * np.random.default_rng(3).standard_normal(100)
    assert evaluate(StraightLining(), annotator_behaviour(line), others) is not None


def test_one_label_again_and_again_is_usual_where_nearly_all_items_have_it():
    rng = np.random.default_rng(5)
    mostly = [annotator_behaviour((rng.random(100) < 0.1) * 1.0, n=1, yields="classes", classes=2) for _ in range(10)]
    skewed = annotator_behaviour((rng.random(100) < 0.05) * 1.0, n=1, yields="classes", classes=2)
    even = [annotator_behaviour((rng.random(100) < 0.5) * 1.0, n=1, yields="classes", classes=2) for _ in range(10)]
    always = annotator_behaviour(np.zeros(100), n=1, yields="classes", classes=2)
    assert evaluate(StraightLining(), skewed, mostly) is None
    assert evaluate(StraightLining(), always, even) is not None


def test_a_score_repeats_any_of_the_task_before_and_a_label_the_one_at_its_place():
    scores = annotator_behaviour([0.1, 0.5, 0.9, 0.3, 0.1, 0.7], n=3)
    labels = annotator_behaviour([0, 0, 1, 2, 0, 0], n=3, yields="classes", classes=3)
    assert count_repeated_and_repeatable_answers(scores) == (1, 5)  # .1, of the first task
    assert count_repeated_and_repeatable_answers(labels) == (3, 5)  # twice the one before, once the one at its place
    assert count_repeated_and_repeatable_answers(replace(scores, answer_kind="ordered_classes")) == (0, 5)


def test_who_always_chooses_the_left_one_of_two_gives_the_same_answer_again():
    rng = np.random.default_rng(6)
    sides = [np.where(rng.random(60)[:, None] < 0.5, [0.0, 1.0], [1.0, 0.0]).ravel() for _ in range(8)]
    people = [annotator_behaviour(side, n=2, yields="order") for side in sides]
    left = annotator_behaviour(np.tile([1.0, 0.0], 60), n=2, yields="order")
    assert count_repeated_and_repeatable_answers(left) == (59, 59)
    assert evaluate(StraightLining(), left, people) is not None
    assert all(evaluate(StraightLining(), one, people) is None for one in people)


def test_always_the_ends_or_the_middle_is_found_and_much_of_the_middle_is_not(others):
    rng = np.random.default_rng(8)
    ends = annotator_behaviour(np.where(rng.random(100) < 0.5, 0.0, 1.0))
    middle = annotator_behaviour(0.5 + 0.02 * rng.standard_normal(100))
    narrow = annotator_behaviour(0.5 + 0.1 * rng.standard_normal(100))
    assert "at the ends of the scale" in evaluate(ScaleEndsRule(), ends, others).sentence
    assert evaluate(ScaleMiddleRule(), ends, others) is None
    assert "in the middle" in evaluate(ScaleMiddleRule(), middle, others).sentence
    assert evaluate(ScaleMiddleRule(), narrow, others) is None


def test_three_labelled_points_have_no_ends_to_speak_of():
    people = [annotator_behaviour([0.0, 0.5, 1.0] * 20, yields="ordered_classes", classes=3) for _ in range(6)]
    assert (
        evaluate(ScaleEndsRule(), annotator_behaviour([0.0, 1.0] * 50, yields="ordered_classes", classes=3), people)
        is None
    )


def test_random_answers_are_found_after_some_hits_and_not_after_a_few(others):
    rng = np.random.default_rng(9)
    when = [
        first_found(AgreementWithOthers(), replace(careful_annotator(rng, 200), share=rng.random(200)), others)
        for _ in range(20)
    ]
    ever = [hits for hits in when if hits is not None]
    assert len(ever) >= 18
    assert min(ever) >= 5
    assert np.median(ever) <= 25


def test_after_58_judgments_the_agreement_of_one_who_guesses_is_flagged_or_unknown_but_never_fine(others):
    rng = np.random.default_rng(15)
    guessers = [replace(careful_annotator(rng, 58), share=rng.random(58)) for _ in range(60)]
    states = [assess(AgreementWithOthers(), one, others).state for one in guessers]
    assert "fine" not in states
    assert "unknown" in states


def test_a_mark_of_agreement_shows_the_value_and_its_interval_whatever_was_found(others):
    careful, rng = careful_annotator(np.random.default_rng(16), 58), np.random.default_rng(17)
    guessed = replace(careful, share=rng.random(58))
    for one, state in ((careful, "fine"), (guessed, "unknown")):
        found = assess(AgreementWithOthers(), one, others)
        assert found.state == state
        assert found.figure in found.sentence
        assert re.fullmatch(r"−?\d\.\d\d \(−?\d\.\d\d to −?\d\.\d\d\)", found.figure)
        assert "; the usual value is 0." in found.sentence
    alone = assess(AgreementWithOthers(), careful, others[:4])
    assert (alone.state, alone.figure) == ("unknown", assess(AgreementWithOthers(), careful, others).figure)


def test_labels_show_how_often_they_are_those_of_most_others_and_a_guesser_is_not_cleared():
    rng = np.random.default_rng(18)
    truth = rng.integers(0, 3, 60) * 1.0
    people = [
        annotator_behaviour(np.where(rng.random(60) < 0.8, truth, rng.integers(0, 3, 60)), truth, n=1, yields="classes")
        for _ in range(8)
    ]
    guesser = annotator_behaviour(rng.integers(0, 3, 60) * 1.0, truth, n=1, yields="classes", classes=3)
    states = [assess(AgreementWithOthers(), one, people).state for one in (people[0], guesser)]
    assert states[0] == "fine"
    assert states[1] in {"flagged", "unknown"}
    assert re.fullmatch(r"\d+ % \(\d+ % to \d+ %\)", assess(AgreementWithOthers(), guesser, people).figure)


def test_gold_items_clear_nobody_before_a_guesser_would_have_failed_some():
    met = {count: annotator_behaviour([], gold_met=np.ones(count, bool)) for count in (6, 7)}
    assert [assess(FailedGoldRule(), one).state for one in met.values()] == ["unknown", "fine"]
    hard = annotator_behaviour([], gold_met=np.ones(3, bool), gold_guess_chances=np.full(3, 0.2))
    assert assess(FailedGoldRule(), hard).state == "fine"


def test_a_rule_clears_nobody_of_whom_it_has_no_case(subtests):
    nobody = annotator_behaviour([])
    for rule in EVERY_RULE:
        with subtests.test(rule=rule.name):
            assert assess(rule(), nobody, []).state == "unknown"
            assert assess(rule(), nobody, [nobody] * 6).state == "unknown"


def test_careful_people_are_cleared_by_all_rules_that_have_enough_to_read(others):
    careful = careful_annotator(np.random.default_rng(19))
    rules = (TooFast(), StraightLining(), ScaleEndsRule(), ScaleMiddleRule(), AgreementWithOthers(), PooledSigns())
    assert {rule.name: assess(rule, careful, others).state for rule in rules} == {rule.name: "fine" for rule in rules}
    sure = annotator_behaviour(np.zeros(40), random_answer_probability=0.001)
    assert assess(AtRandom(), sure).state == "fine"
    played = annotator_behaviour([], played_share=np.ones(20))
    assert assess(UnplayedRule(), played).state == "fine"


def test_the_strict_and_the_kind_go_with_the_others_as_much_as_anybody(others):
    strict = careful_annotator(np.random.default_rng(10))
    strict = replace(strict, share=0.3 * strict.share)
    assert evaluate(AgreementWithOthers(), strict, others) is None


def test_where_nobody_goes_with_anybody_nobody_is_found():
    rng = np.random.default_rng(12)
    noise = [replace(one, share=rng.random(150)) for one in careful_crowd(rng)]
    assert not any(evaluate(AgreementWithOthers(), one, noise) for one in noise)


def test_labels_at_random_are_found_beside_others_who_agree():
    rng = np.random.default_rng(13)
    truth = rng.integers(0, 3, 200) * 1.0
    slips = [np.where(rng.random(200) < 0.8, truth, rng.integers(0, 3, 200)) for _ in range(8)]
    people = [annotator_behaviour(said, truth, n=1, yields="classes", classes=3) for said in slips]
    random = annotator_behaviour(rng.integers(0, 3, 200) * 1.0, truth, n=1, yields="classes", classes=3)
    assert evaluate(AgreementWithOthers(), random, people) is not None
    assert not any(evaluate(AgreementWithOthers(), one, people) for one in people)


def test_a_pair_that_follows_from_two_others_is_a_contradiction_the_other_way_round():
    a_over_b, b_over_c, c_over_a = [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]
    circle = annotator_behaviour(a_over_b + b_over_c + c_over_a, n=2, yields="order", item=np.array([1, 2, 2, 3, 3, 1]))
    line = annotator_behaviour(a_over_b + b_over_c + a_over_b, n=2, yields="order", item=np.array([1, 2, 2, 3, 1, 3]))
    assert count_contradicted_and_implied_pairs(circle) == (1, 1)
    assert count_contradicted_and_implied_pairs(line) == (0, 1)


def test_two_items_with_equal_values_imply_something_only_where_equal_means_a_tie():
    chain = [1.0, 0.0, 1.0, 0.0, 0.5, 0.5]  # a over b, b over c, then a and c alike
    items = np.array([1, 2, 2, 3, 1, 3])
    tie, unknown = (annotator_behaviour(chain, n=2, yields="order", item=items, ties=ties) for ties in (True, False))
    assert count_contradicted_and_implied_pairs(tie) == (0, 1)
    assert count_contradicted_and_implied_pairs(unknown) == (0, 0)


def of_pairs(rng, slip, pairs=400):
    """Return comparisons of 60 items by an annotator who reverses a share `slip` of them."""
    item = np.array([rng.choice(60, 2, replace=False) for _ in range(pairs)])
    better = (item[:, 0] > item[:, 1]) ^ (rng.random(pairs) < slip)
    return annotator_behaviour(
        np.where(better[:, None], [1.0, 0.0], [0.0, 1.0]).ravel(), n=2, yields="order", item=item.ravel()
    )


def test_one_who_prefers_at_random_contradicts_themselves_and_one_who_slips_does_not():
    rng = np.random.default_rng(14)
    people = [of_pairs(rng, 0.05) for _ in range(8)]
    assert evaluate(Contradictions(), of_pairs(rng, 0.5), people) is not None
    assert not any(evaluate(Contradictions(), one, people) for one in people)


def test_what_the_law_is_nearly_sure_of_is_found_when_it_knows_enough():
    assert evaluate(AtRandom(), annotator_behaviour(np.zeros(40), random_answer_probability=0.995)) is not None
    assert evaluate(AtRandom(), annotator_behaviour(np.zeros(39), random_answer_probability=0.995)) is None
    assert evaluate(AtRandom(), annotator_behaviour(np.zeros(40), random_answer_probability=0.98)) is None


def test_one_who_sets_28_of_28_to_the_middle_is_found_beside_four_others():
    rng = np.random.default_rng(1)
    middle = annotator_behaviour(rng.integers(49, 52, 28) / 100, rng.random(28), n=4)
    for count in (4, 2):
        found = evaluate(PooledSigns(), middle, careful_crowd(rng, count, judgments=30))
        assert "times the same answer to clearly different items" in found.sentence
    assert evaluate(PooledSigns(), middle, careful_crowd(rng, 1, judgments=30)) is None


def test_signs_are_pooled_and_a_sign_that_does_not_show_hides_no_other():
    others = [annotator_behaviour(np.linspace(0, 1, 30)) for _ in range(4)]
    fast = annotator_behaviour(np.linspace(0, 1, 30), seconds=np.full(6, 3.0))
    failed = {"attention_met": np.zeros(2, bool), "gold_met": np.zeros(2, bool)}
    careless = evaluate(PooledSigns(), replace(fast, **failed), others)
    # Factors by hand: 140.3 for two of two at 5 %, 10.33 for two of two at 20 %, 18.14 for six of six at 50 %, and for
    # none of 24 repeated values (1 + 1 / 25) / 2 = .52. Each counts as (1 + factor) / 2.
    assert careless.measures.pop("evidence") == pytest.approx(np.log(70.66 * 5.667 * 9.571 * 0.76), abs=0.002)
    assert careless.measures == {"attention": 2, "gold": 2, "fast": 6}
    assert careless.sentence == (
        "failed 2 of 2 attention items; 6 of 6 tasks in less than a third of the usual time (25 s); "
        "failed 2 of 2 gold items."
    )
    assert evaluate(PooledSigns(), fast, others) is None
    assert evaluate(PooledSigns(), replace(fast, gold_met=failed["gold_met"]), others) is None


def test_without_a_sign_that_can_be_judged_there_is_nothing_to_compare_with():
    assessment = assess(PooledSigns(), annotator_behaviour([0.1, 0.9]))
    assert (assessment.state, assessment.sentence) == ("unknown", "Nothing to compare with yet.")


def test_pairs_in_the_reversed_order_are_a_sign_beyond_half_way_from_what_is_usual_to_chance():
    reversed_pairs = annotator_behaviour([0.9, 0.1] * 10, [0.1, 0.9] * 10, n=2)
    for usual, half_way in ((0.1, 0.3), (0.0, 0.255), (0.5, 0.99)):
        measures = np.array([(nan, nan, usual, nan)] * 2)
        assessment = PooledSigns().assess_annotator(reversed_pairs, measures, 0.5)
        factor = math.exp(log_bayes_factor(10, 10, half_way))
        expected = math.log((1 + factor) / 2)
        assert assessment.measures.get("evidence", expected) == pytest.approx(expected), usual
        assert (assessment.state == "flagged") == (expected >= math.log(2)), usual
    measures = np.array([(nan, nan, 0.1, nan)] * 2)
    assessment = PooledSigns().assess_annotator(reversed_pairs, measures, ALARM)
    assert assessment.state == "flagged"
    assert assessment.sentence == "10 of 10 times the reversed order of clearly different items (usual: 10 %)."


def test_repeated_values_may_be_a_third_of_the_way_from_what_is_usual_to_all():
    rule = PooledSigns(least_percent=50)
    assert [rule.max_repeated_share(usual) for usual in (0.0, 0.4, 1.0)] == pytest.approx([0.5, 0.6, 0.99])


def test_repeated_values_count_against_the_farthest_earlier_item_and_reversals_by_pairs():
    one = annotator_behaviour([0.5, 0.5, 0.9, 0.52, 0.1], [0.1, 0.15, 0.9, 0.55, 0.2], n=1)
    # The third is compared with the first, the fourth with the first (.52 repeats .5), the fifth with the third.
    assert count_repeated_and_comparable_values(one, within_hits=False) == (1, 3)
    assert count_repeated_and_comparable_values(one, within_hits=True) == (0, 0)  # one item per HIT
    assert count_repeated_and_comparable_values(replace(one, hit=np.array([0, 0, 0, 1, 1])), within_hits=True) == (0, 2)
    # pairs: the first two are not clearly different; the next two are in the right order.
    assert count_reversed_and_ordered_pairs(one) == (0, 1)
    assert count_reversed_and_ordered_pairs(replace(one, others_share=1 - one.others_share)) == (1, 1)
    with_others = [replace(one, other_judge_counts=np.full(5, count)) for count in (0, 1)]
    assert [count_repeated_and_comparable_values(seen, within_hits=False) for seen in with_others] == [(0, 0), (1, 3)]
    assert [count_reversed_and_ordered_pairs(seen) for seen in with_others] == [(0, 0), (0, 1)]
    labels = replace(one, answer_kind="ordered_classes", class_count=5)
    assert count_repeated_and_comparable_values(labels, within_hits=False) == (
        0,
        2,
    )  # clearly different is half the scale here


def test_the_preset_strict_holds_nobody_by_what_a_browser_reports():
    actions = {name: choice.action for name, choice in parse_all_rule_choices_by_name("strict", []).items()}
    assert actions.pop("played") == "warn"
    assert set(actions.values()) == {"hold"}
    assert parse_all_rule_choices_by_name("strict", ["played: hold"])["played"].action == "hold"


def test_a_single_answer_or_task_is_counted_in_the_singular(others):
    one = annotator_behaviour([1.0], n=1, seconds=[5.0])
    assert assess(ScaleEndsRule(), one).sentence == "1 of 1 answer is at the ends of the scale."
    assert " of 1 task in less than a third" in assess(PooledSigns(), one, others).sentence
    assert assess(StraightLining(), annotator_behaviour([0.5, 0.7], n=1)).sentence.startswith("0 of 1 answer is like")
