"""Maximum-likelihood scores from pairwise judgments, shared by Bradley-Terry, Thurstone and Hopkins & May.

Each method gives the likelihood of an outcome, given the difference of two scores; the rest is here. The log-likelihood
is concave in the differences, so Newton's method finds the one maximum from any start, and the curvature there gives
the standard errors. It is the Laplacian of the graph of comparisons, so it is never made dense for many items.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky
from scipy.linalg.lapack import dtrtri
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg, splu

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.ground.notes import Note, joined_mention_placeholders_text, make_mention
from app.inference.ground.validation import sum_values_of_each_number
from app.inference.observations.comparisons import (
    BooleanArray,
    PairOutcomeCounts,
    connected_group_number_of_each_item,
    uncompared_items_notes_or_empty,
)

WEAK_PRIOR = 0.1
"""Precision of the Normal prior on a score: the information of 0.4 comparisons with an equal item (Bradley-Terry)."""

_NEWTON_LIMIT, _MAX_STEP_HALVINGS = 100, 40
_DENSE_SOLVE, _DENSE_INVERSE, _SMALL_GROUP = 400, 2000, 100
_CG_TOLERANCE, _CG_LIMIT = 1e-5, 400
_NOT_CONVERGED = (
    "The scores did not converge: the judgments are most likely with infinite differences. A prior above 0, or a "
    "stronger one, limits them."
)
_PROBES, _PROBE_SEED, _PROBE_ERROR = 32, 20180715, 0.2


@dataclass(frozen=True, slots=True)
class PairwiseScores:
    """Scores from pairwise judgments, in units of the method.

    Attributes:
        score: (n_items,) mean 0 within each connected group of items; NaN where not estimable.
        standard_error: (n_items,) of the score as a distance from its group's mean; NaN where not estimable, and where
            a
        note says that it is left out.
        estimable: (n_items,) whether there is a score.
        group: (n_items,) group of each item, 0 the largest, -1 none; scores of two groups cannot be compared.
        threshold: Half the width of the zone of ties in units of the score where the method estimates one; else NaN.
        threshold_error: Its standard error.
        log_likelihood: The log-likelihood of the judgments at the maximum, without the prior.
        iterations: The iterations of Newton's method.
        notes: What could not be estimated and why.

    """

    score: Array
    standard_error: Array
    estimable: BooleanArray
    group: Integers
    threshold: float
    threshold_error: float
    log_likelihood: float
    iterations: int
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class LikelihoodDerivatives:
    """The log-likelihood of P pairs at the differences d, (P,), of their scores, and its derivatives.

    Attributes:
        value: The sum of the log-likelihoods.
        slope: (P,) first derivative in d.
        bend: (P,) minus second derivative in d.
        threshold_slope: The sum of first derivatives in the threshold h; 0 where h is not estimated, as the next two.
        threshold_bend: The sum of minus second derivatives in h.
        cross: (P,) minus d2/dd dh.

    """

    value: float
    slope: Array
    bend: Array
    threshold_slope: float = 0.0
    threshold_bend: float = 0.0
    cross: Array = field(default_factory=lambda: np.zeros(0))


class PairLikelihood(Protocol):
    """Likelihood of outcomes: counts of P pairs, differences low - high of their scores, (P,), and a threshold."""

    def __call__(self, comparisons: PairOutcomeCounts, difference: Array, threshold: float, /) -> LikelihoodDerivatives:
        """Return the log-likelihood with its derivatives."""
        ...


@dataclass(frozen=True, slots=True)
class _NewtonPoint:
    score: Array
    threshold: float
    slopes: LikelihoodDerivatives
    value: float


def fit_pairwise_scores(
    comparisons: PairOutcomeCounts,
    likelihood: PairLikelihood,
    *,
    prior: float,
    tolerance: float = 1e-9,
    threshold: float | None = None,
    notes: tuple[Note, ...] = (),
) -> PairwiseScores:
    """Maximise the log-likelihood minus prior / 2 times the sum of the squared scores.

    Args:
        comparisons: The judgments.
        likelihood: The method's likelihood.
        prior: The precision of a Normal prior around the mean of an item's group, at least 0. With 0 there is a maximum
        only among items that beat or tie each other in both directions (Ford 1957), so these are the groups then, and
        the judgments between groups, all in one direction, say only that they are infinitely far apart.
        tolerance: The tolerance of the scores.
        threshold: A start above 0 if the method estimates a threshold.
        notes: Notes that come before those made here.

    Raises:
        ValueError: The prior or tolerance is out of range.
        Inestimable: No item can have a score.
        NotConverged: Newton's method has not settled after 100 iterations.

    """
    if not 0.0 <= prior < np.inf:
        raise ValueError(f"prior must be a finite number of at least 0, not {prior}")
    if not 0.0 < tolerance < np.inf:
        raise ValueError(f"tolerance must be a finite number above 0, not {tolerance}")
    group = connected_group_number_of_each_item(comparisons, strongly_connected=prior == 0.0)
    members = np.flatnonzero(group >= 0)
    if not members.size:
        raise Inestimable(
            "Without a prior no score is finite: every comparison, or chain of comparisons, went one way.",
            code="one_way",
        )
    inner_comparisons = _outcome_counts_within_group(comparisons, group, members)
    if threshold is not None and not (inner_comparisons.low_won + inner_comparisons.high_won).any():
        raise Inestimable("All comparisons are ties, so no items can be distinguished.", code="all_ties")
    newton_fit = _NewtonFit(inner_comparisons, group[members], likelihood, prior)
    best, iterations = newton_fit.newton_maximum_and_step_count(threshold, tolerance)
    variance, threshold_error, error_notes = newton_fit.uncertainty(best, fits_threshold=threshold is not None)
    return PairwiseScores(
        score=_scatter_member_values(best.score, members, group.size),
        standard_error=_scatter_member_values(np.sqrt(variance), members, group.size),
        estimable=group >= 0,
        group=group,
        threshold=float(best.threshold) if threshold is not None else np.nan,
        threshold_error=threshold_error,
        log_likelihood=best.slopes.value,
        iterations=iterations,
        notes=(
            *notes,
            *uncompared_items_notes_or_empty(comparisons),
            *_group_notes(comparisons, group, prior),
            *error_notes,
        ),
    )


def _outcome_counts_within_group(
    comparisons: PairOutcomeCounts, group: Integers, members: Integers
) -> PairOutcomeCounts:
    """Return the pairs inside a group, with the members of groups numbered from 0."""
    inner_pairs = comparisons.select_pairs(
        (group[comparisons.low] == group[comparisons.high]) & (group[comparisons.low] >= 0)
    )
    number = np.zeros(group.size, dtype=np.intp)
    number[members] = np.arange(members.size)
    return PairOutcomeCounts(
        number[inner_pairs.low],
        number[inner_pairs.high],
        inner_pairs.low_won,
        inner_pairs.high_won,
        inner_pairs.tied,
        n_items=members.size,
    )


def _scatter_member_values(values: Array, members: Integers, n_items: int) -> Array:
    all_scores = np.full(n_items, np.nan)
    all_scores[members] = values
    return all_scores


def _group_notes(comparisons: PairOutcomeCounts, group: Integers, prior: float) -> tuple[Note, ...]:
    notes = []
    ungrouped = np.flatnonzero(comparisons.compared_items_mask & (group < 0))
    if ungrouped.size:
        sentence = (
            "Without a prior there is no finite score for {0}: between such an item and any other, all comparisons, "
            "or all chains of comparisons, went one way."
        )
        notes.append(Note("no_finite_score", sentence, make_mention("item", ungrouped)))
    if group.max() > 0:
        sizes = np.bincount(group[group >= 0])
        members = [make_mention("item", group == number) for number in range(min(sizes.size, 4))]
        others = f", and {sizes.size - 4} other groups" if sizes.size > 4 else ""
        never_met = (
            prior > 0.0
            or connected_group_number_of_each_item(comparisons, strongly_connected=False).max() == group.max()
        )
        why = "were never compared with each other" if never_met else "did not beat or tie each other in both ways"
        sentence = (
            f"The items form {sizes.size} groups that {why}, so scores can be compared only within a group: "
            f"{joined_mention_placeholders_text(len(members))}{others}."
        )
        notes.append(Note("groups_of_items", sentence, *members))
    return tuple(notes)


class _NewtonFit:
    """Newton's method on the scores of items that are all in some connected group."""

    def __init__(
        self, comparisons: PairOutcomeCounts, group: Integers, likelihood: PairLikelihood, prior: float
    ) -> None:
        self.comparisons, self.link, self.prior, self.n = comparisons, likelihood, prior, comparisons.n_items
        # Groups that exist here, from 0 without gaps.
        self.group = np.unique(group, return_inverse=True)[1]
        self.size = np.bincount(self.group).astype(np.float64)
        self.row_starts = np.searchsorted(comparisons.low, np.arange(self.n + 1))

    def newton_maximum_and_step_count(
        self, start_threshold: float | None, tolerance: float
    ) -> tuple[_NewtonPoint, int]:
        point = self.evaluate(np.zeros(self.n), start_threshold or 0.0)
        for iteration in range(1, _NEWTON_LIMIT + 1):
            try:
                step, threshold_step = self.newton_step_of_scores_and_threshold(
                    point, fits_threshold=start_threshold is not None
                )
            except LinAlgError:  # so far out that the curvature is lost in rounding
                break
            if max(np.abs(step).max(), abs(threshold_step)) <= tolerance:
                # What is left after this step is of the order of its square, so the derivatives stay as they are.
                maximum = replace(
                    point,
                    score=self.scores_centred_in_groups(point.score + step),
                    threshold=point.threshold + threshold_step,
                )
                return maximum, iteration
            point = self.first_point_not_lower_along_step(point, step, threshold_step)
        raise NotConverged(_NOT_CONVERGED, code="not_converged")

    def evaluate(self, score: Array, threshold: float) -> _NewtonPoint:
        slopes = self.link(self.comparisons, score[self.comparisons.low] - score[self.comparisons.high], threshold)
        return _NewtonPoint(score, threshold, slopes, slopes.value - 0.5 * self.prior * float(score @ score))

    def first_point_not_lower_along_step(
        self, start: _NewtonPoint, score_step: Array, threshold_step: float
    ) -> _NewtonPoint:
        """Return the first point along the step, halved as often as needed, that is not lower (up to rounding)."""
        slack = 1e-12 * (1.0 + abs(start.value))
        for share in 0.5 ** np.arange(_MAX_STEP_HALVINGS):
            threshold = start.threshold + share * threshold_step
            if start.threshold > 0.0 >= threshold:
                continue
            point = self.evaluate(self.scores_centred_in_groups(start.score + share * score_step), threshold)
            if point.value >= start.value - slack:
                return point
        raise NotConverged(_NOT_CONVERGED, code="not_converged")

    def newton_step_of_scores_and_threshold(self, point: _NewtonPoint, *, fits_threshold: bool) -> tuple[Array, float]:
        curvature = self.curvature(point)
        step = curvature.solve(self.gradient_of_each_item(point.slopes.slope) - self.prior * point.score)
        if not fits_threshold:
            return step, 0.0
        direction, threshold_curvature = self.score_shift_and_threshold_curvature(curvature, point)
        cross = self.gradient_of_each_item(point.slopes.cross)
        threshold_step = (point.slopes.threshold_slope - float(cross @ step)) / threshold_curvature
        return step - direction * threshold_step, threshold_step

    def uncertainty(self, point: _NewtonPoint, *, fits_threshold: bool) -> tuple[Array, float, tuple[Note, ...]]:
        """Return variances of the scores, the standard error of the threshold, and notes."""
        curvature = self.curvature(point)
        variance, notes = curvature.diagonal_of_inverse_by_batches_and_notes()
        if not fits_threshold:
            return variance, np.nan, notes
        direction, threshold_curvature = self.score_shift_and_threshold_curvature(curvature, point)
        return variance + direction**2 / threshold_curvature, float(1.0 / np.sqrt(threshold_curvature)), notes

    def score_shift_and_threshold_curvature(self, curvature: "_Curvature", point: _NewtonPoint) -> tuple[Array, float]:
        """Return how the scores move with the threshold, and the curvature left for it: the Schur complement."""
        cross = self.gradient_of_each_item(point.slopes.cross)
        direction = curvature.solve(cross)
        threshold_curvature = point.slopes.threshold_bend - float(cross @ direction)
        if not threshold_curvature > 1e-12 * point.slopes.threshold_bend:
            raise LinAlgError("no curvature is left")
        return direction, threshold_curvature

    def curvature(self, point: _NewtonPoint) -> "_Curvature":
        shape = (self.n, self.n)
        upper = csr_array((point.slopes.bend, self.comparisons.high, self.row_starts), shape=shape)
        return _Curvature(upper, self.prior, self.group, self.size)

    def gradient_of_each_item(self, slope: Array) -> Array:
        """Return derivatives in the scores, (n,), from derivatives in the differences, (P,)."""
        return sum_values_of_each_number(self.comparisons.low, slope, self.n) - sum_values_of_each_number(
            self.comparisons.high, slope, self.n
        )

    def scores_centred_in_groups(self, score: Array) -> Array:
        return _scores_centred_in_groups(score, self.group, self.size)


def _scores_centred_in_groups(score: Array, group: Integers, size: Array) -> Array:
    return score - (sum_values_of_each_number(group, score, size.size) / size)[group]


class _Curvature:
    """The graph's Laplacian plus prior on the diagonal, within the scores of mean 0 in each group.

    The Laplacian maps constants to 0, so a right-hand side of mean 0 has one solution of mean 0.
    """

    def __init__(self, upper: csr_array, prior: float, group: Integers, size: Array) -> None:
        self.upper, self.lower, self.prior, self.group, self.size = upper, upper.T, prior, group, size
        self.n = group.size
        self.diagonal: Array = np.asarray(upper.sum(axis=1) + upper.sum(axis=0) + prior, dtype=np.float64)

    def solve(self, right: Array) -> Array:
        right = _scores_centred_in_groups(right, self.group, self.size)
        if self.n <= _DENSE_SOLVE:
            return cho_solve(cho_factor(self.to_dense(), overwrite_a=True), right)
        solution, failed = cg(
            self.linear_operator(), right, M=self.preconditioner(), rtol=_CG_TOLERANCE, maxiter=_CG_LIMIT
        )
        # A long chain of items is slow this way, and just then a sparse factorisation is quick.
        return _scores_centred_in_groups(
            self.solution_by_factorisation(right) if failed else solution, self.group, self.size
        )

    def linear_operator(self) -> LinearOperator:
        shape = (self.n, self.n)
        return LinearOperator(shape, lambda x: self.diagonal * x - self.upper @ x - self.lower @ x, dtype=np.float64)

    def preconditioner(self) -> LinearOperator:
        return LinearOperator((self.n, self.n), lambda x: x / self.diagonal, dtype=np.float64)

    def to_dense(self) -> Array:
        """Return the matrix with a penalty on constants, which are no solutions, so that it can be inverted."""
        matrix = np.where(self.group[:, None] == self.group, self.diagonal.mean() / self.size[self.group], 0.0)
        upper = self.upper.toarray()
        matrix -= upper
        matrix -= upper.T
        matrix[np.diag_indices(self.n)] += self.diagonal
        return matrix

    def solution_by_factorisation(self, right: Array) -> Array:
        diagonal = self.diagonal.copy()
        if self.prior == 0.0:  # holds the first item of each group at 0
            diagonal[np.unique(self.group, return_index=True)[1]] *= 2.0
        return splu((diags_array(diagonal) - self.upper - self.lower).tocsc()).solve(right)

    def diagonal_of_inverse_by_batches_and_notes(self) -> tuple[Array, tuple[Note, ...]]:
        """Return the variances, (n,): exact in groups of up to 2,000 items, else estimated."""
        if self.size.size == 1:
            return self.diagonal_of_inverse_in_one_piece_and_notes()
        variance, notes = np.empty(self.n), list[Note]()
        order = np.argsort(self.group, kind="stable")
        weights = (self.upper + self.lower)[order][:, order].tocsr()
        for groups_here, items_here in self.iterate_group_batches():
            group = self.group[order[items_here]]
            # Halves, so that upper and lower make the whole again.
            upper = weights[items_here, items_here] / 2.0
            block = _Curvature(upper, self.prior, group - groups_here.start, self.size[groups_here])
            variance[order[items_here]], block_notes = block.diagonal_of_inverse_in_one_piece_and_notes()
            notes += block_notes
        return variance, tuple(notes)

    def iterate_group_batches(self) -> Iterator[tuple[slice, slice]]:
        """Yield groups, the largest first, and their items in order of groups: each large one alone, small ones
        together.
        """
        ends = np.cumsum(self.size).astype(np.intp)
        batch = np.where(self.size > _SMALL_GROUP, -1 - np.arange(ends.size), ends // _SMALL_GROUP)
        cuts = np.flatnonzero(np.diff(batch, append=batch[-1] + 1)) + 1
        for start, stop in pairwise([0, *cuts.tolist()]):
            yield slice(start, stop), slice(int(ends[start - 1]) if start else 0, int(ends[stop - 1]))

    def diagonal_of_inverse_in_one_piece_and_notes(self) -> tuple[Array, tuple[Note, ...]]:
        if self.n <= _DENSE_INVERSE:
            return self.exact_diagonal_of_inverse(), ()
        variance, note = self.estimated_diagonal_of_inverse_and_note()
        return variance, (note,)

    def exact_diagonal_of_inverse(self) -> Array:
        # A = L L', so the diagonal of A^-1 is the sum of squares down each column of L^-1.
        factor = cholesky(self.to_dense(), lower=True, overwrite_a=True, check_finite=False)
        inverse: Array = dtrtri(factor, lower=1, overwrite_c=1)[0]
        # Takes back what `dense` added, and the constants' share where there is a prior.
        added = float(self.diagonal.mean()) + self.prior
        variance: Array = np.square(inverse).sum(axis=0) - 1.0 / (added * self.size[self.group])
        return variance

    def estimated_diagonal_of_inverse_and_note(self) -> tuple[Array, Note]:
        """Hutchinson's estimate: the mean of z times inverse z over vectors z of random signs, the same each time."""
        rng = np.random.default_rng(_PROBE_SEED)
        probes = rng.choice([-1.0, 1.0], (_PROBES, self.n))
        samples = np.array([probe * self.solve(probe) for probe in probes])
        mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(_PROBES)
        is_imprecise = error > _PROBE_ERROR * mean
        if not is_imprecise.any():
            sentence = (
                f"In a group of {self.n} items, standard errors are estimates from {_PROBES} random probes, within "
                f"about {50 * float((error / mean).max()):.1f} % of the exact ones."
            )
            return mean, Note("errors_by_probes", sentence)
        sentence = (
            f"In a group of {self.n} items, standard errors are estimates from {_PROBES} random probes. They are left "
            f"out for {int(is_imprecise.sum())} items, where they may be wrong by more than about 10 %."
        )
        return np.where(is_imprecise, np.nan, mean), Note("errors_left_out", sentence)
