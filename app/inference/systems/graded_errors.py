"""Standard errors of the graded response model: of sensitivities, difficulties and performances.

Those of a and b come from the inverse V of the observed information of the marginal likelihood. A performance theta is
the mode given a and b, which are estimated from the same judgments, so its variance is 1 / curvature given them, and
g' V g for theirs, with g the derivative of the mode in (log a, b) (Kass & Steffey 1989, equation 4.2).

The judgments say nothing about the unit: theta and b can be multiplied by any number if a is divided by it. Only the
priors fix it, and the joint mode of many difficulties is nearer to the middle than the difficulties are, and draws the
performances along: in simulations to 50 to 75 % of their true distances. So the unit is chosen again, as the one in
which performances spread as their prior says. V is that given the unit, whose own error is that of a standard deviation
of n_systems values.
"""

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import NotConverged
from app.inference.ground.notes import Note
from app.inference.systems.graded_marginal import (
    LogisticTerms,
    Prior,
    QuadratureNodes,
    logistic_of_minus_z,
    observed_information_matrix_of_parameters,
)

MAX_PARAMETERS_FOR_ERRORS = 6000
"""Largest number of parameters a and b with standard errors, which need the inverse of a square matrix of this size
(0.3 GB, some ten seconds).
"""


class GradedErrors(NamedTuple):
    """Standard errors of theta (n_systems,), log a (n_judges,) and b (2 n_segments,); NaN where left out."""

    theta: Array
    log_a: Array
    b: Array
    notes: tuple[Note, ...] = ()

    def with_error_of_unit(self, theta: Array, b: Array) -> Self:
        """Return the errors with that of the unit, in the unit of theta and b."""
        relative = (2.0 * len(theta)) ** -0.5
        return self._replace(
            theta=np.hypot(self.theta, relative * theta),
            log_a=np.hypot(self.log_a, relative),
            b=np.hypot(self.b, relative * b),
        )


def performance_unit_factor(theta: Array, curvature: Array, prior: Prior) -> float:
    """Return the factor of modes theta, (n_systems,), at which their mean square and variance are tau^2."""
    return float(prior.tau / np.sqrt(np.mean(theta**2 + 1.0 / curvature)))


def performance_errors_with_known_judges_and_segments(
    terms: LogisticTerms, curvature: Array, notes: tuple[Note, ...] = ()
) -> GradedErrors:
    """Return standard errors of the performances alone, as if sensitivities a and difficulties b were known."""
    unknown_a, unknown_b = np.full(terms.n_judges, np.nan), np.full(2 * terms.n_segments, np.nan)
    return GradedErrors(curvature**-0.5, unknown_a, unknown_b, notes)


def standard_errors_of_all_parameters(
    terms: LogisticTerms,
    prior: Prior,
    log_a: Array,
    b: Array,
    *,
    nodes: QuadratureNodes,
    theta: Array,
    curvature: Array,
) -> GradedErrors:
    """Return the errors at the maximum (log_a, b), with the modes theta (n_systems,) and their curvatures.

    If there are too many parameters, a note says so, and those of performances treat a and b as known.

    Raises:
        NotConverged: "no_single_answer".

    """
    if len(log_a) + len(b) > MAX_PARAMETERS_FOR_ERRORS:
        sentence = (
            f"{terms.n_judges:,} judges and {terms.n_segments:,} segments are too many for standard errors of "
            "sensitivities and difficulties. Those of the scores treat them as known, and are too small."
        )
        return performance_errors_with_known_judges_and_segments(
            terms, curvature, (Note("too_many_for_errors", sentence),)
        )
    slopes = derivatives_of_performances_by_parameter(terms, log_a, b, theta, curvature)
    covariance = _invert_information_matrix_or_raise(
        observed_information_matrix_of_parameters(terms, prior, log_a, b, nodes)
    )
    covariance = _covariance_given_weighted_sum(covariance, theta @ slopes)
    by_others = np.einsum("ip,pq,iq->i", slopes, covariance, slopes, optimize=True)
    error = np.sqrt(np.diag(covariance))
    return GradedErrors(np.sqrt(1.0 / curvature + by_others), error[: terms.n_judges], error[terms.n_judges :])


def derivatives_of_performances_by_parameter(
    terms: LogisticTerms, log_a: Array, b: Array, theta: Array, curvature: Array
) -> Array:
    """Return the derivatives of the modes theta, (n_systems,), in (log a, b): (n_systems, n_judges + 2 n_segments).

    They keep the first derivative of the log density in theta at 0.
    """
    slope = terms.sign * np.exp(log_a)[terms.judge]
    z = slope * (theta[terms.system] - b[terms.threshold])
    rest = logistic_of_minus_z(z, np.exp(-np.abs(z)))
    bend = rest * (1.0 - rest)
    slopes = np.zeros((terms.n_systems, len(log_a) + len(b)))
    np.add.at(slopes, (terms.system, terms.judge), terms.count * slope * (rest - bend * z))
    np.add.at(slopes, (terms.system, terms.n_judges + terms.threshold), terms.count * slope * slope * bend)
    slopes /= curvature[:, None]
    return slopes


def _covariance_given_weighted_sum(covariance: Array, unit_slope: Array) -> Array:
    """Return the covariance of Normal variables, (P, P), given the value of their sum with these weights, (P,).

    The weights are the derivative of half the sum of squares of performances, by which the unit is chosen.
    """
    with_unit = covariance @ unit_slope
    variance = float(unit_slope @ with_unit)
    return covariance - np.outer(with_unit, with_unit) / variance if variance > 0.0 else covariance


def _invert_information_matrix_or_raise(matrix: Array) -> Array:
    try:
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        sentence = (
            "The fit stopped between two solutions that fit the judgments equally well: judges contradict each other "
            "too evenly to choose between them."
        )
        raise NotConverged(sentence, code="no_single_answer") from error
    inverse: Array = cho_solve(factor, np.eye(len(matrix)), overwrite_b=True, check_finite=False)
    return inverse
