"""Known values are found again from simulated answers, by each law that reads an order."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from app.designs.registry import DESIGNS
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS

ITEMS = 40
NOISE = 0.15


def recovered(law_name, design_name, per_hit, rounds, seed=1):
    """Spearman's correlation with the truth after each of these numbers of HITs, of items drawn at random."""
    rng = np.random.default_rng(seed)
    design, law, truth = DESIGNS[design_name](), ONLINE_LAWS[law_name], rng.permutation(ITEMS) / (ITEMS - 1)
    columns = [np.full(ITEMS, number) for number in law.family.default_prior]
    beliefs = law.initial_beliefs(columns, LawParameters(ties=design.equal_means == "tie"))
    found, done = [], 0
    for hits in rounds:
        beliefs.apply_hits([answered(design, truth, rng.permutation(ITEMS)[:per_hit], rng) for _ in range(hits - done)])
        done = hits
        found.append(spearmanr(law.family.score(*beliefs.state), truth).statistic)
    return found


def answered(design, truth, shown, rng):
    places = design.simulate_answer_values((truth[shown] + rng.normal(0, NOISE, len(shown))).tolist())
    assert design.possible_hit_values_or_refuse(places) == places
    return AnsweredHit(0, shown.tolist(), design.values_to_scale_shares(places))


LAWS = [law.name for law in ONLINE_LAWS.values() if law.reads == "order"]


def test_the_order_comes_nearer_to_the_truth_with_more_judgments(subtests):
    for design, per_hit in (("ranking", 5), ("best_worst", 4), ("best_worst", 5)):
        for law in LAWS:
            with subtests.test(design=design, per_hit=per_hit, law=law):
                few, more, many = np.mean(
                    [recovered(law, design, per_hit, (8, 40, 200), seed) for seed in range(4)], axis=0
                )
                assert few < more < many
                assert many > 0.95


@pytest.mark.parametrize("law", LAWS)
def test_a_hit_says_more_the_more_of_its_order_is_told(law):
    def after_40(design, per_hit):
        return np.mean([recovered(law, design, per_hit, (40,), seed) for seed in range(6)])

    pairs, best_worst, ranking = after_40("ranking", 2), after_40("best_worst", 5), after_40("ranking", 5)
    assert pairs + 0.1 < best_worst < ranking


def test_bounded_and_unbounded_laws_are_there_for_orders():
    assert {"ra", "trueskill"} <= set(LAWS)
