import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit

from app.inference.ground.inestimable import Inestimable
from app.inference.ground.metrics import spearman
from app.inference.observations.pair_weights import independent_pair_weights
from app.inference.preferences import aware_bradley_terry, bradley_terry
from app.inference.preferences.aware_bradley_terry import NEARLY_RANDOM
from app.inference.preferences.discrimination_grid import DISCRIMINATIONS


def judged_pairs(truth, discriminations, judgments, rng):
    """Return judgments of random pairs, divided evenly among annotators with these discriminations."""
    first = rng.integers(truth.size, size=judgments)
    second = (first + rng.integers(1, truth.size, size=judgments)) % truth.size
    annotators = rng.permutation(np.arange(judgments) % len(discriminations))
    chance = expit(np.asarray(discriminations)[annotators] * (truth[first] - truth[second]))
    return first, second, np.where(rng.random(judgments) < chance, 1, -1), annotators


def crowd_of(random_share, rng, *, annotators=20):
    discriminations = np.exp(rng.normal(0, 0.3, annotators))
    discriminations[: round(random_share * annotators)] = 0.0
    return discriminations


def exact_posterior(judgments, fit):
    """Return the exact posterior, summed over a grid of all items' scores and each annotator's kind and
    discrimination.
    """
    (first, second, outcomes, annotators), n_items = judgments, len(fit.score)
    axis = np.linspace(-4.0, 4.0, 33) * fit.score_spread
    scores = np.stack(np.meshgrid(*[axis] * n_items, indexing="ij"), axis=-1).reshape(-1, n_items)
    log_weight = -(scores**2).sum(axis=1) / (2 * fit.score_spread**2)
    random_given_scores = []
    for k in range(int(annotators.max()) + 1):
        own = annotators == k
        difference = outcomes[own] * (scores[:, first[own]] - scores[:, second[own]])
        likelihood = np.exp([log_expit(a * difference).sum(axis=1) for a in DISCRIMINATIONS])
        careful, reversed_ = (
            np.exp(-((DISCRIMINATIONS - centre) ** 2) / (2 * fit.spread**2)) for centre in (1.0, -1.0)
        )
        parts = [
            fit.kind_shares[0] * careful / careful.sum() @ likelihood,
            fit.kind_shares[1] * 0.5 ** own.sum() * np.ones(len(scores)),
            fit.kind_shares[2] * reversed_ / reversed_.sum() @ likelihood,
        ]
        near = np.abs(DISCRIMINATIONS) <= NEARLY_RANDOM
        nearly_random = parts[1] + fit.kind_shares[0] * (careful * near) / careful.sum() @ likelihood
        random_given_scores.append(nearly_random / sum(parts))
        log_weight += np.log(sum(parts))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    centred = scores - scores.mean(axis=1, keepdims=True)
    mean = weight @ centred
    return mean, np.sqrt(weight @ (centred - mean) ** 2), np.array([weight @ each for each in random_given_scores])


def test_scores_and_annotators_are_nearly_those_of_the_exact_posterior():
    rng = np.random.default_rng(3)
    truth = np.array([-1.5, 0.0, 1.5])
    judgments = judged_pairs(truth, [1.0, 1.0, 1.0, 1.0, 0.0], 100, rng)
    fit = aware_bradley_terry.fit(*judgments)
    score, error, random = exact_posterior(judgments, fit)
    np.testing.assert_allclose(fit.score, score, atol=0.1)
    np.testing.assert_allclose(fit.standard_error, error, atol=0.05)
    np.testing.assert_allclose(fit.random, random, atol=0.1)


def test_one_win_for_each_of_two_items_is_a_draw():
    fit = aware_bradley_terry.fit([0, 1], [1, 0], [1, 1], [0, 1])
    np.testing.assert_allclose(fit.score, 0.0, atol=1e-12)
    assert fit.converged
    # One pair each says nothing about anyone.
    assert np.isnan(fit.discrimination).all()
    assert np.isnan(fit.random).all()


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(-1, 1), st.integers(0, 2)), min_size=1))
def test_swapping_first_and_second_changes_nothing_and_groups_have_mean_0(rows):
    first, shift, outcomes, annotators = map(np.array, zip(*rows, strict=True))
    second = (first + shift) % 5
    fit = aware_bradley_terry.fit(first, second, outcomes, annotators, n_items=5, n_annotators=3)
    swapped = aware_bradley_terry.fit(second, first, -outcomes, annotators, n_items=5, n_annotators=3)
    np.testing.assert_array_equal(fit.score, swapped.score)
    np.testing.assert_array_equal(fit.discrimination, swapped.discrimination)
    for group in range(fit.group.max() + 1):
        assert fit.score[fit.group == group].mean() == pytest.approx(0, abs=1e-9)
    assert np.isfinite(fit.score[fit.estimable]).all()
    assert (fit.standard_error[fit.estimable] > 0).all()


def test_the_order_of_judgments_and_the_numbers_of_annotators_do_not_matter():
    rng = np.random.default_rng(4)
    first, second, outcomes, annotators = judged_pairs(rng.normal(0, 1.5, 15), [1.0, 1.0, 1.0, 0.0], 200, rng)
    fit = aware_bradley_terry.fit(first, second, outcomes, annotators)
    order = rng.permutation(200)
    other = aware_bradley_terry.fit(first[order], second[order], outcomes[order], 3 - annotators[order])
    np.testing.assert_allclose(other.score, fit.score, atol=1e-6)
    np.testing.assert_allclose(other.random[::-1], fit.random, atol=1e-6)


def test_random_and_reversed_annotators_are_recognised_and_careful_ones_are_not_accused():
    rng = np.random.default_rng(5)
    discriminations = [*np.exp(rng.normal(0, 0.3, 16)), 0.0, 0.0, 0.0, -1.0]
    fit = aware_bradley_terry.fit(*judged_pairs(rng.normal(0, 1.5, 60), discriminations, 1600, rng), n_items=60)
    assert fit.random[:16].max() < 0.5
    assert fit.random[16:19].min() > 0.9
    assert fit.reversed[19] > 0.9
    assert fit.discrimination[19] < -0.5
    assert np.abs(fit.discrimination[16:19]).max() < 0.3
    assert 0.8 < fit.discrimination[:16].mean() < 1.2


def test_scores_are_closer_to_the_truth_than_bradley_terrys_where_some_answer_at_random():
    gains: dict[float, list[float]] = {0.0: [], 0.15: [], 0.3: []}
    for share, found in gains.items():
        for seed in range(6):
            rng = np.random.default_rng([seed, 8])
            truth = rng.normal(0, 1.5, 100)
            first, second, outcomes, annotators = judged_pairs(truth, crowd_of(share, rng), 600, rng)
            aware = aware_bradley_terry.fit(first, second, outcomes, annotators, n_items=100)
            plain = bradley_terry.fit(first, second, outcomes, n_items=100)
            found.append(spearman(aware.score, truth) - spearman(plain.score, truth))
    assert np.mean(gains[0.0]) > -0.005
    assert np.mean(gains[0.15]) > 0.015
    assert np.mean(gains[0.3]) > 0.04


def test_many_items_get_nearly_the_scores_of_the_exact_variances(monkeypatch):
    rng = np.random.default_rng(6)
    judgments = judged_pairs(rng.normal(0, 1.5, 80), crowd_of(0.2, rng), 1600, rng)
    exact = aware_bradley_terry.fit(*judgments, n_items=80)
    monkeypatch.setattr(aware_bradley_terry, "_DENSE_ROUNDS", 10)
    monkeypatch.setattr(aware_bradley_terry, "_DENSE_ERRORS", 10)
    sparse = aware_bradley_terry.fit(*judgments, n_items=80)
    assert spearman(sparse.score, exact.score) > 0.995
    np.testing.assert_array_equal(sparse.random > 0.9, exact.random > 0.9)
    np.testing.assert_allclose(sparse.standard_error, exact.standard_error, rtol=0.15)
    assert sparse.notes[-1].code == "errors_without_opponents"


def test_items_without_a_comparison_have_no_score_and_groups_are_kept_apart():
    fit = aware_bradley_terry.fit([0, 0, 2], [1, 1, 3], [1, 1, -1], [0, 1, 1], n_items=5)
    assert fit.estimable.tolist() == [True, True, True, True, False]
    assert fit.group.tolist() == [0, 0, 1, 1, -1]
    assert fit.score[0] > 0 > fit.score[1]
    assert fit.score[3] > 0 > fit.score[2]
    assert np.isnan(fit.score[4])
    assert {note.code for note in fit.notes} == {"never_compared", "groups_of_items"}


def test_a_judgment_of_weight_2_counts_as_two_judgments():
    first, second, outcomes, annotators = [0, 1, 0], [1, 2, 2], [1, 1, -1], [0, 0, 1]
    weighted = aware_bradley_terry.fit(first, second, outcomes, annotators, weights=[2.0, 1.0, 1.0])
    repeated = aware_bradley_terry.fit([0, *first], [1, *second], [1, *outcomes], [0, *annotators])
    np.testing.assert_allclose(weighted.score, repeated.score, atol=1e-3)


def test_without_a_judgment_or_with_bad_weights_there_is_no_fit():
    with pytest.raises(Inestimable) as refusal:
        aware_bradley_terry.fit([], [], [], [])
    assert refusal.value.code == "no_judgments"
    with pytest.raises(ValueError, match="weights must be above 0"):
        aware_bradley_terry.fit([0], [1], [1], [0], weights=[0.0])
    with pytest.raises(ValueError, match="one entry per judgment"):
        aware_bradley_terry.fit([0], [1], [1], [0, 0])


def test_a_fit_that_is_stopped_early_says_so():
    rng = np.random.default_rng(7)
    fit = aware_bradley_terry.fit(*judged_pairs(rng.normal(0, 1, 10), [1.0, 0.0], 60, rng), max_iterations=1)
    assert not fit.converged
    assert fit.notes[-1].code == "scores_not_settled"


@pytest.mark.parametrize(
    ("scores", "weight"),
    [
        ([0.1, 0.9], 1.0),
        ([0.5, 0.5], 1.0),
        ([0.1, 0.5, 0.9], 9 / 11),
        ([0.1, 0.2, 0.3, 0.4, 0.5], 9 / 15),
        ([0.5, 0.5, 0.5], 9 / 11),
        ([1.0, 0.5, 0.5, 0.0], 5 / (138 / 18)),  # best and worst of four
        ([0.3], 1.0),
    ],
)
def test_pairs_of_an_answer_weigh_as_many_as_are_independent(scores, weight):
    np.testing.assert_allclose(independent_pair_weights([0] * len(scores), scores), [weight])


def test_weights_are_the_ratio_of_the_variances_of_random_orders():
    rng, order = np.random.default_rng(8), np.array([1.0, 0.5, 0.5, 0.5, 0.2, 0.0])
    first, second = np.triu_indices(6, 1)
    shuffled = rng.permuted(np.tile(order, (40_000, 1)), axis=1)
    agreement = np.sign(shuffled[:, first] - shuffled[:, second]).sum(axis=1)
    decided = np.count_nonzero(order[first] != order[second])
    assert independent_pair_weights([0] * 6, order)[0] == pytest.approx(decided / agreement.var(), rel=0.03)
