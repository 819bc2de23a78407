"""Correlations of resampled entries: each counts as often as a draw has it. All draws at once, no entry is copied."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from app.inference.ground.arrays import Array, Integers, quotient

NUMBERS_HELD = 6
"""Numbers held at once for each entry and draw by `spearman`."""

_ROUNDING = 1e-12  # less variance than this part of the squares is rounding of equal values


@dataclass(frozen=True, slots=True)
class MeanRanks:
    """The mean ranks of E entries within their B blocks, for any weights of the entries.

    group: the number of each entry's value among the G sorted values of all blocks, (E,). members: which entries each
    value has, sparse (G, E). block: which block each value belongs to, (G,). blocks: the same, sparse (B, G).
    """

    group: Integers
    members: csr_array
    block: Integers
    blocks: csr_array

    @classmethod
    def of(cls, values: Array, block: Integers) -> "MeanRanks":
        """The ranking of `values` within each block of entries; both (E,), blocks numbered from 0 without a gap."""
        order = np.lexsort((values, block))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(values[order]) != 0.0) | (np.diff(block[order]) != 0)
        group = np.empty(len(order), dtype=np.intp)
        group[order] = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        of_group = block[order][starts]
        first_of_block = np.flatnonzero(np.diff(of_group, prepend=-1))
        return cls(group, _runs(order, starts), of_group, _runs(np.arange(len(starts)), first_of_block))

    def ranks(self, weights: Array) -> tuple[Array, Array]:
        """Ranks less the mean of their block, (E, D), and their squares added up, (B, D); weights: (E, D).

        Ranks of weights that are whole numbers are multiples of 1/2, so nothing of this is rounded.
        """
        totals = self.members @ weights
        of_blocks = self.blocks @ totals
        middle = np.cumsum(of_blocks, axis=0) - of_blocks / 2.0
        ranks = np.cumsum(totals, axis=0)
        room = totals / 2.0  # new arrays of this size would take longer than what is done in them
        ranks -= room
        ranks -= middle.take(self.block, axis=0, out=room, mode="clip")
        np.multiply(ranks, ranks, out=room)
        room *= totals
        return ranks.take(self.group, axis=0), self.blocks @ room

    def within(self, values: Array) -> Array:
        """Added up over the entries of each block, (E, D) -> (B, D)."""
        added: Array = self.blocks @ (self.members @ values)
        return added


def _runs(entries: Integers, starts: Integers) -> csr_array:
    """Which entries lie in each run that starts there, sparse (runs, entries): sums over runs are a product with it."""
    shape = len(starts), len(entries)
    return csr_array((np.ones(len(entries)), entries, np.append(starts, len(entries))), shape=shape)


def spearman(first: MeanRanks, second: MeanRanks, weights: Array) -> Array:
    """The rank correlation within each block, (B, D), NaN where one of the two does not vary; weights: (E, D)."""
    (a, xx), (b, yy) = first.ranks(weights), second.ranks(weights)
    a *= b
    a *= weights
    return np.clip(quotient(first.within(a), np.sqrt(xx * yy)), -1.0, 1.0)


def pearson(x: Array, y: Array, weights: Array, starts: Integers) -> Array:
    """The correlation of x and y within each block, (D, P), NaN where one of them does not vary.

    weights: (D, E); x, y: (E,) or (D, E); starts: where each block of entries begins, (P,).
    """
    total = np.add.reduceat(weights, starts, axis=1)
    dx, dy = (_centred(values, weights, total, starts) for values in (x, y))
    xx, yy, xy = (np.add.reduceat(weights * a * b, starts, axis=1) for a, b in ((dx, dx), (dy, dy), (dx, dy)))
    return np.clip(quotient(xy, np.sqrt(xx * yy)), -1.0, 1.0)


def _centred(values: Array, weights: Array, total: Array, starts: Integers) -> Array:
    """Values less their mean in each block; exactly 0 where they are all the same but for rounding."""
    sizes = np.diff(starts, append=weights.shape[1])
    mean = quotient(np.add.reduceat(weights * values, starts, axis=1), total)
    centred = values - np.repeat(mean, sizes, axis=1)
    squares = np.add.reduceat(weights * values * values, starts, axis=1)
    varies = np.add.reduceat(weights * centred * centred, starts, axis=1) > _ROUNDING * squares
    return np.where(np.repeat(varies, sizes, axis=1), centred, 0.0)


def kendall(x: Array, y: Array, weights: Array) -> Array:
    """Kendall's tau-b of entries that are one block, (D,), NaN where one of the two does not vary (Kendall 1945).

    x, y: (E,); weights: (D, E) whole numbers. Concordant less discordant pairs are a quadratic form of the weights, and
    so are the pairs that are no tie. Takes E^2 memory and D E^2 time.
    """
    of_x, of_y = (np.sign(values[:, None] - values) for values in (x, y))
    xy, xx, yy = (np.einsum("dn,dn->d", weights @ signs, weights) for signs in (of_x * of_y, of_x * of_x, of_y * of_y))
    return np.clip(quotient(xy, np.sqrt(xx) * np.sqrt(yy)), -1.0, 1.0)
