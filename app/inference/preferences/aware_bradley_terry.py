"""Scores from judgments of pairs that account for their annotators: Bradley-Terry with a discrimination per annotator.

Annotator k prefers item i to item j with the probability S(a_k (t_i - t_j)), with the logistic function S; a tie is
half a win for each, as in Bradley-Terry. Careful annotators have a_k ~ N(1, s^2), those who answer at random a_k = 0,
and those who mistake the question's direction a_k ~ N(-1, s^2). Scores are t_i ~ N(0, v). The shares of the three, s
and v are estimated with all else, so that annotators who are alike are treated alike, as in Bradley-Terry.

The joint posterior is approximated by a Normal for the scores times a distribution for each a_k on a grid (variational
Bayes, mean field). What is needed of a score difference d ~ N(m, u) is E log S(a d) = c log S(a m / c), nearly, with
c = sqrt(1 + pi a^2 u / 8) (MacKay 1992), whose derivative in m is his approximation of E S(-a d). So annotators are
not judged by scores that are not known yet: with few comparisons the uncertainty u speaks for no one and against no
one. Each round updates the grids, then takes one Newton step for the scores, then estimates the shares, s and v. The
mean of careful a_k is left free in a round and then moved to 1 together with the scores (parameter expansion: Liu,
Rubin & Wu 1998), since otherwise the scale of the scores would take hundreds of rounds to settle.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, log_expit

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.notes import Note
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
    sum_values_of_each_number,
)
from app.inference.observations.comparisons import BooleanArray, comparison_arrays_and_item_count_or_raise
from app.inference.preferences import bradley_terry
from app.inference.preferences.annotator_pair_votes import AnnotatorPairVotes
from app.inference.preferences.discrimination_grid import (
    AT_RANDOM,
    CAREFUL,
    DISCRIMINATIONS,
    REVERSED,
    DiscriminationEstimates,
    prior_matrix_of_kind_and_discrimination,
)
from app.inference.preferences.pairwise_scores import WEAK_PRIOR

NEARLY_RANDOM: Final = 0.2
"""The largest |a_k| that is hardly different from 0: such an annotator needs 25 times the answers of a typical one."""
KIND_PRIOR: Final = np.array([9.0, 1.0, 0.1])
"""Dirichlet prior of the shares of careful, random and reversed annotators, as so many annotators seen."""
PRIOR_SPREAD, SPREAD_WEIGHT = 0.1, 4.0
"""Prior of s^2, and the number of annotators that it counts as."""
_PRIOR_SCORE_VARIANCE, _SCORE_VARIANCE_WEIGHT, MAX_SCORE_VARIANCE = 1.0, 2.0, 1.0 / WEAK_PRIOR
"""Prior of v, the number of items that it counts as, and the largest v, which is that of Bradley-Terry."""
_DENSE_ROUNDS, _DENSE_ERRORS = 400, 2000
"""With more items, the variances of scores in a round, and the standard errors, come from the precision's diagonal."""
_MAX_STEP, _CG_TOLERANCE = 1.0, 1e-8
_BLOCK_FLOATS = 2**18
_MIN_MEAN = 0.2
_ERRORS_WITHOUT_OPPONENTS = (
    f"With more than {_DENSE_ERRORS:,} items, standard errors take the scores of an item's opponents as known, and are "
    "a little too small."
)
MIN_ANNOTATOR_PAIRS: Final = 3
"""Fewest pairs of an annotator before their discrimination means anything."""


@dataclass(frozen=True, slots=True)
class AwareComparisonFit:
    """Scores of N items and estimates of K annotators; NaN where not estimable.

    Attributes:
        score: (N,) posterior means in log odds of a typical careful annotator, mean 0 in each connected group.
        standard_error: (N,) posterior standard deviations of the distance from the mean of the item's group.
        estimable: (N,) whether the item was compared.
        group: (N,) group of each item, 0 the largest, -1 none; scores of two groups cannot be compared.
        discrimination: (K,) posterior means of a_k: 1 is a typical careful annotator, 0 answers at random, and below 0
            answers are reversed.
        discrimination_error: (K,) posterior standard deviations of a_k.
        discrimination_low: (K,) 2.5 % quantiles of the posterior of a_k.
        discrimination_high: (K,) 97.5 % quantiles.
        random: (K,) probability of answering at random or nearly so: |a_k| of a random or careful annotator is at most
            `NEARLY_RANDOM`.
        reversed: (K,) probability of reversed answers: a misread question, or a different view of the items.
        annotator_estimable: (K,) whether they decided at least `MIN_ANNOTATOR_PAIRS` pairs.
        kind_shares: Estimated shares of careful, random and reversed annotators, (3,).
        spread: The standard deviation s of the careful a_k.
        score_spread: The standard deviation of the scores, the root of v.
        iterations: Rounds until the scores settled.
        converged: Whether they settled; if not, a note says so.

    """

    score: Array
    standard_error: Array
    estimable: BooleanArray
    group: Integers
    discrimination: Array
    discrimination_error: Array
    discrimination_low: Array
    discrimination_high: Array
    random: Array
    reversed: Array
    annotator_estimable: BooleanArray
    kind_shares: Array
    spread: float
    score_spread: float
    iterations: int
    converged: bool
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class _ScoreBelief:
    """Normal posterior of the scores.

    Attributes:
        mean: (N,).
        variance: (N,) posterior variances.
        difference_variance: (R,) posterior variances of the differences of the votes.

    """

    mean: Array
    variance: Array
    difference_variance: Array

    def scaled(self, factor: float) -> "_ScoreBelief":
        return _ScoreBelief(factor * self.mean, factor**2 * self.variance, factor**2 * self.difference_variance)


@dataclass(frozen=True, slots=True)
class _CrowdBelief:
    """Shares of the kinds of annotators, s^2 and v."""

    kind_shares: Array
    spread_squared: float
    score_variance: float


def fit(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    weights: npt.ArrayLike | None = None,
    max_iterations: int = 300,
    tolerance: float = 1e-3,
) -> AwareComparisonFit:
    """Estimate scores and annotators from J judgments; a round takes O(24 J), and O(N^3) for up to 400 items.

    Args:
        first: (J,) item numbers.
        second: (J,) item numbers.
        outcomes: (J,) +1 (first preferred), 0 (tie), -1 (second preferred).
        annotators: (J,) integers from 0.
        n_items: The number of items; default: 1 + the largest number.
        n_annotators: The number of annotators; default: 1 + the largest number.
        weights: (J,) above 0, how many independent judgments each stands for (`independent_pair_weights`); default 1.
        max_iterations: The largest number of rounds.
        tolerance: Scores have settled when one more round changes none by more than this, in posterior standard
            deviations of the score.

    Raises:
        ValueError: The arrays are invalid.
        Inestimable: "no_judgments".

    """
    one, other, results, item_count = comparison_arrays_and_item_count_or_raise(first, second, outcomes, n_items)
    people, annotator_count = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    weight = np.ones(len(one)) if weights is None else finite_vector_or_raise("weights", weights)
    refuse_columns_of_unequal_length(outcomes=results, annotators=people, weights=weight)
    if (weight <= 0.0).any():
        raise ValueError("weights must be above 0")
    start = bradley_terry.fit(one, other, results, n_items=item_count)
    votes = AnnotatorPairVotes.from_judgments((one, other), results, people, weight, (item_count, annotator_count))
    return _ComparisonModel(votes, start.group).fit_until_scores_settle(
        start.score, start.notes, max_iterations, tolerance
    )


class _ComparisonModel:
    """The rounds of the estimate."""

    def __init__(self, votes: AnnotatorPairVotes, group: Integers) -> None:
        self.votes, self.group = votes, group
        self.estimable = group >= 0
        self.members = np.where(self.estimable, group, group.max() + 1)
        self.group_sizes = np.bincount(self.members).astype(np.float64)
        self.crowd = _CrowdBelief(KIND_PRIOR / KIND_PRIOR.sum(), PRIOR_SPREAD, _PRIOR_SCORE_VARIANCE)

    def fit_until_scores_settle(
        self, start: Array, notes: tuple[Note, ...], max_iterations: int, tolerance: float
    ) -> AwareComparisonFit:
        """Repeat rounds until the scores settle, from the scores `start`, (N,)."""
        beliefs = np.tile(self.prior(), (self.votes.n_annotators, 1, 1))
        known_start = _ScoreBelief(np.nan_to_num(start), np.zeros(self.votes.n_items), np.zeros(len(self.votes.low)))
        scores = self.updated_score_belief(known_start, beliefs)
        for iteration in range(1, max_iterations + 1):
            beliefs, last = self.annotator_beliefs(scores), scores.mean
            scores = self.updated_score_belief(scores, beliefs)
            scores = scores.scaled(self.estimate_crowd_and_return_score_factor(scores, beliefs))
            if (np.abs(scores.mean - last) <= tolerance * np.sqrt(scores.variance)).all():
                return self.result(scores, beliefs, iteration, notes, converged=True)
        sentence = f"The scores had not settled after {max_iterations} rounds; these are the nearest."
        notes = (*notes, Note("scores_not_settled", sentence))
        return self.result(scores, beliefs, max_iterations, notes, converged=False)

    def prior(self) -> Array:
        return prior_matrix_of_kind_and_discrimination(self.crowd.kind_shares, self.crowd.spread_squared)

    def annotator_beliefs(self, scores: _ScoreBelief) -> Array:
        """Return the posterior of kind and a_k of each annotator, (K, 3, G).

        Ties are no evidence: half a win is no probability, and would speak for a_k = 0 where all agree that items tie.
        """
        votes = self.votes
        difference = scores.mean[votes.low] - scores.mean[votes.high]
        log_likelihood = np.zeros((votes.n_annotators, len(DISCRIMINATIONS)))
        for block in _iterate_grid_blocks(len(votes.low)):
            a = DISCRIMINATIONS[block, None]
            width = _curve_flattening_factors(a, scores.difference_variance)
            of_votes = votes.decided * width * log_expit(a * difference / width)
            of_votes -= (votes.decided - votes.decided_wins) * a * difference
            sums = np.add.reduceat(of_votes, votes.first_row_of_each_annotator, axis=1)
            log_likelihood[votes.annotator[votes.first_row_of_each_annotator], block] = sums.T
        log_likelihood -= log_likelihood.max(axis=1, keepdims=True)
        posterior = np.exp(log_likelihood)[:, None, :] * self.prior()
        return np.asarray(posterior / posterior.sum(axis=(1, 2), keepdims=True))

    def updated_score_belief(self, scores: _ScoreBelief, beliefs: Array) -> _ScoreBelief:
        """Return the posterior of the scores after one Newton step."""
        votes, slope, bend = self.votes, np.zeros(len(self.votes.low)), np.zeros(len(self.votes.low))
        for share, slopes, bends in self.iterate_derivatives_of_grid_blocks(scores, beliefs):
            slope += (share * slopes).sum(axis=0)
            bend += (share * bends).sum(axis=0)
        gradient = votes.sum_of_each_item(slope) - scores.mean / self.crowd.score_variance
        links, diagonal = self.off_diagonal_and_diagonal_precision(bend)
        if votes.n_items > _DENSE_ROUNDS:
            jacobi = LinearOperator(links.shape, lambda x: x / diagonal, dtype=np.float64)
            step, _ = cg(diags_array(diagonal) - links, gradient, M=jacobi, rtol=_CG_TOLERANCE)
            variance = 1.0 / diagonal
            difference_variance = variance[votes.low] + variance[votes.high]
        else:
            covariance = _inverse_overwriting_matrix(np.diag(diagonal) - links.toarray())
            step, variance = covariance @ gradient, np.diag(covariance)
            difference_variance = variance[votes.low] + variance[votes.high] - 2.0 * covariance[votes.low, votes.high]
        step *= min(1.0, _MAX_STEP / max(float(np.abs(step).max()), _MAX_STEP))
        return _ScoreBelief(self.centre(scores.mean + step), variance, difference_variance)

    def iterate_derivatives_of_grid_blocks(
        self, scores: _ScoreBelief, beliefs: Array
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield for blocks of B values of a_k their posterior probability, and the first and minus second derivative of
        the log-likelihood in the difference, (B, R) each.
        """
        votes, by_grid = self.votes, beliefs.sum(axis=1)
        difference = scores.mean[votes.low] - scores.mean[votes.high]
        for block in _iterate_grid_blocks(len(votes.low)):
            a = DISCRIMINATIONS[block, None]
            width = _curve_flattening_factors(a, scores.difference_variance)
            chance = expit(a * difference / width)
            slopes = a * (votes.wins - votes.judged * chance)
            yield by_grid[votes.annotator, block].T, slopes, a * a / width * votes.judged * chance * (1.0 - chance)

    def off_diagonal_and_diagonal_precision(self, bend: Array) -> tuple[csr_array, Array]:
        """Return the precision of the scores: minus its cells off the diagonal, (N, N), and the diagonal, (N,)."""
        votes, n = self.votes, self.votes.n_items
        upper = coo_array((bend, (votes.low, votes.high)), shape=(n, n)).tocsr()
        links = csr_array(upper + upper.T)
        return links, np.asarray(links.sum(axis=1)).ravel() + 1.0 / self.crowd.score_variance

    def standard_errors(self, scores: _ScoreBelief, beliefs: Array) -> Array:
        """Return standard errors of the distance from the mean of the group, (N,).

        The curvature is that with known a_k less the variance of the slopes over each a_k (Louis 1982), since one
        annotator's a_k is unknown for all their judgments alike. For many items it is the curvature's diagonal alone.
        """
        votes, n = self.votes, self.votes.n_items
        if n > _DENSE_ERRORS:
            return np.sqrt(scores.variance)
        blocks = list(self.iterate_derivatives_of_grid_blocks(scores, beliefs))
        share, slopes, bends = (np.concatenate(each) for each in zip(*blocks, strict=True))
        links, diagonal = self.off_diagonal_and_diagonal_precision((share * bends).sum(axis=0))
        precision = np.diag(diagonal) - links.toarray()
        deviation = np.sqrt(share) * (slopes - (share * slopes).sum(axis=0))
        column = votes.annotator + votes.n_annotators * np.arange(len(DISCRIMINATIONS))[:, None]
        rows = np.broadcast_to(np.array([votes.low, votes.high])[:, None, :], (2, *deviation.shape)).ravel()
        by_item = coo_array(
            (np.array([deviation, -deviation]).ravel(), (rows, np.tile(column.ravel(), 2))),
            shape=(n, votes.n_annotators * len(DISCRIMINATIONS)),
        ).tocsr()
        try:
            covariance = _inverse_overwriting_matrix(precision - (by_item @ by_item.T).toarray())
        except LinAlgError:  # far from a maximum, where the fit has not settled
            covariance = _inverse_overwriting_matrix(precision)
        return self.errors_from_group_means(covariance)

    def errors_from_group_means(self, covariance: Array) -> Array:
        """Return standard errors of the distances from the mean of each group, (N,)."""
        sizes, same_group = self.group_sizes[self.members], self.members[:, None] == self.members
        with_group = np.where(same_group, covariance, 0.0).sum(axis=1) / sizes
        of_group = sum_values_of_each_number(self.members, with_group, len(self.group_sizes)) / self.group_sizes
        variances = np.diag(covariance) - 2.0 * with_group + of_group[self.members]
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def centre(self, scores: Array) -> Array:
        means = sum_values_of_each_number(self.members, scores, len(self.group_sizes)) / self.group_sizes
        return np.where(self.estimable, scores - means[self.members], 0.0)

    def estimate_crowd_and_return_score_factor(self, scores: _ScoreBelief, beliefs: Array) -> float:
        """Estimate the shares, s and v, and return the factor by which the scores are multiplied: the mean of the
        careful a_k.
        """
        grid = DISCRIMINATIONS
        attentive, misled = beliefs[:, CAREFUL].sum(axis=0), beliefs[:, REVERSED].sum(axis=0)
        count = float(attentive.sum() + misled.sum())
        mean = max(float((attentive - misled) @ grid) / count, _MIN_MEAN)
        squares = float(attentive @ (grid - mean) ** 2 + misled @ (grid + mean) ** 2) / mean**2
        kinds = beliefs.sum(axis=(0, 2)) + KIND_PRIOR
        total = float((scores.mean[self.estimable] ** 2 + scores.variance[self.estimable]).sum())
        items = float(self.estimable.sum())
        variance = (total + _SCORE_VARIANCE_WEIGHT * _PRIOR_SCORE_VARIANCE) / (items + _SCORE_VARIANCE_WEIGHT)
        # The largest v holds the scores, which a factor above 1 would move away from it in every round.
        factor = mean if variance * mean**2 <= MAX_SCORE_VARIANCE else min(mean, 1.0)
        self.crowd = _CrowdBelief(
            kinds / kinds.sum(),
            (squares + SPREAD_WEIGHT * PRIOR_SPREAD) / (count + SPREAD_WEIGHT),
            min(variance * factor**2, MAX_SCORE_VARIANCE),
        )
        return factor

    def result(
        self, scores: _ScoreBelief, beliefs: Array, iterations: int, notes: tuple[Note, ...], *, converged: bool
    ) -> AwareComparisonFit:
        if self.votes.n_items > _DENSE_ERRORS:
            notes = (*notes, Note("errors_without_opponents", _ERRORS_WITHOUT_OPPONENTS))
        pairs = sum_values_of_each_number(self.votes.annotator, self.votes.decided, self.votes.n_annotators)
        known = pairs >= MIN_ANNOTATOR_PAIRS
        by_grid, is_near = beliefs.sum(axis=1), np.abs(DISCRIMINATIONS) <= NEARLY_RANDOM
        nearly_random = beliefs[:, AT_RANDOM].sum(axis=1) + beliefs[:, CAREFUL, is_near].sum(axis=1)
        estimates = DiscriminationEstimates.from_probabilities(by_grid)
        return AwareComparisonFit(
            score=np.where(self.estimable, scores.mean, np.nan),
            standard_error=np.where(self.estimable, self.standard_errors(scores, beliefs), np.nan),
            estimable=self.estimable,
            group=self.group,
            discrimination=np.where(known, estimates.mean, np.nan),
            discrimination_error=np.where(known, estimates.error, np.nan),
            discrimination_low=np.where(known, estimates.low, np.nan),
            discrimination_high=np.where(known, estimates.high, np.nan),
            random=np.where(known, nearly_random, np.nan),
            reversed=np.where(known, beliefs[:, REVERSED].sum(axis=1), np.nan),
            annotator_estimable=known,
            kind_shares=self.crowd.kind_shares,
            spread=float(np.sqrt(self.crowd.spread_squared)),
            score_spread=float(np.sqrt(self.crowd.score_variance)),
            iterations=iterations,
            converged=converged,
            notes=notes,
        )


def _iterate_grid_blocks(rows: int) -> Iterator[slice]:
    """Yield blocks of the grid of a_k that are small enough for arrays of a block times so many rows."""
    size = max(1, _BLOCK_FLOATS // rows)
    for start in range(0, len(DISCRIMINATIONS), size):
        yield slice(start, start + size)


def _curve_flattening_factors(a: Array, variance: Array) -> Array:
    """Return c, (B, R), for a of (B, 1) and variances of (R,): the unknown part of a difference flattens its curve."""
    return np.asarray(np.sqrt(1.0 + np.pi * a * a / 8.0 * variance))


def _inverse_overwriting_matrix(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix, which is overwritten. Raises LinAlgError for another."""
    return np.asarray(cho_solve(cho_factor(matrix, overwrite_a=True), np.eye(len(matrix)), overwrite_b=True))
