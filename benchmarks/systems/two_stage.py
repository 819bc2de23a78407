"""The two-stage model of Baba & Kashima 2013, applied to judgments of systems against a baseline.

In "Statistical quality estimation for general crowdsourcing tasks", authors create artifacts and reviewers grade them;
an author has an ability, a reviewer a bias. Otani et al. 2016 compare with this model and describe it in section 2: a
graded response model of authors' abilities and reviewers' biases that rates artifacts rather than authors, with task
difficulty and review bias as difficulty parameter. This module follows that description and makes these choices where
it is silent:

- Creation: author i (a system) creates for task j (a segment) an artifact of quality q_ij ~ N(ability_i, quality_sd^2).
- Review: reviewer k (a judge) finds it not worse than the baseline with probability S(a (q_ij - t_1 - d_j - r_k)), and
  better with t_2 instead of t_1. S is the logistic function, t_1 < t_2 are shared by all, d_j is the task's difficulty,
  and r_k is the reviewer's bias. Choice: all reviewers share one sensitivity a, so the fit knows lenient and strict
  reviewers, but not careless ones.
- ability ~ N(0, tau^2), d and r ~ N(0, sigma_b^2), t_c ~ N(mu_b[c], sigma_b^2). Choice: the priors of Otani et al.
- The fit is the maximum of the joint posterior density, which is log-concave and has only one maximum.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import NotConverged
from app.inference.ground.validation import sum_values_of_each_number
from app.inference.observations.baseline import (
    BaselineJudgments,
    Mask,
    notes_on_limits_of_baseline_judgments,
    refuse_missing_or_equal_outcomes,
    validated_baseline_judgments,
)
from app.inference.systems.graded_marginal import LogisticTerms, Prior, count_distinct_logistic_terms

_MIN_THRESHOLD_DISTANCE = 1e-6
"""Smallest t_2 - t_1, for data without ties."""


@dataclass(frozen=True, slots=True)
class TwoStage:
    """A fit of the two-stage model, with NaN for unknown values, which `notes` explain.

    Attributes:
        score: Ability of each system, (n_items,).
        standard_error: Standard error given difficulties, biases and thresholds, with uncertain qualities, (n_items,).
        estimable: Whether the system has a judgment, (n_items,).
        quality: Quality of each judged pair of system and segment, (n_artifacts,).
        artifact_item: System of each artifact, (n_artifacts,).
        artifact_segment: Segment of each artifact, (n_artifacts,).
        difficulty: Difficulty of each segment, (n_segments,).
        bias: Bias of each judge, higher is stricter, (n_annotators,).
        thresholds: t_1 and t_2, (2,).
        notes: Notes on limits of the judgments.

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
    max_iterations: int = 2000,
) -> TwoStage:
    """Fit abilities, qualities, difficulties and biases; arrays as in `graded_response.fit`.

    Args:
        items: Systems, (n,).
        annotators: Judges, (n,).
        segments: Segments, (n,).
        outcomes: 1 if the system is better than the baseline, 0 for a tie, -1 if it is worse, (n,).
        n_items: Number of systems; by default those in `items`.
        n_annotators: Number of judges.
        n_segments: Number of segments.
        sensitivity: a, above 0.
        quality_sd: Standard deviation of qualities, above 0.
        prior: Prior, whose tau, mu_b and sigma_b are used.
        max_iterations: Maximal number of iterations.

    Returns:
        The fit.

    Raises:
        Inestimable: "no_judgments" or "one_outcome".
        NotConverged: "not_converged".
        ValueError: Invalid arrays or parameters.

    """
    if not (0.0 < sensitivity < np.inf and 0.0 < quality_sd < np.inf):
        raise ValueError("sensitivity and quality_sd must be finite numbers above 0")
    columns = validated_baseline_judgments(
        items, annotators, segments, outcomes, n_items=n_items, n_annotators=n_annotators, n_segments=n_segments
    )
    refuse_missing_or_equal_outcomes(columns.outcomes)
    review = make_review_data(columns, sensitivity, quality_sd, prior or Prior())
    parameters = parameters_of_point(maximise_posterior_or_raise(review, max_iterations), review)
    return TwoStage(
        score=columns.items.values_with_nan_for_unused(parameters.ability),
        standard_error=columns.items.values_with_nan_for_unused(ability_standard_errors(parameters, review)),
        estimable=columns.items.is_judged_mask,
        quality=parameters.ability[review.author] + parameters.quality_beyond_ability,
        artifact_item=columns.items.used[review.author],
        artifact_segment=columns.segments.used[review.task],
        difficulty=columns.segments.values_with_nan_for_unused(parameters.difficulty),
        bias=columns.annotators.values_with_nan_for_unused(parameters.bias),
        thresholds=parameters.thresholds,
        notes=tuple(notes_on_limits_of_baseline_judgments(columns)),
    )


@dataclass(frozen=True, slots=True)
class ReviewData:
    """Judgments arranged for the fit, with artifacts in the place of systems and one segment for all.

    Attributes:
        terms: Logistic terms of all judgments.
        author: Author of each artifact, (artifacts,).
        task: Task of each artifact, (artifacts,).
        sizes: Numbers of authors, artifacts, tasks and reviewers.
        sensitivity: a.
        quality_sd: Standard deviation of qualities.
        prior: Prior of the parameters.

    """

    terms: LogisticTerms
    author: Integers
    task: Integers
    sizes: tuple[int, int, int, int]
    sensitivity: float
    quality_sd: float
    prior: Prior


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """Parameters of the model.

    Attributes:
        ability: Ability of each author, (authors,).
        quality_beyond_ability: Quality minus ability, (artifacts,).
        difficulty: Difficulty of each task, (tasks,).
        bias: Bias of each reviewer, (reviewers,).
        thresholds: t_1 and t_2, (2,).

    """

    ability: Array
    quality_beyond_ability: Array
    difficulty: Array
    bias: Array
    thresholds: Array


def make_review_data(columns: BaselineJudgments, sensitivity: float, quality_sd: float, prior: Prior) -> ReviewData:
    """Return the judgments arranged for `loss_and_gradient`."""
    tasks = len(columns.segments.used)
    key, artifact = np.unique(columns.items.index * tasks + columns.segments.index, return_inverse=True)
    terms = count_distinct_logistic_terms(artifact, columns.annotators.index, np.zeros_like(artifact), columns.outcomes)
    sizes = len(columns.items.used), len(key), tasks, len(columns.annotators.used)
    return ReviewData(terms, key // tasks, key % tasks, sizes, sensitivity, quality_sd, prior)


def parameters_of_point(point: Array, review: ReviewData) -> ModelParameters:
    """Return the parameters of a point, a vector whose last two entries are t_1 and t_2 - t_1."""
    ability, quality_beyond_ability, difficulty, bias, bounds = np.split(point, np.cumsum(review.sizes))
    return ModelParameters(ability, quality_beyond_ability, difficulty, bias, np.cumsum(bounds))


def maximise_posterior_or_raise(review: ReviewData, max_iterations: int) -> Array:
    """Return the point with the maximal posterior density, or raise `NotConverged`."""
    low, high = review.prior.mu_b
    parameter_count = sum(review.sizes)
    start = np.append(np.zeros(parameter_count), [low, high - low])
    scale = parameter_scales(review)

    def loss(scaled: Array) -> tuple[float, Array]:
        value, gradient = loss_and_gradient(scaled * scale, review)
        return value, gradient * scale

    result = minimize(
        loss,
        start / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * (parameter_count + 1) + [(_MIN_THRESHOLD_DISTANCE / scale[-1], None)],
        options={"maxiter": max_iterations, "maxfun": 2 * max_iterations, "maxcor": 50, "gtol": 1e-5, "ftol": 1e-11},
    )
    if not result.success:
        raise NotConverged(f"The fit did not settle within {result.nit} steps.", code="not_converged")
    return np.asarray(result.x * scale, dtype=np.float64)


def parameter_scales(review: ReviewData) -> Array:
    """Return about the standard deviation of each parameter.

    A system with thousands of judgments and an artifact with three need steps of different size.
    """
    terms, prior, (authors, artifacts, tasks, reviewers) = review.terms, review.prior, review.sizes
    information = terms.count * review.sensitivity**2 / 5.0  # a logistic term's information is a^2 / 4 at most
    by_artifact = sum_values_of_each_number(terms.system, information, artifacts)
    precision = (
        sum_values_of_each_number(review.author, by_artifact, authors) + prior.tau**-2,
        by_artifact + review.quality_sd**-2,
        sum_values_of_each_number(review.task, by_artifact, tasks) + prior.sigma_b**-2,
        sum_values_of_each_number(terms.judge, information, reviewers) + prior.sigma_b**-2,
        np.full(2, information.sum() + prior.sigma_b**-2),
    )
    return np.asarray(np.concatenate(precision) ** -0.5)


def loss_and_gradient(point: Array, review: ReviewData) -> tuple[float, Array]:
    """Return minus the log posterior density up to a constant, and its gradient."""
    parameters, terms, a = parameters_of_point(point, review), review.terms, review.sensitivity
    z, complement = logits_and_complements(parameters, review)
    slope = terms.count * terms.sign * a * complement
    by_artifact = sum_values_of_each_number(terms.system, slope, review.sizes[1])
    by_threshold = -sum_values_of_each_number(terms.threshold, slope, 2)
    width = a * point[-1]
    by_width = terms.tie_count.sum() * a / np.expm1(width)
    value = terms.count @ (np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z))))
    value += terms.tie_count.sum() * np.log(-np.expm1(-width))
    prior_value, prior_gradient = log_prior_and_gradient(parameters, review)
    threshold_gradient = by_threshold + prior_gradient.thresholds
    gradient = (
        sum_values_of_each_number(review.author, by_artifact, review.sizes[0]) + prior_gradient.ability,
        by_artifact + prior_gradient.quality_beyond_ability,
        -sum_values_of_each_number(review.task, by_artifact, review.sizes[2]) + prior_gradient.difficulty,
        -sum_values_of_each_number(terms.judge, slope, review.sizes[3]) + prior_gradient.bias,
        [threshold_gradient.sum(), threshold_gradient[1] + by_width],
    )
    return -float(value + prior_value), -np.concatenate(gradient)


def logits_and_complements(parameters: ModelParameters, review: ReviewData) -> tuple[Array, Array]:
    """Return z and S(-z) of each term."""
    terms = review.terms
    quality_minus_difficulty = (
        parameters.ability[review.author] + parameters.quality_beyond_ability - parameters.difficulty[review.task]
    )
    z = (
        terms.sign
        * review.sensitivity
        * (
            quality_minus_difficulty[terms.system]
            - parameters.bias[terms.judge]
            - parameters.thresholds[terms.threshold]
        )
    )
    exponential = np.exp(-np.abs(z))
    return z, np.where(z >= 0.0, exponential, 1.0) / (1.0 + exponential)


def log_prior_and_gradient(parameters: ModelParameters, review: ReviewData) -> tuple[float, ModelParameters]:
    """Return the log prior density up to a constant, and its gradient."""
    prior = review.prior
    gradient = ModelParameters(
        -parameters.ability / prior.tau**2,
        -parameters.quality_beyond_ability / review.quality_sd**2,
        -parameters.difficulty / prior.sigma_b**2,
        -parameters.bias / prior.sigma_b**2,
        (np.array(prior.mu_b) - parameters.thresholds) / prior.sigma_b**2,
    )
    value = (
        gradient.ability @ parameters.ability
        + gradient.quality_beyond_ability @ parameters.quality_beyond_ability
        + gradient.difficulty @ parameters.difficulty
        + gradient.bias @ parameters.bias
        - prior.sigma_b**2 * (gradient.thresholds @ gradient.thresholds)
    )
    return 0.5 * float(value), gradient


def ability_standard_errors(parameters: ModelParameters, review: ReviewData) -> Array:
    """Return the standard error of each ability, (authors,).

    An artifact with information h on its quality has information 1 / (quality_sd^2 + 1 / h) on the ability.
    """
    terms = review.terms
    complement = logits_and_complements(parameters, review)[1]
    quality_information = sum_values_of_each_number(
        terms.system, terms.count * review.sensitivity**2 * complement * (1.0 - complement), review.sizes[1]
    )
    ability_information = quality_information / (1.0 + review.quality_sd**2 * quality_information)
    return (
        sum_values_of_each_number(review.author, ability_information, review.sizes[0]) + review.prior.tau**-2
    ) ** -0.5
