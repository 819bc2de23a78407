"""The rule for comparisons: the pair that is expected to tell the most comes next, once enough is known."""

from math import erf, log2, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from app.inference.ground.metrics import spearman
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.preferences.joint_thurstone import JointScores, fit_joint_scores
from app.selection.pair_information import comparison_information, most_informative_pair_of_items
from app.selection.pairs_rule import PAIRS_RULE
from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings
from app.simulation.campaign import SimulatedCampaign

ASKING = SelectionSettings(judgments_per_item=100, items_per_hit=2, gamma=0.1)
ANYBODY: dict[str, Any] = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}
COMPARING: dict[str, Any] = {"tie_margin": 0.0, "ties": True}


def coin_entropy(p):
    return -sum(share * log2(share) for share in (p, 1 - p) if share > 0)


def integrated_information(distance, variance):
    """Return the mutual information by definition: entropy of the outcome minus its mean given the scores."""
    outcome = norm.cdf(distance / sqrt(1 + variance))
    given_scores, _ = quad(
        lambda x: norm.pdf(x, distance, sqrt(variance)) * coin_entropy(norm.cdf(x)),
        distance - 10 * sqrt(variance),
        distance + 10 * sqrt(variance),
        limit=200,
    )
    return coin_entropy(outcome) - given_scores


def random_joint(items, rng, comparisons=200):
    truth = rng.normal(size=items) * 1.5
    pairs = np.array([rng.choice(items, 2, replace=False) for _ in range(comparisons)])
    outcomes = np.where(rng.random(comparisons) < norm.cdf(truth[pairs[:, 0]] - truth[pairs[:, 1]]), 1, -1)
    return fit_joint_scores(pairs[:, 0], pairs[:, 1], outcomes, item_count=items)


def index_after_comparisons(items=12, rounds=5, settings=ASKING, **values):
    """Return an index in which items with higher numbers have won most comparisons."""
    defaults = {"score": np.full(items, 0.5), "variance": np.full(items, 1 / 12), "judgments": np.zeros(items)}
    index = PAIRS_RULE.make_selection_index(ItemValues(**defaults | values), settings)
    rng = np.random.default_rng(11)
    for _ in range(rounds):
        order = rng.permutation(items)
        for pair in order.reshape(-1, 2).tolist():
            won = [float(pair[0] > pair[1]), float(pair[1] > pair[0])]
            index.learn_comparisons_of_hit(pair, won if rng.random() < 0.8 else won[::-1], **COMPARING)
    return index


def test_the_information_by_hand():
    """For equal means the outcome is worth a bit; sqrt(w / (v + w)) of it is noise, with w = pi ln 2 / 2 = 1.0888."""
    assert comparison_information(np.array(0.0), np.array(2.0)) == pytest.approx(1 - sqrt(1.0888 / 3.0888), abs=1e-4)
    assert comparison_information(np.array(0.7), np.array(0.0)) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("variance", [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("distance", [0.0, 0.4, 1.0, 2.5])
def test_the_information_is_near_that_of_numerical_integration(distance, variance):
    found = float(comparison_information(np.array(distance), np.array(variance)))
    assert found == pytest.approx(integrated_information(distance, variance), abs=0.003)


@given(distance=st.floats(0, 6), variance=st.floats(0.001, 8), more=st.floats(0.01, 2))
def test_more_uncertain_differences_and_nearer_scores_tell_more(distance, variance, more):
    information = lambda m, v: float(comparison_information(np.array(m), np.array(v)))  # noqa: E731
    assert information(distance, variance + more) >= information(distance, variance) - 1e-9
    assert information(distance + more, variance) <= information(distance, variance) + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_most_informative_pair_is_found_among_all(seed):
    rng = np.random.default_rng(seed)
    joint = random_joint(60, rng)
    items = np.sort(rng.choice(60, [60, 60, 40, 25, 7, 2][seed], replace=False))
    everything = comparison_information(
        joint.mean[items][:, None] - joint.mean[items], joint.difference_variance[np.ix_(items, items)]
    )
    found = most_informative_pair_of_items(joint, items)
    assert {*found} <= {*items.tolist()}
    i, j = found
    information = comparison_information(joint.mean[i] - joint.mean[j], joint.difference_variance[i, j])
    assert information == pytest.approx(everything.max(), rel=1e-5)


def test_of_equal_distances_the_one_that_others_say_least_about_is_asked():
    """0 and 1 were compared with the same third item, 2 and 3 with nothing else: their difference is less certain."""
    variance = np.full((4, 4), 2.0, np.float32)
    np.fill_diagonal(variance, 0)
    variance[0, 1] = variance[1, 0] = 0.5
    assert {*most_informative_pair_of_items(JointScores(np.array([0.0, 0.0, 9.0, 9.0]), variance), np.arange(4))} == {
        2,
        3,
    }


def test_with_few_comparisons_it_is_the_rule_scores():
    values = [0.5] * 12, [1 / 12] * 12, [1, 0, 0, *[1] * 9]
    index, even = (
        rule.make_selection_index(ItemValues(*values), ASKING) for rule in (PAIRS_RULE, SELECTION_RULES["scores"])
    )
    draw = index.draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(1))
    assert draw == even.draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(1))
    assert draw is not None
    assert (sorted(draw.items), draw.reason) == ([1, 2], "fewest_judgments")


def test_five_comparisons_an_item_are_enough():
    assert (
        index_after_comparisons(rounds=4).draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(1)).reason
        != "most_informative"
    )
    draw = index_after_comparisons(rounds=5).draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(1))
    assert (draw.reason, draw.probability) == ("most_informative", 1.0)


def test_a_hit_of_several_items_is_completed_by_those_that_tell_most_about_all_of_them():
    index = index_after_comparisons()
    draw = index.draw_hit_or_none(3, **ANYBODY, rng=np.random.default_rng(1))
    joint = index.log.joint
    pair = most_informative_pair_of_items(joint, np.arange(12))
    (third,) = {*draw.items} - {*pair}
    information = comparison_information(joint.mean[:, None] - joint.mean, joint.difference_variance)
    total = information[list(pair)].sum(axis=0)
    assert third == max({*range(12)} - {*pair}, key=total.item)


def test_beside_a_baseline_the_item_comes_whose_comparison_with_it_tells_most():
    asking = SelectionSettings(judgments_per_item=100, items_per_hit=1, gamma=0.1, never_drawn=(5,))
    index = index_after_comparisons(settings=asking)
    joint = index.log.joint
    information = comparison_information(joint.mean[5] - joint.mean, joint.difference_variance[5])
    draw = index.draw_hit_or_none(1, **ANYBODY, rng=np.random.default_rng(1))
    assert draw.items == [information.argmax()]


def test_a_pair_that_is_asked_now_is_not_asked_again_at_once():
    """Items that lead an open HIT are in no other pair while there are others."""
    index, rng = index_after_comparisons(), np.random.default_rng(1)
    leading: set[int] = set()
    for _ in range(5):
        draw = index.draw_hit_or_none(2, **ANYBODY | {"leaders_to_avoid": leading}, rng=rng)
        assert not {*draw.items} & leading
        leading.add(draw.leader)
    assert len(leading) == 5


def test_two_processes_that_read_the_record_at_different_times_ask_for_the_same():
    early, late = index_after_comparisons(rounds=5), index_after_comparisons(rounds=0)
    whole = index_after_comparisons(rounds=9)
    hits = [(number, items, scores) for number, (items, scores) in enumerate(hits_of(rounds=9))]
    for _, items, scores in hits[30:]:
        early.learn_comparisons_of_hit(items, scores, **COMPARING)
    late.log.add_hits(
        np.repeat([number for number, _, _ in hits], 2),
        np.concatenate([items for _, items, _ in hits]),
        np.concatenate([scores for _, _, scores in hits]),
        **COMPARING,
    )
    late.log.replace_posterior_by_fitted_one(*late.log.begin_due_fit_and_return_function_or_none()())
    assert late.log.begin_due_fit_and_return_function_or_none() is None
    for index in (early, late):
        assert np.array_equal(index.log.joint.mean, whole.log.joint.mean)
        assert np.array_equal(index.log.joint.difference_variance, whole.log.joint.difference_variance)


def test_a_process_that_has_missed_many_answers_catches_up_by_a_fit():
    behind, whole = index_after_comparisons(rounds=5), index_after_comparisons(rounds=40)
    missed = [*hits_of(rounds=40)][30:]
    behind.log.add_hits(
        np.repeat(np.arange(30, 240), 2),
        np.concatenate([items for items, _ in missed]),
        np.concatenate([scores for _, scores in missed]),
        **COMPARING,
    )
    before = behind.log.joint
    behind.log.replace_posterior_by_fitted_one(*behind.log.begin_due_fit_and_return_function_or_none()())
    assert behind.log.joint is not before
    assert np.array_equal(behind.log.joint.mean, whole.log.joint.mean)
    assert behind.log.begin_due_fit_and_return_function_or_none() is None


def hits_of(rounds, items=12):
    """Return the HITs of `index_after_comparisons`."""
    rng = np.random.default_rng(11)
    for _ in range(rounds):
        for pair in rng.permutation(items).reshape(-1, 2).tolist():
            won = [float(pair[0] > pair[1]), float(pair[1] > pair[0])]
            yield pair, won if rng.random() < 0.8 else won[::-1]


def test_a_hit_that_comes_twice_counts_once():
    once, twice = index_after_comparisons(), index_after_comparisons()
    for index, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            index.log.add_hits([99, 99], [0, 11], [1.0, 0.0], **COMPARING)
    assert np.array_equal(once.log.joint.mean, twice.log.joint.mean)


def test_a_tie_of_unknown_order_teaches_nothing_and_a_known_one_brings_items_together():
    joint = [index_after_comparisons().log for _ in range(3)]
    joint[1].add_hits([99, 99], [0, 11], [0.5, 0.5], tie_margin=0.0, ties=False)
    joint[2].add_hits([99, 99], [0, 11], [0.5, 0.5], tie_margin=0.0, ties=True)
    apart = [log.joint.mean[11] - log.joint.mean[0] for log in joint]
    assert apart[1] == apart[0] > apart[2]


def test_in_a_large_campaign_the_least_judged_item_meets_those_that_tell_most_about_it():
    """More items than covariances are kept of: half of them near the leader, half far, all known alike."""
    items = 1200
    score = np.where(np.arange(items) % 2, 0.9, 0.5)
    index = PAIRS_RULE.make_selection_index(ItemValues(score, np.full(items, 0.01), [5] + [6] * (items - 1)), ASKING)
    assert index.log is None
    draws = [index.draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(seed)) for seed in range(40)]
    assert {draw and draw.leader for draw in draws} == {0}
    assert all(draw and score[draw.items].tolist() == [0.5, 0.5] for draw in draws)


def test_it_orders_items_better_than_asking_evenly():
    """Same crowd, same number of comparisons: the rule against `scores`, and what the law makes of the answers."""
    found: dict[str, list[float]] = {"pairs": [], "scores": []}
    for seed in range(8):
        for name, correlations in found.items():
            rng = np.random.default_rng(seed)
            truth = rng.normal(size=40) * 2
            campaign = SimulatedCampaign(
                SELECTION_RULES[name], ONLINE_LAWS["trueskill"], ASKING, LawParameters(), 40, rng
            )
            for annotator in range(180):
                campaign.update_campaign_by_answer(
                    answered(campaign.draw_next_hit_or_none(annotator), truth, annotator, rng)
                )
            correlations.append(spearman(campaign.score, truth))
    assert np.mean(found["pairs"]) > np.mean(found["scores"]) + 0.005


def answered(draw, truth, annotator, rng):
    first, second = draw.items
    won = rng.random() < (1 + erf((truth[first] - truth[second]) / sqrt(2))) / 2
    return AnsweredHit(annotator, draw.items, [1.0, 0.0] if won else [0.0, 1.0])
