"""Intervals of items' means with honest coverage from two judgments per item on.

Two or three judgments say little of how far annotators differ on an item: some agree by chance. So the variance of each
item is moderated towards that of all items, as in limma (Smyth 2004, "Linear models and empirical Bayes methods for
assessing differential expression"). With SS the sum of squares of an item's n judgments around their mean m,

    (1)  v     = half the pooled variance, half phi m'(1 - m'), m' = (sum + 1/2) / (n + 1),
                 phi = sum SS / sum (n - 1) m'(1 - m'), for judgments differ less near the ends of the scale;
    (2)  d0    = 4 + 2 / CV^2, CV that of the items' variances around v, from the spread of SS / (n - 1) / v;
    (3)  s^2   = (d0 v + SS) / (d0 + n - 1), with d0 + n - 1 degrees of freedom, but no more than all items have;
    (4)  error = s / sqrt(n), and the interval m -+ t error, cut to the scale.

An annotator's judgments of one item are not independent of each other. The first of them counts for (1) to (3), and if
annotator j gave n_j of n judgments, these are worth n^2 / sum n_j^2 in (4).

The true mean is the mean over all annotators who could have been asked. An error that all of them make is not in it.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array, Integers, valid_interval_level_or_raise
from app.inference.observations.tally import Tally

ScoreBounds = tuple[float, float]

_MIN_CV2, _MAX_PRIOR_STRENGTH = 0.001, 1000.0
_MIN_KEPT_SHARE = 1e-6  # of a difference between items, so that an error stays above 0
_ROUNDING_SHARE = 1e-12  # less disagreement than this part of the squared scores is rounding of equal scores


@dataclass(frozen=True, slots=True, eq=False)
class ModeratedMeans:
    """Means of N items with moderated errors, (N,) each; NaN where there is none.

    The error is NaN without a judgment, and everywhere if no two annotators gave an item different scores: then nothing
    tells how far they differ.

    Attributes:
        mean: In scores.
        standard_error: In scores.
        freedom: Degrees of freedom.
        scale: The range of scores, None for no bounds.
        degrees_of_freedom_limit: The degrees of freedom of all items together, by which the variance between annotators
            is
        known; infinite where that is known by itself.

    """

    mean: Array
    standard_error: Array
    freedom: Array
    scale: ScoreBounds | None
    degrees_of_freedom_limit: float = np.inf

    def select_items(self, items: npt.ArrayLike) -> "ModeratedMeans":
        """Return the means of some items, by their numbers, in this order."""
        item_numbers = np.asarray(items, np.intp)
        return replace(
            self,
            mean=self.mean[item_numbers],
            standard_error=self.standard_error[item_numbers],
            freedom=self.freedom[item_numbers],
        )

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the interval (4): low and high, (N,) each."""
        reach = (
            scipy.special.stdtrit(self.freedom, (1.0 + valid_interval_level_or_raise(level)) / 2.0)
            * self.standard_error
        )
        low, high = self.mean - reach, self.mean + reach
        return (low, high) if self.scale is None else (np.maximum(low, self.scale[0]), np.minimum(high, self.scale[1]))

    def expected_coverage_and_width_ratio(self, low: Array, high: Array) -> tuple[float, float]:
        """Compare other intervals, low to high, (N,) each, with these.

        Given all judgments, the true mean of an item is distributed around its mean, shrunk towards that of all
        (`mean_kept_shares_and_shrunken_means`), as a t distribution, on the scale; each interval holds it with the
        probability between its ends, however it was made.

        This assumes that an interval knows no more of the truth than the means do. An interval from the order of an
        annotator's scores does: strictness moves the means, but not the order. So its share is too low where
        annotators' biases differ.

        Returns:
            The share of them that is expected to hold the true mean, and how many times as wide the median one is; NaN
                if no
            item has both.

        """
        has_error = np.isfinite(self.standard_error)
        if not has_error.any():
            return np.nan, np.nan
        known_means = self.select_items(np.flatnonzero(has_error))
        _, kept, centre = mean_kept_shares_and_shrunken_means(known_means.mean, known_means.standard_error**2)
        error = np.sqrt(kept) * known_means.standard_error

        def probability_below(ends: npt.ArrayLike) -> Array:
            inside = np.asarray(ends, dtype=np.float64)
            if known_means.scale is not None:
                inside = np.clip(inside, *known_means.scale)
            share: Array = scipy.special.stdtr(known_means.freedom, (inside - centre) / error)
            return share

        on_scale = (
            1.0
            if known_means.scale is None
            else probability_below(known_means.scale[1]) - probability_below(known_means.scale[0])
        )
        own_low, own_high = known_means.interval()
        coverage = (probability_below(high[has_error]) - probability_below(low[has_error])) / on_scale
        return float(coverage.mean()), float(np.median((high - low)[has_error] / (own_high - own_low)))


@dataclass(frozen=True, slots=True, eq=False)
class ItemVariances:
    """How far annotators differ on N items of which at least one has different scores.

    Attributes:
        squares: (N,) sums of squares SS.
        freedom: (N,) degrees of freedom of the sums, n - 1, at least 0.
        prior: (N,) expected variances (1).
        strength: Degrees of freedom d0 of the expected variances.

    """

    squares: Array
    freedom: Integers
    prior: Array
    strength: float

    @classmethod
    def variances_of_tally_or_none(cls, tally: Tally, scale: ScoreBounds | None) -> "ItemVariances | None":
        """Return the variances; None if no two annotators gave an item different scores."""
        squares, freedom = sums_of_squares_within_items(tally), np.maximum(tally.annotators - 1, 0)
        if not squares.any():
            return None
        prior = prior_item_variances(tally, squares, freedom, scale)
        return cls(squares, freedom, prior, degrees_of_freedom_of_prior_variance(squares, freedom, prior))


def moderated_means_of_tally(tally: Tally, scale: ScoreBounds | None = (0.0, 1.0)) -> ModeratedMeans:
    """Compute (1) to (4) for all items; linear in their number.

    Args:
        tally: The judgments.
        scale: The range of scores; None for no bounds, and then (1) is the pooled variance.

    """
    return moderated_means_with_variances(tally, ItemVariances.variances_of_tally_or_none(tally, scale), scale)


def moderated_means_with_variances(
    tally: Tally, variances: ItemVariances | None, scale: ScoreBounds | None
) -> ModeratedMeans:
    """Compute (3) and (4) from the variances of the same judgments; no item has an error without them."""
    error = np.full(len(tally.annotators), np.nan)
    if variances is None:
        return ModeratedMeans(tally.mean, error, error.copy(), scale, 0.0)
    all_freedom = variances.strength + variances.freedom
    judged = tally.annotators > 0
    variance = (variances.strength * variances.prior + variances.squares) / all_freedom
    error[judged] = np.sqrt(variance[judged] * tally.repeats[judged]) / tally.judgments[judged]
    all_within_freedom = float(variances.freedom.sum())
    return ModeratedMeans(
        tally.mean, error, np.minimum(all_freedom, all_within_freedom).astype(np.float64), scale, all_within_freedom
    )


def variance_between_items(means: Array, error_variances: Array) -> float:
    """Return the variance of true means: the variance of the means, (n,), minus that of their errors, (n,).

    It is not above 0 where the errors explain everything, and 0 for one item.
    """
    return float(means.var(ddof=1) - error_variances.mean()) if len(means) > 1 else 0.0


def mean_kept_shares_and_shrunken_means(means: Array, error_variances: Array) -> tuple[float, Array, Array]:
    """Shrink each mean towards that of all items: a Normal prior of variance `variance_between_items` (Efron & Morris
    1975).

    Args:
        means: (n,), n > 0.
        error_variances: (n,), > 0.

    Returns:
        The centre of the prior, weighted as in a random-effects analysis; the kept share of each item's difference from
            it,
        (n,), above 0 and at most 1; and the shrunk means, (n,).

    """
    between = max(variance_between_items(means, error_variances), 0.0)
    weight = 1 / (between + error_variances)
    middle = float(weight @ means / weight.sum())
    kept_share = np.maximum(between * weight, _MIN_KEPT_SHARE)
    return middle, kept_share, middle + kept_share * (means - middle)


def sums_of_squares_within_items(tally: Tally) -> Array:
    """Return SS, (N,): squares of the first scores of an item's annotators around their mean."""
    squares = tally.first_squares - tally.first_total**2 / np.maximum(tally.annotators, 1)
    return np.where(squares > _ROUNDING_SHARE * tally.first_squares, squares, 0.0)


def prior_item_variances(
    tally: Tally, squares: Array, degrees_of_freedom: Integers, scale: ScoreBounds | None
) -> Array:
    """Return (1), (N,), where some two annotators gave an item different scores.

    `degrees_of_freedom` is (N,), n - 1, at least 0.
    """
    if scale is None:
        return np.full(len(squares), squares.sum() / degrees_of_freedom.sum())
    return prior_variances_at_shares(_cautious_shares(tally, scale), tally, squares, degrees_of_freedom, scale)


def prior_variances_at_shares(
    shares: Array, tally: Tally, squares: Array, degrees_of_freedom: Integers, scale: ScoreBounds
) -> Array:
    """Return (1) at these values of m', (n,), as shares of the scale; phi is that of the items."""
    item_shares = _cautious_shares(tally, scale)
    phi = squares.sum() / (degrees_of_freedom @ (item_shares * (1.0 - item_shares)))
    pooled = squares.sum() / degrees_of_freedom.sum()
    prior: Array = (pooled + phi * (shares * (1.0 - shares))) / 2.0
    return prior


def _cautious_shares(tally: Tally, scale: ScoreBounds) -> Array:
    """Return m', (N,): the means of the first scores as shares of the scale, a little nearer to its middle."""
    low, width = scale[0], scale[1] - scale[0]
    share_total = (tally.first_total - low * tally.annotators) / width
    shares: Array = (share_total + 0.5) / (tally.annotators + 1.0)
    return shares


def variance_spread_beyond_and_by_chance(
    squares: Array, degrees_of_freedom: Integers, expected_variances: Array
) -> tuple[float, float]:
    """Return the squared spread of items' variances around (1), as a share of it, beyond chance, and that by chance
    alone.

    The latter is 2 / freedom. Items are weighted by their degrees of freedom; arrays (N,).
    """
    weight = degrees_of_freedom / degrees_of_freedom.sum()
    ratio = np.divide(
        squares,
        degrees_of_freedom * expected_variances,
        out=np.zeros(len(expected_variances)),
        where=degrees_of_freedom > 0,
    )
    mean = weight @ ratio
    chance = float(2.0 * np.count_nonzero(degrees_of_freedom) / degrees_of_freedom.sum())
    return float(weight @ (ratio - mean) ** 2 / mean**2) - chance, chance


def degrees_of_freedom_of_prior_variance(
    squares: Array, degrees_of_freedom: Integers, expected_variances: Array
) -> float:
    """Return (2): d0."""
    beyond, chance = variance_spread_beyond_and_by_chance(squares, degrees_of_freedom, expected_variances)
    cv2 = max(beyond / (1.0 + chance), _MIN_CV2)
    return float(min(4.0 + 2.0 / cv2, _MAX_PRIOR_STRENGTH))
