"""The graded response model updated after every judgment, with active choice of what to ask next.

Otani et al. 2016 leave this to future work (sections 5.3 and 7: gradient steps, and choosing by uncertainty).
Here theta_i, the centre and the logarithm of the width of (b_j1, b_j2), and log a_k each have a Normal posterior,
independent of the others. A judgment gives the four it involves the means and variances that they have under prior
times likelihood (assumed-density filtering), by quadrature: the likelihood knows theta and the centre by their
difference alone, so three dimensions are enough. No step size has to be chosen, an uncertain judge moves a system less
than a proven one, and the same judgments in the same order give the same bits. (The mode in place of the mean would
not do: each judgment would pull its system to its own side and then praise the judge for agreeing.)

As in the batch fit the scale of theta is known only as far as the prior of a fixes it: compare differences of scores
with their standard errors, not with those of another fit. Dropped correlations make these errors somewhat too small.
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


class _Grid(NamedTuple):
    """A standard Normal in three dimensions: coordinates and log weight, (points,) each, and moments (6, points): the
    coordinates and their squares.
    """

    apart: Array
    width: Array
    a: Array
    log_weight: Array
    moments: Array


def _grid() -> _Grid:
    """Nodes enough for means and variances right to .04 (relative to the prior's) at the first judgment, where the
    likelihood is a step beside the prior, and to .01 soon after.
    """
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in (31, 7, 7)]
    apart, width, a = (axis.ravel() for axis in np.meshgrid(*(x for x, _ in rules), indexing="ij"))
    weight = np.einsum("i,j,k->ijk", *(w for _, w in rules)).ravel()
    coordinates = np.stack([apart, width, a])
    return _Grid(apart, width, a, np.log(weight), np.concatenate([coordinates, coordinates**2]))


_GRID = _grid()


@dataclass(frozen=True, slots=True)
class Posterior:
    """Beliefs about systems, judges and segments; `learn` changes the arrays in place.

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
    """The four beliefs after one judgment. ValueError for another outcome than +1, 0, -1."""
    if outcome not in (-1, 0, 1):
        raise ValueError(f"an outcome is -1, 0 or 1, not {outcome}")
    apart = theta[0] - centre[0], theta[1] + centre[1]
    a = np.exp(log_a[0] + math.sqrt(log_a[1]) * _GRID.a)
    middle = a * (apart[0] + math.sqrt(apart[1]) * _GRID.apart)
    half = a * np.exp(log_width[0] + math.sqrt(log_width[1]) * _GRID.width) / 2.0
    log_density = _GRID.log_weight + _log_likelihood(middle + half, middle - half, outcome)
    density = np.exp(log_density - log_density.max())
    moments = (_GRID.moments @ (density / density.sum())).tolist()
    shift, at_width, at_a = (_standard(*moments[axis::3]) for axis in range(3))
    toward, away = theta[1] / apart[1], centre[1] / apart[1]
    return (
        _moved(theta, shift, toward),
        _moved(centre, (-shift[0], shift[1]), away),
        _moved(log_width, at_width, 1.0),
        _moved(log_a, at_a, 1.0),
    )


def _standard(mean: float, square: float) -> Belief:
    """Mean and variance of a coordinate from its first two moments; rounding cannot make the variance 0."""
    return mean, max(square - mean * mean, 1e-9)


def _moved(belief: Belief, shift: Belief, share: float) -> Belief:
    """The belief when a standardised sum, of whose variance it has that share, comes to have the mean and variance
    `shift` where it had 0 and 1.
    """
    mean, variance = belief
    return mean + math.sqrt(variance * share) * shift[0], variance * (1.0 + share * (shift[1] - 1.0))


def _log_likelihood(z1: Array, z2: Array, outcome: int) -> Array:
    if outcome:
        return np.asarray(log_expit(z2 if outcome > 0 else -z1))
    return np.asarray(log_expit(z1) + log_expit(-z2) + np.log(-np.expm1(z2 - z1)))


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
