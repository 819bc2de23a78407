"""RA, bounded: pairwise preferences and ties move Beta posteriors (Sakaguchi & Van Durme 2018, section 3.2).

Alpha and beta never decrease. The variance may increase all the same, although the paper says it cannot.
"""

import math
from collections.abc import Sequence

from app.inference.online import beta as beta_posterior
from app.inference.online.beta import beta_mode_and_variance_in_floats
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Columns, LawParameters, validated_scores_of_hit_as_floats
from app.inference.online.pair_updates import Posterior, posterior_columns_after_hit_pairs


def update(
    alpha: Sequence[float], beta: Sequence[float], scores: Sequence[float], parameters: LawParameters
) -> Columns:
    """Apply one HIT: its pairs one after another, the higher score preferred, (14) to (19).

    Sequences of n >= 1 floats in presentation order, scores in [0, 1]; returns two new lists of n floats. One item
    alone changes nothing. Raises ValueError for lengths that differ, an empty HIT, a score that is NaN or outside [0,
    1], or an alpha or beta that is not finite and above 0.
    """
    columns = beta_posterior.to_beta_float_lists(alpha, beta)
    return posterior_columns_after_hit_pairs(
        columns,
        validated_scores_of_hit_as_floats(scores, len(alpha)),
        parameters,
        apply_win=_beta_posteriors_after_win,
        apply_tie=_beta_posteriors_after_tie,
    )


def win_probability(difference: float, epsilon: float) -> float:
    """Probability that the first of two items is preferred, p(i>j) (20), after Rao & Kupper 1967.

    The value at -difference is p(i<j) (21), and the remainder is p(i=j) (22).

    Args:
        difference: D = M_i - M_j of the modes, in [-1, 1].
        epsilon: The tie parameter, at least 0.

    """
    # (20) divided by theta pi_j: the exponent is at most 1, so nothing overflows however large epsilon is.
    odds = math.exp(difference - epsilon)
    return odds / (1.0 + odds)


def _beta_posteriors_after_win(
    winner: Posterior, loser: Posterior, parameters: LawParameters
) -> tuple[Posterior, Posterior]:
    step_w, step_l, difference = _step_sizes_and_mode_difference(winner, loser, parameters.gamma)
    surprise = 1.0 - win_probability(difference, parameters.epsilon)
    (alpha_w, beta_w), (alpha_l, beta_l) = winner, loser
    return (alpha_w + step_w * surprise, beta_w), (alpha_l, beta_l + step_l * surprise)  # (14), (15)


def _beta_posteriors_after_tie(i: Posterior, j: Posterior, parameters: LawParameters) -> tuple[Posterior, Posterior]:
    step_i, step_j, difference = _step_sizes_and_mode_difference(i, j, parameters.gamma)
    epsilon = parameters.epsilon
    surprise = win_probability(difference, epsilon) + win_probability(-difference, epsilon)  # 1 - (22)
    step_i, step_j = step_i * surprise, step_j * surprise
    (alpha_i, beta_i), (alpha_j, beta_j) = i, j
    if abs(difference) <= epsilon:
        return (alpha_i + step_i, beta_i + step_i), (alpha_j + step_j, beta_j + step_j)  # (18), (19)
    if difference > 0.0:
        return (alpha_i, beta_i + step_i), (alpha_j + step_j, beta_j)  # (16), (17)
    return (alpha_i + step_i, beta_i), (alpha_j, beta_j + step_j)  # (16), (17) with i and j exchanged


def _step_sizes_and_mode_difference(i: Posterior, j: Posterior, gamma: float) -> tuple[float, float, float]:
    """Return Var_i / c, Var_j / c and D = M_i - M_j before the update, with c^2 = 2 gamma^2 + Var_i + Var_j."""
    mode_i, variance_i = beta_mode_and_variance_in_floats(*i)
    mode_j, variance_j = beta_mode_and_variance_in_floats(*j)
    # The variances first: their sum is the same either way round, so that swapping two items swaps
    # the answer exactly.
    c = math.sqrt(2.0 * gamma * gamma + (variance_i + variance_j))
    return variance_i / c, variance_j / c, mode_i - mode_j


LAW = ItemLaw(
    name="ra",
    title="Bounded RA: only the order counts",
    assumes="Only the order of the items of a task counts; each pair of them moves two Beta posteriors.",
    family=beta_posterior.BETA,
    reads="order",
    update=update,
)
