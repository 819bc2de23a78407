"""Annotator-aware Bradley-Terry with errors that hold with few comparisons: draws from the joint posterior.

`aware_bradley_terry.fit` takes the spread of the scores as known, and scores and annotators as independent. With few
comparisons it finds too small a spread, so it draws scores together too much and its errors are too small. Here scores,
annotators, shares of the kinds, s and v are drawn from their joint posterior (Gibbs sampling), with the Polya-Gamma
variables of Polson, Scott & Windle 2013: given one variable w per vote, the scores are Normal.

For a vote of annotator k on the difference d, of weight n, where y is the weight that prefers the first item:
- w ~ PG(n, a_k d), and the scores are Normal with the precision X' diag(a^2 w) X + 1/v and the slope X' a (y - n/2).
- The kind of annotator k and a_k come from their probabilities on the grid of the fit, the shares of the kinds from a
  Dirichlet distribution, and s^2 from a scaled inverse chi-squared distribution.
- The standard deviation of the scores is uniform at first (Gelman 2006).

The order of the items stays that of the fit, whose scores are multiplied by one factor: the one that brings them
nearest to the mean of the draws. The error of a score is the root mean square distance of the draws from it.

Estimates of a_k come from its probabilities on the grid, given all else in a draw, averaged over the draws. So they
have less noise than the drawn a_k, and are as smooth as the grid allows. The probabilities of random and reversed
answers stay those of the fit, since they can accuse people.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_expit

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.notes import Note
from app.inference.ground.validation import sum_values_of_each_number
from app.inference.observations.comparisons import comparison_arrays_and_item_count_or_raise
from app.inference.preferences import aware_bradley_terry
from app.inference.preferences.annotator_pair_votes import AnnotatorPairVotes
from app.inference.preferences.aware_bradley_terry import (
    MAX_SCORE_VARIANCE,
    PRIOR_SPREAD,
    SPREAD_WEIGHT,
    AwareComparisonFit,
)
from app.inference.preferences.discrimination_grid import (
    AT_RANDOM,
    DISCRIMINATIONS,
    KINDS,
    REVERSED,
    DiscriminationEstimates,
    prior_matrix_of_kind_and_discrimination,
)

DRAWS: Final = 800
"""Draws that are kept, after a quarter as many that are not."""
MAX_SAMPLED_VOTES: Final = 20_000
"""With more votes of an annotator on a pair, the draws would take more than half a minute."""
KIND_PRIOR: Final = np.array([4.0, 1.0, 0.1])
"""Dirichlet prior of the shares of careful, random and reversed annotators.

The fit counts nine careful annotators for each one at random, since its probabilities may accuse people: a crowd with
30 % at random then has a prior probability of 4 %. Errors may not rule such crowds out. With 4 to 1, none at random is
still most likely, and a majority at random, from which nothing could be learned, has a probability of about 1/16.
"""
_GAMMA_TERMS = 8
"""The other terms have 4 in 100,000 of the variance of a Polya-Gamma variable with tilt 0, and less with another."""
MAX_DENSE_ITEMS = 300
_CG_TOLERANCE = 1e-5
_MAX_SPREAD_SQUARED = 1.0
"""With a larger s^2, the grid of a_k would cut off a part of its distribution that counts."""
_SCALE_STEPS = (0.1, 0.4)
_TOO_MANY_VOTES = (
    f"With more than {MAX_SAMPLED_VOTES:,} judged pairs, standard errors take the spread of the scores as known. They "
    "are too small if items have fewer than 20 comparisons."
)


@dataclass(slots=True)
class _Draw:
    """One draw of the unknowns.

    Attributes:
        score: (N,).
        discrimination: (K,) a_k.
        discrimination_chances: (K, G) probabilities of a_k given the scores, and the shares and s^2 of the last draw.
        kind_shares: (3,) shares of careful, random and reversed annotators.
        spread_squared: s^2.
        score_variance: v.

    """

    score: Array
    discrimination: Array
    discrimination_chances: Array
    kind_shares: Array
    spread_squared: float
    score_variance: float


class _DrawSummary(NamedTuple):
    """Estimates from draws.

    Attributes:
        score: (N,) the fitted scores times one factor.
        error: (N,) their errors.
        spread: The mean standard deviation of the scores.
        discrimination: Estimates of the a_k of K annotators.

    """

    score: Array
    error: Array
    spread: float
    discrimination: DiscriminationEstimates

    @classmethod
    def from_draws(cls, draws: Iterator[_Draw], fitted_score: Array, group: Integers) -> "_DrawSummary":
        """Summarise draws. Distances are those from the mean of an item's group, (N,)."""
        sizes, total, squares, spread = np.bincount(group), np.zeros(len(group)), np.zeros(len(group)), 0.0
        chances: Array = np.zeros(1)
        for draw in draws:
            score = draw.score - (sum_values_of_each_number(group, draw.score, len(sizes)) / sizes)[group]
            total += score
            squares += score**2
            spread += float(np.sqrt(draw.score_variance))
            chances = chances + draw.discrimination_chances
        mean, product = total / DRAWS, float(total @ fitted_score)
        scaled = fitted_score * (product / DRAWS / float(fitted_score @ fitted_score) if product > 0.0 else 1.0)
        error = np.sqrt(squares / DRAWS - 2.0 * scaled * mean + scaled**2)
        return cls(scaled, error, spread / DRAWS, DiscriminationEstimates.from_probabilities(chances / DRAWS))


def fit_with_sampled_errors(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_items: int,
    n_annotators: int,
    rng: np.random.Generator,
    weights: npt.ArrayLike | None = None,
) -> AwareComparisonFit:
    """Return `aware_bradley_terry.fit` with scores, their spread, discriminations and all errors from posterior draws.

    Args:
        first: (J,) item numbers.
        second: (J,) item numbers.
        outcomes: (J,) +1 (first preferred), 0 (tie), -1 (second preferred).
        annotators: (J,) integers from 0.
        n_items: The number of items.
        n_annotators: The number of annotators.
        rng: Source of randomness of the draws.
        weights: (J,) above 0, how many independent judgments each stands for; default 1.

    Returns:
        The fit, with its own probabilities of random and reversed answers. The same judgments and `rng` give the same
        fit, whatever the order of the judgments. With more than `MAX_SAMPLED_VOTES` votes it keeps its own errors and
        discriminations, and a note says so.

    Raises:
        ValueError: The arrays are invalid.
        Inestimable: "no_judgments".

    """
    fit = aware_bradley_terry.fit(
        first, second, outcomes, annotators, n_items=n_items, n_annotators=n_annotators, weights=weights
    )
    one, other, results, _ = comparison_arrays_and_item_count_or_raise(first, second, outcomes, n_items)
    items = np.flatnonzero(fit.estimable)
    items = items[np.argsort(fit.score[items], kind="stable")]
    place = np.zeros(n_items, dtype=np.int64)
    place[items] = np.arange(len(items))
    votes = AnnotatorPairVotes.from_judgments(
        (place[one], place[other]),
        results,
        np.asarray(annotators, dtype=np.int64),
        np.ones(len(one)) if weights is None else np.asarray(weights, dtype=np.float64),
        (len(items), n_annotators),
    )
    if len(votes.low) > MAX_SAMPLED_VOTES:
        return replace(fit, notes=(*fit.notes, Note("errors_with_known_spread", _TOO_MANY_VOTES)))
    sorted_votes, annotator = _renumbered_votes_and_annotator_numbers(votes)
    summary = _DrawSummary.from_draws(_iterate_posterior_draws(sorted_votes, rng), fit.score[items], fit.group[items])
    estimates = [np.full(n_annotators, np.nan) for _ in summary.discrimination]
    for column, sampled in zip(estimates, summary.discrimination, strict=True):
        column[annotator] = sampled
        column[~fit.annotator_estimable] = np.nan
    discrimination, discrimination_error, discrimination_low, discrimination_high = estimates
    sampled_score, sampled_error = np.full(n_items, np.nan), np.full(n_items, np.nan)
    sampled_score[items], sampled_error[items] = summary.score, summary.error
    return replace(
        fit,
        score=sampled_score,
        standard_error=sampled_error,
        discrimination=discrimination,
        discrimination_error=discrimination_error,
        discrimination_low=discrimination_low,
        discrimination_high=discrimination_high,
        score_spread=summary.spread,
        notes=tuple(note for note in fit.notes if note.code != "errors_without_opponents"),
    )


def _renumbered_votes_and_annotator_numbers(
    votes: AnnotatorPairVotes,
) -> tuple[AnnotatorPairVotes, Integers]:
    """Return the votes with their annotators numbered by what they judged, so that their own numbers do not matter, and
    these numbers, (K,).
    """
    starts = [*votes.first_row_of_each_annotator.tolist(), len(votes.low)]
    columns = np.column_stack([votes.low, votes.high, votes.judged, votes.wins, votes.decided, votes.decided_wins])
    blocks = sorted(pairwise(starts), key=lambda block: columns[slice(*block)].tolist())
    rows = np.concatenate([np.arange(*block) for block in blocks])
    annotator = np.repeat(np.arange(len(blocks)), [end - start for start, end in blocks])
    sorted_votes = AnnotatorPairVotes(
        votes.low[rows],
        votes.high[rows],
        annotator,
        votes.judged[rows],
        votes.wins[rows],
        votes.decided[rows],
        votes.decided_wins[rows],
        votes.n_items,
        len(blocks),
    )
    return sorted_votes, votes.annotator[[start for start, _ in blocks]]


def _iterate_posterior_draws(votes: AnnotatorPairVotes, rng: np.random.Generator) -> Iterator[_Draw]:
    """Yield `DRAWS` draws from the posterior, each of them the same object with new values."""
    draw = _Draw(
        score=np.zeros(votes.n_items),
        discrimination=np.ones(votes.n_annotators),
        discrimination_chances=np.zeros((votes.n_annotators, len(DISCRIMINATIONS))),
        kind_shares=KIND_PRIOR / KIND_PRIOR.sum(),
        spread_squared=PRIOR_SPREAD,
        score_variance=1.0,
    )
    for number in range(-(DRAWS // 4), DRAWS):
        draw.score = _drawn_scores(votes, draw, rng)
        _draw_score_variance(votes, draw, rng)
        _draw_annotators(votes, draw, rng)
        if number >= 0:
            yield draw


def _drawn_scores(votes: AnnotatorPairVotes, draw: _Draw, rng: np.random.Generator) -> Array:
    """Return scores, (N,), given all else: the solution of the normal equations with noise has their distribution."""
    n, a = votes.n_items, draw.discrimination[votes.annotator]
    variable = _polya_gamma_draws(votes.judged, a * (draw.score[votes.low] - draw.score[votes.high]), rng)
    weight = a * a * variable
    slope = a * (votes.wins - 0.5 * votes.judged) + np.sqrt(weight) * rng.standard_normal(len(weight))
    right = votes.sum_of_each_item(slope) + rng.standard_normal(n) / np.sqrt(draw.score_variance)
    diagonal = 1.0 / draw.score_variance + sum_values_of_each_number(votes.low, weight, n)
    diagonal += sum_values_of_each_number(votes.high, weight, n)
    if n > MAX_DENSE_ITEMS:
        upper = coo_array((weight, (votes.low, votes.high)), shape=(n, n)).tocsr()
        sparse = diags_array(diagonal) - upper - upper.T
        jacobi = LinearOperator(sparse.shape, lambda x: x / diagonal, dtype=np.float64)
        return np.asarray(cg(sparse.tocsr(), right, M=jacobi, rtol=_CG_TOLERANCE)[0])
    precision = -sum_values_of_each_number(votes.low * n + votes.high, weight, n * n).reshape(n, n)
    precision += precision.T
    precision[np.diag_indices(n)] = diagonal
    return np.asarray(cho_solve(cho_factor(precision, overwrite_a=True), right))


def _polya_gamma_draws(shape: Array, tilt: Array, rng: np.random.Generator) -> Array:
    """Return draws of PG(shape, tilt), (R,): the largest terms of their sum of Gammas, and the mean of the others."""
    places = (np.arange(_GAMMA_TERMS) + 0.5) ** 2
    rates = 2.0 * np.pi**2 * (places + (tilt[:, None] / (2.0 * np.pi)) ** 2)
    size = np.maximum(np.abs(tilt), 1e-4)
    rest = shape * (np.tanh(size / 2.0) / (2.0 * size) - (1.0 / rates).sum(axis=1))
    terms = rng.standard_gamma(np.broadcast_to(shape[:, None], rates.shape)) / rates
    return np.asarray(terms.sum(axis=1) + np.maximum(rest, 0.0))


def _draw_score_variance(votes: AnnotatorPairVotes, draw: _Draw, rng: np.random.Generator) -> None:
    """Draw v given the scores, then v and the scale of the scores together, which moves further (Metropolis)."""
    variance = float(draw.score @ draw.score) / rng.chisquare(votes.n_items - 1)
    if 0.0 < variance <= MAX_SCORE_VARIANCE:
        draw.score_variance = variance
    tilt = draw.discrimination[votes.annotator] * (draw.score[votes.low] - draw.score[votes.high])
    known = _log_likelihood(votes, tilt)
    for step in _SCALE_STEPS:
        factor = np.exp(step * rng.standard_normal())
        proposed = _log_likelihood(votes, factor * tilt)
        # A uniform standard deviation has a density of its logarithm that is in proportion to it.
        accepted = np.log(rng.random()) < proposed - known + np.log(factor)
        if accepted and factor**2 * draw.score_variance <= MAX_SCORE_VARIANCE:
            draw.score = factor * draw.score
            draw.score_variance *= factor**2
            tilt, known = factor * tilt, proposed


def _log_likelihood(votes: AnnotatorPairVotes, tilt: Array) -> float:
    return float(votes.judged @ log_expit(tilt) - (votes.judged - votes.wins) @ tilt)


def _draw_annotators(votes: AnnotatorPairVotes, draw: _Draw, rng: np.random.Generator) -> None:
    """Draw kind and a_k of each annotator given the scores, then the shares and s^2. Ties are no evidence."""
    tilt = (draw.score[votes.low] - draw.score[votes.high])[:, None] * DISCRIMINATIONS
    of_votes = votes.decided[:, None] * log_expit(tilt) - (votes.decided - votes.decided_wins)[:, None] * tilt
    log_likelihood = np.add.reduceat(of_votes, votes.first_row_of_each_annotator, axis=0)
    prior = prior_matrix_of_kind_and_discrimination(draw.kind_shares, draw.spread_squared)
    with np.errstate(divide="ignore"):  # a prior probability of 0 stays one
        log_posterior = (log_likelihood[:, None, :] + np.log(prior)).reshape(votes.n_annotators, -1)
    density = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    cumulative = density.cumsum(axis=1)
    draw.discrimination_chances = density.reshape(-1, KINDS, len(DISCRIMINATIONS)).sum(axis=1) / cumulative[:, -1:]
    cell = (cumulative <= (rng.random(votes.n_annotators) * cumulative[:, -1])[:, None]).sum(axis=1)
    kind, place = np.divmod(cell, len(DISCRIMINATIONS))
    draw.discrimination = DISCRIMINATIONS[place]
    draw.kind_shares = rng.dirichlet(KIND_PRIOR + np.bincount(kind, minlength=KINDS))
    distance = (draw.discrimination - np.where(kind == REVERSED, -1.0, 1.0))[kind != AT_RANDOM]
    spread_squared = (SPREAD_WEIGHT * PRIOR_SPREAD + float(distance @ distance)) / rng.chisquare(
        SPREAD_WEIGHT + len(distance)
    )
    draw.spread_squared = min(spread_squared, _MAX_SPREAD_SQUARED)
