"""Scores and intervals that stay right for items chosen by their scores: means shrunk towards those of all items.

A rule that asks more about promising items, or a list of the best items, favours items that were lucky: their means are
too high (the winner's curse). A posterior is not affected, however its data were chosen (Berger & Wolpert 1988, the
stopping rule principle), as long as its prior is that of the items. So the prior is estimated from all items (empirical
Bayes), and by its likelihood, since moments of the means do depend on which items were asked about:

    (1)  likelihood of item i at place x: the t density of (m_i - x) / error_i(x) with d0 degrees of freedom, but
         no more than all items have, error_i(x)^2 = v(x) / n_i, d0 and n_i judgments as in `moderated_means`;
    (2)  v(x):   variance of a judgment of an item whose true mean is x: the mean of (SS_i + n_i (m_i - x)^2) / n_i over
                 all items, weighted by n_i and by the posterior of item i at x, smoothed;
    (3)  base:   Beta distributions of all means and concentrations on a grid, each weighted by its likelihood, so that
                 few items leave the prior wide;
    (4)  prior:  the base counts as `BASE_ITEMS` items, and the items themselves correct its shape: expectation
                 maximisation with smoothing (Silverman, Jones, Nychka & Wilson 1990);
    (5)  score:  the mean of the posterior, likelihood times prior; interval: its central mass, up to an end of the
         scale if as much mass from that end is shorter, for all may agree on the very end.
         It is widened to the width of the plain interval: the prior moves it, but may be too sure of itself.

In (1), an item's own spread SS_i does not count. Where scores pile up at one value, the items that lead by luck are
those whose judgments all have that value: they agree because they were lucky, so their agreement is no evidence. An
item that truly has the mean x would be judged with the variance v(x), so that is how far its mean may be from x.

`python -m benchmarks.coverage_under_rules` measures how often these intervals hold the truth.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from app.inference.ground.arrays import Array, Integers, valid_interval_level_or_raise
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import (
    ItemVariances,
    ModeratedMeans,
    ScoreBounds,
    moderated_means_with_variances,
    prior_variances_at_shares,
)

BASE_ITEMS = 20.0
_BIN_COUNT, _SMOOTHING_WIDTH = 100, 0.05  # the width is a share of the scale
_ROUNDS, _ITERATIONS_PER_ROUND = 5, 12
_PRIOR_MEANS = (np.arange(40) + 0.5) / 40
_PRIOR_CONCENTRATIONS = np.geomspace(0.5, 500, 16)
_MAX_ITEMS_FOR_PRIOR, _ITEMS_PER_BLOCK = 2_000, 5_000
_SMALLEST = 1e-12
# Places of the posterior around the mean, in errors there: the error of a place far away may be many times as large.
_ERRORS_FROM_MEAN = np.sinh(np.linspace(-5.5, 5.5, 265))
_PLACE_WIDTHS = np.gradient(_ERRORS_FROM_MEAN)


@dataclass(frozen=True, slots=True, eq=False)
class ItemEvidence:
    """Judgments of N items on a scale from 0 to 1, (N,) each.

    Attributes:
        mean: Mean m_i; NaN for an item without an error.
        judgments: Number of independent judgments n_i.
        squares: Sum of squares SS_i around the mean.
        freedom: Degrees of freedom of the predicted variance, the same for all items: d0, or those of all items
            together if they are fewer.

    """

    mean: Array
    judgments: Array
    squares: Array
    freedom: float

    def select_items(self, items: npt.ArrayLike) -> "ItemEvidence":
        """Return the evidence about some items, by their numbers, in this order."""
        numbers = np.asarray(items, np.intp)
        return ItemEvidence(self.mean[numbers], self.judgments[numbers], self.squares[numbers], self.freedom)

    def log_likelihood(self, places: Array, variances: Array) -> Array:
        """Return the logarithm of (1), (N, P), up to a constant of each item.

        Args:
            places: (N, P) or (1, P) true means x.
            variances: v(x), in the same shape.

        """
        error_squared = variances / self.judgments[:, None]
        distance_squared = (self.mean[:, None] - places) ** 2 / error_squared
        log_density: Array = -(self.freedom + 1) / 2 * np.log1p(distance_squared / self.freedom)
        return log_density - np.log(error_squared) / 2


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkenMeans:
    """Shrunken scores of N items and their intervals, (N,) each; NaN for an item without an error."""

    score: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True, eq=False)
class ItemPrior:
    """Distribution of the items' true means over equal bins of a scale from 0 to 1, and how they are judged.

    Attributes:
        shares: (B,) share of the items in each bin, with the sum 1.
        variances: (B,) variance v(x) of a judgment in the middle of each bin.

    """

    shares: Array
    variances: Array

    def shrink(self, evidence: ItemEvidence, level: float = 0.95) -> ShrunkenMeans:
        """Return (5) for these items, each by itself, but do not widen their intervals."""
        valid_interval_level_or_raise(level)
        columns = np.full((3, len(evidence.mean)), np.nan)
        known = np.flatnonzero(np.isfinite(evidence.mean))
        for start in range(0, len(known), _ITEMS_PER_BLOCK):
            block = known[start : start + _ITEMS_PER_BLOCK]
            columns[:, block] = self._shrunken_scores_and_interval_ends_of_block(evidence.select_items(block), level)
        return ShrunkenMeans(*columns)

    def _shrunken_scores_and_interval_ends_of_block(
        self, evidence: ItemEvidence, level: float
    ) -> tuple[Array, Array, Array]:
        middles, mean = _bin_middles(), evidence.mean[:, None]
        error = np.sqrt(np.interp(mean, middles, self.variances) / evidence.judgments[:, None])
        places = mean + error * _ERRORS_FROM_MEAN
        log_likelihood = evidence.log_likelihood(places, np.interp(places, middles, self.variances))
        density = np.interp(places, middles, self.shares) + _SMALLEST
        on_scale = (places >= 0) & (places <= 1)
        weight = np.where(on_scale, np.exp(log_likelihood) * error * density * _PLACE_WIDTHS, 0.0)
        weight /= weight.sum(axis=1, keepdims=True)
        low, high = _interval_of_mass(places, weight.cumsum(axis=1) - weight / 2, level)
        return (weight * places).sum(axis=1), low, high


@dataclass(frozen=True, slots=True, eq=False)
class ItemShrinkage:
    """Means of N items with plain intervals, the evidence about them, and the prior (4) that shrinks them."""

    means: ModeratedMeans
    evidence: ItemEvidence
    prior: ItemPrior

    def shrink_items(self, items: npt.ArrayLike, level: float = 0.95) -> ShrunkenMeans:
        """Return the shrunken scores of some items, by their numbers, in this order."""
        plain_low, plain_high = self.means.select_items(items).interval(level)
        found = self.prior.shrink(self.evidence.select_items(items), level)
        scale_low, scale_high = self.means.scale or (0.0, 1.0)
        width = scale_high - scale_low
        stretch = np.maximum(1.0, (plain_high - plain_low) / width / (found.high - found.low))
        ends = (np.clip(found.score + stretch * (end - found.score), 0, 1) for end in (found.low, found.high))
        return ShrunkenMeans(*(scale_low + width * column for column in (found.score, *ends)))


def fit_item_shrinkage(tally: Tally, scale: ScoreBounds = (0.0, 1.0)) -> ItemShrinkage:
    """Return the means, the evidence and (4) from the judgments of all items, with scores on this scale."""
    variances = ItemVariances.variances_of_tally_or_none(tally, scale)
    means = moderated_means_with_variances(tally, variances, scale)
    effective_judgments = tally.judgments**2 / np.maximum(tally.repeats, 1)
    if variances is None:
        no_mean, no_squares = np.full(len(means.mean), np.nan), np.zeros(len(means.mean))
        flat = np.full(_BIN_COUNT, 1 / _BIN_COUNT)
        return ItemShrinkage(means, ItemEvidence(no_mean, effective_judgments, no_squares, 1.0), ItemPrior(flat, flat))
    low, width, squares = scale[0], scale[1] - scale[0], variances.squares
    freedom = min(variances.strength, means.degrees_of_freedom_limit)
    evidence = ItemEvidence((means.mean - low) / width, effective_judgments, squares / width**2, freedom)
    at_bins = prior_variances_at_shares(_bin_middles(), tally, squares, variances.freedom, scale)
    return ItemShrinkage(means, evidence, estimate_item_prior(evidence, at_bins / width**2))


def shrink_means_to_prior(tally: Tally, scale: ScoreBounds = (0.0, 1.0), level: float = 0.95) -> ShrunkenMeans:
    """Return the shrunken scores of all items, and intervals that hold the true means with this probability."""
    return fit_item_shrinkage(tally, scale).shrink_items(np.arange(len(tally.judgments)), level)


def estimate_item_prior(evidence: ItemEvidence, base_variances: Array) -> ItemPrior:
    """Return (2) and (4), from at most `_MAX_ITEMS_FOR_PRIOR` items that are spread over all.

    Args:
        evidence: Judgments of the items, of which at least one has an error.
        base_variances: (B,) v(x) where few items are near x: that of `moderated_means`.

    """
    known = np.flatnonzero(np.isfinite(evidence.mean))
    if len(known) > _MAX_ITEMS_FOR_PRIOR:
        known = known[np.linspace(0, len(known) - 1, _MAX_ITEMS_FOR_PRIOR).astype(np.intp)]
    items = evidence.select_items(known)
    shares, variances, smoothing = np.zeros(0), base_variances, _smoothing_matrix()
    for _ in range(_ROUNDS):
        likelihood = _likelihood_of_each_bin(items, variances)
        base = _prior_share_of_each_bin_before_smoothing(likelihood)
        shares = shares if len(shares) else base
        for _ in range(_ITERATIONS_PER_ROUND):
            expected = _posterior_of_each_bin(likelihood, shares).sum(axis=0)
            shares = (smoothing @ expected + BASE_ITEMS * base) / (len(known) + BASE_ITEMS)
        posterior = _posterior_of_each_bin(likelihood, shares)
        variances = _variance_of_each_bin(items, posterior, base, base_variances)
    return ItemPrior(shares, variances)


def _posterior_of_each_bin(likelihood: Array, shares: Array) -> Array:
    """Return likelihood times prior, (n, B), with the sum 1 for each item."""
    product = likelihood * shares
    posterior: Array = product / product.sum(axis=1, keepdims=True)
    return posterior


def _variance_of_each_bin(items: ItemEvidence, posterior: Array, base: Array, base_variances: Array) -> Array:
    """Return (2), (B,), from the posterior of each item over bins, (n, B); the base counts as `BASE_ITEMS` items."""
    smoothing, judgments = _smoothing_matrix(), items.judgments[:, None]
    squares = items.squares[:, None] + judgments * (items.mean[:, None] - _bin_middles()) ** 2
    base_judgments = BASE_ITEMS * items.judgments.mean() * base
    total = smoothing @ (posterior * squares).sum(axis=0) + base_judgments * base_variances
    variances: Array = total / (smoothing @ (posterior * judgments).sum(axis=0) + base_judgments)
    return variances


def _likelihood_of_each_bin(evidence: ItemEvidence, variances: Array) -> Array:
    """Return (1) in each bin, (n, B), in units of each item's largest; a bin's width adds to the item's error."""
    bin_variance = evidence.judgments[:, None] / (12 * _BIN_COUNT**2)
    log_likelihood = evidence.log_likelihood(_bin_middles()[None, :], variances + bin_variance)
    likelihood: Array = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    return np.maximum(likelihood, _SMALLEST)


def _prior_share_of_each_bin_before_smoothing(likelihood: Array) -> Array:
    """Return (3), (B,)."""
    shares = _beta_share_in_each_bin()
    log_weight = np.log(likelihood @ shares).sum(axis=0)
    weight = np.exp(log_weight - log_weight.max())
    base: Array = shares @ (weight / weight.sum())
    return base


def _bin_middles() -> Array:
    middles: Array = (np.arange(_BIN_COUNT) + 0.5) / _BIN_COUNT
    return middles


@lru_cache(maxsize=1)
def _beta_share_in_each_bin() -> Array:
    """Return the share of each Beta distribution of the grid in each bin, (B, distributions)."""
    mean, concentration = (grid.ravel() for grid in np.meshgrid(_PRIOR_MEANS, _PRIOR_CONCENTRATIONS))
    edges = np.linspace(0, 1, _BIN_COUNT + 1)[:, None]
    shares = np.maximum(np.diff(betainc(mean * concentration, (1 - mean) * concentration, edges), axis=0), _SMALLEST)
    total: Array = shares / shares.sum(axis=0)
    return total


@lru_cache(maxsize=1)
def _smoothing_matrix() -> Array:
    """Return a Normal kernel over bins, reflected at the ends of the scale, that keeps the sum: (B, B)."""
    middles = _bin_middles()

    def kernel(centres: Array) -> Array:
        values: Array = np.exp(-(((middles[:, None] - centres) / _SMOOTHING_WIDTH) ** 2) / 2)
        return values

    smoothing = kernel(middles) + kernel(-middles) + kernel(2 - middles)
    matrix: Array = smoothing / smoothing.sum(axis=0)
    return matrix


def _interval_of_mass(places: Array, below: Array, level: float) -> tuple[Array, Array]:
    """Return the central interval of each row, up to an end of the scale if as much mass from there is shorter."""
    tail = (1 - level) / 2
    low, high = (np.clip(_quantiles(places, below, at), 0, 1) for at in (tail, 1 - tail))
    from_start, to_end = (np.clip(_quantiles(places, below, at), 0, 1) for at in (level, 2 * tail))
    reaches_start, reaches_end = from_start < high - low, 1 - to_end < high - low
    return np.where(reaches_start, 0.0, low), np.where(reaches_end, 1.0, high)


def _quantiles(places: Array, below: Array, probability: float) -> Array:
    """Interpolate the place below which each row has this probability."""
    after = np.clip((below < probability).sum(axis=1), 1, below.shape[1] - 1)
    rows: Integers = np.arange(len(below))
    start, end = below[rows, after - 1], below[rows, after]
    step = np.divide(probability - start, end - start, out=np.zeros(len(rows)), where=end > start)
    place: Array = places[rows, after - 1] + np.clip(step, 0, 1) * (places[rows, after] - places[rows, after - 1])
    return place
