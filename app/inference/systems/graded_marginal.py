"""The marginal likelihood of the graded response model, its gradient and its curvature.

Otani, Nakazawa, Kawahara & Kurohashi 2016, sections 4.1, 4.2 and 5.1. With z_c = a_k (theta_i - b_jc) and the logistic
function S, a judgment has the probability S(-z_1) when the baseline is preferred, S(z_2) when the system is, and for a
tie S(z_1) - S(z_2) = S(z_1) S(-z_2) (1 - exp(z_2 - z_1)). So every judgment is one or two logistic terms log S(s z_c)
with s = +1 or -1, and a tie also log(1 - exp(-a_k (b_j2 - b_j1))), which no theta enters. Nothing cancels or overflows.

Quadrature over theta is Gauss-Hermite, centred and scaled for each system at the mode of its own posterior (Liu &
Pierce 1994). With hundreds of judgments per system, that posterior is far narrower than the distance between the nodes
of
the prior, which the paper uses for all systems alike; `adaptive=False` does as the paper does. (The paper writes the
nodes as tau x_t, which is the N(0, tau^2 / 2) prior; sqrt(2) tau x_t is the N(0, tau^2) it states, and used here.)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.validation import sum_values_of_each_number

_TERMS_AT_ONCE = 8192
"""Number of terms, times the nodes, that stay in the processor's cache."""

_FLOATS_PER_BLOCK = 2**24
"""Size of the largest array of the curvature besides the matrix itself: 128 MiB."""

_MAX_NEWTON_STEPS = 200
"""Newton needs about 5; where it leaves the bracket, halving any bracket to the last bit needs about 100."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Section 4.2: theta ~ N(0, tau^2), b_c ~ N(mu_b[c], sigma_b^2), log a ~ N(mu_a, sigma_a^2); defaults: 6.1.

    barrier: weight of log(b_2 - b_1), section 5.1's log barrier. It counts as so many ties seen on every segment
        (a tie's probability is proportional to b_2 - b_1 where that is small); finite, > 0.
    """

    tau: float = float(np.sqrt(2.0))
    mu_a: float = float(np.log(1.7))
    sigma_a: float = 1.0
    mu_b: tuple[float, float] = (-0.5, 0.5)
    sigma_b: float = 2.0
    barrier: float = 0.01

    def __post_init__(self) -> None:
        for name in ("tau", "sigma_a", "sigma_b", "barrier"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be a finite number above 0, not {getattr(self, name)}")
        if not -np.inf < self.mu_b[0] < self.mu_b[1] < np.inf:
            raise ValueError(f"mu_b must be two finite numbers, the lower first, not {self.mu_b}")
        if not np.isfinite(self.mu_a):
            raise ValueError(f"mu_a must be finite, not {self.mu_a}")


@dataclass(frozen=True, slots=True)
class LogisticTerms:
    """The logistic terms of all judgments, equal ones counted together, sorted by system.

    Every system, judge and segment has at least one judgment.

    Attributes:
        system: (M,), as judge.
        threshold: (M,), segment for b_1 and n_segments + segment for b_2.
        sign: (M,), +1.0 or -1.0.
        count: (M,) how many judgments have this term.
        tie_judge: (Q,) the judges of the ties, as tie_segment and tie_count.

    """

    system: Integers
    judge: Integers
    threshold: Integers
    sign: Array
    count: Array
    tie_judge: Integers
    tie_segment: Integers
    tie_count: Array
    n_systems: int
    n_judges: int
    n_segments: int


@dataclass(frozen=True, slots=True)
class QuadratureNodes:
    """Gauss-Hermite for every system: theta and log weight (the prior's density within), both (n_systems, T)."""

    theta: Array
    log_weight: Array


def count_distinct_logistic_terms(
    systems: Integers, judges: Integers, segments: Integers, outcomes: Integers
) -> LogisticTerms:
    """Return the terms of judgments (n,), outcomes +1 the system is preferred, 0 a tie, -1 the baseline.

    All numbers from 0 to the largest are in use.
    """
    n_systems, n_judges, n_segments = (int(numbers.max()) + 1 for numbers in (systems, judges, segments))
    # Not losing (u > 1) is about b_1, winning (u > 2) about b_2; a tie is not losing and not winning.
    lower, upper, tied = outcomes <= 0, outcomes >= 0, outcomes == 0
    first, second = np.flatnonzero(lower), np.flatnonzero(upper)
    rows = np.concatenate([first, second])
    threshold = np.concatenate([segments[first], n_segments + segments[second]])
    positive = np.concatenate([tied[first], ~tied[second]]).astype(np.intp)
    (system, judge, bound, is_positive), count = _distinct_tuples_and_counts(
        (systems[rows], judges[rows], threshold, positive), (n_systems, n_judges, 2 * n_segments, 2)
    )
    (tie_judge, tie_segment), tie_count = _distinct_tuples_and_counts(
        (judges[tied], segments[tied]), (n_judges, n_segments)
    )
    return LogisticTerms(
        system=system,
        judge=judge,
        threshold=bound,
        sign=np.where(is_positive == 1, 1.0, -1.0),
        count=count,
        tie_judge=tie_judge,
        tie_segment=tie_segment,
        tie_count=tie_count,
        n_systems=n_systems,
        n_judges=n_judges,
        n_segments=n_segments,
    )


def _distinct_tuples_and_counts(columns: tuple[Integers, ...], sizes: tuple[int, ...]) -> tuple[list[Integers], Array]:
    """Return the distinct tuples of numbers, sorted, and how often each occurs."""
    key, count = np.unique(np.ravel_multi_index(columns, sizes), return_counts=True)
    return list(np.unravel_index(key, sizes)), count.astype(np.float64)


def posterior_modes_and_curvatures(
    terms: LogisticTerms, prior: Prior, log_a: Array, b: Array, start: Array | None = None
) -> tuple[Array, Array]:
    """Return the theta (n_systems,) of highest posterior density given log_a and b, section 5.2, and the curvature
    there.

    The curvature is -d2/dtheta2 of the log density, (n_systems,), > 0. Newton's method inside a bracket, from `start`;
    the density is log-concave, so there is one mode. log_a is (n_judges,), b is (2 n_segments,).
    """
    slope = terms.sign * np.exp(log_a)[terms.judge]
    offset = slope * b[terms.threshold]
    # Where the derivative is 0, theta = tau^2 sum(slope * S(-z)), which is at most this.
    high = prior.tau**2 * sum_values_of_each_number(terms.system, terms.count * np.abs(slope), terms.n_systems)
    low = -high
    theta = np.zeros(terms.n_systems) if start is None else np.clip(start, low, high)
    curvature = theta
    for _ in range(_MAX_NEWTON_STEPS):
        gradient, curvature = _log_posterior_slope_and_curvature(terms, prior, slope, offset, theta)
        low, high = np.where(gradient > 0.0, theta, low), np.where(gradient < 0.0, theta, high)
        step = gradient / curvature
        near = np.abs(step) <= 1e-6 * curvature**-0.5
        theta = np.where(near | ((low < theta + step) & (theta + step < high)), theta + step, (low + high) / 2.0)
        if near.all():  # and after this last step, by Newton's quadratic convergence, nearer than rounding can tell
            break
    return theta, curvature


def _log_posterior_slope_and_curvature(
    terms: LogisticTerms, prior: Prior, slope: Array, offset: Array, theta: Array
) -> tuple[Array, Array]:
    """First and minus second derivative in theta, (n_systems,) each."""
    z = slope * theta[terms.system] - offset
    rest = logistic_of_minus_z(z, np.exp(-np.abs(z)))
    first = sum_values_of_each_number(terms.system, terms.count * slope * rest, terms.n_systems)
    second = sum_values_of_each_number(terms.system, terms.count * slope * slope * rest * (1.0 - rest), terms.n_systems)
    return first - theta / prior.tau**2, second + 1.0 / prior.tau**2


def quadrature_nodes(mode: Array, curvature: Array, prior: Prior, node_count: int) -> QuadratureNodes:
    """Return `node_count` nodes for each system around its mode, as wide as its curvature says; (n_systems,) each.

    mode = 0 and curvature = 1 / tau^2 give the nodes of the prior.
    """
    x, weight = np.polynomial.hermite.hermgauss(node_count)
    scale = np.sqrt(2.0 / curvature)[:, None]
    theta = mode[:, None] + scale * x
    log_density = -0.5 * (theta / prior.tau) ** 2 - 0.5 * np.log(2.0 * np.pi) - np.log(prior.tau)
    return QuadratureNodes(theta, np.log(weight) + x * x + np.log(scale) + log_density)


def log_marginal_and_gradient(
    terms: LogisticTerms, prior: Prior, log_a: Array, b: Array, nodes: QuadratureNodes
) -> tuple[float, Array, Array]:
    """Logarithm of P(U, a, b) of section 5.1 with the barrier, and its gradient in log_a (n_judges,) and b (2
    n_segments,).

    The gradient holds the nodes fixed. Where they follow the modes it is still that of the integral, which does not
    depend on its nodes, up to the error of the quadrature.
    """
    value, by_log_a, by_b = _log_prior_and_gradient(prior, log_a, b)
    tie_terms = _tie_log_likelihood_and_gradient(terms, log_a, b)
    value += tie_terms[0]
    by_log_a += tie_terms[1]
    by_b += tie_terms[2]
    for expectation in _iterate_expectations_of_system_ranges(terms, log_a, b, nodes):
        value += expectation.log_integral.sum()
        rest = expectation.count * np.einsum("mt,mt->m", expectation.rest, expectation.weight)
        rest_z = expectation.count * np.einsum("mt,mt,mt->m", expectation.rest, expectation.weight, expectation.z)
        by_log_a += sum_values_of_each_number(expectation.judge, rest_z, len(log_a))
        by_b -= sum_values_of_each_number(expectation.threshold, expectation.slope * rest, len(b))
    return value, by_log_a, by_b


@dataclass(frozen=True, slots=True)
class _Expectation:
    """The terms of some systems on their nodes.

    Attributes:
        local: (m,), the system of each term among these systems.
        z: (m, T).
        rest: S(-z), (m, T).
        weight: (m, T), the node's share of the system's posterior.
        share: The same as (systems, T).

    """

    judge: Integers
    threshold: Integers
    local: Integers
    slope: Array
    count: Array
    z: Array
    rest: Array
    weight: Array
    share: Array
    log_integral: Array


def _iterate_expectations_of_system_ranges(
    terms: LogisticTerms, log_a: Array, b: Array, nodes: QuadratureNodes, max_systems: int = _TERMS_AT_ONCE
) -> Iterator[_Expectation]:
    slope = terms.sign * np.exp(log_a)[terms.judge]
    starts = np.searchsorted(terms.system, np.arange(terms.n_systems + 1))
    for low, high in _iterate_ranges_of_systems(starts, max_systems):
        rows = slice(starts[low], starts[high])
        local, count = terms.system[rows] - low, terms.count[rows]
        z = slope[rows, None] * (nodes.theta[low:high][local] - b[terms.threshold[rows], None])
        fraction = np.exp(-np.abs(z))
        log_likelihood = count[:, None] * (np.minimum(z, 0.0) - np.log1p(fraction))
        joint = np.add.reduceat(log_likelihood, starts[low:high] - starts[low]) + nodes.log_weight[low:high]
        share, log_integral = _normalised_weights_and_log_sums(joint)
        yield _Expectation(
            judge=terms.judge[rows],
            threshold=terms.threshold[rows],
            local=local,
            slope=slope[rows],
            count=count,
            z=z,
            rest=logistic_of_minus_z(z, fraction),
            weight=share[local],
            share=share,
            log_integral=log_integral,
        )


def _normalised_weights_and_log_sums(log_weight: Array) -> tuple[Array, Array]:
    """Return the weights of each row, (n, T), with the sum 1, and the logarithm of their sum before, (n,)."""
    largest = log_weight.max(axis=1, keepdims=True)
    weight = np.exp(log_weight - largest)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (largest + np.log(total))[:, 0]


def _iterate_ranges_of_systems(starts: Integers, max_systems: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of neighbouring systems with few enough terms together; one alone where it has more."""
    low = 0
    while low < len(starts) - 1:
        last_fitting = int(np.searchsorted(starts, starts[low] + _TERMS_AT_ONCE, side="right")) - 1
        high = max(min(last_fitting, low + max_systems), low + 1)
        yield low, high
        low = high


def logistic_of_minus_z(z: Array, exp_of_minus_abs_z: Array) -> Array:
    """Return the logistic function of -z, given exp(-|z|)."""
    return np.where(z >= 0.0, exp_of_minus_abs_z, 1.0) / (1.0 + exp_of_minus_abs_z)


def _log_prior_and_gradient(prior: Prior, log_a: Array, b: Array) -> tuple[float, Array, Array]:
    """Return the log density up to a constant, with the barrier, and its gradient."""
    lower, upper = b.reshape(2, -1)
    from_a = (log_a - prior.mu_a) / prior.sigma_a
    from_b = (b - np.repeat(prior.mu_b, len(lower))) / prior.sigma_b
    value = -0.5 * float(from_a @ from_a) - 0.5 * float(from_b @ from_b)
    value += prior.barrier * float(np.log(upper - lower).sum())
    pull = prior.barrier / (upper - lower)
    return value, -from_a / prior.sigma_a, np.concatenate([-pull, pull]) - from_b / prior.sigma_b


def _tie_log_likelihood_and_gradient(terms: LogisticTerms, log_a: Array, b: Array) -> tuple[float, Array, Array]:
    """Return the sum of log(1 - exp(-a_k (b_j2 - b_j1))) over the ties, and its gradient."""
    lower, upper = b.reshape(2, -1)
    a = np.exp(log_a)[terms.tie_judge]
    distance = a * (upper - lower)[terms.tie_segment]
    value = float(terms.tie_count @ np.log(-np.expm1(-distance)))
    with np.errstate(over="ignore"):
        pull = terms.tie_count / np.expm1(distance)
    by_log_a = sum_values_of_each_number(terms.tie_judge, pull * distance, len(log_a))
    by_width = sum_values_of_each_number(terms.tie_segment, pull * a, len(lower))
    return value, by_log_a, np.concatenate([-by_width, by_width])


def observed_information_matrix_of_parameters(
    terms: LogisticTerms, prior: Prior, log_a: Array, b: Array, nodes: QuadratureNodes
) -> Array:
    """Minus the second derivatives of the log marginal in (log_a, b_1, b_2), (P, P), P = n_judges + 2 n_segments.

    For the integral they are the expectation of the second derivatives plus the variance of the first (Louis 1982).
    """
    judges, size = len(log_a), len(log_a) + len(b)
    matrix = np.zeros((size, size))
    _add_prior_information_to_matrix(matrix, prior, judges, b)
    _add_information_of_ties(matrix, terms, log_a, b)
    max_systems = max(1, _FLOATS_PER_BLOCK // (size * nodes.theta.shape[1]))
    for expectation in _iterate_expectations_of_system_ranges(terms, log_a, b, nodes, max_systems):
        rest, bend = (
            expectation.rest * expectation.weight,
            expectation.rest * (1.0 - expectation.rest) * expectation.weight,
        )
        by_both = -expectation.slope * np.sum(bend * expectation.z - rest, axis=1)
        threshold = judges + expectation.threshold
        np.add.at(
            matrix,
            (expectation.judge, expectation.judge),
            expectation.count * np.sum(expectation.z * (bend * expectation.z - rest), axis=1),
        )
        np.add.at(matrix, (expectation.judge, threshold), expectation.count * by_both)
        np.add.at(matrix, (threshold, expectation.judge), expectation.count * by_both)
        np.add.at(matrix, (threshold, threshold), expectation.count * expectation.slope**2 * bend.sum(axis=1))
        deviation = _weighted_deviations_of_node_gradients(expectation, judges, size)
        matrix -= deviation @ deviation.T
    return matrix


def _add_prior_information_to_matrix(matrix: Array, prior: Prior, judge_count: int, b: Array) -> None:
    lower, upper = b.reshape(2, -1)
    diagonal = np.arange(len(matrix))
    matrix[diagonal[:judge_count], diagonal[:judge_count]] += prior.sigma_a**-2
    matrix[diagonal[judge_count:], diagonal[judge_count:]] += prior.sigma_b**-2
    _add_information_on_threshold_widths(matrix, judge_count, prior.barrier / (upper - lower) ** 2)


def _add_information_on_threshold_widths(matrix: Array, judge_count: int, width_information: Array) -> None:
    """Add minus the second derivative in b_2 - b_1, (n_segments,), to the matrix."""
    lower = judge_count + np.arange(len(width_information))
    upper = lower + len(width_information)
    for row, column, sign in ((lower, lower, 1.0), (upper, upper, 1.0), (lower, upper, -1.0), (upper, lower, -1.0)):
        matrix[row, column] += sign * width_information


def _add_information_of_ties(matrix: Array, terms: LogisticTerms, log_a: Array, b: Array) -> None:
    """Add the ties' information to the matrix.

    With d = a (b_2 - b_1), the first derivative in d is 1 / (e^d - 1), minus the second 1 / (4 sinh^2(d / 2)).
    """
    lower, upper = b.reshape(2, -1)
    judges, segments = len(log_a), len(lower)
    a = np.exp(log_a)[terms.tie_judge]
    distance = a * (upper - lower)[terms.tie_segment]
    with np.errstate(over="ignore"):
        first = terms.tie_count / np.expm1(distance)
        bend = terms.tie_count / (4.0 * np.sinh(distance / 2.0) ** 2)
    by_width = sum_values_of_each_number(terms.tie_segment, bend * a * a, segments)
    _add_information_on_threshold_widths(matrix, judges, by_width)
    np.add.at(matrix, (terms.tie_judge, terms.tie_judge), distance * (bend * distance - first))
    by_both = a * (bend * distance - first)
    for column, sign in ((judges + terms.tie_segment, -1.0), (judges + segments + terms.tie_segment, 1.0)):
        np.add.at(matrix, (terms.tie_judge, column), sign * by_both)
        np.add.at(matrix, (column, terms.tie_judge), sign * by_both)


def _weighted_deviations_of_node_gradients(expectation: _Expectation, judge_count: int, parameter_count: int) -> Array:
    """Return the gradient at each node of each system minus its mean over the nodes, times the root of the node's
    share.

    Its shape is (P, systems * T).
    """
    nodes = expectation.share.shape[1]
    rest = expectation.count[:, None] * expectation.rest
    by_parameter = np.concatenate([rest * expectation.z, -expectation.slope[:, None] * rest])
    row = np.concatenate([expectation.judge, judge_count + expectation.threshold])
    local = np.concatenate([expectation.local, expectation.local])
    key, position = np.unique(row * len(expectation.share) + local, return_inverse=True)
    summed = np.zeros((len(key), nodes))
    np.add.at(summed, position, by_parameter)
    share = expectation.share[key % len(expectation.share)]
    centred = (summed - np.sum(share * summed, axis=1, keepdims=True)) * np.sqrt(share)
    dense = np.zeros((parameter_count, len(expectation.share), nodes))
    dense[key // len(expectation.share), key % len(expectation.share)] = centred
    return dense.reshape(parameter_count, -1)
