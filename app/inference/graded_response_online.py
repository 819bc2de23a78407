"""The graded response model updated after every judgment, with active choice of what to ask next.

Otani et al. 2016 leave this to future work (sections 5.3 and 7: gradient steps, and choosing by uncertainty).
Here theta_i, the centre and the logarithm of the width of (b_j1, b_j2), and log a_k each have a Normal posterior,
independent of the others (assumed-density filtering). A judgment changes the four it involves: their new mean is the
mode of prior times likelihood and their variance comes from the curvature there (Laplace), both found in the plane of
(z_1, z_2), z_c = a_k (theta_i - b_jc), through which alone the four enter. No step size has to be chosen, an uncertain
judge moves a system less than a proven one, and the same judgments in the same order give the same bits.

As in the batch fit the scale of theta is known only as far as the prior of a fixes it: compare differences of scores
with their standard errors, not with those of another fit. Dropped correlations make these errors somewhat too small.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from app.inference.baseline import Mask, checked
from app.inference.graded_marginal import Prior
from app.inference.law import Array

Belief = tuple[float, float]
"""Mean and variance of a Normal posterior."""

WIDTH_VARIANCE = 1.0
"""Prior variance of log(b_2 - b_1): about the spread of log |b_2 - b_1| under the prior of the batch fit."""

_MOST_STEPS = 100
"""About 10 are needed; the more, the less is known of the judge and the segment."""

_Four = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is believed of everything; `learn` changes the arrays in place.

    theta, theta_variance, judgments: (n_items,), the last how many a system has had.
    centre, centre_variance, log_width, log_width_variance: (n_segments,), of (b_1 + b_2) / 2 and log(b_2 - b_1).
    log_a, log_a_variance: (n_annotators,).
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
        """(n_items,), theta; the prior's mean 0 for a system without a judgment."""
        return self.theta

    @property
    def standard_error(self) -> Array:
        """(n_items,), the posterior standard deviation of theta."""
        return np.sqrt(self.theta_variance)

    @property
    def estimable(self) -> Mask:
        """(n_items,), whether the system has a judgment."""
        return self.judgments > 0

    @property
    def sensitivity(self) -> Array:
        """(n_annotators,), the median of a_k."""
        return np.exp(self.log_a)

    @property
    def difficulty(self) -> Array:
        """(n_segments, 2), b_1 < b_2."""
        half_width = np.exp(self.log_width) / 2.0
        return np.stack([self.centre - half_width, self.centre + half_width], axis=1)


def start(*, n_items: int, n_annotators: int, n_segments: int, prior: Prior | None = None) -> Posterior:
    """The beliefs before any judgment."""
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
    """The beliefs after all judgments in order, as `learn` leaves them one by one: a replay gives the same bits.

    (n,) each, as in `graded_response.fit`. ValueError for arrays that are not.
    """
    columns = checked(
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
    """One judgment: the annotator compared the item with the baseline on the segment; +1, 0 or -1."""
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
    """The four beliefs after one judgment; no variance grows, none reaches 0. ValueError for another outcome."""
    if outcome not in (-1, 0, 1):
        raise ValueError(f"an outcome is -1, 0 or 1, not {outcome}")
    (m0, v0), (m1, v1), (m2, v2), (m3, v3) = theta, centre, log_width, log_a
    variance = (v0, v1, v2, v3)
    mode = _mode((m0, m1, m2, m3), variance, outcome)
    left = _variance_left(mode, variance, outcome)
    return (mode[0], left[0]), (mode[1], left[1]), (mode[2], left[2]), (mode[3], left[3])


def choose(
    posterior: Posterior, annotator: int, rng: np.random.Generator, *, allowed: Mask | None = None
) -> tuple[int, int] | None:
    """The system and the segment on which this judge's comparison is expected to tell most about a system.

    allowed: (n_items, n_segments), what may be asked; all by default. Equally good ones are drawn by `rng`. None when
    nothing is allowed. Time is linear in n_items * n_segments.
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
    """How many nats a judgment by this judge tells about theta_i, expected over its outcomes: (n_items, n_segments).

    0.5 log(1 + V_i I), I being the Fisher information on theta_i that is left when the segment's difficulties and
    the judge's sensitivity are as uncertain as they are: a^2 times the sum of (F^-1 + S)^-1, where F is the information
    on (z_1, z_2) and S the variance that the others give them.
    """
    a, a_variance = float(np.exp(posterior.log_a[annotator])), float(posterior.log_a_variance[annotator])
    half = a * np.exp(posterior.log_width) / 2.0
    middle = a * (posterior.theta[:, None] - posterior.centre)
    z1, z2 = middle + half, middle - half
    f11, f12, f22 = _expected_information(z1, z2)
    centre, width = a * a * posterior.centre_variance, half * half * posterior.log_width_variance
    s11 = centre + width + a_variance * z1 * z1
    s12 = centre - width + a_variance * z1 * z2
    s22 = centre + width + a_variance * z2 * z2
    # (F^-1 + S)^-1 = (F + det(F) adj(S)) / det(1 + F S), which F = 0 does not upset.
    det_f, det_s = f11 * f22 - f12 * f12, s11 * s22 - s12 * s12
    determinant = 1.0 + f11 * s11 + 2.0 * f12 * s12 + f22 * s22 + det_f * det_s
    total = f11 + 2.0 * f12 + f22 + det_f * (s11 - 2.0 * s12 + s22)
    return np.asarray(0.5 * np.log1p(posterior.theta_variance[:, None] * a * a * total / determinant))


def _expected_information(z1: Array, z2: Array) -> tuple[Array, Array, Array]:
    """F of one judgment in (z_1, z_2), expected over its outcomes; with S(z_1) - S(z_2) = p1 q2 tie."""
    p1, q1, p2, q2 = expit(z1), expit(-z1), expit(z2), expit(-z2)
    tie = -np.expm1(z2 - z1)
    # As quotients of logarithms: in the tails both sides of q1 / q2 and of p2 / p1 underflow.
    ratio = np.exp(log_expit(-z1) - log_expit(-z2))
    other = np.exp(log_expit(z2) - log_expit(z1))
    return p1 * q1 * (p1 + ratio / tie), -q1 * p2 / tie, p2 * q2 * (q2 + other / tie)


class _Seen(NamedTuple):
    """The log likelihood of an outcome, its gradient and minus its second derivatives in (z_1, z_2)."""

    value: float
    g1: float
    g2: float
    i11: float
    i12: float
    i22: float


def _seen(z1: float, z2: float, outcome: int) -> _Seen:
    if outcome == 1:
        value, rest = _log_logistic(z2)
        return _Seen(value, 0.0, rest, 0.0, 0.0, rest * (1.0 - rest))
    if outcome == -1:
        value, rest = _log_logistic(-z1)
        return _Seen(value, -rest, 0.0, rest * (1.0 - rest), 0.0, 0.0)
    (value1, rest1), (value2, rest2) = _log_logistic(z1), _log_logistic(-z2)
    between = -math.expm1(z2 - z1)
    pull = (1.0 - between) / between
    bend = pull / between
    return _Seen(
        value1 + value2 + math.log(between),
        rest1 + pull,
        -rest2 - pull,
        rest1 * (1.0 - rest1) + bend,
        -bend,
        rest2 * (1.0 - rest2) + bend,
    )


def _log_logistic(z: float) -> tuple[float, float]:
    """The logarithm of S(z), and its derivative S(-z)."""
    fraction = math.exp(-abs(z))
    return min(z, 0.0) - math.log1p(fraction), (fraction if z >= 0.0 else 1.0) / (1.0 + fraction)


def _plane(point: _Four) -> tuple[float, float, _Four, _Four]:
    """z_1 and z_2 at (theta, centre, log width, log a), and their gradients."""
    theta, centre, log_width, log_a = point
    a = math.exp(log_a)
    half = a * math.exp(log_width) / 2.0
    z1, z2 = a * (theta - centre) + half, a * (theta - centre) - half
    return z1, z2, (a, -a, half, z1), (a, -a, -half, z2)


def _mode(prior: _Four, variance: _Four, outcome: int) -> _Four:
    """The most probable point after the judgment: Gauss-Newton, each step halved until it does not lead downwards."""
    point, value = prior, _log_density(prior, prior, variance, outcome)
    for _ in range(_MOST_STEPS):
        target = _target(point, prior, variance, outcome)
        step = _four(map(float.__sub__, target, point))
        size = 1.0 / max(1.0, abs(step[2]), abs(step[3]))  # the logarithms by 1 at most
        while size > 1e-6:
            candidate = _four(p + size * s for p, s in zip(point, step, strict=True))
            reached = _log_density(candidate, prior, variance, outcome)
            if reached >= value:
                point, value = candidate, reached
                break
            size /= 2.0
        if size <= 1e-6 or all(s * s <= 1e-12 * v for s, v in zip(step, variance, strict=True)):
            break
    return point


def _log_density(point: _Four, prior: _Four, variance: _Four, outcome: int) -> float:
    z1, z2, _, _ = _plane(point)
    distance = sum((p - m) * (p - m) / v for p, m, v in zip(point, prior, variance, strict=True))
    return _seen(z1, z2, outcome).value - 0.5 * distance


def _target(point: _Four, prior: _Four, variance: _Four, outcome: int) -> _Four:
    """Where a Gauss-Newton step from `point` leads: prior + V J' (1 + I S)^-1 (g + I J (point - prior)), S = J V J'."""
    z1, z2, j1, j2 = _plane(point)
    at = _seen(z1, z2, outcome)
    moved = _four(map(float.__sub__, point, prior))
    d1, d2 = _dot(j1, moved), _dot(j2, moved)
    right = at.g1 + at.i11 * d1 + at.i12 * d2, at.g2 + at.i12 * d1 + at.i22 * d2
    y1, y2 = _solve(at, _spread(variance, j1, j2), right)
    return _four(m + v * (a * y1 + b * y2) for m, v, a, b in zip(prior, variance, j1, j2, strict=True))


def _variance_left(point: _Four, variance: _Four, outcome: int) -> _Four:
    """The diagonal of V - V J' (1 + I S)^-1 I J V."""
    z1, z2, j1, j2 = _plane(point)
    at, spread = _seen(z1, z2, outcome), _spread(variance, j1, j2)
    k11, k12 = _solve(at, spread, (at.i11, at.i12))
    _, k22 = _solve(at, spread, (at.i12, at.i22))
    return _four(
        # Rounding alone could bring it to 0: the share is below 1.
        v * max(1.0 - v * (a * a * k11 + 2.0 * a * b * k12 + b * b * k22), 1e-9)
        for v, a, b in zip(variance, j1, j2, strict=True)
    )


def _spread(variance: _Four, j1: _Four, j2: _Four) -> tuple[float, float, float]:
    """S = J V J': s_11, s_12, s_22."""
    return (
        sum(v * a * a for v, a in zip(variance, j1, strict=True)),
        sum(v * a * b for v, a, b in zip(variance, j1, j2, strict=True)),
        sum(v * b * b for v, b in zip(variance, j2, strict=True)),
    )


def _solve(at: _Seen, spread: tuple[float, float, float], right: tuple[float, float]) -> tuple[float, float]:
    """(1 + I S)^-1 times `right`."""
    (s11, s12, s22), (r1, r2) = spread, right
    a11, a12 = 1.0 + at.i11 * s11 + at.i12 * s12, at.i11 * s12 + at.i12 * s22
    a21, a22 = at.i12 * s11 + at.i22 * s12, 1.0 + at.i12 * s12 + at.i22 * s22
    determinant = a11 * a22 - a12 * a21
    return (a22 * r1 - a12 * r2) / determinant, (a11 * r2 - a21 * r1) / determinant


def _dot(a: _Four, b: _Four) -> float:
    return sum(map(float.__mul__, a, b))


def _four(values: Iterable[float]) -> _Four:
    a, b, c, d = values
    return a, b, c, d
