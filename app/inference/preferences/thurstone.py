"""Thurstone's law of comparative judgment, Case V (Thurstone 1927): scores from judgments of pairs."""

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from app.inference.ground.arrays import Array
from app.inference.observations.comparisons import PairOutcomeCounts, count_pair_outcomes
from app.inference.preferences.bradley_terry import ties_count_half_notes_or_empty
from app.inference.preferences.pairwise_scores import (
    WEAK_PRIOR,
    LikelihoodDerivatives,
    PairwiseScores,
    fit_pairwise_scores,
)


def fit(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    prior: float = WEAK_PRIOR,
    tolerance: float = 1e-9,
) -> PairwiseScores:
    """Case V: P(i preferred to j) = Phi(score_i - score_j); a tie is half a win for each.

    Every item's impression varies by the same amount and independently; the unit is the standard deviation of the
    difference of two of them. This is maximum likelihood, where Thurstone averaged normal deviates, so shares of 0 and
    1 and unjudged pairs need no patching. Arguments, result and errors as `bradley_terry.fit`; scores are about 0.6
    times those.
    """
    comparisons = count_pair_outcomes(first, second, outcomes, n_items=n_items)
    return fit_pairwise_scores(
        comparisons,
        thurstone_derivatives,
        prior=prior,
        tolerance=tolerance,
        notes=ties_count_half_notes_or_empty(comparisons),
    )


def thurstone_derivatives(
    comparisons: PairOutcomeCounts, difference: Array, _threshold: float, /
) -> LikelihoodDerivatives:
    """Log-likelihood: wins log Phi(difference) + losses log Phi(-difference)."""
    wins = comparisons.low_won + 0.5 * comparisons.tied
    losses = comparisons.high_won + 0.5 * comparisons.tied
    log_win, log_loss = log_ndtr(difference), log_ndtr(-difference)
    log_density = -0.5 * difference**2 - 0.5 * np.log(2.0 * np.pi)
    # Density over probability, the slope of log Phi; its own slope is -ratio (ratio + argument).
    win, loss = np.exp(log_density - log_win), np.exp(log_density - log_loss)
    return LikelihoodDerivatives(
        value=float(wins @ log_win + losses @ log_loss),
        slope=wins * win - losses * loss,
        bend=wins * win * (win + difference) + losses * loss * (loss - difference),
    )
