"""Errors of annotator-aware Bradley-Terry from draws of the joint posterior, against oracles that share no code."""

import numpy as np
import pytest
from scipy.special import expit, log_expit

from app.inference.ground.inestimable import Inestimable
from app.inference.preferences import aware_bradley_terry, aware_bradley_terry_draws
from app.inference.preferences.aware_bradley_terry_draws import KIND_PRIOR
from tests.inference.test_aware_bradley_terry import crowd_of, judged_pairs


def fit_with_sampled_errors(*judged, **sizes):
    return aware_bradley_terry_draws.fit_with_sampled_errors(*judged, rng=np.random.default_rng(35), **sizes)


GRID = np.round(np.arange(-1.6, 3.01, 0.2), 1)
STEPS_PER_LOOK_AT_ANNOTATORS = 5


def annotator_chances_and_log_marginal_likelihood(votes, scores, spread_squared, shares):
    """Posterior of each annotator's discrimination on the grid, (K, 24, C), for C states, and the log-likelihood of the
    states, (C,), with kinds and discriminations of annotators summed out.

    `votes` has for each annotator the first items, the second items, and how often each of the two won.
    """
    total, chances = np.zeros(len(scores)), []
    densities = [np.exp(-((GRID[:, None] - centre) ** 2) / (2.0 * spread_squared)) for centre in (1.0, -1.0)]
    careful, misled = (density / density.sum(axis=0) for density in densities)
    prior = shares[:, 0] * careful + shares[:, 1] * (GRID == 0.0)[:, None] + shares[:, 2] * misled
    for first, second, wins, losses in votes:
        tilt = GRID[:, None, None] * (scores[:, first] - scores[:, second])
        joint = prior * np.exp(log_expit(tilt) @ wins + log_expit(-tilt) @ losses)  # (24, C)
        total += np.log(joint.sum(axis=0))
        chances.append(joint / joint.sum(axis=0))
    return np.array(chances), total


def quantiles_of_grid(chances):
    """2.5 % and 97.5 % quantiles, (2,), by many equal draws of a value of the grid and a place in its cell."""
    counts = np.round(1e6 * np.asarray(chances)).astype(np.int64)
    places = [value + 0.2 * ((np.arange(n) + 0.5) / n - 0.5) for value, n in zip(GRID, counts, strict=True)]
    return np.quantile(np.concatenate(places), (0.025, 0.975))


def metropolis_moments(votes, start, rng, *, chains=100, steps=1500, burn_in=300):
    """Mean and mean square of the centred scores, the mean of their spread, and the posterior of each discrimination on
    the grid, (K, 24), by random-walk Metropolis.

    States are scores, the logarithms of their standard deviation and of s^2, and logarithms of the odds of the kinds.
    """
    n_items = len(start)

    def log_density(scores, log_sd, log_spread, log_odds):
        spread_squared = np.exp(log_spread)
        shares = np.exp(log_odds - np.logaddexp.reduce(log_odds, axis=1)[:, None])
        density = annotator_chances_and_log_marginal_likelihood(votes, scores, spread_squared, shares)[1]
        density += -0.5 * (scores**2).sum(axis=1) * np.exp(-2.0 * log_sd) - (n_items - 1) * log_sd
        # s^2 is scaled inverse chi-squared with 4 degrees of freedom around .1, in terms of its logarithm.
        density += -2.0 * log_spread - 0.2 / spread_squared
        # Gammas whose shares have a Dirichlet distribution, in terms of their logarithms.
        density += (KIND_PRIOR * log_odds - np.exp(log_odds)).sum(axis=1)
        return np.where((log_sd < 0.5 * np.log(10.0)) & (log_spread < 0.0), density, -np.inf)

    state = [
        start + 0.1 * rng.normal(size=(chains, n_items)),
        np.zeros(chains),
        np.full(chains, np.log(0.1)),
        np.tile(np.log(KIND_PRIOR), (chains, 1)),
    ]
    density, total, squares, spread, chances = log_density(*state), 0.0, 0.0, 0.0, 0.0
    for step in range(-burn_in, steps):
        size, log_jacobian = 0.5 * np.exp(rng.normal()), 0.0
        if step % 2:
            proposal = [part + size * rng.normal(size=part.shape) for part in state]
        else:  # the scale of the scores alone
            log_factor = size * rng.normal(size=chains)
            proposal = [np.exp(log_factor)[:, None] * state[0], state[1] + log_factor, *state[2:]]
            log_jacobian = n_items * log_factor
        proposed = log_density(*proposal)
        accepted = np.log(rng.random(chains)) < proposed - density + log_jacobian
        density = np.where(accepted, proposed, density)
        for old, new in zip(state, proposal, strict=True):
            old[accepted] = new[accepted]
        if step >= 0:
            centred = state[0] - state[0].mean(axis=1, keepdims=True)
            total = total + centred.mean(axis=0) / steps
            squares = squares + (centred**2).mean(axis=0) / steps
            spread += float(np.exp(state[1]).mean()) / steps
        if step >= 0 and step % STEPS_PER_LOOK_AT_ANNOTATORS == 0:
            scores, _, log_spread, log_odds = state
            shares = np.exp(log_odds - np.logaddexp.reduce(log_odds, axis=1)[:, None])
            given = annotator_chances_and_log_marginal_likelihood(votes, scores, np.exp(log_spread), shares)[0]
            chances = chances + given.mean(axis=2) * STEPS_PER_LOOK_AT_ANNOTATORS / steps
    return total, squares, spread, chances


def pair_wins_by_annotator(judged, n_annotators):
    """Return first items, second items, and wins of the first and of the second, for all pairs of three items."""
    first, second, outcomes, annotators = judged
    pairs = np.array([[0, 0, 1], [1, 2, 2]])
    low_won = outcomes * np.sign(second - first)
    counts = np.zeros((n_annotators, 2, 3), dtype=np.int64)
    np.add.at(counts, (annotators, (low_won < 0).astype(int), first + second - 1), 1)
    return [(*pairs, *own) for own in counts]


@pytest.mark.parametrize("discriminations", [(1.0, 1.2, 0.8, 0.0), (1.0, 0.7, 1.0, 1.3)])
def test_estimates_of_many_draws_are_those_of_a_long_metropolis_run(discriminations, monkeypatch):
    monkeypatch.setattr(aware_bradley_terry_draws, "DRAWS", 3000)
    rng = np.random.default_rng(80)
    judged = judged_pairs(np.array([-1.5, 0.0, 1.5]), discriminations, 80, rng)
    fit = fit_with_sampled_errors(*judged, n_items=3, n_annotators=4)
    fitted = aware_bradley_terry.fit(*judged).score
    mean, squares, spread, chances = metropolis_moments(pair_wins_by_annotator(judged, 4), fitted, rng)
    score = fitted * (fitted @ mean) / (fitted @ fitted)
    error = np.sqrt(squares - 2.0 * score * mean + score**2)
    np.testing.assert_allclose(fit.score, score, atol=0.15 * error.mean())
    np.testing.assert_allclose(fit.standard_error, error, rtol=0.12)
    assert fit.score_spread == pytest.approx(spread, rel=0.1)
    np.testing.assert_allclose(fit.discrimination, chances @ GRID, atol=0.05)
    np.testing.assert_allclose(
        fit.discrimination_error**2 + fit.discrimination**2, chances @ GRID**2, rtol=0.06, atol=0.02
    )
    low, high = np.array([quantiles_of_grid(own) for own in chances]).T
    np.testing.assert_allclose(fit.discrimination_low, low, atol=0.1)
    np.testing.assert_allclose(fit.discrimination_high, high, atol=0.1)


def posterior_of_equal_wins(wins):
    """By hand, after so many wins of either of two items by one annotator: probabilities of the discriminations of the
    grid and of the differences d ~ N(0, 2 sd^2), which have the likelihood (S(a d) S(-a d))^wins, and these d.
    """
    sd = np.linspace(0.005, np.sqrt(10.0) - 0.005, 317)[:, None]
    d = np.linspace(-25.0, 25.0, 4001)
    spread_squared = np.exp(np.linspace(np.log(0.005), 0.0, 400))
    weight = spread_squared**-2.0 * np.exp(-0.2 / spread_squared)  # of log s^2
    densities = [np.exp(-((GRID[:, None] - centre) ** 2) / (2.0 * spread_squared)) for centre in (1.0, -1.0)]
    attentive, misled = (density / density.sum(axis=0) @ weight / weight.sum() for density in densities)
    shares = KIND_PRIOR / KIND_PRIOR.sum()
    prior = shares[0] * attentive + shares[1] * (GRID == 0.0) + shares[2] * misled
    likelihood = (expit(GRID[:, None] * d) * expit(-GRID[:, None] * d)) ** wins
    joint = prior[:, None] * likelihood * (np.exp(-(d**2) / (4.0 * sd**2)) / sd).sum(axis=0)
    return joint / joint.sum(), d


def test_one_win_for_each_of_two_items_leaves_a_score_of_0_with_the_error_of_a_numeric_integral():
    fit = fit_with_sampled_errors([0, 1], [1, 0], [1, 1], [0, 0], n_items=2, n_annotators=1)
    np.testing.assert_array_equal(fit.score, 0.0)
    posterior, d = posterior_of_equal_wins(1)
    error = np.sqrt(posterior.sum(axis=0) @ d**2) / 2.0  # a score is d / 2
    np.testing.assert_allclose(fit.standard_error, error, rtol=0.08)


def test_two_wins_for_each_of_two_items_leave_the_discrimination_of_a_numeric_integral(monkeypatch):
    monkeypatch.setattr(aware_bradley_terry_draws, "DRAWS", 4000)
    fit = fit_with_sampled_errors([0, 1] * 2, [1, 0] * 2, [1, 1] * 2, [0, 0] * 2, n_items=2, n_annotators=1)
    chances = posterior_of_equal_wins(2)[0].sum(axis=1)
    mean = chances @ GRID
    assert fit.discrimination[0] == pytest.approx(mean, abs=0.03)
    assert fit.discrimination_error[0] == pytest.approx(np.sqrt(chances @ (GRID - mean) ** 2), abs=0.03)
    np.testing.assert_allclose(
        [fit.discrimination_low[0], fit.discrimination_high[0]], quantiles_of_grid(chances), atol=0.05
    )


def campaign(seed=4, judgments=240):
    rng = np.random.default_rng(seed)
    return judged_pairs(rng.normal(0, 1.5, 24), crowd_of(0.2, rng, annotators=8), judgments, rng)


def sampled(judged):
    return fit_with_sampled_errors(*judged, n_items=24, n_annotators=8)


def test_the_same_judgments_give_the_same_bits_whatever_their_order_and_that_of_each_pair(monkeypatch):
    monkeypatch.setattr(aware_bradley_terry_draws, "DRAWS", 200)
    first, second, outcomes, annotators = campaign()
    fit, order = sampled((first, second, outcomes, annotators)), np.random.default_rng(1).permutation(len(first))
    for other in (
        sampled((first, second, outcomes, annotators)),
        sampled((second, first, -outcomes, annotators)),
        sampled((first[order], second[order], outcomes[order], annotators[order])),
    ):
        np.testing.assert_array_equal(other.score, fit.score)
        np.testing.assert_array_equal(other.standard_error, fit.standard_error)
        np.testing.assert_array_equal(other.discrimination, fit.discrimination)
        np.testing.assert_array_equal(other.discrimination_error, fit.discrimination_error)
        np.testing.assert_array_equal(other.discrimination_low, fit.discrimination_low)
        np.testing.assert_array_equal(other.discrimination_high, fit.discrimination_high)


def test_the_numbers_of_items_and_annotators_do_not_matter():
    first, second, outcomes, annotators = campaign()
    fit, new = sampled((first, second, outcomes, annotators)), np.random.default_rng(2).permutation(24)
    other = sampled((new[first], new[second], outcomes, 7 - annotators))
    np.testing.assert_allclose(other.score[new], fit.score, atol=1e-3)
    np.testing.assert_allclose(other.standard_error[new], fit.standard_error, rtol=1e-3)
    np.testing.assert_allclose(other.discrimination[::-1], fit.discrimination, atol=1e-3)
    np.testing.assert_allclose(other.discrimination_low[::-1], fit.discrimination_low, atol=1e-2)


def test_reversing_every_answer_reverses_the_scores_and_keeps_their_errors():
    first, second, outcomes, annotators = campaign()
    fit, flipped = sampled((first, second, outcomes, annotators)), sampled((first, second, -outcomes, annotators))
    np.testing.assert_allclose(flipped.score, -fit.score, atol=0.2 * fit.standard_error.mean())
    assert flipped.standard_error.mean() == pytest.approx(fit.standard_error.mean(), rel=0.1)


def test_items_keep_the_order_of_the_fit_and_annotators_its_probabilities():
    judged = campaign()
    fit, known_spread = sampled(judged), aware_bradley_terry.fit(*judged, n_items=24, n_annotators=8)
    ratio = fit.score / known_spread.score
    np.testing.assert_allclose(ratio, ratio[0])
    assert ratio[0] > 0.0
    np.testing.assert_array_equal(fit.random, known_spread.random)
    np.testing.assert_array_equal(fit.reversed, known_spread.reversed)


def test_intervals_of_discriminations_are_those_of_annotators_with_three_pairs_and_no_others():
    few = [(0, 1, 1, 8), (1, 2, 1, 8), (2, 3, 0, 8)]  # two decided pairs and a tie
    judged = (np.append(column, added) for column, added in zip(campaign(), zip(*few, strict=True), strict=True))
    fit = fit_with_sampled_errors(*judged, n_items=24, n_annotators=10)
    for column in (fit.discrimination, fit.discrimination_error, fit.discrimination_low, fit.discrimination_high):
        np.testing.assert_array_equal(np.isfinite(column), [True] * 8 + [False, False])
    assert (fit.discrimination_low < fit.discrimination)[:8].all()
    assert (fit.discrimination < fit.discrimination_high)[:8].all()


def test_intervals_contain_the_truth_with_few_comparisons_where_those_with_a_known_spread_do_not():
    held: list[float] = []
    known_spread_held: list[float] = []
    sampled_discriminations_held: list[float] = []
    known_spread_discriminations_held: list[float] = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 135])
        truth, discriminations = rng.normal(0, 1.5, 100), crowd_of(0.15, rng)
        judged = judged_pairs(truth, discriminations, 250, rng)
        for found, found_discriminations, fit in (
            (held, sampled_discriminations_held, fit_with_sampled_errors(*judged, n_items=100, n_annotators=20)),
            (
                *(known_spread_held, known_spread_discriminations_held),
                aware_bradley_terry.fit(*judged, n_items=100, n_annotators=20),
            ),
        ):
            main = fit.group == 0
            apart = np.abs(fit.score - truth + truth[main].mean())[main]
            found.append((apart <= 1.96 * fit.standard_error[main]).mean())
            is_inside = (fit.discrimination_low <= discriminations) & (discriminations <= fit.discrimination_high)
            found_discriminations.append(is_inside.mean())
    assert np.mean(held) >= 0.93
    assert np.mean(known_spread_held) < 0.9
    assert np.mean(sampled_discriminations_held) >= 0.93
    assert np.mean(known_spread_discriminations_held) < 0.93


def test_groups_of_items_are_kept_apart_and_items_without_a_comparison_have_no_score():
    fit = fit_with_sampled_errors([0, 0, 2], [1, 1, 3], [1, 1, -1], [0, 1, 1], n_items=5, n_annotators=2)
    assert np.isnan(fit.score[4])
    assert np.isnan(fit.standard_error[4])
    assert fit.score[0] == pytest.approx(-fit.score[1])
    assert fit.score[2] == pytest.approx(-fit.score[3])
    assert (fit.standard_error[:4] > 0.0).all()


def test_ties_alone_give_scores_of_0_with_errors_and_say_nothing_about_annotators():
    fit = fit_with_sampled_errors([0, 1, 2], [1, 2, 0], [0, 0, 0], [0, 1, 0], n_items=3, n_annotators=2)
    np.testing.assert_allclose(fit.score, 0.0, atol=1e-9)
    assert (fit.standard_error > 0.0).all()


def test_many_items_get_nearly_the_errors_of_the_dense_solution(monkeypatch):
    judged = campaign(judgments=480)
    dense = sampled(judged)
    monkeypatch.setattr(aware_bradley_terry_draws, "MAX_DENSE_ITEMS", 10)
    sparse = sampled(judged)
    np.testing.assert_allclose(sparse.standard_error, dense.standard_error, rtol=0.1)
    np.testing.assert_allclose(sparse.score, dense.score, atol=0.1 * dense.standard_error.mean())


def test_too_many_votes_keep_the_errors_of_the_fit_and_a_note_says_so(monkeypatch):
    judged = campaign()
    monkeypatch.setattr(aware_bradley_terry_draws, "MAX_SAMPLED_VOTES", 20)
    fit, known_spread = sampled(judged), aware_bradley_terry.fit(*judged, n_items=24, n_annotators=8)
    np.testing.assert_array_equal(fit.standard_error, known_spread.standard_error)
    assert fit.notes[-1].code == "errors_with_known_spread"


def test_the_note_on_errors_without_opponents_is_left_out_where_errors_are_drawn(monkeypatch):
    monkeypatch.setattr(aware_bradley_terry_draws, "DRAWS", 8)
    first, annotators = np.arange(2100), np.arange(2100) % 5
    judged = first, (first + 1) % 2100, np.ones(2100, dtype=np.int64), annotators
    known_spread = aware_bradley_terry.fit(*judged)
    fit = fit_with_sampled_errors(*judged, n_items=2100, n_annotators=5)
    assert "errors_without_opponents" in {note.code for note in known_spread.notes}
    assert "errors_without_opponents" not in {note.code for note in fit.notes}


def test_without_a_judgment_or_with_bad_weights_there_are_no_draws():
    with pytest.raises(Inestimable) as refusal:
        fit_with_sampled_errors([], [], [], [], n_items=2, n_annotators=1)
    assert refusal.value.code == "no_judgments"
    with pytest.raises(ValueError, match="weights must be above 0"):
        fit_with_sampled_errors([0], [1], [1], [0], n_items=2, n_annotators=1, weights=[0.0])
