import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from app.inference.ground.inestimable import Inestimable
from app.inference.preferences import thurstone
from tests.inference.preferences import simulate_preferences


def test_three_wins_out_of_four_are_a_normal_quantile():
    fit = thurstone.fit([0, 0, 1, 0], [1, 1, 0, 1], [1, 1, -1, -1], prior=0)
    assert fit.score[0] - fit.score[1] == pytest.approx(norm.ppf(0.75))
    # Fisher's information in the difference is n phi^2 / (p (1 - p)); the score is half the difference.
    information = 4 * norm.pdf(norm.ppf(0.75)) ** 2 / (0.75 * 0.25)
    np.testing.assert_allclose(fit.standard_error, 0.5 / np.sqrt(information))


def test_scores_are_at_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(11)
    first, second, outcomes = simulate_preferences(rng.normal(0, 1, 5), 150, rng, threshold=0.3)

    def loss(free):
        scores = np.append(free, -free.sum())
        chance = norm.cdf(scores[first] - scores[second])
        return -(0.5 * (1 + outcomes) * np.log(chance) + 0.5 * (1 - outcomes) * np.log(1 - chance)).sum()

    theirs = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    ours = thurstone.fit(first, second, outcomes, prior=0)
    np.testing.assert_allclose(ours.score[:4], theirs.x, atol=1e-6)
    assert ours.log_likelihood == pytest.approx(-theirs.fun)


def test_known_scores_are_recovered():
    rng = np.random.default_rng(12)
    truth = rng.normal(0, 1, 20)
    first = rng.integers(20, size=8000)
    second = (first + rng.integers(1, 20, size=8000)) % 20
    outcomes = np.where(rng.normal(size=8000) < truth[first] - truth[second], 1, -1)
    fit = thurstone.fit(first, second, outcomes, prior=0)
    z = (fit.score - truth + truth.mean()) / fit.standard_error
    assert abs(z).max() < 3.5
    assert 0.6 < z.std() < 1.4


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(0, 400))
def test_the_score_of_two_items_grows_with_the_wins_however_one_sided(wins, losses):
    judgments = [0] * (wins + losses), [1] * (wins + losses)
    fewer = thurstone.fit(*judgments, [1] * (wins - 1) + [-1] * (losses + 1))
    more = thurstone.fit(*judgments, [1] * wins + [-1] * losses)
    assert more.score[0] > fewer.score[0]
    assert more.score.sum() == pytest.approx(0, abs=1e-12)


def test_ties_unseen_items_and_groups_are_told():
    fit = thurstone.fit([0, 2, 2], [1, 3, 3], [0, 1, 1], n_items=5)
    assert fit.notes[0] == "1 tie counts as half a win for each of the two items."
    assert "item 4" in fit.notes[1]
    assert "2 groups" in fit.notes[2]
    assert np.isnan(fit.score[4])


def test_without_a_prior_a_single_win_gives_no_score():
    with pytest.raises(Inestimable):
        thurstone.fit([0], [1], [1], prior=0)
