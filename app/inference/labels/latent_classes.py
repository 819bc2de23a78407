"""Expectation maximisation (EM) for classes that are seen only through labels: the climb behind `dawid_skene`.

Arrays over items are (K, items), so that what is done to one class at a time runs over contiguous memory: with 2
classes many times faster than (items, K).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from app.inference.ground.arrays import Array, Integers

# Two climbs to one top stop at slightly different heights; a higher top differs by more than this part of its height.
_HIGHER = 1e-6

# By how much the reach of leaps grows and shrinks; the value of the paper's program.
_REACH = 4.0


@dataclass(frozen=True, slots=True)
class Labels:
    """How often each item got each label of each annotator: sparse (n_items, n_annotators * n_labels).

    Column annotator * n_labels + label. Every item has a label here.
    """

    counts: sparse.csr_array
    n_annotators: int
    n_labels: int


@dataclass(frozen=True, slots=True)
class ClassParameters:
    """Prevalence (K,) and response matrices (n_annotators, K, K), [j, k, l] = P(j says l of class k).

    Also the smoothing of both, what it adds to their counts: (K,) and (K, K).
    """

    prevalence: Array
    response: Array


@dataclass(frozen=True, slots=True)
class StopRule:
    """When a climb ends: no posterior is farther than `tolerance` from the top, or `max_iterations` are done.

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
    """What is seen from a point in parameter space.

    posterior: (K, n_items) under these parameters. expected: (n_annotators, K, K), how many labels l annotator j is
    expected to have given to items of class k. log_likelihood: of the labels. height: that plus the log prior but for a
    constant, which is what is climbed.
    """

    parameters: ClassParameters
    posterior: Array
    expected: Array
    log_likelihood: float
    height: float


@dataclass(frozen=True, slots=True)
class Climb:
    """The view where a climb ended, its height at each step, and whether it ended because it had converged."""

    end: Expectation
    trace: list[float]
    converged: bool


def labels_of(rows: Integers, annotators: Integers, labels: Integers, n_annotators: int, n_labels: int) -> Labels:
    """Labels from long form: three (n,); rows number the items that have a label."""
    entries = np.ones(len(rows)), (rows, annotators * n_labels + labels)
    counts = sparse.csr_array(entries, shape=(int(rows.max()) + 1, n_annotators * n_labels))
    return Labels(counts, n_annotators, n_labels)


def climb(start: ClassParameters, labels: Labels, smoothing: ClassParameters, rule: StopRule) -> Climb:
    """EM from the start to the penalised maximum that it leads to, with a leap after every other step.

    EM alone creeps where labels are few. So two steps are taken as the direction of a leap (squared extrapolation,
    Varadhan & Roland 2008), and it is made if it leads no lower; how far it may go grows with leaps that do and shrinks
    with those that do not. The height never falls but for rounding, and a plain step judges whether it has converged:
    how far it moved posteriors, times the number of such steps that the last two say are left. It has also where only
    rounding is left of the height that a step gains; heights tell little else, for where labels are few a posterior can
    be far from where it is going while hardly any height is left to gain.
    """
    view = _view(start, labels, smoothing)
    trace, reach, steps_left = [view.height], 1.0, 1.0
    while True:
        one = _view(_maximisation(view, smoothing), labels, smoothing)
        trace.append(one.height)
        converged = one.height <= view.height or steps_left * _farthest(view, one) <= rule.tolerance
        if converged or len(trace) + 2 > rule.max_iterations:
            return Climb(one, trace, converged)
        two = _maximisation(one, smoothing)
        steps_left = _length(view.parameters, one.parameters, two)
        length = min(reach, steps_left)
        leap = _view(_leap(view.parameters, one.parameters, two, length), labels, smoothing)
        made = leap.height >= one.height
        if length == reach or not made:
            reach = reach * _REACH if made else max(1.0, length / _REACH)
        view = leap if made else _view(two, labels, smoothing)
        trace.append(view.height)


def _farthest(view: Expectation, other: Expectation) -> float:
    """The largest difference of two posteriors."""
    return float(max(np.abs(one - two).max() for one, two in zip(view.posterior, other.posterior, strict=True)))


def from_votes(labels: Labels, smoothing: ClassParameters) -> ClassParameters:
    """The parameters that follow if the posterior of each item is the share of its labels."""
    says = np.tile(np.eye(labels.n_labels), labels.n_annotators)
    votes = np.stack([labels.counts @ column for column in says])
    posterior = votes / votes.sum(axis=0)
    return _most_probable(posterior, _expected(labels, posterior), smoothing)


def from_diagonal(accuracy: float, labels: Labels) -> ClassParameters:
    """Equal prevalence, and for every annotator the accuracy on the diagonal and equal shares beside it."""
    n = labels.n_labels
    response = np.full((n, n), (1.0 - accuracy) / (n - 1))
    np.fill_diagonal(response, accuracy)
    return ClassParameters(np.full(n, 1.0 / n), np.tile(response, (labels.n_annotators, 1, 1)))


def highest(
    first: Climb, labels: Labels, smoothing: ClassParameters, rule: StopRule, *, restarts: int, rng: np.random.Generator
) -> tuple[Climb, int, int]:
    """The highest of the first climb and those from random starts; how many were higher than the first, how many
    did not converge and so were not considered.

    A climb counts as higher only by more than two climbs to one top may differ.
    """
    best, higher, lost = first, 0, 0
    least = first.trace[-1] + _HIGHER * max(1.0, abs(first.trace[-1])) if first.converged else -np.inf
    for _ in range(restarts):
        other = climb(_at_random(labels, rng), labels, smoothing, rule)
        lost += not other.converged
        if other.converged and other.trace[-1] > least:
            higher += 1
            best = max(best, other, key=lambda climbed: (climbed.converged, climbed.trace[-1]))
    return _matched(best, smoothing) if best is not first else first, higher, lost


def expectation(labels: Labels, parameters: ClassParameters) -> tuple[Array, float]:
    """Posteriors p(z_i = k | y) ~ pi_k prod_n theta[jj[n], k, y[n]] as (K, n_items), and the log-likelihood."""
    with np.errstate(divide="ignore"):  # without smoothing a probability may be 0; the sparse sum never meets 0 * inf
        log_prevalence, log_response = np.log(parameters.prevalence), np.log(parameters.response)
    joint = np.stack([labels.counts @ log_response[:, k].ravel() for k in range(labels.n_labels)])
    joint += log_prevalence[:, None]
    peak = joint.max(axis=0)
    joint -= peak
    np.exp(joint, out=joint)
    total = joint.sum(axis=0)
    joint /= total
    return joint, float(peak.sum() + np.log(total).sum())


def normalised(counts: Array) -> Array:
    """Shares along the last axis; equal ones where nothing was counted."""
    total = counts.sum(axis=-1, keepdims=True)
    shares: Array = np.full_like(counts, 1.0 / counts.shape[-1])
    np.divide(counts, total, out=shares, where=total > 0.0)
    return shares


def _at_random(labels: Labels, rng: np.random.Generator) -> ClassParameters:
    """Uniform over all parameters."""
    flat = np.ones(labels.n_labels)
    return ClassParameters(rng.dirichlet(flat), rng.dirichlet(flat, (labels.n_annotators, labels.n_labels)))


def _expected(labels: Labels, posterior: Array) -> Array:
    """(n_annotators, K, K): labels l that annotator j gave to items of class k, as far as they are of class k."""
    transposed, shape = labels.counts.T, (labels.n_annotators, labels.n_labels)
    return np.stack([(transposed @ share).reshape(shape) for share in posterior], axis=1)


def _maximisation(view: Expectation, smoothing: ClassParameters) -> ClassParameters:
    return _most_probable(view.posterior, view.expected, smoothing)


def _most_probable(posterior: Array, expected: Array, smoothing: ClassParameters) -> ClassParameters:
    return ClassParameters(
        normalised(posterior.sum(axis=1) + smoothing.prevalence), normalised(expected + smoothing.response)
    )


def _length(zero: ClassParameters, one: ClassParameters, two: ClassParameters) -> float:
    """How far two steps say one should leap, |change| / |bend|, and at least 1, which is where the second step ends."""
    change = _distance(one.prevalence - zero.prevalence, one.response - zero.response)
    bend = _distance(
        two.prevalence - 2.0 * one.prevalence + zero.prevalence, two.response - 2.0 * one.response + zero.response
    )
    return max(1.0, change / bend) if bend > 0.0 else 1.0


def _distance(prevalence: Array, response: Array) -> float:
    return float(np.sqrt(np.square(prevalence).sum() + np.square(response).sum()))


def _leap(zero: ClassParameters, one: ClassParameters, two: ClassParameters, length: float) -> ClassParameters:
    return ClassParameters(
        _extrapolated(zero.prevalence, one.prevalence, two.prevalence, length),
        _extrapolated(zero.response, one.response, two.response, length),
    )


def _extrapolated(zero: Array, one: Array, two: Array, length: float) -> Array:
    """Probabilities zero + 2 length change + length^2 bend, none below a tenth of `two`, since at 0 it would stay."""
    leapt = zero + 2.0 * length * (one - zero) + length * length * (two - 2.0 * one + zero)
    return normalised(np.maximum(leapt, 0.1 * two))


def _view(parameters: ClassParameters, labels: Labels, smoothing: ClassParameters) -> Expectation:
    posterior, log_likelihood = expectation(labels, parameters)
    height = log_likelihood + _log_prior(parameters, smoothing)
    return Expectation(parameters, posterior, _expected(labels, posterior), log_likelihood, height)


def _log_prior(parameters: ClassParameters, smoothing: ClassParameters) -> float:
    on_response = xlogy(smoothing.response, parameters.response).sum()
    return float(on_response + xlogy(smoothing.prevalence, parameters.prevalence).sum())


def _matched(climbed: Climb, smoothing: ClassParameters) -> Climb:
    """The same climb with its classes named after the labels that their items are given most.

    From a random start the names are random, and so they are to the likelihood. If the prior tells classes apart,
    though, it has named them.
    """
    if not _exchangeable(smoothing):
        return climbed
    from scipy.optimize import linear_sum_assignment  # it takes long to import, and few fits need it

    end = climbed.end
    _, order = linear_sum_assignment(end.expected.sum(axis=0).T, maximize=True)
    parameters = ClassParameters(end.parameters.prevalence[order], end.parameters.response[:, order])
    named = replace(end, parameters=parameters, posterior=end.posterior[order], expected=end.expected[:, order])
    return replace(climbed, end=named)


def _exchangeable(smoothing: ClassParameters) -> bool:
    rows, shares = smoothing.response, smoothing.prevalence
    return bool((rows == rows[0]).all() and (shares == shares[0]).all())
