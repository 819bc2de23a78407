import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.observations.baseline import validated_baseline_judgments
from app.inference.systems.graded_marginal import Prior
from benchmarks.systems import two_stage
from benchmarks.systems.two_stage import fit

pytestmark = pytest.mark.slow


def draw_judgments(judgments, systems, judges, segments, *, seed):
    rng = np.random.default_rng(seed)
    ability, bias, difficulty = rng.normal(0, 1.4, systems), rng.normal(0, 0.7, judges), rng.normal(0, 0.7, segments)
    quality = ability[:, None] + rng.normal(0, 0.5, (systems, segments))
    i, k, j = (rng.integers(count, size=judgments) for count in (systems, judges, segments))
    distance = quality[i, j] - bias[k] - difficulty[j]
    chances = np.stack([expit(1.7 * (distance - t)) for t in (-0.5, 0.5)])
    return (i, k, j, (rng.random(judgments) < chances).sum(axis=0) - 1), ability, bias, difficulty


def log_posterior(columns, *, ability, luck, difficulty, bias, thresholds):
    """The docstring's definition, judgment by judgment; luck is (systems, segments)."""
    value = -(ability @ ability) / 4 - np.sum(luck**2) / 2 - (difficulty @ difficulty + bias @ bias) / 8
    value -= np.sum((thresholds - np.array([-0.5, 0.5])) ** 2) / 8
    for i, k, j, outcome in zip(*columns, strict=True):
        at_least = expit(1.7 * (ability[i] + luck[i, j] - difficulty[j] - bias[k] - thresholds))
        value += np.log({-1: 1 - at_least[0], 0: at_least[0] - at_least[1], 1: at_least[1]}[int(outcome)])
    return value


def test_fit_is_the_maximum_of_the_posterior_as_defined():
    columns, *_ = draw_judgments(60, 2, 2, 2, seed=1)
    found = fit(*columns)

    def loss(point):
        ability, luck, difficulty, bias, t = np.split(point, [2, 6, 8, 10])
        if t[0] >= t[1]:
            return 1e9
        named = {"difficulty": difficulty, "bias": bias, "thresholds": t}
        return -log_posterior(columns, ability=ability, luck=luck.reshape(2, 2), **named)

    oracle = minimize(loss, np.append(np.zeros(10), [-0.5, 0.5]), method="BFGS").x
    np.testing.assert_allclose(found.score, oracle[:2], atol=1e-3)
    np.testing.assert_allclose(found.quality, (oracle[:2, None] + oracle[2:6].reshape(2, 2)).ravel(), atol=1e-3)
    np.testing.assert_allclose(found.difficulty, oracle[6:8], atol=1e-3)
    np.testing.assert_allclose(found.bias, oracle[8:10], atol=1e-3)
    np.testing.assert_allclose(found.thresholds, oracle[10:], atol=1e-3)
    assert list(zip(found.artifact_item, found.artifact_segment, strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_gradient_agrees_with_finite_differences():
    columns, *_ = draw_judgments(80, 3, 3, 4, seed=2)
    review = two_stage.make_review_data(
        validated_baseline_judgments(*columns, n_items=None, n_annotators=None, n_segments=None), 1.3, 0.6, Prior()
    )
    point = np.append(np.random.default_rng(3).normal(0, 0.5, sum(review.sizes)), [-0.4, 0.9])
    steps = 1e-5 * np.eye(len(point))
    slope = [
        (two_stage.loss_and_gradient(point + s, review)[0] - two_stage.loss_and_gradient(point - s, review)[0]) / 2e-5
        for s in steps
    ]
    np.testing.assert_allclose(two_stage.loss_and_gradient(point, review)[1], slope, atol=1e-6)


def test_error_is_that_of_the_information_with_the_qualities_uncertain():
    columns, *_ = draw_judgments(60, 2, 2, 2, seed=1)
    found = fit(*columns)
    luck = (found.quality.reshape(2, 2) - found.score[:, None]).ravel()

    def loss(point):
        ability, extra = point[:2], point[2:].reshape(2, 2)
        rest = {"difficulty": found.difficulty, "bias": found.bias, "thresholds": found.thresholds}
        return -log_posterior(columns, ability=ability, luck=extra, **rest)

    at, step = np.concatenate([found.score, luck]), 1e-4 * np.eye(6)
    curvature = np.array(
        [
            [(loss(at + p + q) - loss(at + p - q) - loss(at - p + q) + loss(at - p - q)) / 4e-8 for q in step]
            for p in step
        ]
    )
    np.testing.assert_allclose(found.standard_error, np.sqrt(np.diag(np.linalg.inv(curvature))[:2]), rtol=1e-3)


def test_known_parameters_are_recovered():
    columns, ability, bias, difficulty = draw_judgments(5000, 12, 20, 20, seed=4)
    found = fit(*columns)
    assert np.corrcoef(found.score, ability)[0, 1] > 0.98
    assert np.corrcoef(found.bias, bias)[0, 1] > 0.9
    assert np.corrcoef(found.difficulty, difficulty)[0, 1] > 0.9
    assert found.notes == ()


@settings(max_examples=10)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3, st.integers(-1, 1)), min_size=2, max_size=12))
def test_seeing_everything_from_the_other_side_turns_the_scores(judgments):
    i, k, j, outcomes = np.array(judgments).T
    if len(set(outcomes)) == 1:
        return
    here, there = fit(i, k, j, outcomes), fit(i, k, j, -outcomes)
    np.testing.assert_allclose(here.score, -there.score, atol=5e-3)
    np.testing.assert_allclose(here.standard_error, there.standard_error, atol=5e-3)


def test_what_nobody_judged_has_no_estimate_and_no_ties_leave_no_room_between_the_thresholds():
    found = fit([0, 0, 2], [0, 1, 0], [0, 0, 0], [1, -1, 1], n_items=3, n_segments=2)
    assert np.isnan(found.score).tolist() == [False, True, False]
    assert np.isnan(found.difficulty).tolist() == [False, True]
    assert "System 1 has no judgments and no estimate." in found.notes
    assert 0 < found.thresholds[1] - found.thresholds[0] < 1e-5


def test_judgments_all_alike_are_refused():
    with pytest.raises(Inestimable) as refused:
        fit([0, 1], [0, 0], [0, 0], [0, 0])
    assert refused.value.code == "one_outcome"


def test_fit_that_is_stopped_early_is_refused():
    columns, *_ = draw_judgments(100, 4, 4, 4, seed=5)
    with pytest.raises(NotConverged, match="within 2 steps"):
        fit(*columns, max_iterations=2)


@pytest.mark.parametrize("wrong", [{"sensitivity": 0.0}, {"quality_sd": np.inf}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="must be finite numbers above 0"):
        fit([0, 1], [0, 0], [0, 0], [0, 1], **wrong)
