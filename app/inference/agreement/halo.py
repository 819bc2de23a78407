"""Halo: how far judgments of one criterion are judgments of another (Thorndike 1920, "A constant error in psychological
ratings"; Cooper 1981, "Ubiquitous halo").

Items that are good by two criteria make the means of the items correlate, and that is no error. Once each judgment is
compared with the mean of its own item, the items are taken out. With d the deviation of a judgment from the mean of the
judgments of the same item by the same criterion,

    (1)  halo = sum d d' / sqrt(sum d^2 sum d'^2),

over all judgments of items that have two or more, with d by the one criterion and d' by the other in the same answer.
Whoever sees two criteria apart errs in each by itself, and (1) is 0; whoever gives one impression twice makes it 1.
Annotators who are strict by all criteria raise it, too: an impression of the item cannot be told from a habit.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.agreement.coefficient import interval_notes
from app.inference.ground import weighted_correlation
from app.inference.ground.arrays import Array, Integers, quotient
from app.inference.ground.bootstrap import DRAWS, Statistic, interval_of, value_of
from app.inference.ground.long_form import check_equal_length, finite, numbered, sums
from app.inference.ground.notes import Note

MUCH = 0.5
"""From here on (1) is worth a warning: at least a quarter of the variance of deviations is shared."""

LEAST_JUDGMENTS = 30
"""With fewer it is too uncertain: 95 % of what chance gives for 30 judgments lies within .36 of 0."""

_ROUNDING = 1e-12  # less variance than this part of the squares is rounding of equal scores


@dataclass(frozen=True, slots=True)
class HaloFigure:
    """A correlation with its bootstrap interval over items, NaN where there is none; on how many items and judgments it
    rests. notes: what is missing, and why.
    """

    value: float
    low: float
    high: float
    items: int
    judgments: int
    notes: tuple[Note, ...] = ()


def is_much(within: float, judgments: int) -> bool:
    """Whether (1), resting on so many judgments, is worth a warning: the two criteria were hardly judged apart."""
    return judgments >= LEAST_JUDGMENTS and within >= MUCH


def of_means(
    items: npt.ArrayLike,
    one: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> HaloFigure:
    """The correlation of the items' means by two criteria.

    items: (T,) integers from 0; one, other: (T,) finite scores of the same judgments, each criterion on a scale of its
    own. Raises ValueError for arrays that cannot be.
    """
    items, one, other = _checked(items, one, other)
    judgments = np.bincount(items)
    judged = judgments > 0
    x, y = (sums(items, scores, len(judgments))[judged] / judgments[judged] for scores in (one, other))
    all_items = np.zeros(1, np.intp)

    def correlation(weights: Array) -> Array:
        return weighted_correlation.pearson(x, y, weights, all_items)[:, 0]

    return _figure(correlation, len(x), len(items), draws=draws, level=level, rng=rng)


def within(
    items: npt.ArrayLike,
    one: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> HaloFigure:
    """(1). items: judgments of the same one differ in nothing but who gave them. Otherwise as `of_means`."""
    items, one, other = _checked(items, one, other)
    shared = np.bincount(items)[items] > 1
    _, item = np.unique(items[shared], return_inverse=True)
    n = int(item.max(initial=-1)) + 1
    dx, dy = (_deviations(item, scores[shared], n) for scores in (one, other))
    xy, xx, yy = (sums(item, products, n) for products in (dx * dy, dx * dx, dy * dy))

    def correlation(weights: Array) -> Array:
        return np.clip(quotient(weights @ xy, np.sqrt((weights @ xx) * (weights @ yy))), -1.0, 1.0)

    return _figure(correlation, n, len(item), draws=draws, level=level, rng=rng)


def _checked(items: npt.ArrayLike, one: npt.ArrayLike, other: npt.ArrayLike) -> tuple[Integers, Array, Array]:
    items, _ = numbered("items", items)
    one, other = finite("one", one), finite("other", other)
    check_equal_length(items=items, one=one, other=other)
    return items, one, other


def _deviations(item: Integers, scores: Array, n: int) -> Array:
    """From the mean of each item; exactly 0 where all of an item are the same but for rounding."""
    deviations = scores - (sums(item, scores, n) / np.bincount(item, minlength=n))[item]
    varies = sums(item, deviations**2, n) > _ROUNDING * sums(item, scores**2, n)
    return np.where(varies[item], deviations, 0.0)


def _figure(
    correlation: Statistic, items: int, judgments: int, *, draws: int, level: float, rng: np.random.Generator
) -> HaloFigure:
    value = value_of(correlation, items) if items else np.nan
    if not np.isfinite(value):
        return HaloFigure(np.nan, np.nan, np.nan, items, judgments)
    interval = interval_of(correlation, items, draws=draws, level=level, rng=rng)
    return HaloFigure(value, interval.low, interval.high, items, judgments, interval_notes(interval, draws))


# The same as answers come in


@dataclass(frozen=True, slots=True, eq=False)
class HaloSums:
    """What the judgments of N items by K criteria add up to. judgments: (N,); totals: (K, N); products: (K, K)."""

    judgments: Integers
    totals: Array
    products: Array

    @classmethod
    def nothing(cls, n_items: int, n_criteria: int) -> "HaloSums":
        """Before the first judgment."""
        none = np.zeros(n_items, np.intp)
        return cls(none, np.zeros((n_criteria, n_items)), np.zeros((n_criteria, n_criteria)))

    def after(self, items: npt.ArrayLike, scores: npt.ArrayLike) -> "HaloSums":
        """With these judgments too. items: (T,) from 0 to N - 1; scores: (K, T). It checks nothing."""
        items, scores = np.asarray(items, np.intp), np.asarray(scores, np.float64)
        judgments, totals = self.judgments.copy(), self.totals.copy()
        np.add.at(judgments, items, 1)
        for mine, more in zip(totals, scores, strict=True):
            np.add.at(mine, items, more)
        return HaloSums(judgments, totals, self.products + scores @ scores.T)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.judgments.nbytes + self.totals.nbytes + self.products.nbytes

    @property
    def shared(self) -> int:
        """How many judgments are of items that have two or more: on so many (1) rests."""
        return int(self.judgments[self.judgments > 1].sum())

    @property
    def within(self) -> Array:
        """(1) of each two criteria, (K, K); NaN where one of them does not vary."""
        judged = self.judgments > 0
        totals = self.totals[:, judged]
        left = self.products - (totals / self.judgments[judged]) @ totals.T
        return _correlations(left, np.diag(self.products))

    @property
    def of_means(self) -> Array:
        """The correlation of the items' means by each two criteria, (K, K); NaN where one of them does not vary."""
        judged = self.judgments > 0
        means = self.totals[:, judged] / self.judgments[judged]
        centred = means - means.mean(axis=1, keepdims=True) if judged.any() else means
        return _correlations(centred @ centred.T, (means**2).sum(axis=1))


def _correlations(products: Array, squares: Array) -> Array:
    """From products of deviations, (K, K), NaN where there are none but of rounding. squares: of the scores, (K,)."""
    own = np.where(np.diag(products) > _ROUNDING * squares, np.diag(products), 0.0)
    return np.clip(quotient(products, np.sqrt(np.outer(own, own))), -1.0, 1.0)
