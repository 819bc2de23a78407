"""Scores from judgments of pairs: Bradley & Terry 1952, and with ties Rao & Kupper 1967."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from app.inference.ground.arrays import Array
from app.inference.ground.notes import Note
from app.inference.observations.comparisons import PairOutcomeCounts, count_pair_outcomes
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
    """Bradley-Terry: P(i preferred to j) = 1 / (1 + exp(score_j - score_i)); a tie is half a win for each.

    Arrays are (J,): item numbers and outcomes +1 (first preferred), 0 (tie), -1 (second preferred). Scores are log odds
    with mean 0 in each group of items joined by comparisons. `prior` is the precision of a Normal prior on each score,
    so that an item which won all its comparisons has a score too; 0.1 is a standard deviation of 3.2 log odds. 0 is
    plain maximum likelihood, where such an item has none; see `fit_pairwise_scores`, also for errors. `tolerance`
    applies to the scores. O(J log J) and a few passes over the observed pairs.
    """
    comparisons = count_pair_outcomes(first, second, outcomes, n_items=n_items)
    return fit_pairwise_scores(
        comparisons,
        _bradley_terry_derivatives,
        prior=prior,
        tolerance=tolerance,
        notes=ties_count_half_notes_or_empty(comparisons),
    )


def fit_rao_kupper(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    prior: float = WEAK_PRIOR,
    tolerance: float = 1e-9,
) -> PairwiseScores:
    """Rao-Kupper: P(i preferred to j) = 1 / (1 + exp(h - (score_i - score_j))), and a tie otherwise.

    h >= 0 is `threshold`, the logarithm of Rao & Kupper's theta; it is estimated from the share of ties, without a
    prior. Else as `fit`. Without any tie h is 0 and this is Bradley-Terry, which a note says. Raises Inestimable (code
    "all_ties") if only ties are left to compare: then any zone of ties is wide enough.
    """
    comparisons = count_pair_outcomes(first, second, outcomes, n_items=n_items)
    ties, all_judged = float(comparisons.tied.sum()), float(comparisons.judgment_counts.sum())
    if not ties:
        note = Note("no_ties", "There are no ties, so this is Bradley-Terry with a zone of ties of width 0.")
        plain = fit_pairwise_scores(
            comparisons, _bradley_terry_derivatives, prior=prior, tolerance=tolerance, notes=(note,)
        )
        return replace(plain, threshold=0.0)
    # Below 1, so that the start is finite where all are ties; that is refused with the groups known.
    share = ties / (all_judged + 1.0)
    # Where all scores are equal, P(tie) = (theta - 1) / (theta + 1).
    start = float(np.log1p(share) - np.log1p(-share))
    return fit_pairwise_scores(comparisons, rao_kupper_derivatives, prior=prior, tolerance=tolerance, threshold=start)


def ties_count_half_notes_or_empty(comparisons: PairOutcomeCounts) -> tuple[Note, ...]:
    """Return the note on ties where they count half, if there are any."""
    ties = int(comparisons.tied.sum())
    if not ties:
        return ()
    if ties == comparisons.judgment_counts.sum():
        return (Note("all_tied", "Every judgment is a tie, so all scores are equal."),)
    count = "tie counts" if ties == 1 else "ties count"
    return (Note("ties_count_half", f"{ties} {count} as half a win for each of the two items."),)


def _bradley_terry_derivatives(
    comparisons: PairOutcomeCounts, difference: Array, _threshold: float, /
) -> LikelihoodDerivatives:
    """Log-likelihood: wins log P + losses log(1 - P), with P the logistic function of the difference."""
    judged = comparisons.judgment_counts
    wins = comparisons.low_won + 0.5 * comparisons.tied
    # One exponential serves everything: these three lines are most of the time of a large fit.
    odds = np.exp(-np.abs(difference))
    log_chance = np.minimum(difference, 0.0) - np.log1p(odds)
    chance = np.where(difference < 0.0, odds, 1.0) / (1.0 + odds)
    value = float(judged @ log_chance - (judged - wins) @ difference)
    return LikelihoodDerivatives(value, slope=wins - judged * chance, bend=judged * odds / (1.0 + odds) ** 2)


def rao_kupper_derivatives(
    comparisons: PairOutcomeCounts, difference: Array, threshold: float, /
) -> LikelihoodDerivatives:
    """Log-likelihood, P(tie) = (e^2h - 1) P(first preferred) P(second preferred): (22) of Sakaguchi & Van Durme 2018, h
    = epsilon.
    """
    up, down = difference - threshold, -difference - threshold
    wins, losses = comparisons.low_won + comparisons.tied, comparisons.high_won + comparisons.tied
    ties = float(comparisons.tied.sum())
    up_slope, down_slope = wins * expit(-up), losses * expit(-down)
    up_bend, down_bend = up_slope * expit(up), down_slope * expit(down)
    rest = -np.expm1(-2.0 * threshold)
    return LikelihoodDerivatives(
        value=float(wins @ log_expit(up) + losses @ log_expit(down)) + ties * (2.0 * threshold + np.log(rest)),
        slope=up_slope - down_slope,
        bend=up_bend + down_bend,
        threshold_slope=2.0 * ties / rest - float(up_slope.sum() + down_slope.sum()),
        threshold_bend=float(up_bend.sum() + down_bend.sum()) + 4.0 * ties * (1.0 - rest) / rest**2,
        cross=down_bend - up_bend,
    )
