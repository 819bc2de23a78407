"""Correlations of resampled entries, each weighted by its count in a draw. All draws at once; no entry is copied."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from app.inference.ground.arrays import Array, Integers, divide_or_nan

NUMBERS_PER_ENTRY_AND_DRAW = 6
"""How many numbers `weighted_spearman_of_each_block` holds at once for each entry and draw."""

_ROUNDING = 1e-12  # less variance than this part of the squares is rounding of equal values


@dataclass(frozen=True, slots=True)
class MeanRanks:
    """Mean ranks of E entries within their B blocks, for any weights of the entries.

    Attributes:
        group: The number of each entry's value among the G sorted values of all blocks, (E,).
        members: The entries that have each value, sparse (G, E).
        block: The block of each value, (G,).
        blocks: The same, sparse (B, G).

    """

    group: Integers
    members: csr_array
    block: Integers
    blocks: csr_array

    @classmethod
    def from_values(cls, values: Array, block: Integers) -> "MeanRanks":
        """Return the ranking of `values` within each block of entries; both (E,), blocks numbered from 0 without
        a gap.
        """
        order = np.lexsort((values, block))
        is_new_value = np.ones(len(order), dtype=bool)
        is_new_value[1:] = (np.diff(values[order]) != 0.0) | (np.diff(block[order]) != 0)
        group = np.empty(len(order), dtype=np.intp)
        group[order] = np.cumsum(is_new_value) - 1
        starts = np.flatnonzero(is_new_value)
        block_of_group = block[order][starts]
        first_of_block = np.flatnonzero(np.diff(block_of_group, prepend=-1))
        return cls(
            group,
            _sparse_membership_of_entries_in_runs(order, starts),
            block_of_group,
            _sparse_membership_of_entries_in_runs(np.arange(len(starts)), first_of_block),
        )

    def centred_ranks_and_square_sums(self, weights: Array) -> tuple[Array, Array]:
        """Return ranks minus the mean of their block, (E, D), and the sums of their squares, (B, D), given weights (E,
        D).

        Ranks with whole-number weights are multiples of 1/2, so nothing here is rounded.
        """
        totals = self.members @ weights
        block_totals = self.blocks @ totals
        middle = np.cumsum(block_totals, axis=0) - block_totals / 2.0
        ranks = np.cumsum(totals, axis=0)
        buffer = totals / 2.0  # new arrays of this size would take longer than what is done in them
        ranks -= buffer
        ranks -= middle.take(self.block, axis=0, out=buffer, mode="clip")
        np.multiply(ranks, ranks, out=buffer)
        buffer *= totals
        return ranks.take(self.group, axis=0), self.blocks @ buffer

    def sum_within_each_block(self, values: Array) -> Array:
        """Return sums over the entries of each block, (E, D) -> (B, D)."""
        block_sums: Array = self.blocks @ (self.members @ values)
        return block_sums


def _sparse_membership_of_entries_in_runs(entries: Integers, starts: Integers) -> csr_array:
    """Membership of entries in runs, sparse (runs, entries): sums over runs are a product with it."""
    shape = len(starts), len(entries)
    return csr_array((np.ones(len(entries)), entries, np.append(starts, len(entries))), shape=shape)


def weighted_spearman_of_each_block(first_ranks: MeanRanks, second_ranks: MeanRanks, weights: Array) -> Array:
    """Rank correlation within each block, (B, D), NaN where one of the two does not vary; weights: (E, D)."""
    (a, xx), (b, yy) = (
        first_ranks.centred_ranks_and_square_sums(weights),
        second_ranks.centred_ranks_and_square_sums(weights),
    )
    a *= b
    a *= weights
    return np.clip(divide_or_nan(first_ranks.sum_within_each_block(a), np.sqrt(xx * yy)), -1.0, 1.0)


def weighted_pearson_of_each_block(x: Array, y: Array, weights: Array, starts: Integers) -> Array:
    """Correlation of x and y within each block, (D, P), NaN where one of them does not vary.

    Args:
        x: (E,) or (D, E).
        y: (E,) or (D, E).
        weights: (D, E).
        starts: The position where each block of entries begins, (P,).

    """
    total = np.add.reduceat(weights, starts, axis=1)
    dx, dy = (_deviations_from_block_means(values, weights, total, starts) for values in (x, y))
    xx, yy, xy = (np.add.reduceat(weights * a * b, starts, axis=1) for a, b in ((dx, dx), (dy, dy), (dx, dy)))
    return np.clip(divide_or_nan(xy, np.sqrt(xx * yy)), -1.0, 1.0)


def _deviations_from_block_means(values: Array, weights: Array, total: Array, starts: Integers) -> Array:
    """Return values minus their block's mean; exactly 0 where all are equal up to rounding."""
    sizes = np.diff(starts, append=weights.shape[1])
    mean = divide_or_nan(np.add.reduceat(weights * values, starts, axis=1), total)
    centred = values - np.repeat(mean, sizes, axis=1)
    squares = np.add.reduceat(weights * values * values, starts, axis=1)
    varies = np.add.reduceat(weights * centred * centred, starts, axis=1) > _ROUNDING * squares
    return np.where(np.repeat(varies, sizes, axis=1), centred, 0.0)


def weighted_kendall(x: Array, y: Array, weights: Array) -> Array:
    """Kendall's tau-b of entries that form one block, (D,), NaN where one of the two does not vary (Kendall 1945).

    Concordant minus discordant pairs are a quadratic form of the weights, and so are the untied pairs. Takes E^2 memory
    and D E^2 time.

    Args:
        x: (E,).
        y: (E,).
        weights: (D, E) whole numbers.

    """
    signs_of_x, signs_of_y = (np.sign(values[:, None] - values) for values in (x, y))
    xy, xx, yy = (
        np.einsum("dn,dn->d", weights @ signs, weights)
        for signs in (signs_of_x * signs_of_y, signs_of_x * signs_of_x, signs_of_y * signs_of_y)
    )
    return np.clip(divide_or_nan(xy, np.sqrt(xx) * np.sqrt(yy)), -1.0, 1.0)
