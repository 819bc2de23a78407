"""Histograms of values: counts in each tenth of a scale, or of each class."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.designs.design import Design
from app.inference.ground.arrays import Array, Integers

HISTOGRAM_BINS = 10


def histogram_bin_count_or_zero(design: Design) -> int:
    """Return the number of bins: one per class, tenths of the scale otherwise, 0 for orders."""
    return 0 if design.value_kind == "order" else len(design.classes) or HISTOGRAM_BINS


def histogram_bin_of_each_value(design: Design, values: Array, hit_index: Integers) -> Integers:
    """Return the bin of each value, (J,). `hit_index` says which values were given together, (J,)."""
    positions = values if design.classes else design.values_to_points(values, hit_index) * HISTOGRAM_BINS / 100.0
    return np.clip(positions, 0, histogram_bin_count_or_zero(design) - 1).astype(np.intp)


def value_counts_of_bins(design: Design, values: npt.ArrayLike, hit_index: Sequence[int]) -> list[int]:
    """Return how many values are in each bin; an empty list for orders. Values that are NaN are left out."""
    all_values, hits = np.asarray(values, np.float64), np.asarray(hit_index, np.intp)
    is_judged = ~np.isnan(all_values)
    bin_count = histogram_bin_count_or_zero(design)
    if not bin_count:
        return []
    if not is_judged.any():
        return [0] * bin_count
    bins = histogram_bin_of_each_value(design, all_values[is_judged], hits[is_judged])
    return [int(count) for count in np.bincount(bins, minlength=bin_count)]
