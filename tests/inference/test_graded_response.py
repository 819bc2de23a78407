import itertools
import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit

from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.observations.baseline import baseline_advice, positions_opponents_and_outcomes_of_baseline
from app.inference.systems import graded_marginal
from app.inference.systems.graded_marginal import (
    Prior,
    count_distinct_logistic_terms,
    log_marginal_and_gradient,
    observed_information_matrix_of_parameters,
    posterior_modes_and_curvatures,
    quadrature_nodes,
)
from app.inference.systems.graded_response import fit, item_information
from benchmarks.graded_response import measure_recovery, simulate_judgments, simulate_judgments_from_prior


def draw_judgments(judgments, systems, judges, segments, *, seed):
    """Return judgments with known parameters, which are drawn from near the prior."""
    rng = np.random.default_rng(seed)
    theta, log_a = rng.normal(0, math.sqrt(2), systems), rng.normal(math.log(1.7), 0.6, judges)
    centre, width = rng.normal(0, 1.0, segments), rng.lognormal(0, 0.4, segments)
    b = np.stack([centre - width / 2, centre + width / 2], axis=1)
    i, k, j = (rng.integers(count, size=judgments) for count in (systems, judges, segments))
    at_least = expit(np.exp(log_a)[k, None] * (theta[i, None] - b[j]))
    outcomes = (rng.random(judgments)[:, None] < at_least).sum(axis=1) - 1
    return SimpleNamespace(columns=(i, k, j, outcomes), theta=theta, log_a=log_a, b=b)


def in_units_of_the_paper(found):
    """Return sensitivities and difficulties at the maximum of section 5.1."""
    return found.sensitivity * found.unit, found.difficulty / found.unit


def probability(outcome, theta, a, lower, upper):
    """Return the probability of an outcome as section 4.1 prints it."""
    cumulative = [1.0, expit(a * (theta - lower)), expit(a * (theta - upper)), 0.0]
    return cumulative[outcome + 1] - cumulative[outcome + 2]


def test_marginal_likelihood_is_the_integral_over_each_systems_performance():
    data = draw_judgments(30, 2, 2, 2, seed=1)
    prior, a, b = Prior(), np.exp(data.log_a), data.b
    terms = count_distinct_logistic_terms(*data.columns)

    def integrand(theta, system):
        density = math.exp(-(theta**2) / (2 * prior.tau**2)) / (prior.tau * math.sqrt(2 * math.pi))
        rows = [row for row in zip(*data.columns, strict=True) if row[0] == system]
        return density * math.prod(probability(u, theta, a[k], *b[j]) for _, k, j, u in rows)

    likelihood = sum(math.log(quad(integrand, -9, 9, args=(s,), epsabs=0, epsrel=1e-10)[0]) for s in (0, 1))
    log_prior = -0.5 * np.sum((data.log_a - prior.mu_a) ** 2) - 0.5 * np.sum(((b - prior.mu_b) / 2.0) ** 2)
    barrier = 0.01 * np.sum(np.log(b[:, 1] - b[:, 0]))
    nodes = quadrature_nodes(*posterior_modes_and_curvatures(terms, prior, data.log_a, b.T.ravel()), prior, 21)
    value = log_marginal_and_gradient(terms, prior, data.log_a, b.T.ravel(), nodes)[0]
    assert value == pytest.approx(likelihood + log_prior + barrier, abs=1e-7)


def test_nodes_of_the_prior_are_those_of_the_paper_at_the_stated_variance():
    prior = Prior(tau=2.0)
    nodes = quadrature_nodes(np.zeros(1), np.array([prior.tau**-2]), prior, 21)
    weight = np.exp(nodes.log_weight[0])
    assert nodes.theta[0, 10] == 0.0  # "we set T = 21 to include x = 0"
    assert weight.sum() == pytest.approx(1.0, abs=1e-12)
    assert weight @ nodes.theta[0] ** 2 == pytest.approx(4.0, abs=1e-10)


@pytest.mark.parametrize(("adaptive", "count"), [(True, 101), (False, 21)])
def test_gradient_and_curvature_agree_with_finite_differences(adaptive, count, monkeypatch):
    # Nodes that follow the modes give the gradient of the integral, so there they must be enough to be exact.
    monkeypatch.setattr(graded_marginal, "_TERMS_AT_ONCE", 100)  # so that there are several blocks
    data = draw_judgments(300, 5, 4, 6, seed=2)
    terms, prior = count_distinct_logistic_terms(*data.columns), Prior(barrier=0.3)

    def nodes_at(log_a, b):
        mode, curvature = (
            posterior_modes_and_curvatures(terms, prior, log_a, b)
            if adaptive
            else (np.zeros(5), np.full(5, prior.tau**-2))
        )
        return quadrature_nodes(mode, curvature, prior, count)

    def value_and_gradient(point):
        log_a, b = point[:4], point[4:]
        value, *gradient = log_marginal_and_gradient(terms, prior, log_a, b, nodes_at(log_a, b))
        return value, np.concatenate(gradient)

    point = np.concatenate([data.log_a + 0.1, data.b.T.ravel()])
    steps = 1e-5 * np.eye(len(point))
    slopes = [(value_and_gradient(point + step)[0] - value_and_gradient(point - step)[0]) / 2e-5 for step in steps]
    bends = [(value_and_gradient(point + step)[1] - value_and_gradient(point - step)[1]) / 2e-5 for step in steps]
    np.testing.assert_allclose(value_and_gradient(point)[1], slopes, atol=1e-6)
    curvature = observed_information_matrix_of_parameters(
        terms, prior, point[:4], point[4:], nodes_at(point[:4], point[4:])
    )
    np.testing.assert_allclose(curvature, -np.array(bends), atol=1e-5)


def test_mode_of_performance_is_found_where_newton_alone_would_jump_to_and_fro():
    # One judge of extreme sensitivity, who prefers the system on an easy segment and the baseline on a hard one.
    terms = count_distinct_logistic_terms(np.zeros(2, int), np.zeros(2, int), np.arange(2), np.array([1, -1]))
    b = np.array([-3.0, 2.0, -3.0 + 1e-3, 2.0 + 1e-3])
    theta, _ = posterior_modes_and_curvatures(terms, Prior(), np.log([400.0]), b, start=np.array([-3.2]))

    def loss(x):
        return 0.25 * x[0] ** 2 + np.logaddexp(0, -400 * (x[0] - b[2])) + np.logaddexp(0, 400 * (x[0] - b[1]))

    assert theta[0] == pytest.approx(0.0, abs=1e-8)
    far, _ = posterior_modes_and_curvatures(terms, Prior(), np.log([400.0]), b, start=np.array([500.0]))
    assert far[0] == pytest.approx(0.0, abs=1e-8)
    assert loss(theta) <= loss(theta + 1e-4)


def test_fit_is_where_a_general_optimiser_finds_the_maximum():
    data = draw_judgments(200, 4, 3, 3, seed=3)
    terms, prior, found = count_distinct_logistic_terms(*data.columns), Prior(), fit(*data.columns)

    def loss(point):
        log_a, lower, upper = point[:3], point[3:6], point[3:6] + np.exp(point[6:])
        b = np.concatenate([lower, upper])
        nodes = quadrature_nodes(*posterior_modes_and_curvatures(terms, prior, log_a, b), prior, 21)
        return -log_marginal_and_gradient(terms, prior, log_a, b, nodes)[0]

    oracle = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-4})
    a, b = in_units_of_the_paper(found)
    np.testing.assert_allclose(np.log(a), oracle.x[:3], atol=2e-3)
    np.testing.assert_allclose(b[:, 0], oracle.x[3:6], atol=2e-3)
    np.testing.assert_allclose(b[:, 1], oracle.x[3:6] + np.exp(oracle.x[6:]), atol=2e-3)
    assert found.log_marginal == pytest.approx(-oracle.fun, abs=1e-4)


def test_performance_is_the_mode_given_the_rest_and_its_error_given_it_comes_from_the_curvature():
    data = draw_judgments(200, 3, 3, 3, seed=4)
    found = fit(*data.columns, with_errors=False)
    a, b = in_units_of_the_paper(found)

    def log_density(theta, system):
        rows = [row for row in zip(*data.columns, strict=True) if row[0] == system]
        return -(theta**2) / 4 + sum(math.log(probability(u, theta, a[k], *b[j])) for _, k, j, u in rows)

    for system, (score, standard_error) in enumerate(zip(found.score, found.standard_error, strict=True)):
        theta, error = score / found.unit, standard_error / found.unit
        below, here, above = (log_density(theta + step, system) for step in (-1e-3, 0, 1e-3))
        assert here > max(below, above)
        assert error == pytest.approx(((2 * here - below - above) / 1e-6) ** -0.5, rel=1e-3)


def test_known_parameters_are_recovered_within_their_errors():
    data = draw_judgments(6000, 12, 30, 30, seed=5)
    found = fit(*data.columns)
    assert np.corrcoef(found.score, data.theta)[0, 1] > 0.995
    assert np.all(found.difficulty[:, 0] < found.difficulty[:, 1])
    assert found.notes == ()


def test_errors_of_judges_and_segments_are_as_large_as_the_errors_they_stand_for():
    """Over several draws, since all judges and segments of one draw have the errors of the unit and the level."""
    judges, segments = [], []
    for seed in range(10):
        data = draw_judgments(1200, 12, 12, 12, seed=seed)
        found = fit(*data.columns)
        log_error = found.sensitivity_standard_error / found.sensitivity
        judges.append((np.log(found.sensitivity) - data.log_a) / log_error)
        segments.append((found.difficulty - data.b) / found.difficulty_standard_error)
    assert 0.6 < np.sqrt(np.mean(np.square(judges))) < 1.5
    assert 0.6 < np.sqrt(np.mean(np.square(segments))) < 1.5


def test_errors_of_performances_hold_those_of_the_rest_by_the_delta_method():
    data = draw_judgments(200, 3, 2, 2, seed=4)
    found, prior = fit(*data.columns), Prior()
    terms = count_distinct_logistic_terms(*data.columns)
    a, b = in_units_of_the_paper(found)
    point = np.concatenate([np.log(a), b.T.ravel()])

    def mode(at):
        return posterior_modes_and_curvatures(terms, prior, at[:2], at[2:])[0]

    def log_marginal(at):
        nodes = quadrature_nodes(*posterior_modes_and_curvatures(terms, prior, at[:2], at[2:]), prior, 101)
        return log_marginal_and_gradient(terms, prior, at[:2], at[2:], nodes)[0]

    steps = 1e-3 * np.eye(6)
    slopes = np.array([(mode(point + step) - mode(point - step)) / 2e-3 for step in steps]).T
    bends = [
        [
            (log_marginal(point + one + other) - log_marginal(point + one - other))
            - (log_marginal(point - one + other) - log_marginal(point - one - other))
            for one in steps
        ]
        for other in steps
    ]
    covariance = np.linalg.inv(-np.array(bends) / 4e-6)
    given_the_rest = fit(*data.columns, with_errors=False).standard_error
    # Given the unit, which half the sum of squares of the performances defines.
    with_unit = covariance @ (found.score / found.unit @ slopes)
    covariance -= np.outer(with_unit, with_unit) / (found.score / found.unit @ slopes @ with_unit)
    by_the_rest = found.unit**2 * np.einsum("ip,pq,iq->i", slopes, covariance, slopes)
    by_the_unit = found.score**2 / (2 * 3)
    expected = np.sqrt(given_the_rest**2 + by_the_rest + by_the_unit)
    np.testing.assert_allclose(found.standard_error, expected, rtol=1e-3)
    assert (found.standard_error > given_the_rest).all()


@pytest.mark.parametrize(
    ("draw", "systems", "judgments"), [(simulate_judgments, 10, 1200), (simulate_judgments_from_prior, 10, 300)]
)
def test_performances_are_recovered_in_their_unit_and_their_intervals_hold_them(draw, systems, judgments):
    """Also where the prior of difficulties is wrong, and where these are many for the judgments."""
    found = []
    for seed in range(12):
        data, theta = draw(judgments, systems, 15, 50, seed + 100)
        as_known = fit(*data, n_items=systems, with_errors=False)
        found.append(measure_recovery(fit(*data, n_items=systems), as_known, theta))
    held, held_as_known, slope, _ = np.mean(found, axis=0)
    assert 0.92 < held < 0.995
    assert held - held_as_known > 0.1
    assert 0.85 < slope < 1.15


def test_the_unit_is_that_of_the_prior_of_performances():
    found = fit(*draw_judgments(300, 8, 10, 20, seed=1).columns, with_errors=False)
    assert np.mean(found.score**2 + found.standard_error**2) == pytest.approx(found.prior.tau**2)
    wider = fit(*draw_judgments(300, 8, 10, 20, seed=1).columns, prior=Prior(tau=3.0), with_errors=False)
    assert np.mean(wider.score**2 + wider.standard_error**2) == pytest.approx(9.0)


def test_own_nodes_fit_better_than_common_ones_when_systems_have_many_judgments():
    data = draw_judgments(3000, 6, 20, 20, seed=6)
    errors = {}
    for adaptive in (True, False):
        found = fit(*data.columns, adaptive=adaptive, with_errors=False)
        residual = found.difficulty.mean(axis=1) - data.b.mean(axis=1)
        errors[adaptive] = np.std(residual)
        assert np.isnan(found.sensitivity_standard_error).all()
    assert errors[True] < errors[False]


def test_random_judge_is_the_least_sensitive():
    data = draw_judgments(3000, 8, 10, 10, seed=7)
    i, k, j, outcomes = data.columns
    rng = np.random.default_rng(8)
    outcomes = np.where(k == 4, rng.integers(-1, 2, len(k)), outcomes)
    found = fit(i, k, j, outcomes)
    assert np.argmin(found.sensitivity) == 4
    # Not near 0: at a = 0 nothing would be a tie, and a third of the random answers are.
    assert found.sensitivity[4] < 0.5 * np.median(found.sensitivity)


def test_order_of_judgments_and_numbering_change_nothing():
    data = draw_judgments(150, 4, 3, 5, seed=9)
    there = fit(*data.columns)
    order = np.random.default_rng(1).permutation(150)
    i, k, j, outcomes = (column[order] for column in data.columns)
    again = fit((3 - i).astype(np.int32), 2 - k, 4 - j, outcomes.astype(np.int8))
    np.testing.assert_allclose(again.score[::-1], there.score, atol=1e-3)
    np.testing.assert_allclose(again.sensitivity[::-1], there.sensitivity, atol=1e-2)


def test_item_information_has_the_worked_value():
    assert item_information(0.0, (-0.5, 0.5)) == pytest.approx(0.29256050705391523, rel=1e-14)


@given(theta=st.floats(-20, 20), lower=st.floats(-5, 5), width=st.floats(1e-3, 5), a=st.floats(0.1, 5))
def test_item_information_is_the_expected_square_of_the_slope(theta, lower, width, a):
    upper, step = lower + width, 1e-6
    expected = 0.0
    for outcome in (-1, 0, 1):
        chance = probability(outcome, theta, a, lower, upper)
        ends = [probability(outcome, theta + sign * step, a, lower, upper) for sign in (1, -1)]
        if chance > 1e-8:
            expected += ((ends[0] - ends[1]) / (2 * step)) ** 2 / chance
    assert float(item_information(theta, (lower, upper), a)) == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_item_information_broadcasts_and_stays_finite_far_out():
    values = item_information(np.array([[-2000.0], [0.0], [2000.0]]), np.array([[-0.5, 0.5], [1.0, 1.0]]), 2.0)
    assert values.shape == (3, 2)
    np.testing.assert_array_equal(values[[0, 2]], 0.0)
    assert np.all(values[1] > 0)


@pytest.mark.parametrize(
    ("counts", "verdict", "share"),
    [((345, 307, 348), "even", 345 / 693), ((10, 5, 100), "weak", 10 / 110), ((90, 0, 10), "strong", 0.9)],
)
def test_baseline_is_advised_on_by_how_often_it_wins_and_loses(counts, verdict, share):
    advice = baseline_advice(np.repeat([-1, 0, 1], counts))
    assert (advice.won, advice.tied, advice.lost) == counts
    assert advice.verdict == verdict
    assert advice.share_won == pytest.approx(share)
    assert f"won {counts[0]}, tied {counts[1]} and lost {counts[2]}" in advice.sentence


def test_baseline_that_always_ties_is_no_baseline():
    advice = baseline_advice([0, 0])
    assert advice.verdict == "tied"
    assert advice.sentence.startswith(
        "The baseline won 0, tied 2 and lost 0 of 2 judgments: it does not separate any systems"
    )
    assert math.isnan(advice.share_won)
    with pytest.raises(Inestimable):
        baseline_advice([])


def test_comparisons_with_the_baseline_are_picked_and_turned_to_the_systems_side():
    rows, items, outcomes = positions_opponents_and_outcomes_of_baseline(
        7, [7, 1, 2, 3, 7], [1, 7, 7, 4, 7], [1, 1, 0, 1, 0]
    )
    assert rows.tolist() == [0, 1, 2]
    assert items.tolist() == [1, 1, 2]
    assert outcomes.tolist() == [-1, 1, 0]


def test_equal_judgments_are_counted_together():
    columns = [np.tile(column, 3) for column in ([0, 1], [0, 0], [1, 0], [0, 1])]
    terms = count_distinct_logistic_terms(*columns)
    assert terms.count.tolist() == [3.0, 3.0, 3.0]
    assert terms.tie_count.tolist() == [3.0]
    rows = zip(terms.system.tolist(), terms.threshold.tolist(), terms.sign.tolist(), strict=True)
    # The tie on segment 1 is not losing (b_1) and not winning (b_2, number 2 + 1); the win on segment 0 is b_2.
    assert Counter(rows) == Counter([(0, 1, 1.0), (0, 3, -1.0), (1, 2, 1.0)])


@pytest.mark.parametrize(("outcome", "words"), [(0, "are ties"), (1, "prefer the system"), (-1, "prefer the baseline")])
def test_judgments_that_are_all_alike_are_refused_with_a_reason(outcome, words):
    with pytest.raises(Inestimable, match=f"All 3 judgments {words}") as refused:
        fit([0, 1, 2], [0, 0, 1], [0, 0, 0], [outcome] * 3)
    assert refused.value.code == "one_outcome"


@pytest.mark.parametrize("outcome", [0, 1, -1])
def test_a_single_judgment_is_refused_in_the_singular(outcome):
    with pytest.raises(Inestimable) as refused:
        fit([0], [0], [0], [outcome])
    assert refused.value.code == "one_outcome"
    assert "1 judgments" not in str(refused.value)


def test_no_judgments_are_refused():
    with pytest.raises(Inestimable) as refused:
        fit([], [], [], [], n_items=3)
    assert refused.value.code == "no_judgments"


def test_what_nobody_judged_has_no_estimate_and_is_named():
    found = fit([0, 2, 2], [0, 0, 0], [0, 0, 0], [1, 0, -1], n_items=4, n_annotators=2, n_segments=2)
    assert np.isnan(found.score).tolist() == [False, True, False, True]
    assert found.estimable.tolist() == [True, False, True, False]
    assert np.isnan(found.difficulty[1]).all()
    assert np.isnan(found.sensitivity[1])
    assert np.isfinite(found.difficulty_standard_error[0]).all()
    assert found.notes[:3] == (
        "Systems 1 and 3 has no judgments and no estimate.",
        "Judge 1 has no judgments and no estimate.",
        "Segment 1 has no judgments and no estimate.",
    )
    assert found.notes[3].startswith("All judgments are by one judge")


def test_one_system_alone_is_noted():
    assert any("Only one system" in note for note in fit([0, 0], [0, 1], [0, 1], [1, -1]).notes)


def test_systems_that_share_no_segment_are_named_by_group():
    items, judges, outcomes = np.repeat(np.arange(12), 2), np.tile([0, 1], 12), np.tile([1, 0, -1, 1], 6)
    note = fit(items, judges, items, outcomes).notes[-1]
    assert note.startswith("The systems fall into 12 groups that share no segment: system 0; system 1;")
    assert "system 4; .... Scores" in note
    note = fit(items, judges, items // 11, outcomes).notes[-1]
    assert "2 groups that share no segment: 11 systems (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...); system 11." in note


def test_segment_without_ties_keeps_its_two_difficulties_apart_and_in_order():
    i, k, j = (np.array(column) for column in zip(*itertools.product(range(4), range(3), range(2)), strict=True))
    found = fit(i, k, j, np.where((i + k) % 2 == 0, 1, -1))
    assert np.all(found.difficulty[:, 0] < found.difficulty[:, 1])
    assert np.isfinite(found.difficulty_standard_error).all()


def test_fit_that_is_stopped_early_is_refused():
    data = draw_judgments(100, 3, 3, 3, seed=12)
    with pytest.raises(NotConverged, match="did not converge within 2 steps") as refused:
        fit(*data.columns, max_iterations=2)
    assert refused.value.code == "not_converged"


def test_judges_who_contradict_each_other_evenly_leave_no_single_answer():
    items = np.repeat(np.arange(12), 2)
    with pytest.raises(NotConverged, match="two solutions") as refused:
        fit(items, np.tile([0, 1], 12), items, np.tile([1, -1], 12))
    assert refused.value.code == "no_single_answer"


def test_too_many_parameters_for_errors_leave_them_out_and_say_so(monkeypatch):
    monkeypatch.setattr("app.inference.systems.graded_errors.MAX_PARAMETERS_FOR_ERRORS", 8)
    found = fit(*draw_judgments(100, 3, 3, 3, seed=12).columns)
    assert np.isnan(found.difficulty_standard_error).all()
    assert np.isfinite(found.standard_error).all()
    assert len(found.notes) == 1
    assert found.notes[0].startswith("3 judges and 3 segments are too many for standard errors of sensitivities")
    assert found.notes[0].endswith("treat them as known, and are too small.")


def test_malformed_arrays_are_refused(subtests):
    for columns, message in (
        (([0, 1], [0], [0, 0], [1, 0]), "lengths are: items 2, annotators 1"),
        (([0, 1], [0, 0], [0, 0], [1, 2]), "outcomes are -1, 0 or 1, but 1 to 2 occur"),
        (([0, 5], [0, 0], [0, 0], [1, 0]), "items are numbered from 0 to 4, but 0 to 5 occur"),
        (([0.0, 1.0], [0, 0], [0, 0], [1, 0]), "items must be whole numbers, not float64"),
        (([[0, 1]], [0, 0], [0, 0], [1, 0]), "items is an array of shape"),
    ):
        with subtests.test(columns=columns, message=message), pytest.raises(ValueError, match=message):
            fit(*columns, n_items=5)


def test_impossible_priors_are_refused(subtests):
    for wrong in ({"tau": 0.0}, {"sigma_a": math.inf}, {"barrier": math.nan}, {"mu_b": (0.5, 0.5)}, {"mu_a": math.inf}):
        with subtests.test(wrong=wrong), pytest.raises(ValueError, match=next(iter(wrong))):
            Prior(**wrong)
