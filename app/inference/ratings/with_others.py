"""Correlation of each annotator's scores with the mean of the other annotators' scores of the same items."""

from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.long_form import sums

MIN_SHARED = 3
"""Judgments on items that others have judged too, below which a correlation says nothing."""


class CorrelationsWithOthers(NamedTuple):
    """correlation: (A,) Pearson's, NaN below `MIN_SHARED` and where either side does not vary. shared: (A,) judgments
    of items that others have judged, too.
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
    """Return how far each annotator goes with the others. An annotator's own other judgments of an item do not count.

    Args:
        item: (J,) in 0..n_items - 1.
        annotator: (J,) in 0..n_annotators - 1.
        score: (J,) on 0 to 1.
        n_items: of all, judged or not.
        n_annotators: A.

    """
    same = np.unique(item * n_annotators + annotator, return_inverse=True)[1]
    total, count = (
        sums(item, values, n_items)[item] - sums(same, values, len(same))[same]
        for values in (score, np.ones(len(score)))
    )
    heard = count > 0.5
    who, x, y = annotator[heard], score[heard], total[heard] / count[heard]
    shared = np.bincount(who, minlength=n_annotators)
    n = np.where(shared >= MIN_SHARED, shared, np.nan)
    x, y = (values - (sums(who, values, n_annotators) / n)[who] for values in (x, y))
    spread = np.sqrt(sums(who, x * x, n_annotators) * sums(who, y * y, n_annotators))
    # Scores have steps of .01 or so; a spread below this is rounding.
    found = sums(who, x * y, n_annotators) / np.where(spread > 1e-9, spread, np.nan)
    return CorrelationsWithOthers(found, shared)
