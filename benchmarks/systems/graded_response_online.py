"""The graded response model with an update after every judgment and active choice of the next question.

Otani et al. 2016 leave this to future work (sections 5.3 and 7: gradient steps, and choice by uncertainty). Here
theta_i, the centre and the log width of (b_j1, b_j2), and log a_k each have an independent Normal posterior. A judgment
gives the four parameters that it involves the means and variances of prior times likelihood (assumed-density
filtering), by quadrature. The likelihood depends on theta and the centre only by their difference, so three dimensions
are enough.

No step size has to be chosen, an uncertain judge moves a system less than a reliable one, and the same judgments in the
same order give the same bits. (The mode would not work instead of the mean: each judgment would pull its system to its
own side and then reward the judge for agreeing.)

As in the batch fit, the scale of theta is fixed only by the prior of a: compare differences of scores with their
standard errors, not with those of another fit. These errors are slightly too small, because correlations are dropped.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from app.inference.ground.arrays import Array
from app.inference.observations.baseline import Mask, validated_baseline_judgments
from app.inference.systems.graded_marginal import Prior

Belief = tuple[float, float]
"""Mean and variance of a Normal posterior."""

WIDTH_VARIANCE = 1.0
"""Prior variance of log(b_2 - b_1): about the spread of log |b_2 - b_1| under the prior of the batch fit."""


class NormalGrid(NamedTuple):
    """Quadrature nodes of a standard Normal in three dimensions, (points,) each.

    Attributes:
        difference: Coordinate of theta minus the centre.
        width: Coordinate of the log width.
        a: Coordinate of log a.
        log_weight: Logarithm of the weight.
        moments: Coordinates and their squares, (6, points).

    """

    difference: Array
    width: Array
    a: Array
    log_weight: Array
    moments: Array


def make_normal_grid() -> NormalGrid:
    """Return enough nodes for means and variances within .04 (relative to the prior's) at the first judgment, where
    the likelihood is a step compared with the prior, and within .01 soon after.
    """
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in (31, 7, 7)]
    difference, width, a = (axis.ravel() for axis in np.meshgrid(*(x for x, _ in rules), indexing="ij"))
    weight = np.einsum("i,j,k->ijk", *(w for _, w in rules)).ravel()
    coordinates = np.stack([difference, width, a])
    return NormalGrid(difference, width, a, np.log(weight), np.concatenate([coordinates, coordinates**2]))


_GRID = make_normal_grid()


@dataclass(frozen=True, slots=True)
class Posterior:
    """Beliefs about systems, judges and segments; `learn` changes the arrays in place.

    Attributes:
        theta: Mean performance of each system, (n_items,).
        theta_variance: Its variance, (n_items,).
        centre: Mean of (b_1 + b_2) / 2 of each segment, (n_segments,).
        centre_variance: Its variance, (n_segments,).
        log_width: Mean of log(b_2 - b_1) of each segment, (n_segments,).
        log_width_variance: Its variance, (n_segments,).
        log_a: Mean log sensitivity of each judge, (n_annotators,).
        log_a_variance: Its variance, (n_annotators,).
        judgments: Number of judgments of each system, (n_items,).

    """

    theta: Array
    theta_variance: Array
    centre: Array
    centre_variance: Array
    log_width: Array
    log_width_variance: Array
    log_a: Array
    log_a_variance: Array
    judgments: npt.NDArray[np.int64]

    @property
    def score(self) -> Array:
        """Return theta, (n_items,); the prior mean 0 for a system without a judgment."""
        return self.theta

    @property
    def standard_error(self) -> Array:
        """Return the posterior standard deviation of theta, (n_items,)."""
        return np.sqrt(self.theta_variance)

    @property
    def estimable(self) -> Mask:
        """Return whether the system has a judgment, (n_items,)."""
        return self.judgments > 0

    @property
    def sensitivity(self) -> Array:
        """Return the median of a_k, (n_annotators,)."""
        return np.exp(self.log_a)

    @property
    def difficulty(self) -> Array:
        """Return b_1 and b_2 with b_1 < b_2, (n_segments, 2)."""
        half_width = np.exp(self.log_width) / 2.0
        return np.stack([self.centre - half_width, self.centre + half_width], axis=1)


def start(*, n_items: int, n_annotators: int, n_segments: int, prior: Prior | None = None) -> Posterior:
    """Return the beliefs before any judgment."""
    prior = prior or Prior()
    low, high = prior.mu_b
    return Posterior(
        theta=np.zeros(n_items),
        theta_variance=np.full(n_items, prior.tau**2),
        centre=np.full(n_segments, (low + high) / 2.0),
        centre_variance=np.full(n_segments, prior.sigma_b**2 / 2.0),
        log_width=np.full(n_segments, math.log(high - low)),
        log_width_variance=np.full(n_segments, WIDTH_VARIANCE),
        log_a=np.full(n_annotators, prior.mu_a),
        log_a_variance=np.full(n_annotators, prior.sigma_a**2),
        judgments=np.zeros(n_items, dtype=np.int64),
    )


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
) -> Posterior:
    """Return the beliefs after `learn` for each judgment in order; a replay gives the same bits.

    Arrays are those of `graded_response.fit`, (n,) each; invalid ones raise ValueError.
    """
    columns = validated_baseline_judgments(
        items, annotators, segments, outcomes, n_items=n_items, n_annotators=n_annotators, n_segments=n_segments
    )
    groups = columns.items, columns.annotators, columns.segments
    numbers = (group.used[group.index].tolist() for group in groups)
    posterior = start(
        n_items=columns.items.count,
        n_annotators=columns.annotators.count,
        n_segments=columns.segments.count,
        prior=prior,
    )
    for item, annotator, segment, outcome in zip(*numbers, columns.outcomes.tolist(), strict=True):
        learn(posterior, item, annotator, segment, outcome)
    return posterior


def learn(posterior: Posterior, item: int, annotator: int, segment: int, outcome: int) -> None:
    """Update the beliefs by one judgment: the annotator compared the item with the baseline on the segment; +1, 0
    or -1.
    """
    theta, centre, log_width, log_a = update(
        (float(posterior.theta[item]), float(posterior.theta_variance[item])),
        (float(posterior.centre[segment]), float(posterior.centre_variance[segment])),
        (float(posterior.log_width[segment]), float(posterior.log_width_variance[segment])),
        (float(posterior.log_a[annotator]), float(posterior.log_a_variance[annotator])),
        outcome,
    )
    posterior.theta[item], posterior.theta_variance[item] = theta
    posterior.centre[segment], posterior.centre_variance[segment] = centre
    posterior.log_width[segment], posterior.log_width_variance[segment] = log_width
    posterior.log_a[annotator], posterior.log_a_variance[annotator] = log_a
    posterior.judgments[item] += 1


def update(
    theta: Belief, centre: Belief, log_width: Belief, log_a: Belief, outcome: int
) -> tuple[Belief, Belief, Belief, Belief]:
    """Return the four beliefs after one judgment; ValueError for an outcome other than +1, 0 and -1."""
    if outcome not in (-1, 0, 1):
        raise ValueError(f"an outcome is -1, 0 or 1, not {outcome}")
    difference = theta[0] - centre[0], theta[1] + centre[1]
    a = np.exp(log_a[0] + math.sqrt(log_a[1]) * _GRID.a)
    middle = a * (difference[0] + math.sqrt(difference[1]) * _GRID.difference)
    half = a * np.exp(log_width[0] + math.sqrt(log_width[1]) * _GRID.width) / 2.0
    log_density = _GRID.log_weight + log_likelihoods(middle + half, middle - half, outcome)
    density = np.exp(log_density - log_density.max())
    moments = (_GRID.moments @ (density / density.sum())).tolist()
    difference_belief, width_belief, a_belief = (belief_from_moments(*moments[axis::3]) for axis in range(3))
    theta_share, centre_share = theta[1] / difference[1], centre[1] / difference[1]
    return (
        belief_after_shift(theta, difference_belief, theta_share),
        belief_after_shift(centre, (-difference_belief[0], difference_belief[1]), centre_share),
        belief_after_shift(log_width, width_belief, 1.0),
        belief_after_shift(log_a, a_belief, 1.0),
    )


def belief_from_moments(mean: float, square: float) -> Belief:
    """Return mean and variance from the first two moments; rounding cannot make the variance 0."""
    return mean, max(square - mean * mean, 1e-9)


def belief_after_shift(belief: Belief, shift: Belief, share: float) -> Belief:
    """Return the belief after an update of a standardised sum, which had mean 0 and variance 1.

    Args:
        belief: Belief about one term of the sum.
        shift: New mean and variance of the sum.
        share: Share of the term in the variance of the sum.

    """
    mean, variance = belief
    return mean + math.sqrt(variance * share) * shift[0], variance * (1.0 + share * (shift[1] - 1.0))


def log_likelihoods(z1: Array, z2: Array, outcome: int) -> Array:
    if outcome:
        return np.asarray(log_expit(z2 if outcome > 0 else -z1))
    return np.asarray(log_expit(z1) + log_expit(-z2) + np.log(-np.expm1(z2 - z1)))


def choose(
    posterior: Posterior, annotator: int, rng: np.random.Generator, *, allowed: Mask | None = None
) -> tuple[int, int] | None:
    """Choose the system and segment for which this judge's comparison has the highest expected information; None if all
    are forbidden.

    Args:
        posterior: Beliefs.
        annotator: The judge.
        rng: Source of randomness for equally good choices.
        allowed: Whether the pair may be asked, (n_items, n_segments); all by default.

    Returns:
        System and segment. Time is linear in n_items * n_segments.

    """
    gain = expected_gain(posterior, annotator)
    if allowed is not None:
        gain = np.where(allowed, gain, -np.inf)
    best = np.flatnonzero(gain == gain.max(initial=0.0))
    if not len(best):
        return None
    item, segment = divmod(int(rng.choice(best)), gain.shape[1])
    return item, segment


def expected_gain(posterior: Posterior, annotator: int) -> Array:
    """Return the expected information in nats about theta_i of a judgment by this judge, (n_items, n_segments).

    It is 0.5 log(1 + V_i I). I is the Fisher information on theta_i that remains when the segment's difficulties and
    the judge's sensitivity are uncertain: a^2 times the sum of (F^-1 + S)^-1, where F is the information on (z_1, z_2)
    and S is the variance that the other parameters give them.
    """
    a, a_variance = float(np.exp(posterior.log_a[annotator])), float(posterior.log_a_variance[annotator])
    half = a * np.exp(posterior.log_width) / 2.0
    middle = a * (posterior.theta[:, None] - posterior.centre)
    z1, z2 = middle + half, middle - half
    f11, f12, f22 = expected_fisher_information(z1, z2)
    centre, width = a * a * posterior.centre_variance, half * half * posterior.log_width_variance
    s11 = centre + width + a_variance * z1 * z1
    s12 = centre - width + a_variance * z1 * z2
    s22 = centre + width + a_variance * z2 * z2
    # (F^-1 + S)^-1 = (F + det(F) adj(S)) / det(1 + F S), which F = 0 does not upset.
    det_f, det_s = f11 * f22 - f12 * f12, s11 * s22 - s12 * s12
    determinant = 1.0 + f11 * s11 + 2.0 * f12 * s12 + f22 * s22 + det_f * det_s
    total = f11 + 2.0 * f12 + f22 + det_f * (s11 - 2.0 * s12 + s22)
    return np.asarray(0.5 * np.log1p(posterior.theta_variance[:, None] * a * a * total / determinant))


def expected_fisher_information(z1: Array, z2: Array) -> tuple[Array, Array, Array]:
    """Return F of one judgment in (z_1, z_2), expected over its outcomes; S(z_1) - S(z_2) = p1 q2 tie."""
    p1, q1, p2, q2 = expit(z1), expit(-z1), expit(z2), expit(-z2)
    tie = -np.expm1(z2 - z1)
    # As quotients of logarithms: in the tails both sides of q1 / q2 and of p2 / p1 underflow.
    ratio = np.exp(log_expit(-z1) - log_expit(-z2))
    other = np.exp(log_expit(z2) - log_expit(z1))
    return p1 * q1 * (p1 + ratio / tie), -q1 * p2 / tie, p2 * q2 * (q2 + other / tie)
