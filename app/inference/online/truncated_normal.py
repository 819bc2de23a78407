"""The surprise functions v and w of TrueSkill, moments of a truncated normal, right in the far tails.

Herbrich, Minka & Graepel 2006; equations (5), (6), (9), (10) of Sakaguchi & Van Durme 2018. Written as
quotients they are 0/0 from about |t| = 38 on and lose their digits long before. With the hazard
h(y) = phi(y) / Q(y), Q(y) = 1 - Phi(y), and its excess e(y) = h(y) - y, every sum below is of terms
that do not cancel: measured against 120 digits, relative errors stay below 1e-12 for |t| up to 1000.
"""

import math

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_BY_PI = math.sqrt(2.0 / math.pi)

# Above this the quotient loses y^2 of its precision, and thirty terms of the continued fraction give it all.
_FRACTION_FROM = 5.0
_FRACTION_TERMS = 30

# Positive nodes and weights of Gauss-Legendre quadrature with 8 points (Abramowitz & Stegun, table 25.4).
# Written out because NumPy would find them with LAPACK, whose last bit depends on the machine.
_GAUSS_LEGENDRE_NODES = (
    (0.1834346424956498, 0.3626837833783620),
    (0.5255324099163290, 0.3137066458778873),
    (0.7966664774136267, 0.2223810344533745),
    (0.9602898564975363, 0.1012285362903763),
)


def v_and_w_of_win(t: float, epsilon: float) -> tuple[float, float]:
    """Surprise functions v (5) and w (9) of a win: v >= 0 and w in [0, 1], both falling as t - epsilon grows.

    Args:
        t: How far the winner was ahead, divided by c; any finite float.
        epsilon: The draw margin, at least 0, divided by c; any finite float.

    """
    hazard, excess = _normal_hazard_and_excess(epsilon - t)
    return hazard, hazard * excess


def v_and_w_of_tie(t: float, epsilon: float) -> tuple[float, float]:
    """Surprise functions v (6) and w (10) of a draw: v has the sign of -t, w lies in [0, 1].

    At epsilon = 0, where (6) and (10) are 0/0, it returns their limits -t and 1.

    Args:
        t: How far the first item was ahead, divided by c; any finite float.
        epsilon: The draw margin, at least 0, divided by c; any finite float.

    """
    v, w = _tie_v_and_w_when_ahead(abs(t), epsilon)
    return math.copysign(v, -t), min(w, 1.0)  # far out w may round to a little more than 1


def _tie_v_and_w_when_ahead(t: float, epsilon: float) -> tuple[float, float]:
    """Return |v| and w for t >= 0: mean and 1 - variance of a normal truncated to t - epsilon .. t + epsilon."""
    if epsilon <= 0.7 and t * epsilon <= 0.5:
        return _tie_v_and_w_by_quadrature(t, epsilon)
    if t <= epsilon:
        return _tie_v_and_w_spanning_zero(t, epsilon)
    return _tie_v_and_w_in_tail(t, epsilon)


def _tie_v_and_w_by_quadrature(t: float, epsilon: float) -> tuple[float, float]:
    """Integrate over t + epsilon u, |u| <= 1, where the density is nearly flat and differences of tails cancel."""
    total = first = second = 0.0
    for node, weight in _GAUSS_LEGENDRE_NODES:
        height = weight * math.exp(-0.5 * (epsilon * node) ** 2)
        even = height * math.cosh(t * epsilon * node)
        total += even
        first -= height * node * math.sinh(t * epsilon * node)
        second += even * node * node
    mean = first / total
    return t + epsilon * mean, 1.0 - epsilon * epsilon * (second / total - mean * mean)


def _tie_v_and_w_spanning_zero(t: float, epsilon: float) -> tuple[float, float]:
    """Evaluate (6) and (10) directly where zero lies inside the interval: they are sums of positive terms."""
    near, far = epsilon - t, epsilon + t
    mass = 0.5 * (math.erf(near * _SQRT_HALF) + math.erf(far * _SQRT_HALF))
    at_near, at_far = _normal_density(near), _normal_density(far)
    v = at_near * -math.expm1(-2.0 * epsilon * t) / mass
    return v, v * v + (near * at_near + far * at_far) / mass


def _tie_v_and_w_in_tail(t: float, epsilon: float) -> tuple[float, float]:
    """Evaluate the surprise where the interval lies wholly above zero.

    Only its ratio of tails q = Q(far) / Q(near) < 0.4 is needed.
    """
    near, far = t - epsilon, t + epsilon
    hazard_near, excess_near = _normal_hazard_and_excess(near)
    hazard_far, excess_far = _normal_hazard_and_excess(far)
    q = math.exp(-2.0 * epsilon * t) * hazard_near / hazard_far
    beyond = (excess_near - (2.0 * epsilon + excess_far) * q) / (1.0 - q)  # the mean, less `near`
    mean = near + beyond
    return mean, mean * beyond + 2.0 * epsilon * hazard_far * q / (1.0 - q)


def _normal_hazard_and_excess(y: float) -> tuple[float, float]:
    """h(y) = phi(y) / Q(y) and its excess over y, for any finite y."""
    if y < _FRACTION_FROM:
        hazard = _SQRT_2_BY_PI * math.exp(-0.5 * y * y) / math.erfc(y * _SQRT_HALF)
        return hazard, hazard - y
    fraction = y  # e(y) = 1 / (y + 2 / (y + 3 / (y + ...))), Laplace; Abramowitz & Stegun 26.2.14
    for term in range(_FRACTION_TERMS, 1, -1):
        fraction = y + term / fraction
    return y + 1.0 / fraction, 1.0 / fraction


def _normal_density(x: float) -> float:
    return 0.5 * _SQRT_2_BY_PI * math.exp(-0.5 * x * x)
