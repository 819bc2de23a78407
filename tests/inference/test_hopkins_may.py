import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from app.inference.ground.inestimable import Inestimable
from app.inference.observations.comparisons import PairOutcomeCounts
from app.inference.preferences import hopkins_may, thurstone
from app.inference.preferences.hopkins_may import hopkins_may_derivatives

SPREAD = np.sqrt(2 * (0.5**2 + 1.0**2))


def simulated(truth, judgments, rng):
    """Simulate the model literally: two outputs, a judge's noise on each, and a decision radius of 0.5."""
    first = rng.integers(truth.size, size=judgments)
    second = (first + rng.integers(1, truth.size, size=judgments)) % truth.size
    seen = [rng.normal(truth[side], 0.5) + rng.normal(0, 1.0, judgments) for side in (first, second)]
    difference = seen[0] - seen[1]
    return first, second, np.where(np.abs(difference) <= 0.5, 0, np.sign(difference)).astype(int)


def gibbs(first, second, outcomes, n_items, rng, *, sweeps):
    """Sample the model as Hopkins & May do: hidden differences given scores, then scores given hidden differences."""
    low = np.select([outcomes == 1, outcomes == 0], [0.5, -0.5], -np.inf)
    high = np.select([outcomes == -1, outcomes == 0], [-0.5, 0.5], np.inf)
    design = np.zeros((first.size, n_items))
    design[np.arange(first.size), first] = 1
    design[np.arange(first.size), second] = -1
    covariance = np.linalg.inv(design.T @ design / SPREAD**2 + np.eye(n_items))
    root, scores, draws = np.linalg.cholesky(covariance), np.zeros(n_items), []
    for _ in range(sweeps):
        mean = design @ scores
        chance = rng.uniform(norm.cdf(low, mean, SPREAD), norm.cdf(high, mean, SPREAD))
        hidden = norm.ppf(chance, mean, SPREAD)
        scores = covariance @ (design.T @ hidden) / SPREAD**2 + root @ rng.normal(size=n_items)
        draws.append(scores)
    return np.array(draws[sweeps // 10 :])


def test_one_win_moves_a_system_to_where_prior_and_likelihood_balance():
    fit = hopkins_may.fit([0], [1], [1])
    x = (2 * fit.score[0] - 0.5) / SPREAD
    # The slope of log Phi at the difference equals the prior's pull on each score.
    assert norm.pdf(x) / norm.cdf(x) / SPREAD == pytest.approx(fit.score[0])
    assert fit.log_likelihood == pytest.approx(norm.logcdf(x))


def test_scores_and_errors_are_those_of_sampling_the_posterior():
    rng = np.random.default_rng(13)
    first, second, outcomes = simulated(np.array([-0.8, 0.0, 0.1, 0.9]), 150, rng)
    fit = hopkins_may.fit(first, second, outcomes)
    draws = gibbs(first, second, outcomes, 4, rng, sweeps=4000)
    draws -= draws.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(fit.score, draws.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(fit.standard_error, draws.std(axis=0), rtol=0.06)


def test_known_scores_are_recovered():
    rng = np.random.default_rng(14)
    truth = rng.normal(0, 0.7, 15)
    fit = hopkins_may.fit(*simulated(truth, 12_000, rng), prior=0)
    z = (fit.score - truth + truth.mean()) / fit.standard_error
    assert abs(z).max() < 3.5
    assert 0.6 < z.std() < 1.5


@settings(max_examples=50)
@given(st.floats(-30, 30), st.floats(0.05, 3), st.integers(0, 5), st.integers(0, 5), st.integers(1, 5))
def test_slopes_are_those_of_the_value_however_far_out(difference, radius, wins, losses, ties):
    won, lost, tied = (np.array([float(count)]) for count in (wins, losses, ties))
    comparisons = PairOutcomeCounts(np.array([0]), np.array([1]), won, lost, tied, n_items=2)

    def likelihood_at(d):
        return hopkins_may_derivatives(comparisons, np.array([d]), 0.0, radius=radius, spread=1.3)

    here, step = likelihood_at(difference), 1e-4
    ahead, behind = likelihood_at(difference + step), likelihood_at(difference - step)
    assert here.slope[0] == pytest.approx((ahead.value - behind.value) / (2 * step), rel=1e-5, abs=1e-5)
    assert here.bend[0] == pytest.approx((behind.slope[0] - ahead.slope[0]) / (2 * step), rel=1e-4, abs=1e-5)


def test_ties_alone_leave_systems_equal_and_pull_them_together_otherwise():
    tied = hopkins_may.fit([0, 0], [1, 1], [0, 0])
    np.testing.assert_allclose(tied.score, 0, atol=1e-12)
    with_tie = hopkins_may.fit([0, 0], [1, 1], [1, 0])
    assert 0 < with_tie.score[0] < hopkins_may.fit([0], [1], [1]).score[0]


def test_without_a_radius_and_noise_of_one_half_it_is_thurstone():
    judgments = [0, 0, 0, 1], [1, 1, 2, 2], [1, -1, 1, 1]
    ours = hopkins_may.fit(*judgments, decision_radius=0, ability_sd=0, observation_sd=np.sqrt(0.5), prior=0.1)
    np.testing.assert_allclose(ours.score, thurstone.fit(*judgments).score, atol=1e-9)


@pytest.mark.parametrize("bad", [{"decision_radius": -0.1}, {"observation_sd": 0.0}, {"ability_sd": np.inf}])
def test_parameters_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        hopkins_may.fit([0], [1], [1], **bad)


def test_ties_with_a_radius_of_0_are_refused():
    with pytest.raises(ValueError, match="there can be none"):
        hopkins_may.fit([0, 0], [1, 1], [1, 0], decision_radius=0)


def test_no_comparisons_give_no_scores():
    with pytest.raises(Inestimable):
        hopkins_may.fit([], [], [])
