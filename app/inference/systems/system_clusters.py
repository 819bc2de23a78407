"""Comparison of systems: scores that do not depend on the other systems of a HIT, ranks with ranges, and clusters.

A HIT is a block: the common part of its values, such as the difficulty of its segment and the strictness of its
annotator, says nothing about systems. So scores are least-squares estimates from differences within HITs (module
`intrablock`), for any combination of systems; where HITs show one system each, they are means.

Every two systems are compared, with standard errors from a bootstrap over HITs. Holm's procedure (1979) keeps the
chance that any two equally good systems are set apart at 1 - level. A system's range of ranks leaves room for all
systems that are not set apart from it, so the ranges hold together (Mohamad et al. 2019), and systems whose ranges
overlap form one cluster, as in the shared tasks of machine translation (Koehn 2012; Bojar et al. 2013).

Holm, S. A simple sequentially rejective multiple test
procedure. Scandinavian Journal of Statistics 6; Mohamad, D. et al. Simultaneous confidence intervals for ranks.
Statistics and Its Interface 12; Koehn, P. Simulating human judgment in machine translation evaluation campaigns. IWSLT.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ground.bootstrap import BOOTSTRAP_DRAWS, draw_item_counts_of_resamples
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Mention, Note
from app.inference.systems.intrablock import (
    EIGENVALUE_ROUNDING,
    MAX_DENSE_SYSTEMS,
    BlockDesign,
    make_block_design,
    system_effects_of_weighted_hits,
)

CELLS_PER_BLOCK = 4_000_000  # numbers held at once


@dataclass(frozen=True)
class SystemClusters:
    """Scores, ranks and clusters of N systems, (N,) each; NaN and 0 for unjudged systems.

    Attributes:
        score: On the scale of the values.
        low: The lower end of its central interval, as high.
        rank: 1 for the highest.
        rank_low: The first of the range of ranks, as rank_high. The ranges of all systems hold the true ranks together.
        cluster: 1 for the first cluster.
        notes: What could not be estimated and why.

    """

    score: Array
    low: Array
    high: Array
    rank: Integers
    rank_low: Integers
    rank_high: Integers
    cluster: Integers
    notes: tuple[Note, ...]


def fit(
    hit: Integers,
    system: Integers,
    value: Array,
    *,
    n_systems: int,
    level: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    rng: np.random.Generator,
) -> SystemClusters:
    """Estimate scores, ranks and clusters of systems.

    Args:
        hit: (J,), the HIT of each judgment, from 0 without gaps.
        system: (J,), its system, 0 to n_systems - 1.
        value: (J,), a real value, higher is better.
        n_systems: The number of systems.
        level: The level of each interval, and of all ranges of ranks together.
        draws: The number of bootstrap draws.
        rng: The source of the draws.

    Raises:
        Inestimable: `too_few_systems` for fewer than two with judgments, `systems_unconnected` where some were never
        compared with the others, however indirectly.

    """
    judged_systems = np.flatnonzero(np.bincount(system, minlength=n_systems))
    if len(judged_systems) < 2:
        raise Inestimable("Fewer than two systems have judgments, so there is nothing to rank.", code="too_few_systems")
    position = np.zeros(n_systems, np.intp)
    position[judged_systems] = np.arange(len(judged_systems))
    design = make_block_design(hit, position[system], value, len(judged_systems))
    middle, tails = float(value.mean()), [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    score = middle + system_effects_of_weighted_hits(design, np.ones((1, len(design.inverse_size))))[0]
    drawn = middle + system_effects_of_bootstrap_draws(design, draws, rng)
    low, high = np.quantile(drawn, tails, axis=0)
    rank = ranks_from_highest_score(score)
    p_values = p_value_matrix_of_score_differences(
        score, drawn, np.bincount(position[np.unique(np.stack([hit, system]), axis=1)[1]])
    )
    best, worst = best_and_worst_possible_ranks(score, mask_of_significant_pairs_by_holm(p_values, 1.0 - level))
    all_systems = [np.full((3, n_systems), np.nan), np.zeros((4, n_systems), np.intp)]
    all_systems[0][:, judged_systems] = score, low, high
    all_systems[1][:, judged_systems] = rank, best, worst, cluster_of_each_system_from_rank_ranges(rank, best, worst)
    (score, low, high), (rank, best, worst, cluster) = all_systems
    notes = notes_on_systems_without_judgments(np.setdiff1d(np.arange(n_systems), judged_systems))
    return SystemClusters(score, low, high, rank, best, worst, cluster, notes)


def ranks_from_highest_score(score: Array) -> Integers:
    """Return ranks, (n,), 1 for the highest."""
    places: Integers = (-score).argsort(kind="stable").argsort(kind="stable") + 1
    return places


def p_value_matrix_of_score_differences(scores: Array, bootstrap_scores: Array, hit_counts: Integers) -> Array:
    """Return two-sided p-values of all differences of two scores, (n, n), by Student's t.

    No p-value is below 2^(1 - h) for h HITs, the smallest that a test by signs can have: equal differences in a few
    HITs are not certain.

    Args:
        scores: The scores, (n,).
        bootstrap_scores: The scores in bootstrap samples of HITs, (D, n).
        hit_counts: The HITs with a judgment of each system, (n,).

    """
    covariance = np.atleast_2d(np.cov(bootstrap_scores, rowvar=False))
    variance = np.diag(covariance)
    hits = np.minimum(hit_counts[:, None], hit_counts)
    freedom = np.maximum(hits - 1.0, 1.0)
    # A bootstrap sample of h values has a variance that is (h - 1) / h of the unbiased one.
    squared_error = np.maximum(variance[:, None] + variance - 2.0 * covariance, 0.0) * (freedom + 1.0) / freedom
    distance = np.abs(scores[:, None] - scores)
    is_sure = squared_error <= EIGENVALUE_ROUNDING * np.maximum(distance, 1.0) ** 2
    ratio = np.where(is_sure, np.where(distance > 0.0, np.inf, 0.0), distance)
    ratio = ratio / np.sqrt(np.where(is_sure, 1.0, squared_error))
    p_values: Array = np.maximum(2.0 * stdtr(freedom, -ratio), 2.0 ** (1.0 - hits))
    return p_values


def mask_of_significant_pairs_by_holm(p_values: Array, error_rate: float) -> Mask:
    """Return which pairs of n systems differ, (n, n), by Holm's procedure over the pairs.

    The chance that a pair of equal systems is among them, whichever systems are equal, is at most `error_rate`.
    """
    first, second = np.triu_indices(len(p_values), 1)
    pair_p_values = p_values[first, second]
    order = pair_p_values.argsort(kind="stable")
    passes = pair_p_values[order] <= error_rate / np.arange(len(order), 0, -1)
    count = len(order) if passes.all() else int(passes.argmin())
    is_different = np.zeros(p_values.shape, np.bool_)
    is_different[first[order[:count]], second[order[:count]]] = True
    return is_different | is_different.T


def best_and_worst_possible_ranks(scores: Array, differs_significantly: Mask) -> tuple[Integers, Integers]:
    """Return the best and the worst rank of each system, (n,), if those that differ, (n, n), are in the right order."""
    is_higher = scores > scores[:, None]
    return 1 + (differs_significantly & is_higher).sum(axis=1), len(scores) - (differs_significantly & ~is_higher).sum(
        axis=1
    )


def cluster_of_each_system_from_rank_ranges(rank: Integers, rank_low: Integers, rank_high: Integers) -> Integers:
    """Return the cluster of each system, (N,), 1 for the cluster of the highest.

    A new cluster begins at each rank that no range of a higher rank reaches, and from which no range reaches above it.
    """
    order = rank.argsort()
    furthest = np.maximum.accumulate(rank_high[order])
    nearest = np.minimum.accumulate(rank_low[order][::-1])[::-1]
    begins = np.append(True, nearest[1:] > furthest[:-1])
    cluster = np.empty(len(rank), np.intp)
    cluster[order] = np.cumsum(begins)
    return cluster


def system_effects_of_bootstrap_draws(design: BlockDesign, draws: int, rng: np.random.Generator) -> Array:
    """Return the effects (draws, n) in HITs drawn with replacement."""
    count, n_systems = design.shares.shape
    numbers_per_draw = max(count, n_systems * n_systems if n_systems <= MAX_DENSE_SYSTEMS else n_systems)
    block = max(1, CELLS_PER_BLOCK // numbers_per_draw)
    sizes = [min(block, draws - start) for start in range(0, draws, block)]
    return np.concatenate(
        [system_effects_of_weighted_hits(design, draw_item_counts_of_resamples(count, size, rng)) for size in sizes]
    )


def notes_on_systems_without_judgments(unjudged_systems: Integers) -> tuple[Note, ...]:
    """Return notes on systems without judgments."""
    if not len(unjudged_systems):
        return ()
    return (Note("not_judged", "No one has judged {0} yet.", Mention("system", unjudged_systems.tolist())),)
