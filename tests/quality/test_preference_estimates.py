"""Annotators who answer at random where items are compared: no update law finds them, but a fit to all pairs does."""

import numpy as np
import pytest

from app.designs.registry import DESIGNS
from app.quality.inputs import NO_SECONDS, RuleInputs
from app.quality.preference_estimates import estimate_random_answer_probability_by_annotator
from app.quality.rule_reach import rule_reach_in_campaign
from app.quality.rules.at_random import AtRandom
from app.quality.run_rules import find_annotators_by_rules
from app.quality.settings import RuleChoice
from app.quality.workload import AnnotatorWorkload
from tests.unsaved import unsaved

CAREFUL, RANDOM = (11, 12, 13, 14, 15, 16), 17
WARN = {"at_random": RuleChoice(AtRandom(), "warn")}


def placed(hits_each, size, to_values, *, seed=3):
    """Return judgments of HITs of 20 items by careful annotators, who order them with an error, and a random one."""
    rng, rows = np.random.default_rng(seed), []
    for seq in range(hits_each * 7):
        annotator = (*CAREFUL, RANDOM)[seq % 7]
        items = rng.permutation(20)[:size]
        seen = rng.random(size) if annotator == RANDOM else items / 4.0 + rng.gumbel(size=size)
        places = 1.0 + np.argsort(np.argsort(-seen))
        rows += [(seq, annotator, item, value) for item, value in zip(items, to_values(places), strict=True)]
    columns = map(np.array, zip(*rows, strict=True))
    return dict(zip(("seq", "annotator", "item", "value"), columns, strict=True))


def as_places(places):
    return places


def as_best_and_worst(places):
    return np.where(places == 1, 1.0, np.where(places == len(places), 3.0, 2.0))


@pytest.mark.parametrize(
    ("design", "size", "hits", "to_values"),
    [("pairwise", 2, 130, as_places), ("ranking", 5, 20, as_places), ("best_worst", 4, 40, as_best_and_worst)],
)
def test_who_orders_items_at_random_is_found_and_nobody_else(design, size, hits, to_values):
    chances = estimate_random_answer_probability_by_annotator(DESIGNS[design](), placed(hits, size, to_values))
    assert chances.pop(RANDOM) > 0.99
    assert set(chances) == set(CAREFUL)
    assert max(chances.values()) < 0.01


def test_the_rule_names_its_source():
    (criterion,) = unsaved(design="pairwise").criteria
    judgments = placed(130, 2, as_places)
    (finding,) = find_annotators_by_rules(criterion, RuleInputs(judgments, NO_SECONDS, {}), WARN)
    assert finding.annotator_id == RANDOM
    assert finding.details.sentence.endswith("according to a fit to all comparisons.")


def test_annotators_who_see_the_items_the_other_way_round_are_not_said_to_answer_at_random():
    judgments = placed(80, 2, as_places)
    turned = judgments["annotator"] == CAREFUL[0]
    judgments["value"] = np.where(turned, 3.0 - judgments["value"], judgments["value"])
    assert estimate_random_answer_probability_by_annotator(DESIGNS["pairwise"](), judgments)[CAREFUL[0]] < 0.01


def test_ties_alone_say_nothing_about_anyone():
    judgments = placed(80, 2, np.ones_like)
    assert estimate_random_answer_probability_by_annotator(DESIGNS["pairwise"](), judgments) == {}


def test_one_item_at_a_time_says_nothing_about_anyone():
    judgments = placed(20, 1, as_places)
    assert estimate_random_answer_probability_by_annotator(DESIGNS["pairwise"](), judgments) == {}


def test_among_five_annotators_no_one_is_said_to_answer_at_random():
    judgments = placed(80, 2, as_places)
    fewer = ~np.isin(judgments["annotator"], CAREFUL[:2])
    chances = estimate_random_answer_probability_by_annotator(
        DESIGNS["pairwise"](), {name: column[fewer] for name, column in judgments.items()}
    )
    assert chances == {}


def test_few_comparisons_find_nobody():
    chances = estimate_random_answer_probability_by_annotator(DESIGNS["pairwise"](), placed(6, 2, as_places))
    assert max(chances.values()) < 0.9


def test_the_newest_judgments_count_if_there_are_too_many(monkeypatch):
    monkeypatch.setattr("app.quality.preference_estimates.MAX_FITTED_JUDGMENTS", 2 * 7 * 80)
    careful = placed(20, 2, as_places)
    careful["annotator"] = np.where(careful["annotator"] == RANDOM, 99, careful["annotator"])
    late = placed(80, 2, as_places)
    late["seq"] = late["seq"] + 1000
    both = {name: np.concatenate([late[name], careful[name]]) for name in late}
    chances = estimate_random_answer_probability_by_annotator(DESIGNS["pairwise"](), both)
    assert set(chances) == {*CAREFUL, RANDOM}


def test_the_rule_can_find_someone_in_campaigns_of_pairs_and_not_with_laws_that_learn_nothing():
    work = AnnotatorWorkload(100, 2, {}, 0.0)
    assert rule_reach_in_campaign(AtRandom(), unsaved(design="pairwise"), work, 0.002).never_reason == ""
    assert "does not estimate" in rule_reach_in_campaign(AtRandom(), unsaved(), work, 0.002).never_reason
