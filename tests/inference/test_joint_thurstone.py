"""The joint posterior of scores: exact values for two items, and an independent computation for several."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import norm

from app.inference.preferences.joint_thurstone import JointScores, fit_joint_scores

comparison = st.tuples(st.integers(0, 5), st.integers(1, 5), st.sampled_from([-1, 0, 1])).map(
    lambda drawn: (drawn[0], (drawn[0] + drawn[1]) % 6, drawn[2])
)


def columns(comparisons):
    return np.array(comparisons).T


def nothing_known(items):
    """Return independent Normal(0, 1) scores, whose differences have a variance of 2."""
    return JointScores(np.zeros(items), 2 * (1 - np.eye(items, dtype=np.float32)))


def negative_log_posterior(score, comparisons):
    first, second, outcomes = columns(comparisons)
    share, distance = (1 + outcomes) / 2, score[first] - score[second]
    return score @ score / 2 - share @ log_ndtr(distance) - (1 - share) @ log_ndtr(-distance)


def curvature(score, comparisons):
    """Return minus the second derivatives of the log posterior, by finite differences."""
    step, unit = 1e-4, np.eye(len(score))
    value = lambda a, b: negative_log_posterior(score + step * (a + b), comparisons)  # noqa: E731
    return np.array(
        [[(value(a, b) - value(a, -b) - value(-a, b) + value(-a, -b)) / (4 * step * step) for a in unit] for b in unit]
    )


def test_one_win_by_hand():
    """The difference was Normal(0, 2); after a win its density is that times Phi, whose moments are known."""
    joint = nothing_known(2)
    joint.learn_comparison(0, 1, 1)
    surprise = norm.pdf(0) / norm.cdf(0)  # 0.7979
    assert joint.mean[0] - joint.mean[1] == pytest.approx(2 / np.sqrt(3) * surprise)
    assert joint.difference_variance[0, 1] == pytest.approx(2 - 4 / 3 * surprise**2, rel=1e-6)


def test_a_win_moves_the_difference_as_numerical_integration_has_it():
    joint = nothing_known(3)
    joint.learn_comparison(0, 1, 1)
    mean, variance = joint.mean[0] - joint.mean[1], joint.difference_variance.item(0, 1)
    joint.learn_comparison(1, 0, 1)
    x = np.linspace(-12, 12, 200_001)
    density = norm.pdf(x, mean, np.sqrt(variance)) * norm.cdf(-x)
    density /= density.sum()
    assert joint.mean[0] - joint.mean[1] == pytest.approx(density @ x, abs=1e-5)
    assert joint.difference_variance[0, 1] == pytest.approx(density @ x**2 - (density @ x) ** 2, rel=1e-4)


def test_the_fit_is_the_mode_with_the_curvature_there():
    rng = np.random.default_rng(5)
    comparisons = [(i, j, int(rng.integers(-1, 2))) for i, j in combinations(range(5), 2)] * 2
    joint = fit_joint_scores(*columns(comparisons), item_count=5)
    mode = minimize(negative_log_posterior, np.zeros(5), (comparisons,), tol=1e-12).x
    covariance = np.linalg.inv(curvature(mode, comparisons))
    variance = np.diag(covariance)
    assert joint.mean == pytest.approx(mode, abs=1e-4)
    assert joint.difference_variance == pytest.approx(variance[:, None] + variance - 2 * covariance, abs=1e-4)


def test_an_item_without_comparisons_stays_as_it_was():
    joint = fit_joint_scores([0, 1], [1, 0], [1, 1], item_count=3)
    assert joint.mean == pytest.approx([0, 0, 0], abs=1e-9)
    # The two were compared with each other alone, so the mean of the two is as uncertain as before: variance 1/2.
    own = joint.difference_variance[0, 1] / 4
    assert joint.difference_variance[0, 2] == pytest.approx(1 + 0.5 + own, rel=1e-6)


@given(comparisons=st.lists(comparison, min_size=1, max_size=40))
def test_a_comparison_makes_no_difference_less_certain(comparisons):
    joint = fit_joint_scores(*columns(comparisons[:1]), item_count=6)
    for first, second, outcome in comparisons[1:]:
        before = joint.difference_variance.copy()
        joint.learn_comparison(first, second, outcome)
        assert (joint.difference_variance <= before).all()
        assert joint.difference_variance[first, second] < before[first, second]
        assert (joint.difference_variance[~np.eye(6, dtype=bool)] > 0).all()
        assert joint.difference_variance == pytest.approx(joint.difference_variance.T)


def test_learning_one_by_one_comes_near_the_fit_of_all():
    rng = np.random.default_rng(2)
    truth = rng.normal(size=30)
    pairs = [rng.choice(30, 2, replace=False).tolist() for _ in range(300)]
    comparisons = [(i, j, 1 if rng.random() < norm.cdf(truth[i] - truth[j]) else -1) for i, j in pairs]
    by_one = fit_joint_scores(*columns(comparisons[:240]), item_count=30)
    for each in comparisons[240:]:
        by_one.learn_comparison(*each)
    at_once = fit_joint_scores(*columns(comparisons), item_count=30)
    assert np.corrcoef(by_one.mean, at_once.mean)[0, 1] > 0.999
    other = ~np.eye(30, dtype=bool)
    ratio = by_one.difference_variance[other] / at_once.difference_variance[other]
    assert 0.85 < ratio.min() <= ratio.max() < 1.2


def test_the_scores_and_their_uncertainty_are_recovered():
    """Squared errors of differences are as large as the variances say; Laplace's approximation is a little too sure."""
    rng = np.random.default_rng(4)
    squares = []
    for _ in range(150):
        truth = rng.normal(size=12)
        first = rng.integers(12, size=80)
        second = (first + rng.integers(1, 12, size=80)) % 12
        outcomes = np.where(rng.random(80) < norm.cdf(truth[first] - truth[second]), 1, -1)
        joint = fit_joint_scores(first, second, outcomes, item_count=12)
        i, j = np.triu_indices(12, 1)
        error = (joint.mean[i] - joint.mean[j]) - (truth[i] - truth[j])
        squares.append(np.mean(error**2 / joint.difference_variance[i, j]))
    assert np.mean(squares) == pytest.approx(1.05, abs=0.1)
