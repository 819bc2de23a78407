"""Correlation of each annotator's scores with the mean of the other annotators' scores of the same items."""

from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.validation import sum_values_of_each_number

MIN_SHARED_JUDGMENTS = 3
"""Fewest judgments on items that others have judged too: with fewer, a correlation says nothing."""


class CorrelationsWithOthers(NamedTuple):
    """Correlation of each annotator with the others.

    Attributes:
        correlation: (A,) Pearson's, NaN below `MIN_SHARED_JUDGMENTS` and where either side does not vary.
        shared: (A,) judgments of items that others have judged, too.

    """

    correlation: Array
    shared: Integers


def fit(
    item: Integers,
    annotator: Integers,
    score: Array,
    *,
    n_items: int,
    n_annotators: int,
) -> CorrelationsWithOthers:
    """Return each annotator's correlation with the others. An annotator's own other judgments of an item do not count.

    Args:
        item: (J,) in 0..n_items - 1.
        annotator: (J,) in 0..n_annotators - 1.
        score: (J,) on 0 to 1.
        n_items: The number of all items, judged or not.
        n_annotators: A.

    """
    same = np.unique(item * n_annotators + annotator, return_inverse=True)[1]
    total, count = (
        sum_values_of_each_number(item, values, n_items)[item]
        - sum_values_of_each_number(same, values, len(same))[same]
        for values in (score, np.ones(len(score)))
    )
    has_others = count > 0.5
    shared_annotators, x, y = annotator[has_others], score[has_others], total[has_others] / count[has_others]
    shared = np.bincount(shared_annotators, minlength=n_annotators)
    n = np.where(shared >= MIN_SHARED_JUDGMENTS, shared, np.nan)
    x, y = (
        values - (sum_values_of_each_number(shared_annotators, values, n_annotators) / n)[shared_annotators]
        for values in (x, y)
    )
    spread = np.sqrt(
        sum_values_of_each_number(shared_annotators, x * x, n_annotators)
        * sum_values_of_each_number(shared_annotators, y * y, n_annotators)
    )
    # Scores have steps of .01 or so; a spread below this is rounding.
    correlation = sum_values_of_each_number(shared_annotators, x * y, n_annotators) / np.where(
        spread > 1e-9, spread, np.nan
    )
    return CorrelationsWithOthers(correlation, shared)
