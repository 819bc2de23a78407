"""Scores and intervals that stay right for items chosen by their scores: means shrunk towards those of all items.

A rule that asks more about promising items, or a list of the best items, favours items that were lucky: their means are
too high (the winner's curse). A posterior is not affected, however its data were chosen (Berger & Wolpert 1988, the
stopping rule principle), as long as its prior is that of the items. So the prior is estimated from all items (empirical
Bayes), and by its likelihood, since moments of the means do depend on which items were asked about:

    (1)  likelihood of item i at place x: that of `moderated_means`, the t density of (m_i - x) / error_i, with
         `TYPICAL_JUDGMENTS` more for the item's variance, so that lucky items do not seem surer than others;
    (2)  base:   Beta distributions of all means and concentrations on a grid, each weighted by its likelihood, so that
                 few items leave the prior wide;
    (3)  prior:  the base counts as `BASE_ITEMS` items, and the items themselves correct its shape: expectation
                 maximisation with smoothing (Silverman, Jones, Nychka & Wilson 1990);
    (4)  score:  the mean of the posterior, likelihood times prior; interval: its central mass, up to an end of the
         scale if as much mass from that end is shorter, for all may agree on the very end.
         It is widened to the width of the plain interval: the prior moves it, but may be too sure of itself.

`python -m benchmarks.coverage_under_rules` measures how often these intervals hold the truth.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, stdtr

from app.inference.ground.arrays import Array, Integers, valid_interval_level_or_raise
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import ModeratedMeans, ScoreBounds, moderated_means_of_tally

BASE_ITEMS, TYPICAL_JUDGMENTS = 20.0, 3.0
_BIN_COUNT, _SMOOTHING_WIDTH, _ITERATIONS = 100, 0.05, 60  # the width is a share of the scale
_PRIOR_MEANS = (np.arange(40) + 0.5) / 40
_PRIOR_CONCENTRATIONS = np.geomspace(0.5, 500, 16)
_MAX_ITEMS_FOR_PRIOR, _ITEMS_PER_BLOCK = 2_000, 10_000
_SMALLEST = 1e-12
# Places of the posterior around the mean, in errors: dense where intervals end, far enough for 4 degrees of freedom.
_FAR_PLACES = np.geomspace(4.1, 12.0, 12)
_ERRORS_FROM_MEAN = np.concatenate((-_FAR_PLACES[::-1], np.linspace(-4.0, 4.0, 161), _FAR_PLACES))
_PLACE_WIDTHS = np.gradient(_ERRORS_FROM_MEAN)


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkenMeans:
    """Shrunken scores of N items and their intervals, (N,) each; NaN for an item without an error."""

    score: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True, eq=False)
class ItemPrior:
    """Distribution of the items' true means over equal bins of the scale: (B,), with the sum 1."""

    shares: Array

    def shrink(self, means: ModeratedMeans, level: float = 0.95) -> ShrunkenMeans:
        """Return (4) for these items, each by itself."""
        valid_interval_level_or_raise(level)
        columns = np.full((3, len(means.mean)), np.nan)
        known = np.flatnonzero(np.isfinite(means.standard_error))
        for start in range(0, len(known), _ITEMS_PER_BLOCK):
            block = known[start : start + _ITEMS_PER_BLOCK]
            columns[:, block] = self._shrink_block(means.select_items(block), level)
        return ShrunkenMeans(*columns)

    def _shrink_block(self, means: ModeratedMeans, level: float) -> tuple[Array, Array, Array]:
        mean, error, freedom = _means_errors_and_freedom_on_unit_scale(means)
        places = mean[:, None] + error[:, None] * _ERRORS_FROM_MEAN
        likelihood = (1 + _ERRORS_FROM_MEAN**2 / freedom[:, None]) ** (-(freedom[:, None] + 1) / 2)
        density = np.interp(places, _bin_middles(), self.shares) + _SMALLEST
        weight = np.where((places >= 0) & (places <= 1), likelihood * density * _PLACE_WIDTHS, 0.0)
        weight /= weight.sum(axis=1, keepdims=True)
        below = weight.cumsum(axis=1) - weight / 2
        score, ends = (weight * places).sum(axis=1), _interval_of_mass(places, below, level)
        low, high = means.scale or (0.0, 1.0)
        plain_low, plain_high = means.interval(level)
        stretch = np.maximum(1.0, (plain_high - plain_low) / (high - low) / (ends[1] - ends[0]))
        start, end = (np.clip(score + stretch * (at - score), 0, 1) for at in ends)
        return low + (high - low) * score, low + (high - low) * start, low + (high - low) * end


@dataclass(frozen=True, slots=True, eq=False)
class ItemShrinkage:
    """Means of N items as in (1), and the prior (3) that shrinks them."""

    means: ModeratedMeans
    prior: ItemPrior

    def shrink_items(self, items: npt.ArrayLike, level: float = 0.95) -> ShrunkenMeans:
        """Return the shrunken scores of some items, by their numbers, in this order."""
        return self.prior.shrink(self.means.select_items(items), level)


def fit_item_shrinkage(tally: Tally, scale: ScoreBounds = (0.0, 1.0)) -> ItemShrinkage:
    """Return (1) and (3) from the judgments of all items, with scores on this scale."""
    means = moderated_means_of_tally(tally, scale, typical_judgments=TYPICAL_JUDGMENTS)
    return ItemShrinkage(means, estimate_item_prior(means))


def shrink_means_to_prior(tally: Tally, scale: ScoreBounds = (0.0, 1.0), level: float = 0.95) -> ShrunkenMeans:
    """Return the shrunken scores of all items, and intervals that hold the true means with this probability."""
    return fit_item_shrinkage(tally, scale).shrink_items(np.arange(len(tally.judgments)), level)


def estimate_item_prior(means: ModeratedMeans) -> ItemPrior:
    """Return (3), from at most `_MAX_ITEMS_FOR_PRIOR` items that are spread over all; flat without any."""
    if means.scale is None:
        raise ValueError("Means without a scale have no prior on it.")
    known = np.flatnonzero(np.isfinite(means.standard_error))
    if len(known) > _MAX_ITEMS_FOR_PRIOR:
        known = known[np.linspace(0, len(known) - 1, _MAX_ITEMS_FOR_PRIOR).astype(np.intp)]
    if not len(known):
        return ItemPrior(np.full(_BIN_COUNT, 1 / _BIN_COUNT))
    likelihood = _likelihood_of_each_bin(means.select_items(known))
    base = _prior_share_of_each_bin_before_smoothing(likelihood)
    shares, smoothing = base, _smoothing_matrix()
    for _ in range(_ITERATIONS):
        expected = likelihood * shares
        expected /= expected.sum(axis=1, keepdims=True)
        shares = (smoothing @ expected.sum(axis=0) + BASE_ITEMS * base) / (len(known) + BASE_ITEMS)
    return ItemPrior(shares)


def _means_errors_and_freedom_on_unit_scale(means: ModeratedMeans) -> tuple[Array, Array, Array]:
    """Return mean, error and degrees of freedom, on a scale from 0 to 1."""
    low, high = means.scale or (0.0, 1.0)
    return (means.mean - low) / (high - low), means.standard_error / (high - low), means.freedom


def _likelihood_of_each_bin(means: ModeratedMeans) -> Array:
    """Return (1) integrated over each bin, (n, B)."""
    mean, error, freedom = _means_errors_and_freedom_on_unit_scale(means)
    edges = np.linspace(0, 1, _BIN_COUNT + 1)
    below = stdtr(freedom[:, None], (edges - mean[:, None]) / error[:, None])
    return np.maximum(np.diff(below, axis=1), _SMALLEST)


def _prior_share_of_each_bin_before_smoothing(likelihood: Array) -> Array:
    """Return (2), (B,)."""
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
