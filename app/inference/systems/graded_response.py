"""The graded response model for pairwise judgments of systems against one baseline.

Otani, Nakazawa, Kawahara & Kurohashi 2016, "IRT-based aggregation model of crowdsourced pairwise comparisons for
evaluating machine translations". Judge k compares system i with the baseline on segment j; the system is not worse with
probability P*_1 and better with P*_2, P*_c = 1 / (1 + exp(-a_k (theta_i - b_jc))): theta_i is the system's performance,
a_k > 0 the judge's sensitivity, b_j1 < b_j2 the segment's difficulties of not losing and of winning.

First a and b maximise the marginal posterior (section 5.1; quadrature in `graded_marginal`), then theta is the mode of
its own posterior given them (section 5.2). Then all of them are brought to a unit that the paper leaves to its priors
(`graded_errors`); orders and correlations do not depend on it. Outcomes are +1 the system is preferred, 0 a tie, -1 the
baseline (the paper's u = 3, 2, 1).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import NotConverged
from app.inference.ground.notes import Note
from app.inference.observations.baseline import (
    Mask,
    notes_on_limits_of_baseline_judgments,
    refuse_missing_or_equal_outcomes,
    validated_baseline_judgments,
)
from app.inference.systems.graded_errors import (
    performance_errors_with_known_judges_and_segments,
    performance_unit_factor,
    standard_errors_of_all_parameters,
)
from app.inference.systems.graded_marginal import (
    LogisticTerms,
    Prior,
    QuadratureNodes,
    count_distinct_logistic_terms,
    log_marginal_and_gradient,
    posterior_modes_and_curvatures,
    quadrature_nodes,
)

__all__ = [
    "GradedResponse",
    "Prior",
    "fit",
    "item_information",
]


@dataclass(frozen=True, slots=True)
class GradedResponse:
    """A fit of the graded response model. NaN where not estimable; `notes` say why.

    Attributes:
        score: (n_items,), theta, on the scale of its prior N(0, tau^2), whose mean 0 is not the baseline.
        standard_error: (n_items,), of theta, with the errors of a, b and the unit. What all systems have in common,
            such as the difficulty of all segments, is known least, so differences of two systems are known better.
        estimable: (n_items,), whether the system has a judgment.
        sensitivity: (n_annotators,), a_k > 0, low for a judge whose answers are random. It is not near 0 if some of
            these
        are ties: at a = 0 a tie has no probability, so such a judge keeps some weight.
        sensitivity_standard_error: (n_annotators,).
        difficulty: (n_segments, 2), b_j1 < b_j2.
        difficulty_standard_error: (n_segments, 2).
        unit: Factor of the paper's theta and b, and divisor of its a, that score, difficulty and sensitivity hold.
        log_marginal: log P(U, a, b) up to a constant of the prior, at the maximum.
        iterations: Steps of the maximisation.
        prior: The prior.
        notes: What could not be estimated and why.

    """

    score: Array
    standard_error: Array
    estimable: Mask
    sensitivity: Array
    sensitivity_standard_error: Array
    difficulty: Array
    difficulty_standard_error: Array
    unit: float
    log_marginal: float
    iterations: int
    prior: Prior
    notes: tuple[Note, ...]


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    segments: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_segments: int | None = None,
    prior: Prior | None = None,
    node_count: int = 21,
    adaptive: bool = True,
    with_errors: bool = True,
    max_iterations: int = 2000,
) -> GradedResponse:
    """Estimate sensitivities, difficulties and performances from judgments against the baseline.

    Time and memory of one step are linear in n * node_count; the standard errors of a and b take the cube and square of
    n_annotators + 2 n_segments.

    Args:
        items: (n,) the system judged.
        annotators: (n,) the judge.
        segments: (n,).
        outcomes: (n,) of +1, 0, -1.
        n_items: The number of systems; this and the next two default to 1 + the largest number.
        n_annotators: The number of judges.
        n_segments: The number of segments.
        prior: The prior; default: that of section 6.1.
        node_count: T >= 1, the number of nodes of the quadrature.
        adaptive: Whether each system has nodes of its own; False for the paper's common nodes, which are too far apart
            once
        a system has more than some ten judgments.
        with_errors: False leaves the standard errors of a and b NaN, and those of theta too small, as if a and b were
            known, and the unit; it saves their time.
        max_iterations: The largest number of steps.

    Raises:
        Inestimable: "no_judgments", "one_outcome".
        NotConverged: "not_converged", "no_single_answer".
        ValueError: The arrays are not as above.

    """
    columns = validated_baseline_judgments(
        items, annotators, segments, outcomes, n_items=n_items, n_annotators=n_annotators, n_segments=n_segments
    )
    refuse_missing_or_equal_outcomes(columns.outcomes)
    prior = prior or Prior()
    terms = count_distinct_logistic_terms(
        columns.items.index, columns.annotators.index, columns.segments.index, columns.outcomes
    )
    maximum = _find_posterior_maximum(terms, prior, node_count, max_iterations, adaptive=adaptive)
    theta, curvature = posterior_modes_and_curvatures(terms, prior, maximum.log_a, maximum.b)
    errors = (
        standard_errors_of_all_parameters(
            terms, prior, maximum.log_a, maximum.b, nodes=maximum.nodes, theta=theta, curvature=curvature
        ).with_error_of_unit(theta, maximum.b)
        if with_errors
        else performance_errors_with_known_judges_and_segments(terms, curvature)
    )
    unit = performance_unit_factor(theta, curvature, prior)
    sensitivity = np.exp(maximum.log_a) / unit
    return GradedResponse(
        score=columns.items.values_with_nan_for_unused(unit * theta),
        standard_error=columns.items.values_with_nan_for_unused(unit * errors.theta),
        estimable=columns.items.is_judged_mask,
        sensitivity=columns.annotators.values_with_nan_for_unused(sensitivity),
        sensitivity_standard_error=columns.annotators.values_with_nan_for_unused(sensitivity * errors.log_a),
        difficulty=columns.segments.values_with_nan_for_unused(unit * maximum.b.reshape(2, -1).T),
        difficulty_standard_error=columns.segments.values_with_nan_for_unused(unit * errors.b.reshape(2, -1).T),
        unit=unit,
        log_marginal=maximum.value,
        iterations=maximum.iterations,
        prior=prior,
        notes=(*notes_on_limits_of_baseline_judgments(columns), *errors.notes),
    )


def item_information(theta: npt.ArrayLike, difficulty: npt.ArrayLike, sensitivity: npt.ArrayLike = 1.0) -> Array:
    """Fisher information of one judgment about a performance near theta: I_j(theta) of section 6.5.

    At theta 0, b = (-0.5, 0.5) and a = 1 it is 0.2926. With P*' = a P* (1 - P*) the sum's middle term is a^2 (P*_1 -
    P*_2) (1 - P*_1 - P*_2)^2, so that b_1 = b_2 is no 0 / 0.

    Args:
        theta: An array that broadcasts with difficulty[..., 0].
        difficulty: (..., 2), b_1 <= b_2.
        sensitivity: An array that broadcasts with difficulty[..., 0].

    """
    a, b = np.asarray(sensitivity, dtype=np.float64), np.asarray(difficulty, dtype=np.float64)
    distance = np.asarray(theta, dtype=np.float64)[..., None] - b
    with np.errstate(over="ignore"):
        above, below = 1.0 / (1.0 + np.exp(-a[..., None] * distance)), 1.0 / (1.0 + np.exp(a[..., None] * distance))
    not_lost, won = above[..., 0], above[..., 1]
    lost, not_won = below[..., 0], below[..., 1]
    tied = np.maximum(not_lost - won, 0.0)
    return np.asarray(a * a * (not_lost**2 * lost + tied * (lost - won) ** 2 + won * not_won**2))


@dataclass(frozen=True, slots=True)
class _Maximum:
    log_a: Array
    b: Array
    value: float
    iterations: int
    nodes: QuadratureNodes


def _find_posterior_maximum(
    terms: LogisticTerms, prior: Prior, node_count: int, max_iterations: int, *, adaptive: bool
) -> _Maximum:
    """Run L-BFGS on (log a, centre of b, log width of b), which need no constraints."""
    from scipy.optimize import minimize  # it takes long to import, and few campaigns have systems

    judge_count, segment_count = terms.n_judges, terms.n_segments
    mode, curvature = np.zeros(terms.n_systems), np.full(terms.n_systems, prior.tau**-2)

    def quadrature_nodes_at(log_a: Array, b: Array) -> QuadratureNodes:
        nonlocal mode, curvature
        if adaptive:
            mode, curvature = posterior_modes_and_curvatures(terms, prior, log_a, b, mode)
        return quadrature_nodes(mode, curvature, prior, node_count)

    def loss(point: Array) -> tuple[float, Array]:
        log_a, b = _split_point_into_log_a_and_b(point, judge_count)
        value, by_log_a, by_b = log_marginal_and_gradient(terms, prior, log_a, b, quadrature_nodes_at(log_a, b))
        lower, upper = by_b.reshape(2, -1)
        half_width = np.exp(point[judge_count + segment_count :]) / 2.0
        return -value, -np.concatenate([by_log_a, lower + upper, (upper - lower) * half_width])

    low, high = prior.mu_b
    start = np.repeat([prior.mu_a, (low + high) / 2.0, np.log(high - low)], [judge_count, segment_count, segment_count])
    result = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxfun": 2 * max_iterations, "maxcor": 50, "gtol": 1e-5, "ftol": 1e-10},
    )
    if not result.success:
        raise NotConverged(f"The fit did not converge within {result.nit} steps.", code="not_converged")
    log_a, b = _split_point_into_log_a_and_b(result.x, judge_count)
    return _Maximum(log_a, b, -float(result.fun), int(result.nit), quadrature_nodes_at(log_a, b))


def _split_point_into_log_a_and_b(point: Array, judge_count: int) -> tuple[Array, Array]:
    """Return log_a (n_judges,) and b (2 n_segments,) from (log a, centre of b, log width of b)."""
    centre, log_width = point[judge_count:].reshape(2, -1)
    half_width = np.exp(log_width) / 2.0
    return point[:judge_count], np.concatenate([centre - half_width, centre + half_width])
