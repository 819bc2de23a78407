import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from app.inference.systems import graded_response
from app.inference.systems.graded_marginal import Prior
from benchmarks.systems.graded_response_online import choose, expected_gain, fit, learn, start, update

pytestmark = pytest.mark.slow

mean = st.floats(-3, 3)
logarithm = st.tuples(st.floats(-1.5, 1.5), st.floats(1e-3, 2))
location = st.tuples(mean, st.floats(1e-4, 5))


def log_likelihood(point, outcome):
    theta, centre, log_width, log_a = point
    a, half = np.exp(log_a), np.exp(log_width) / 2
    z1, z2 = a * (theta - centre + half), a * (theta - centre - half)
    tie = -np.logaddexp(0, -z1) - np.logaddexp(0, z2) + np.log(-np.expm1(z2 - z1))
    return {1: -np.logaddexp(0, -z2), 0: tie, -1: -np.logaddexp(0, z1)}[outcome]


def draw_judgments(judgments, systems, judges, segments, *, seed):
    rng = np.random.default_rng(seed)
    theta, log_a = rng.normal(0, math.sqrt(2), systems), rng.normal(math.log(1.7), 0.6, judges)
    centre, width = rng.normal(0, 1.0, segments), rng.lognormal(0, 0.4, segments)
    i, k, j = (rng.integers(count, size=judgments) for count in (systems, judges, segments))
    chances = [expit(np.exp(log_a[k]) * (theta[i] - centre[j] + side * width[j] / 2)) for side in (1, -1)]
    outcomes = (rng.random(judgments) < np.array(chances)).sum(axis=0) - 1
    return (i, k, j, outcomes), theta, log_a


FRESH = ((0.0, 2.0), (0.0, 2.0), (0.0, 1.0), (0.53, 1.0))
KNOWN = ((1.2, 0.1), (-0.4, 0.05), (0.3, 0.2), (0.2, 0.3))
SURPRISING = ((2.0, 0.5), (-1.0, 0.3), (-0.5, 0.5), (1.0, 0.2))


def test_update_has_the_moments_of_prior_times_likelihood(subtests):
    for outcome in (-1, 0, 1):
        for beliefs, error in ((FRESH, 0.05), (KNOWN, 0.01), (SURPRISING, 0.02)):
            with subtests.test(outcome=outcome, beliefs=beliefs, error=error):
                # A plain sum over a grid of all four, where the update integrates over three.
                axes = [mean + math.sqrt(variance) * np.linspace(-5, 5, 27) for mean, variance in beliefs]
                points = np.meshgrid(*axes, indexing="ij")
                squares = sum((x - m) ** 2 / v for x, (m, v) in zip(points, beliefs, strict=True))
                density = np.exp(log_likelihood(points, outcome) - squares / 2)
                density /= density.sum()
                theta, centre, log_width, log_a = beliefs
                after = update(theta, centre, log_width, log_a, outcome)
                for x, (_, prior), (mean, variance) in zip(points, beliefs, after, strict=True):
                    assert mean == pytest.approx(np.sum(density * x), abs=error * math.sqrt(prior))
                    assert variance == pytest.approx(np.sum(density * (x - mean) ** 2), rel=error)


@settings(max_examples=100)
@given(theta=location, centre=location, log_width=logarithm, log_a=logarithm)
def test_expected_beliefs_after_a_judgment_are_those_before(theta, centre, log_width, log_a):
    beliefs = theta, centre, log_width, log_a
    chance = [math.exp(log_evidence(beliefs, outcome)) for outcome in (-1, 0, 1)]
    assert sum(chance) == pytest.approx(1.0)
    after = [update(*beliefs, outcome) for outcome in (-1, 0, 1)]
    for position, (mean, variance) in enumerate(beliefs):
        means = [moved[position][0] for moved in after]
        assert np.dot(chance, means) == pytest.approx(mean, abs=1e-6)
        spread = [moved[position][1] + (moved[position][0] - mean) ** 2 for moved in after]
        assert np.dot(chance, spread) == pytest.approx(variance, rel=1e-6, abs=1e-8)


def log_evidence(beliefs, outcome):
    """By the same nodes as the update, so that the law of total expectation holds to rounding."""
    (theta, theta_variance), (centre, centre_variance), width, a = beliefs
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in (31, 7, 7)]
    apart = theta - centre + math.sqrt(theta_variance + centre_variance) * rules[0][0]
    log_width, log_a = (
        mean + math.sqrt(variance) * x for (mean, variance), (x, _) in zip((width, a), rules[1:], strict=True)
    )
    point = np.meshgrid(apart, [0.0], log_width, log_a, indexing="ij")
    weight = np.einsum("i,j,k->ijk", *(w / w.sum() for _, w in rules))[:, None]
    return math.log(np.sum(weight * np.exp(log_likelihood(point, outcome))))


def test_update_of_performance_alone_has_the_moments_of_its_posterior():
    sure = 1e-14
    (theta, variance), *_ = update((0.3, 2.0), (0.0, sure), (0.0, sure), (math.log(1.7), sure), 1)
    x = np.linspace(-15, 15, 20001)
    density = np.exp(-((x - 0.3) ** 2) / 4) * expit(1.7 * (x - 0.5))
    density /= density.sum()
    assert theta == pytest.approx(density @ x, abs=2e-4)
    assert variance == pytest.approx(density @ (x - theta) ** 2, rel=2e-3)


@pytest.mark.parametrize("outcome", [-1, 1])
def test_judgment_that_nobody_could_foresee_says_nothing_about_the_judge(outcome):
    # Winning and losing are equally likely whatever the sensitivity. The mode of all four would praise the judge.
    *_, (log_a, variance) = update((0.0, 2.0), (0.0, 1.0), (-12.0, 1e-9), (0.5, 0.2), outcome)
    assert (log_a, variance) == pytest.approx((0.5, 0.2), abs=1e-4)


def test_impossible_looking_outcome_still_gives_numbers():
    for outcome in (-1, 0):
        beliefs = update((5000.0, 1.0), (-5000.0, 1.0), (0.0, 1.0), (1.0, 1e-12), outcome)
        assert all(math.isfinite(mean) and variance > 0 for mean, variance in beliefs)


@pytest.mark.parametrize("outcome", [-1, 1])
def test_uncertain_judge_moves_a_system_less_than_a_proven_one(outcome):
    moved = [
        abs(update((0.0, 1.0), (0.0, 1e-9), (0.0, 1e-9), (log_a, 1e-9), outcome)[0][0]) for log_a in (-2.0, 0.0, 1.0)
    ]
    assert moved == sorted(moved)


def test_winning_and_losing_mirror_each_other():
    won = update((0.4, 1.0), (0.1, 0.5), (0.2, 0.3), (0.5, 0.4), 1)
    lost = update((-0.4, 1.0), (-0.1, 0.5), (0.2, 0.3), (0.5, 0.4), -1)
    for (mean_won, variance_won), (mean_lost, variance_lost), sign in zip(won, lost, (-1, -1, 1, 1), strict=True):
        assert mean_won == pytest.approx(sign * mean_lost, abs=1e-12)
        assert variance_won == pytest.approx(variance_lost)


def test_unknown_outcome_is_refused():
    with pytest.raises(ValueError, match="not 2"):
        update((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), 2)


def test_replay_gives_the_same_bits_as_judging_live():
    columns, *_ = draw_judgments(400, 5, 4, 6, seed=1)
    live = start(n_items=5, n_annotators=4, n_segments=6)
    for judgment in zip(*(column.tolist() for column in columns), strict=True):
        learn(live, *judgment)
    replayed = fit(*columns)
    for name in ("score", "theta_variance", "difficulty", "log_width_variance", "sensitivity", "log_a_variance"):
        np.testing.assert_array_equal(getattr(live, name), getattr(replayed, name))
    assert replayed.judgments.sum() == 400


def test_online_scores_agree_with_the_batch_fit_and_the_truth():
    columns, theta, log_a = draw_judgments(4000, 10, 20, 20, seed=2)
    online, batch = fit(*columns), graded_response.fit(*columns, with_errors=False)
    assert np.corrcoef(online.score, batch.score)[0, 1] > 0.99
    assert np.corrcoef(online.score, theta)[0, 1] > 0.99
    assert np.corrcoef(online.log_a, log_a)[0, 1] > 0.85
    assert np.all(online.difficulty[:, 0] < online.difficulty[:, 1])
    assert np.all(online.standard_error < 0.2)


def test_before_any_judgment_everything_is_the_prior():
    posterior = fit([], [], [], [], n_items=2, n_annotators=1, n_segments=3, prior=Prior(tau=0.5))
    assert posterior.score.tolist() == [0.0, 0.0]
    assert posterior.standard_error.tolist() == [0.5, 0.5]
    assert posterior.estimable.tolist() == [False, False]
    assert posterior.sensitivity == pytest.approx(1.7)
    np.testing.assert_allclose(posterior.difficulty, [(-0.5, 0.5)] * 3)


def test_all_ties_leave_systems_equal_and_segments_wide():
    posterior = fit([0, 1] * 20, [0] * 40, [0, 0, 1, 1] * 10, [0] * 40)
    np.testing.assert_allclose(posterior.score, 0.0, atol=1e-9)
    assert np.all(np.diff(posterior.difficulty) > 1.5)


def test_gain_is_that_of_item_information_when_segment_and_judge_are_known():
    posterior = start(n_items=3, n_annotators=2, n_segments=2)
    posterior.theta[:] = [-1.0, 0.0, 2.0]
    posterior.log_width[:] = [0.0, 0.7]
    for variance in (posterior.centre_variance, posterior.log_width_variance, posterior.log_a_variance):
        variance[:] = 1e-15
    information = graded_response.item_information(posterior.theta[:, None], posterior.difficulty, 1.7)
    np.testing.assert_allclose(expected_gain(posterior, 1), 0.5 * np.log1p(2.0 * information), rtol=1e-9)


def test_gain_is_the_schur_complement_of_the_expected_information():
    posterior = start(n_items=1, n_annotators=1, n_segments=1)
    posterior.theta[0], posterior.centre[0] = 0.8, -0.3
    point, step = np.array([0.8, -0.3, 0.0, math.log(1.7)]), 1e-6
    fisher = np.diag(1 / np.array([np.inf, 2.0, 1.0, 1.0]))
    for outcome in (-1, 0, 1):
        slope = [
            (log_likelihood(point + d, outcome) - log_likelihood(point - d, outcome)) / (2 * step)
            for d in step * np.eye(4)
        ]
        fisher += math.exp(log_likelihood(point, outcome)) * np.outer(slope, slope)
    left = 1 / np.linalg.inv(fisher)[0, 0]
    assert expected_gain(posterior, 0)[0, 0] == pytest.approx(0.5 * math.log1p(2.0 * left), rel=1e-6)


def test_gain_is_finite_far_from_every_difficulty():
    posterior = start(n_items=2, n_annotators=1, n_segments=1)
    posterior.theta[:] = [-3000.0, 3000.0]
    gain = expected_gain(posterior, 0)
    assert np.all((gain >= 0) & (gain < 1e-6))


def test_most_uncertain_system_is_asked_on_the_segment_near_it():
    posterior = start(n_items=2, n_annotators=1, n_segments=3)
    posterior.theta[:], posterior.theta_variance[:] = [1.0, 1.0], [0.1, 1.0]
    posterior.centre[:] = [-3.0, 1.0, 4.0]
    posterior.centre_variance[:] = 0.1
    assert choose(posterior, 0, np.random.default_rng(1)) == (1, 1)
    allowed = np.ones((2, 3), dtype=bool)
    allowed[1] = False
    assert choose(posterior, 0, np.random.default_rng(1), allowed=allowed) == (0, 1)
    assert choose(posterior, 0, np.random.default_rng(1), allowed=np.zeros((2, 3), dtype=bool)) is None


def test_equal_choices_are_drawn_not_taken_by_number():
    posterior = start(n_items=3, n_annotators=1, n_segments=2)
    rng = np.random.default_rng(1)
    assert {choose(posterior, 0, rng) for _ in range(100)} == set(itertools.product(range(3), range(2)))


def judged_by_choice(theta, budget, *, active, seed):
    """How far the scores agree with the truth after so many judgments by one campaign's judges."""
    rng = np.random.default_rng(seed)
    judges, segments = 6, 40
    centre, a = np.random.default_rng(99).normal(0, 1.5, segments), np.exp(rng.normal(0.5, 0.4, judges))
    posterior = start(n_items=len(theta), n_annotators=judges, n_segments=segments)
    allowed = np.ones((judges, len(theta), segments), dtype=bool)
    for judgment in range(budget):
        judge = judgment % judges
        picked = choose(posterior, judge, rng, allowed=allowed[judge]) if active else None
        item, segment = picked or divmod(int(rng.choice(np.flatnonzero(allowed[judge]))), segments)
        allowed[judge, item, segment] = False
        chances = [expit(a[judge] * (theta[item] - centre[segment] + side)) for side in (0.5, -0.5)]
        learn(posterior, item, judge, segment, int((rng.random() < np.array(chances)).sum()) - 1)
    return np.corrcoef(posterior.score, theta)[0, 1]


def test_active_choice_needs_fewer_judgments():
    theta = np.linspace(-2, 2, 12)
    means = {
        active: np.mean([judged_by_choice(theta, 96, active=active, seed=seed) for seed in range(8)])
        for active in (True, False)
    }
    assert means[True] > means[False] + 0.01
