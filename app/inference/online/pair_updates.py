"""Conversion of the scores of one HIT to the outcomes of its pairs, shared by `ra` and `trueskill`."""

from collections.abc import Callable, Sequence
from itertools import combinations

from app.inference.observations.comparisons import is_tie
from app.inference.online.law import Columns, LawParameters

Posterior = tuple[float, float]
PairUpdate = Callable[[Posterior, Posterior, LawParameters], tuple[Posterior, Posterior]]
"""Function of two posteriors before a judgment of their pair to both after it, in the same order."""


def posterior_columns_after_hit_pairs(
    posterior_columns: Columns,
    scores: Sequence[float],
    parameters: LawParameters,
    *,
    apply_win: PairUpdate,
    apply_tie: PairUpdate,
) -> Columns:
    """Apply all n (n - 1) / 2 pairs of one HIT in presentation order, each to the result of the previous one.

    (Algorithm 1 of Sakaguchi & Van Durme 2018, lines 5 to 7.) Takes two lists of n floats and n scores, validated by
    the caller; returns two new lists of n floats. `apply_win` gets the preferred item first. One item alone has no
    pairs; a pair of unknown order changes nothing.
    """
    posteriors = list(zip(*posterior_columns, strict=True))
    for i, j in combinations(range(len(scores)), 2):
        if is_tie(scores[i], scores[j], parameters.tie_margin):
            if parameters.ties:
                posteriors[i], posteriors[j] = apply_tie(posteriors[i], posteriors[j], parameters)
        elif scores[i] > scores[j]:
            posteriors[i], posteriors[j] = apply_win(posteriors[i], posteriors[j], parameters)
        else:
            posteriors[j], posteriors[i] = apply_win(posteriors[j], posteriors[i], parameters)
    return [a for a, _ in posteriors], [b for _, b in posteriors]
