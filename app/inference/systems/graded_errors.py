"""Standard errors of the graded response model: of sensitivities, difficulties and performances.

Those of a and b come from the inverse V of the observed information of the marginal likelihood. A performance theta is
the mode given a and b, which are estimated from the same judgments, so its variance is 1 / curvature given them, and
g' V g for theirs, with g the derivative of the mode in (log a, b) (Kass & Steffey 1989, equation 4.2).
"""

from typing import NamedTuple

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
    covariance = _invert_information_matrix_or_raise(
        observed_information_matrix_of_parameters(terms, prior, log_a, b, nodes)
    )
    slopes = derivatives_of_performances_by_parameter(terms, log_a, b, theta, curvature)
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
