"""The two-stage model of Baba & Kashima 2013, read for judgments of systems against a baseline.

"Statistical quality estimation for general crowdsourcing tasks": authors make artifacts, reviewers grade them; an
author has an ability, a reviewer a bias. Otani et al. 2016 compare with it and describe it in section 2: a graded
response model of authors' abilities and reviewers' biases, about the quality of the artifacts rather than of the
authors, in which task difficulty and review bias make up the difficulty parameter. This module follows that
description; what it leaves open is chosen here:

- Creation: author i (a system) makes for task j (a segment) an artifact of quality q_ij ~ N(ability_i, quality_sd^2).
- Review: reviewer k (a judge) finds it not worse than the baseline with probability S(a (q_ij - t_1 - d_j - r_k)), and
  better with t_2 for t_1. S is the logistic function; t_1 < t_2 are common to all, d_j is the task's difficulty, r_k
  the reviewer's bias. Choice: all reviewers share one sensitivity a, so that the fit knows lenient and strict
  reviewers, but not careless ones.
- ability ~ N(0, tau^2), d and r ~ N(0, sigma_b^2), t_c ~ N(mu_b[c], sigma_b^2). Choice: the priors of Otani et al.
- All parameters together are at the maximum of their posterior density, which is log-concave: there is only one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import NotConverged
from app.inference.ground.validation import sum_values_by_number
from app.inference.observations.baseline import (
    BaselineJudgments,
    Mask,
    notes_on_limits_of_baseline_judgments,
    refuse_missing_or_equal_outcomes,
    validated_baseline_judgments,
)
from app.inference.systems.graded_marginal import LogisticTerms, Prior, make_logistic_terms

_NARROWEST = 1e-6
"""The least t_2 - t_1, where there are no ties."""


@dataclass(frozen=True, slots=True)
class TwoStage:
    """A fit of the two-stage model. NaN stands where nothing is known; `notes` say why.

    score: (n_items,), the ability of each system. standard_error: (n_items,), given difficulties, biases and
    thresholds, with the qualities as uncertain as they are. estimable: (n_items,), whether there is a judgment.
    quality: (n_artifacts,), of each pair of system and segment that was judged: artifact_item, artifact_segment.
    difficulty: (n_segments,). bias: (n_annotators,), higher is stricter with the systems. thresholds: (2,).
    """

    score: Array
    standard_error: Array
    estimable: Mask
    quality: Array
    artifact_item: Integers
    artifact_segment: Integers
    difficulty: Array
    bias: Array
    thresholds: Array
    notes: tuple[str, ...]


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    segments: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_segments: int | None = None,
    sensitivity: float = 1.7,
    quality_sd: float = 1.0,
    prior: Prior | None = None,
    most_iterations: int = 2000,
) -> TwoStage:
    """Abilities, qualities, difficulties and biases; arrays as in `graded_response.fit`.

    sensitivity: a > 0. quality_sd > 0. Of `prior` tau, mu_b and sigma_b are used. Raises `Inestimable` ("no_judgments",
    "one_outcome"), `NotConverged` ("not_converged") and ValueError.
    """
    if not (0.0 < sensitivity < np.inf and 0.0 < quality_sd < np.inf):
        raise ValueError("sensitivity and quality_sd must be finite numbers above 0")
    columns = validated_baseline_judgments(
        items, annotators, segments, outcomes, n_items=n_items, n_annotators=n_annotators, n_segments=n_segments
    )
    refuse_missing_or_equal_outcomes(columns.outcomes)
    review = review_of(columns, sensitivity, quality_sd, prior or Prior())
    found = _split(_maximise(review, most_iterations), review)
    return TwoStage(
        score=columns.items.values_with_nan_for_unused(found.ability),
        standard_error=columns.items.values_with_nan_for_unused(_ability_error(found, review)),
        estimable=columns.items.is_judged_mask,
        quality=found.ability[review.author] + found.luck,
        artifact_item=columns.items.used[review.author],
        artifact_segment=columns.segments.used[review.task],
        difficulty=columns.segments.values_with_nan_for_unused(found.difficulty),
        bias=columns.annotators.values_with_nan_for_unused(found.bias),
        thresholds=found.thresholds,
        notes=tuple(notes_on_limits_of_baseline_judgments(columns)),
    )


@dataclass(frozen=True, slots=True)
class _Review:
    """The terms of all judgments, artifacts in the place of systems, one segment for all; author, task: (artifacts,);
    sizes: numbers of authors, artifacts, tasks and reviewers.
    """

    terms: LogisticTerms
    author: Integers
    task: Integers
    sizes: tuple[int, int, int, int]
    sensitivity: float
    quality_sd: float
    prior: Prior


@dataclass(frozen=True, slots=True)
class _Point:
    """ability (authors,), luck (artifacts,), what quality has beyond ability; difficulty (tasks,); bias (reviewers,);
    thresholds (2,).
    """

    ability: Array
    luck: Array
    difficulty: Array
    bias: Array
    thresholds: Array


def review_of(columns: BaselineJudgments, sensitivity: float, quality_sd: float, prior: Prior) -> _Review:
    """The comparisons, arranged for `loss_of`."""
    tasks = len(columns.segments.used)
    key, artifact = np.unique(columns.items.index * tasks + columns.segments.index, return_inverse=True)
    terms = make_logistic_terms(artifact, columns.annotators.index, np.zeros_like(artifact), columns.outcomes)
    sizes = len(columns.items.used), len(key), tasks, len(columns.annotators.used)
    return _Review(terms, key // tasks, key % tasks, sizes, sensitivity, quality_sd, prior)


def _split(point: Array, review: _Review) -> _Point:
    """From the parameters in a row, the last two being t_1 and t_2 - t_1."""
    ability, luck, difficulty, bias, bounds = np.split(point, np.cumsum(review.sizes))
    return _Point(ability, luck, difficulty, bias, np.cumsum(bounds))


def _maximise(review: _Review, most_iterations: int) -> Array:
    low, high = review.prior.mu_b
    free = sum(review.sizes)
    start = np.append(np.zeros(free), [low, high - low])
    scale = _scale(review)

    def loss(scaled: Array) -> tuple[float, Array]:
        value, gradient = loss_of(scaled * scale, review)
        return value, gradient * scale

    result = minimize(
        loss,
        start / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * (free + 1) + [(_NARROWEST / scale[-1], None)],
        options={"maxiter": most_iterations, "maxfun": 2 * most_iterations, "maxcor": 50, "gtol": 1e-5, "ftol": 1e-11},
    )
    if not result.success:
        raise NotConverged(f"The fit did not settle within {result.nit} steps.", code="not_converged")
    return np.asarray(result.x * scale, dtype=np.float64)


def _scale(review: _Review) -> Array:
    """About the standard deviation of each parameter: a system with thousands of judgments and an artifact with three
    need steps of their own size.
    """
    terms, prior, (authors, artifacts, tasks, reviewers) = review.terms, review.prior, review.sizes
    each = terms.count * review.sensitivity**2 / 5.0  # a logistic term's information is a^2 / 4 at most
    by_artifact = sum_values_by_number(terms.system, each, artifacts)
    precision = (
        sum_values_by_number(review.author, by_artifact, authors) + prior.tau**-2,
        by_artifact + review.quality_sd**-2,
        sum_values_by_number(review.task, by_artifact, tasks) + prior.sigma_b**-2,
        sum_values_by_number(terms.judge, each, reviewers) + prior.sigma_b**-2,
        np.full(2, each.sum() + prior.sigma_b**-2),
    )
    return np.asarray(np.concatenate(precision) ** -0.5)


def loss_of(point: Array, review: _Review) -> tuple[float, Array]:
    """Minus the log posterior density up to a constant, and its gradient."""
    at, terms, a = _split(point, review), review.terms, review.sensitivity
    z, rest = _terms(at, review)
    slope = terms.count * terms.sign * a * rest
    by_artifact = sum_values_by_number(terms.system, slope, review.sizes[1])
    by_threshold = -sum_values_by_number(terms.threshold, slope, 2)
    width = a * point[-1]
    by_width = terms.tie_count.sum() * a / np.expm1(width)
    value = terms.count @ (np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z))))
    value += terms.tie_count.sum() * np.log(-np.expm1(-width))
    prior_value, prior_gradient = _log_prior(at, review)
    by_t = by_threshold + prior_gradient.thresholds
    gradient = (
        sum_values_by_number(review.author, by_artifact, review.sizes[0]) + prior_gradient.ability,
        by_artifact + prior_gradient.luck,
        -sum_values_by_number(review.task, by_artifact, review.sizes[2]) + prior_gradient.difficulty,
        -sum_values_by_number(terms.judge, slope, review.sizes[3]) + prior_gradient.bias,
        [by_t.sum(), by_t[1] + by_width],
    )
    return -float(value + prior_value), -np.concatenate(gradient)


def _terms(at: _Point, review: _Review) -> tuple[Array, Array]:
    """By term z, and S(-z)."""
    terms = review.terms
    apart = at.ability[review.author] + at.luck - at.difficulty[review.task]
    z = terms.sign * review.sensitivity * (apart[terms.system] - at.bias[terms.judge] - at.thresholds[terms.threshold])
    fraction = np.exp(-np.abs(z))
    return z, np.where(z >= 0.0, fraction, 1.0) / (1.0 + fraction)


def _log_prior(at: _Point, review: _Review) -> tuple[float, _Point]:
    prior = review.prior
    gradient = _Point(
        -at.ability / prior.tau**2,
        -at.luck / review.quality_sd**2,
        -at.difficulty / prior.sigma_b**2,
        -at.bias / prior.sigma_b**2,
        (np.array(prior.mu_b) - at.thresholds) / prior.sigma_b**2,
    )
    value = (
        gradient.ability @ at.ability
        + gradient.luck @ at.luck
        + gradient.difficulty @ at.difficulty
        + gradient.bias @ at.bias
        - prior.sigma_b**2 * (gradient.thresholds @ gradient.thresholds)
    )
    return 0.5 * float(value), gradient


def _ability_error(at: _Point, review: _Review) -> Array:
    """(authors,): an artifact with information h on its quality tells 1 / (quality_sd^2 + 1 / h) about the ability."""
    terms = review.terms
    rest = _terms(at, review)[1]
    on_quality = sum_values_by_number(
        terms.system, terms.count * review.sensitivity**2 * rest * (1.0 - rest), review.sizes[1]
    )
    on_ability = on_quality / (1.0 + review.quality_sd**2 * on_quality)
    return (sum_values_by_number(review.author, on_ability, review.sizes[0]) + review.prior.tau**-2) ** -0.5
