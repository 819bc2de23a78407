"""Systems ranked from differences within HITs, with rank ranges and clusters."""

import numpy as np
import pytest
from scipy import stats

from app.inference.ground.inestimable import Inestimable
from app.inference.systems.system_clusters import (
    best_and_worst_possible_ranks,
    cluster_of_each_system_from_rank_ranges,
    fit,
    mask_of_significant_pairs_by_holm,
    p_value_matrix_of_score_differences,
)


def answered(hits):
    """Return (hit, system, value) of HITs given as {system: value}."""
    rows = [(k, system, value) for k, hit in enumerate(hits) for system, value in hit.items()]
    hit, system, value = zip(*rows, strict=True)
    return np.array(hit), np.array(system), np.array(value, np.float64)


def fitted(hits, n, **how):
    return fit(*answered(hits), n_systems=n, rng=np.random.default_rng(1), **how)


def test_a_score_is_what_differences_within_hits_say():
    """B is 10 above A and C 30 above B, by hand, although C was seen with a strict annotator only."""
    found = fitted([{0: 60, 1: 70}, {0: 80, 1: 90}, {1: 10, 2: 40}, {1: 0, 2: 30}], 3)
    assert np.diff(found.score) == pytest.approx([10, 30])
    assert found.score.mean() == pytest.approx(47.5)  # of all values
    assert found.rank.tolist() == [3, 2, 1]


def test_scores_are_the_least_squares_estimates_beside_an_effect_of_each_hit():
    rng = np.random.default_rng(4)
    hits = [dict(zip(rng.choice(5, 3, replace=False).tolist(), rng.random(3), strict=True)) for _ in range(60)]
    hit, system, value = answered(hits)
    dummies = np.hstack([np.eye(5)[system], np.eye(60)[hit]])
    effects = np.linalg.lstsq(dummies, value, rcond=None)[0][:5]
    found = fitted(hits, 5)
    assert found.score - found.score.mean() == pytest.approx(effects - effects.mean())


def test_where_hits_show_one_system_scores_are_means():
    found = fitted([{0: 10}, {0: 30}, {1: 50}, {1: 60}], 2)
    assert found.score == pytest.approx([20, 55])


def test_clusters_are_cut_where_no_ranges_overlap():
    rank = np.array([1, 2, 3, 4, 5])
    low, high = np.array([1, 1, 3, 3, 5]), np.array([2, 2, 4, 4, 5])
    assert cluster_of_each_system_from_rank_ranges(rank, low, high).tolist() == [1, 1, 2, 2, 3]
    assert cluster_of_each_system_from_rank_ranges(rank[::-1], low[::-1], high[::-1]).tolist() == [3, 2, 2, 1, 1]
    chain = np.array([1, 1, 2, 3, 4]), np.array([2, 3, 4, 5, 5])
    assert cluster_of_each_system_from_rank_ranges(rank, *chain).tolist() == [1] * 5


def symmetric(pairs, n, fill):
    matrix = np.full((n, n), fill)
    for (one, other), value in pairs.items():
        matrix[one, other] = matrix[other, one] = value
    return matrix


def test_pairs_differ_by_holms_procedure_by_hand():
    # .05 / 3 = .0167, .05 / 2 = .025, .05: .01 and .02 pass, and .06 does not.
    p_values = {(0, 1): 0.01, (0, 2): 0.02, (1, 2): 0.06}
    found = mask_of_significant_pairs_by_holm(symmetric(p_values, 3, 1.0), 0.05)
    assert found.tolist() == symmetric({(0, 1): True, (0, 2): True}, 3, False).tolist()
    # After one that does not pass, none does, although .03 is below .05.
    assert not mask_of_significant_pairs_by_holm(
        symmetric({(0, 1): 0.02, (0, 2): 0.03, (1, 2): 0.03}, 3, 1.0), 0.05
    ).any()


def test_a_range_of_ranks_leaves_room_for_all_that_may_be_as_good():
    differ = symmetric({(0, 2): True, (0, 3): True, (1, 3): True}, 4, False)
    best, worst = best_and_worst_possible_ranks(np.array([9.0, 7.0, 5.0, 3.0]), differ)
    assert best.tolist() == [1, 1, 2, 3]
    assert worst.tolist() == [2, 3, 4, 4]


def test_two_systems_in_the_same_hits_are_compared_as_by_a_paired_test():
    pairs = np.random.default_rng(3).normal([50.0, 54.0], 10.0, (40, 2))
    rng = np.random.default_rng(1)
    drawn = pairs[rng.integers(40, size=(20_000, 40))].mean(axis=1)
    found = p_value_matrix_of_score_differences(pairs.mean(axis=0), drawn, np.array([40, 40]))
    assert found[0, 1] == pytest.approx(stats.ttest_rel(*pairs.T).pvalue, rel=0.1)


def test_equal_differences_in_a_few_hits_set_no_systems_apart():
    for hits, clusters in ((2, 1), (5, 1), (8, 2)):
        assert fitted([{0: 10, 1: 20}] * hits, 2).cluster.max() == clusters


def simulate_hits(truth, hits, rng, noise=10.0):
    shown = [rng.choice(len(truth), 3, replace=False) for _ in range(hits)]
    return [
        {int(k): truth[k] + shift + noise * rng.standard_normal() for k in systems}
        for systems, shift in zip(shown, 20 * rng.standard_normal(hits), strict=True)
    ]


def test_groups_of_equal_systems_are_found():
    truth = np.array([30.0, 30.0, 50.0, 50.0, 70.0])
    found = fitted(simulate_hits(truth, 400, np.random.default_rng(2)), 5)
    assert found.cluster.tolist() == [3, 3, 2, 2, 1]
    assert ((found.low < found.score) & (found.score < found.high)).all()
    assert (found.rank_low <= found.rank).all()
    assert (found.rank <= found.rank_high).all()


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    truth = np.array([30.0, 45.0, 50.0, 70.0])
    held = []
    for seed in range(60):
        found = fitted(simulate_hits(truth, 80, np.random.default_rng(seed)), 4, draws=200)
        shift = found.score.mean() - truth.mean()
        held += ((found.low <= truth + shift) & (truth + shift <= found.high)).tolist()
    assert 0.9 < np.mean(held) < 0.99


@pytest.mark.parametrize("truth", [[50.0] * 6, [30, 30, 50, 50, 70, 70, 90, 90]], ids=["all alike", "four pairs"])
def test_equal_systems_are_hardly_ever_set_apart_however_many_there_are(truth):
    truth, errors, runs = np.array(truth), 0, 200
    equal = truth[:, None] == truth
    for seed in range(runs):
        found = fitted(simulate_hits(truth, 60, np.random.default_rng(seed)), len(truth), draws=150)
        apart = found.cluster[:, None] != found.cluster
        errors += bool((apart & equal).any())
    assert errors / runs <= 0.08  # .05 with a standard error of .015


def test_two_systems_are_set_apart_as_often_as_by_a_paired_test():
    rng = np.random.default_rng(7)
    pairs = [50 + 10 * rng.standard_normal((60, 2)) for _ in range(50)]
    pairs += [pair + np.array([0, 4]) for pair in pairs]
    apart = [fitted([dict(enumerate(hit)) for hit in pair], 2, draws=500).cluster.max() > 1 for pair in pairs]
    significant = [stats.ttest_rel(*pair.T).pvalue < 0.05 for pair in pairs]
    assert np.mean(np.array(apart) == significant) > 0.9
    assert 0.2 < np.mean(significant) < 0.8


def test_systems_that_nobody_judged_are_told_and_have_no_rank():
    found = fitted([{0: 10, 2: 20}, {0: 15, 2: 30}], 4)
    assert found.rank.tolist() == [2, 0, 1, 0]
    assert np.isnan(found.score[[1, 3]]).all()
    assert found.notes[0].about == {"system": [1, 3]}


def test_systems_that_were_never_compared_are_not_ranked():
    with pytest.raises(Inestimable) as refused:
        fitted([{0: 10, 1: 20}, {2: 10, 3: 20}], 4)
    assert refused.value.code == "systems_unconnected"
    with pytest.raises(Inestimable) as refused:
        fitted([{0: 10}, {0: 20}], 2)
    assert refused.value.code == "too_few_systems"
