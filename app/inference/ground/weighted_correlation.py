"""Correlations of resampled entries: each counts as often as a draw has it. All draws at once, no entry is copied."""

from dataclasses import dataclass

import numpy as np

from app.inference.ground.arrays import Array, Integers, quotient

_ROUNDING = 1e-12  # less variance than this part of the squares is rounding of equal values


@dataclass(frozen=True, slots=True)
class Ranking:
    """The mean ranks of E entries within their blocks, for any weights of the entries.

    group: the number of each entry's value among the sorted values of all blocks, (E,). order: the entries sorted by
    group, (E,). starts: where each group begins in that order, (G,).
    """

    group: Integers
    order: Integers
    starts: Integers

    @classmethod
    def of(cls, values: Array, block: Integers) -> "Ranking":
        """The ranking of `values` within each block of entries; both (E,)."""
        order = np.lexsort((values, block))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(values[order]) != 0.0) | (np.diff(block[order]) != 0)
        group = np.empty(len(order), dtype=np.intp)
        group[order] = np.cumsum(new) - 1
        return cls(group, order, np.flatnonzero(new))

    def ranks(self, weights: Array) -> Array:
        """Mean ranks less 1/2, and in each block up to a constant that no correlation sees; (D, E) -> (D, E)."""
        totals = np.add.reduceat(weights[:, self.order], self.starts, axis=1)
        return (np.cumsum(totals, axis=1) - totals / 2.0)[:, self.group]


def spearman(first: Ranking, second: Ranking, weights: Array) -> Array:
    """The rank correlation of entries that are one block, (D,), NaN where one of the two does not vary."""
    middle = weights.sum(axis=1, keepdims=True) / 2.0  # the mean rank, whatever the weights
    a, b = first.ranks(weights) - middle, second.ranks(weights) - middle
    of_a = weights * a
    xy, xx, yy = (np.einsum("dn,dn->d", x, y) for x, y in ((of_a, b), (of_a, a), (weights * b, b)))
    return np.clip(quotient(xy, np.sqrt(xx * yy)), -1.0, 1.0)


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
