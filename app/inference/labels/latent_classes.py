"""Expectation maximisation (EM) for classes that are observed only through labels: the climb behind `dawid_skene`.

Arrays over items are (K, items), so that operations on one class run over contiguous memory: with 2 classes many times
faster than (items, K).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from app.inference.ground.arrays import Array, Integers

# Two climbs to one top stop at slightly different heights; a higher top differs by more than this part of its height.
_MIN_HEIGHT_GAIN = 1e-6

# Posteriors this near the end of another climb lead to the same top.
_MAX_DISTANCE_IN_BASIN = 0.1
# Plain steps that change no posterior by more than this are near the top of their basin.
_SMALL_STEP, _MAX_PLAIN_STEPS = 1e-3, 300

# By how much the reach of leaps grows and shrinks; the value of the paper's program.
_REACH_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class LabelMatrix:
    """Counts of labels by item and annotator: sparse (n_items, n_annotators * n_labels).

    The column is annotator * n_labels + label. Every item has a label here.
    """

    counts: sparse.csr_array
    n_annotators: int
    n_labels: int


@dataclass(frozen=True, slots=True)
class ClassParameters:
    """Prevalence (K,) and response matrices (n_annotators, K, K), [j, k, l] = P(label l by annotator j | class k).

    Also the smoothing of both, the amounts added to their counts: (K,) and (K, K).
    """

    prevalence: Array
    response: Array


@dataclass(frozen=True, slots=True)
class StopRule:
    """Rule for the end of a climb: no posterior is farther than `tolerance` from the top, or `max_iterations` are done.

    Raises ValueError for a tolerance below 0 or fewer than 2 iterations (one step has nothing to compare with).
    """

    tolerance: float
    max_iterations: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.tolerance < np.inf:
            raise ValueError(f"tolerance must be a number of at least 0, not {self.tolerance}")
        if self.max_iterations < 2:
            raise ValueError(f"max_iterations must be at least 2, not {self.max_iterations}")


@dataclass(frozen=True, slots=True)
class Expectation:
    """The E step at a point in parameter space.

    Attributes:
        parameters: The point.
        posterior: (K, n_items) under these parameters.
        expected: (n_annotators, K, K), the expected number of labels l by annotator j for items of class k.
        log_likelihood: The log-likelihood of the labels.
        height: The objective of the climb: the log-likelihood plus the log prior up to a constant.

    """

    parameters: ClassParameters
    posterior: Array
    expected: Array
    log_likelihood: float
    height: float


@dataclass(frozen=True, slots=True)
class ClimbResult:
    """The point where a climb ended, its height at each step, and whether it converged."""

    end: Expectation
    trace: list[float]
    converged: bool


def make_label_matrix(
    rows: Integers, annotators: Integers, labels: Integers, n_annotators: int, n_labels: int
) -> LabelMatrix:
    """Return the counts of long-form labels, three arrays (n,); `rows` number the items that have a label."""
    entries = np.ones(len(rows)), (rows, annotators * n_labels + labels)
    counts = sparse.csr_array(entries, shape=(int(rows.max()) + 1, n_annotators * n_labels))
    return LabelMatrix(counts, n_annotators, n_labels)


def run_em(
    start: ClassParameters, label_matrix: LabelMatrix, smoothing: ClassParameters, stop_rule: StopRule
) -> ClimbResult:
    """Run EM from the start to the top that it leads to, or to the higher one that leaps lead to.

    A leap can leave the basin of the start and end lower. So plain steps check where the start leads: until they come
    near the end of the accelerated climb, or else to a top of their own, and then the higher of the two is taken.
    """
    accelerated = run_accelerated_em(start, label_matrix, smoothing, stop_rule)
    view, trace = _expectation_step(start, label_matrix, smoothing), list[float]()
    while _max_posterior_change(view, accelerated.end) > _MAX_DISTANCE_IN_BASIN:
        trace.append(view.height)
        step = _expectation_step(_parameters_of_maximisation_step(view, smoothing), label_matrix, smoothing)
        is_near_top = _max_posterior_change(view, step) < _SMALL_STEP
        view = step
        if is_near_top or len(trace) >= min(_MAX_PLAIN_STEPS, stop_rule.max_iterations):
            plain = run_accelerated_em(view.parameters, label_matrix, smoothing, stop_rule)
            plain = replace(plain, trace=trace + plain.trace)
            return max(accelerated, plain, key=lambda climb: (climb.converged, climb.end.height))
    return accelerated


def run_accelerated_em(
    start: ClassParameters, label_matrix: LabelMatrix, smoothing: ClassParameters, stop_rule: StopRule
) -> ClimbResult:
    """Run EM from the start to the penalised maximum that it leads to, with a leap after every other step.

    EM alone creeps where labels are few. So two steps give the direction of a leap (squared extrapolation, Varadhan &
    Roland 2008), which is made if it leads no lower; its largest length grows after leaps that succeed and shrinks
    after those that fail. The height never falls but for rounding, and a plain step judges convergence: how far it
    moved posteriors, times the number of such steps that the last two predict. The climb has also converged where the
    gain in height is only rounding; heights tell little else, for where labels are few a posterior can be far from its
    limit while hardly any height is left to gain.
    """
    view = _expectation_step(start, label_matrix, smoothing)
    trace, reach, steps_left = [view.height], 1.0, 1.0
    while True:
        first_step = _expectation_step(_parameters_of_maximisation_step(view, smoothing), label_matrix, smoothing)
        trace.append(first_step.height)
        converged = (
            first_step.height <= view.height
            or steps_left * _max_posterior_change(view, first_step) <= stop_rule.tolerance
        )
        if converged or len(trace) + 2 > stop_rule.max_iterations:
            return ClimbResult(first_step, trace, converged)
        second_step = _parameters_of_maximisation_step(first_step, smoothing)
        steps_left = _length_of_accelerated_leap(view.parameters, first_step.parameters, second_step)
        length = min(reach, steps_left)
        leap = _expectation_step(
            _extrapolate_parameters(view.parameters, first_step.parameters, second_step, length),
            label_matrix,
            smoothing,
        )
        is_accepted = leap.height >= first_step.height
        if length == reach or not is_accepted:
            reach = reach * _REACH_FACTOR if is_accepted else max(1.0, length / _REACH_FACTOR)
        view = leap if is_accepted else _expectation_step(second_step, label_matrix, smoothing)
        trace.append(view.height)


def _max_posterior_change(before: Expectation, after: Expectation) -> float:
    """Return the largest difference of two posteriors."""
    return float(max(np.abs(one - two).max() for one, two in zip(before.posterior, after.posterior, strict=True)))


def parameters_from_label_shares(label_matrix: LabelMatrix, smoothing: ClassParameters) -> ClassParameters:
    """Return the parameters that follow if the posterior of each item is the share of its labels."""
    label_indicators = np.tile(np.eye(label_matrix.n_labels), label_matrix.n_annotators)
    votes = np.stack([label_matrix.counts @ column for column in label_indicators])
    posterior = votes / votes.sum(axis=0)
    return _parameters_from_counts(posterior, _expected_label_counts(label_matrix, posterior), smoothing)


def parameters_from_accuracy(accuracy: float, label_matrix: LabelMatrix) -> ClassParameters:
    """Return equal prevalence, and for every annotator the accuracy on the diagonal and equal shares off it."""
    n = label_matrix.n_labels
    response = np.full((n, n), (1.0 - accuracy) / (n - 1))
    np.fill_diagonal(response, accuracy)
    return ClassParameters(np.full(n, 1.0 / n), np.tile(response, (label_matrix.n_annotators, 1, 1)))


def best_climb_and_restart_counts(
    first_climb: ClimbResult,
    label_matrix: LabelMatrix,
    smoothing: ClassParameters,
    stop_rule: StopRule,
    *,
    restarts: int,
    rng: np.random.Generator,
) -> tuple[ClimbResult, int, int]:
    """Return the highest of the first climb and climbs from random starts.

    A climb counts as higher only by more than the difference that two climbs to the same top may have.

    Returns:
        The climb, the number of climbs higher than the first, and the number that did not converge and were dropped.

    """
    best, higher, unconverged = first_climb, 0, 0
    min_height = (
        first_climb.trace[-1] + _MIN_HEIGHT_GAIN * max(1.0, abs(first_climb.trace[-1]))
        if first_climb.converged
        else -np.inf
    )
    for _ in range(restarts):
        candidate = run_accelerated_em(_draw_random_parameters(label_matrix, rng), label_matrix, smoothing, stop_rule)
        unconverged += not candidate.converged
        if candidate.converged and candidate.trace[-1] > min_height:
            higher += 1
            best = max(best, candidate, key=lambda climbed: (climbed.converged, climbed.trace[-1]))
    return (
        _match_climb_classes_to_labels(best, smoothing) if best is not first_climb else first_climb,
        higher,
        unconverged,
    )


def class_posteriors_and_log_likelihood(label_matrix: LabelMatrix, parameters: ClassParameters) -> tuple[Array, float]:
    """Return posteriors p(z_i = k | y) ~ pi_k prod_n theta[jj[n], k, y[n]] as (K, n_items), and the log-likelihood."""
    with np.errstate(divide="ignore"):  # without smoothing a probability may be 0; the sparse sum never meets 0 * inf
        log_prevalence, log_response = np.log(parameters.prevalence), np.log(parameters.response)
    joint = np.stack([label_matrix.counts @ log_response[:, k].ravel() for k in range(label_matrix.n_labels)])
    joint += log_prevalence[:, None]
    peak = joint.max(axis=0)
    joint -= peak
    np.exp(joint, out=joint)
    total = joint.sum(axis=0)
    joint /= total
    return joint, float(peak.sum() + np.log(total).sum())


def counts_to_shares(counts: Array) -> Array:
    """Return shares along the last axis; equal ones where all counts are 0."""
    total = counts.sum(axis=-1, keepdims=True)
    shares: Array = np.full_like(counts, 1.0 / counts.shape[-1])
    np.divide(counts, total, out=shares, where=total > 0.0)
    return shares


def _draw_random_parameters(label_matrix: LabelMatrix, rng: np.random.Generator) -> ClassParameters:
    """Draw parameters uniformly."""
    flat = np.ones(label_matrix.n_labels)
    return ClassParameters(rng.dirichlet(flat), rng.dirichlet(flat, (label_matrix.n_annotators, label_matrix.n_labels)))


def _expected_label_counts(label_matrix: LabelMatrix, posterior: Array) -> Array:
    """Return expected counts (n_annotators, K, K): labels l by annotator j for items, weighted by their posterior of
    class k.
    """
    transposed, shape = label_matrix.counts.T, (label_matrix.n_annotators, label_matrix.n_labels)
    return np.stack([(transposed @ share).reshape(shape) for share in posterior], axis=1)


def _parameters_of_maximisation_step(expectation: Expectation, smoothing: ClassParameters) -> ClassParameters:
    return _parameters_from_counts(expectation.posterior, expectation.expected, smoothing)


def _parameters_from_counts(posterior: Array, expected_counts: Array, smoothing: ClassParameters) -> ClassParameters:
    return ClassParameters(
        counts_to_shares(posterior.sum(axis=1) + smoothing.prevalence),
        counts_to_shares(expected_counts + smoothing.response),
    )


def _length_of_accelerated_leap(
    start: ClassParameters, first_step: ClassParameters, second_step: ClassParameters
) -> float:
    """Return the length of a leap that two steps suggest, |change| / |bend|, at least 1, where the second step ends."""
    change = _euclidean_parameter_norm(first_step.prevalence - start.prevalence, first_step.response - start.response)
    bend = _euclidean_parameter_norm(
        second_step.prevalence - 2.0 * first_step.prevalence + start.prevalence,
        second_step.response - 2.0 * first_step.response + start.response,
    )
    return max(1.0, change / bend) if bend > 0.0 else 1.0


def _euclidean_parameter_norm(prevalence: Array, response: Array) -> float:
    return float(np.sqrt(np.square(prevalence).sum() + np.square(response).sum()))


def _extrapolate_parameters(
    start: ClassParameters, first_step: ClassParameters, second_step: ClassParameters, length: float
) -> ClassParameters:
    return ClassParameters(
        _extrapolate_probabilities(start.prevalence, first_step.prevalence, second_step.prevalence, length),
        _extrapolate_probabilities(start.response, first_step.response, second_step.response, length),
    )


def _extrapolate_probabilities(start: Array, first_step: Array, second_step: Array, length: float) -> Array:
    """Return start + 2 length change + length^2 bend, none below a tenth of `second_step`, since at 0 it would stay."""
    leapt = start + 2.0 * length * (first_step - start) + length * length * (second_step - 2.0 * first_step + start)
    return counts_to_shares(np.maximum(leapt, 0.1 * second_step))


def _expectation_step(
    parameters: ClassParameters, label_matrix: LabelMatrix, smoothing: ClassParameters
) -> Expectation:
    posterior, log_likelihood = class_posteriors_and_log_likelihood(label_matrix, parameters)
    height = log_likelihood + _log_smoothing_prior(parameters, smoothing)
    return Expectation(parameters, posterior, _expected_label_counts(label_matrix, posterior), log_likelihood, height)


def _log_smoothing_prior(parameters: ClassParameters, smoothing: ClassParameters) -> float:
    on_response = xlogy(smoothing.response, parameters.response).sum()
    return float(on_response + xlogy(smoothing.prevalence, parameters.prevalence).sum())


def _match_climb_classes_to_labels(climb_result: ClimbResult, smoothing: ClassParameters) -> ClimbResult:
    """Return the same climb with its classes named after the labels that their items are given most.

    From a random start the names are random, and the likelihood does not depend on them. If the prior tells classes
    apart, though, it has named them.
    """
    if not _is_smoothing_same_for_all_classes(smoothing):
        return climb_result
    from scipy.optimize import linear_sum_assignment  # it takes long to import, and few fits need it

    end = climb_result.end
    _, order = linear_sum_assignment(end.expected.sum(axis=0).T, maximize=True)
    parameters = ClassParameters(end.parameters.prevalence[order], end.parameters.response[:, order])
    matched_end = replace(end, parameters=parameters, posterior=end.posterior[order], expected=end.expected[:, order])
    return replace(climb_result, end=matched_end)


def _is_smoothing_same_for_all_classes(smoothing: ClassParameters) -> bool:
    rows, shares = smoothing.response, smoothing.prevalence
    return bool((rows == rows[0]).all() and (shares == shares[0]).all())
