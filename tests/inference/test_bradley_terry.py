import choix
import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.observations.comparisons import count_pair_outcomes
from app.inference.preferences import bradley_terry, pairwise_scores
from app.inference.preferences.pairwise_scores import LikelihoodDerivatives, fit_pairwise_scores
from tests.inference.preferences import simulate_preferences

WINNER = {1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}


def log_likelihood_with_ties(parameters, first, second, outcomes):
    """Return the log-likelihood as Rao & Kupper write it, with strengths and theta."""
    strength, theta = np.exp(parameters[:-1]), np.exp(parameters[-1])
    i, j = strength[first], strength[second]
    won, lost = i / (i + theta * j), j / (theta * i + j)
    tied = (theta**2 - 1) * i * j / ((i + theta * j) * (theta * i + j))
    return np.log(np.select([outcomes == 1, outcomes == -1], [won, lost], tied)).sum()


def test_three_wins_out_of_four_are_the_logarithm_of_three():
    fit = bradley_terry.fit([0, 0, 1, 0], [1, 1, 0, 1], [1, 1, -1, -1], prior=0)
    np.testing.assert_allclose(fit.score, [np.log(3) / 2, -np.log(3) / 2])
    # The curvature in the difference is 4 * 3/4 * 1/4; the score is half the difference.
    np.testing.assert_allclose(fit.standard_error, np.sqrt(4 / 3) / 2)
    assert fit.log_likelihood == pytest.approx(3 * np.log(3 / 4) + np.log(1 / 4))
    assert np.isnan(fit.threshold)
    assert fit.notes == ()


def test_a_tie_is_half_a_win_for_each():
    with_ties = bradley_terry.fit([0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0], prior=0)
    np.testing.assert_allclose(with_ties.score, [np.log(3) / 2, -np.log(3) / 2])
    assert with_ties.notes == ("2 ties count as half a win for each of the two items.",)


def test_scores_are_those_of_evalica():
    rng = np.random.default_rng(5)
    first, second, outcomes = simulate_preferences(rng.normal(0, 1, 40), 3000, rng, threshold=0.5)
    ours = bradley_terry.fit(first, second, outcomes, n_items=40, prior=0)
    winners = [WINNER[outcome] for outcome in outcomes.tolist()]
    theirs = evalica.bradley_terry(first.tolist(), second.tolist(), winners, tolerance=1e-12, limit=10_000)
    np.testing.assert_allclose(np.exp(ours.score), theirs.scores.sort_index(), rtol=1e-6)


@pytest.mark.parametrize("prior", [0.0, 0.1, 3.0])
def test_scores_with_a_prior_are_those_of_choix(prior):
    rng = np.random.default_rng(6)
    first, second, outcomes = simulate_preferences(rng.normal(0, 1, 12), 300, rng)
    wins = [(i, j) if outcome > 0 else (j, i) for i, j, outcome in zip(first, second, outcomes, strict=True)]
    ours = bradley_terry.fit(first, second, outcomes, prior=prior)
    # choix adds alpha times the sum of squares, we half the precision times it.
    theirs = choix.opt_pairwise(12, wins, alpha=prior / 2, method="BFGS", tol=1e-9)
    np.testing.assert_allclose(ours.score, theirs - theirs.mean(), atol=1e-6)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(-1, 1)), min_size=1, max_size=60))
def test_swapping_first_and_second_changes_nothing_and_the_mean_is_0_in_each_group(rows):
    first, shift, outcomes = map(np.array, zip(*rows, strict=True))
    second = (first + shift) % 5
    fit = bradley_terry.fit(first, second, outcomes, n_items=5)
    swapped = bradley_terry.fit(second, first, -outcomes, n_items=5)
    np.testing.assert_array_equal(fit.score, swapped.score)
    for group in range(fit.group.max() + 1):
        assert fit.score[fit.group == group].mean() == pytest.approx(0, abs=1e-12)
    wins = np.bincount(first, 0.5 * (1 + outcomes), 5) + np.bincount(second, 0.5 * (1 - outcomes), 5)
    expected = expit(fit.score[first] - fit.score[second])
    predicted = np.bincount(first, expected, 5) + np.bincount(second, 1 - expected, 5)
    # At the maximum, wins are as many as predicted but for the pull of the prior.
    seen = fit.estimable
    np.testing.assert_allclose((wins - predicted)[seen], 0.1 * fit.score[seen], atol=1e-7)


def test_known_scores_and_their_errors_are_recovered():
    rng = np.random.default_rng(7)
    truth = rng.normal(0, 1, 30)
    truth -= truth.mean()
    fits = [bradley_terry.fit(*simulate_preferences(truth, 2000, rng), n_items=30, prior=0) for _ in range(40)]
    z = np.array([(fit.score - truth) / fit.standard_error for fit in fits])
    assert abs(z.mean()) < 0.1
    assert 0.9 < z.std() < 1.1


def test_many_items_are_fitted_without_a_dense_matrix_to_the_same_scores(monkeypatch):
    rng = np.random.default_rng(8)
    judgments = simulate_preferences(rng.normal(0, 1, 300), 6000, rng, threshold=0.4)
    dense = bradley_terry.fit(*judgments, n_items=300)
    with_ties = bradley_terry.fit_rao_kupper(*judgments, n_items=300)
    monkeypatch.setattr(pairwise_scores, "_DENSE_SOLVE", 10)
    monkeypatch.setattr(pairwise_scores, "_DENSE_INVERSE", 10)
    sparse = bradley_terry.fit(*judgments, n_items=300)
    np.testing.assert_allclose(sparse.score, dense.score, atol=1e-7)
    # 32 probes know a variance to a few per cent.
    np.testing.assert_allclose(sparse.standard_error, dense.standard_error, rtol=0.1)
    assert "estimates from 32 random probes" in sparse.notes[-1]
    sparse_with_ties = bradley_terry.fit_rao_kupper(*judgments, n_items=300)
    np.testing.assert_allclose(sparse_with_ties.score, with_ties.score, atol=1e-7)
    assert sparse_with_ties.threshold_error == pytest.approx(with_ties.threshold_error, rel=1e-5)


@pytest.mark.parametrize("prior", [0.0, 0.001])
def test_a_long_chain_of_items_is_fitted_by_factorising(prior, monkeypatch):
    monkeypatch.setattr(pairwise_scores, "_CG_LIMIT", 20)
    links = np.repeat(np.arange(600), 3)
    outcomes = np.tile([1, 1, -1], 600)
    fit = bradley_terry.fit(links, links + 1, outcomes, prior=prior)
    if prior == 0:
        np.testing.assert_allclose(np.diff(fit.score), -np.log(2), rtol=1e-6)
    else:
        assert (np.diff(fit.score) < 0).all()
    assert np.isfinite(fit.standard_error).all()


def test_errors_that_probes_cannot_tell_are_left_out_with_a_word(monkeypatch):
    monkeypatch.setattr(pairwise_scores, "_DENSE_INVERSE", 10)
    links = np.repeat(np.arange(100), 2)
    fit = bradley_terry.fit(links, links + 1, np.tile([1, -1], 100), prior=0)
    assert np.isnan(fit.standard_error).any()
    assert fit.estimable.all()
    assert "left out for" in fit.notes[-1]


def test_an_item_that_won_everything_has_a_score_with_the_prior_and_none_without():
    first, second, outcomes = [0, 0, 1, 2], [1, 2, 2, 1], [1, 1, 1, 1]
    with_prior = bradley_terry.fit(first, second, outcomes)
    assert with_prior.score[0] > with_prior.score[1] == pytest.approx(with_prior.score[2])
    without = bradley_terry.fit(first, second, outcomes, prior=0)
    assert without.estimable.tolist() == [False, True, True]
    assert np.isnan(without.score[0])
    assert np.isnan(without.standard_error[0])
    np.testing.assert_allclose(without.score[1:], 0, atol=1e-12)
    assert "no finite score for item 0" in without.notes[0]


def test_groups_that_never_met_are_named():
    fit = bradley_terry.fit([0, 0, 3, 4], [1, 1, 4, 5], [1, -1, 1, 1], n_items=7)
    assert fit.group.tolist() == [1, 1, -1, 0, 0, 0, -1]
    assert fit.estimable.tolist() == [True, True, False, True, True, True, False]
    unseen, apart = fit.notes
    assert unseen == "Nothing is known about items 2 and 6: no comparisons with other items."
    assert "2 groups that were never compared with each other" in apart
    assert "items 3, 4 and 5; items 0 and 1." in apart
    # Each group is as if it were alone.
    alone = bradley_terry.fit([0, 0], [1, 1], [1, -1])
    np.testing.assert_allclose(fit.score[:2], alone.score, atol=1e-12)
    np.testing.assert_allclose(fit.standard_error[:2], alone.standard_error)


def test_many_groups_are_counted_not_listed():
    first = np.arange(0, 20, 2)
    fit = bradley_terry.fit(first, first + 1, np.ones(10, dtype=int))
    assert fit.notes[0].endswith("items 6 and 7, and 6 other groups.")


def test_without_a_prior_groups_are_those_that_beat_each_other_both_ways():
    fit = bradley_terry.fit([0, 0, 2, 2, 1], [1, 1, 3, 3, 2], [1, -1, 1, -1, 1], prior=0)
    assert fit.group.tolist() == [0, 0, 1, 1]
    assert "did not beat or tie each other in both ways" in fit.notes[0]


def test_all_ties_leave_all_scores_equal_and_say_so():
    fit = bradley_terry.fit([0, 1], [1, 2], [0, 0])
    np.testing.assert_allclose(fit.score, 0, atol=1e-12)
    assert fit.notes == ("Every judgment is a tie, so all scores are equal.",)


def test_a_chain_of_wins_that_never_comes_back_is_inestimable_without_a_prior():
    with pytest.raises(Inestimable) as refusal:
        bradley_terry.fit([0, 1], [1, 2], [1, 1], prior=0)
    assert refusal.value.code == "one_way"


@pytest.mark.parametrize("bad", [{"prior": -1.0}, {"prior": np.nan}, {"tolerance": 0.0}])
def test_options_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        bradley_terry.fit([0], [1], [1], **bad)


def test_a_fit_that_runs_out_of_iterations_says_so(monkeypatch):
    monkeypatch.setattr(pairwise_scores, "_NEWTON_LIMIT", 2)
    with pytest.raises(NotConverged) as refusal:
        bradley_terry.fit([0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, -1], prior=0)
    assert refusal.value.code == "not_converged"


def test_two_items_give_rao_kupper_in_closed_form():
    # Shares .5, .3 and .2: score difference minus threshold is logit(.5), minus both logit(.2).
    fit = bradley_terry.fit_rao_kupper([0] * 10, [1] * 10, [1] * 5 + [0] * 3 + [-1] * 2, prior=0)
    np.testing.assert_allclose(fit.score[0] - fit.score[1], (logit(0.5) - logit(0.2)) / 2)
    assert fit.threshold == pytest.approx(-(logit(0.5) + logit(0.2)) / 2)
    assert fit.log_likelihood == pytest.approx(5 * np.log(0.5) + 3 * np.log(0.3) + 2 * np.log(0.2))


def test_rao_kupper_finds_the_maximum_of_its_formula_and_the_curvature_there():
    rng = np.random.default_rng(9)
    first, second, outcomes = simulate_preferences(rng.normal(0, 1, 6), 200, rng, threshold=0.5)
    ours = bradley_terry.fit_rao_kupper(first, second, outcomes, prior=0)

    def loss(free):
        scores, threshold = free[:5], free[5:]
        return -log_likelihood_with_ties(np.concatenate([scores, [-scores.sum()], threshold]), first, second, outcomes)

    theirs = minimize(loss, np.append(np.zeros(5), 0.3), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(ours.score[:5], theirs.x[:5], atol=1e-5)
    assert ours.threshold == pytest.approx(theirs.x[5], abs=1e-5)
    assert ours.log_likelihood == pytest.approx(-theirs.fun)
    step = 1e-4 * np.eye(6)
    curvature = [
        [
            (loss(theirs.x + a + b) - loss(theirs.x + a - b) - loss(theirs.x - a + b) + loss(theirs.x - a - b)) / 4e-8
            for a in step
        ]
        for b in step
    ]
    errors = np.sqrt(np.diagonal(np.linalg.inv(curvature)))
    np.testing.assert_allclose(ours.standard_error[:5], errors[:5], rtol=1e-3)
    assert ours.threshold_error == pytest.approx(errors[5], rel=1e-3)


def test_rao_kupper_recovers_scores_and_threshold():
    rng = np.random.default_rng(10)
    truth = rng.normal(0, 1, 20)
    truth -= truth.mean()
    fit = bradley_terry.fit_rao_kupper(*simulate_preferences(truth, 20_000, rng, threshold=0.7), prior=0)
    assert abs(fit.threshold - 0.7) < 3 * fit.threshold_error
    z = (fit.score - truth) / fit.standard_error
    assert abs(z).max() < 3.5
    assert 0.6 < z.std() < 1.4


def test_rao_kupper_without_ties_is_bradley_terry():
    judgments = [0, 0, 0, 1], [1, 1, 1, 2], [1, 1, -1, 1]
    with_ties, plain = bradley_terry.fit_rao_kupper(*judgments), bradley_terry.fit(*judgments)
    np.testing.assert_array_equal(with_ties.score, plain.score)
    assert with_ties.threshold == 0
    assert "no ties" in with_ties.notes[0]


@pytest.mark.parametrize("judgments", [([0, 1], [1, 2], [0, 0]), ([0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 0, 0])])
def test_rao_kupper_tells_nothing_from_ties_alone(judgments):
    with pytest.raises(Inestimable) as refusal:
        bradley_terry.fit_rao_kupper(*judgments)
    assert refusal.value.code == "all_ties"


def test_rao_kupper_without_a_prior_does_not_settle_where_nobody_beats_the_winner():
    # A win and a tie: likeliest if the difference and the threshold grow together without end.
    with pytest.raises(NotConverged):
        bradley_terry.fit_rao_kupper([0, 0], [1, 1], [1, 0], prior=0)
    assert np.isfinite(bradley_terry.fit_rao_kupper([0, 0], [1, 1], [1, 0]).score).all()


def test_any_start_of_the_threshold_leads_to_the_same_maximum():
    rng = np.random.default_rng(22)
    judgments = simulate_preferences(rng.normal(0, 1, 6), 300, rng, threshold=0.2)
    ours = bradley_terry.fit_rao_kupper(*judgments)
    for start in (1e-3, 8.0):
        fit = fit_pairwise_scores(
            count_pair_outcomes(*judgments), bradley_terry.rao_kupper_derivatives, prior=0.1, threshold=start
        )
        np.testing.assert_allclose(fit.score, ours.score, atol=1e-8)
        assert fit.threshold == pytest.approx(ours.threshold)


def test_a_link_whose_slope_leads_downhill_is_no_endless_loop():
    def wrong(comparisons, difference, threshold, /):
        return LikelihoodDerivatives(
            -float(difference.sum()), slope=np.ones_like(difference), bend=np.ones_like(difference)
        )

    with pytest.raises(NotConverged):
        fit_pairwise_scores(count_pair_outcomes([0], [1], [1]), wrong, prior=0.1)


def test_many_small_groups_beside_a_large_one_have_the_errors_they_have_alone(monkeypatch):
    monkeypatch.setattr(pairwise_scores, "_SMALL_GROUP", 5)
    rng = np.random.default_rng(23)
    parts = [simulate_preferences(rng.normal(0, 1, items), 60 * items, rng) for items in (30, 4, 3, 3, 2, 2, 2)]
    offsets = np.cumsum([0, 30, 4, 3, 3, 2, 2])
    joined = [np.concatenate(side) for side in zip(*parts, strict=True)]
    shifts = np.repeat(offsets, [part[0].size for part in parts])
    together = bradley_terry.fit(joined[0] + shifts, joined[1] + shifts, joined[2])
    for part, offset in zip(parts, offsets.tolist(), strict=True):
        alone = bradley_terry.fit(*part)
        own = slice(offset, offset + alone.score.size)
        np.testing.assert_allclose(together.score[own], alone.score, atol=1e-8)
        np.testing.assert_allclose(together.standard_error[own], alone.standard_error, rtol=1e-6)
