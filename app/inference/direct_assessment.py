"""Direct assessment: each item's score is the mean of its judgments (Sakaguchi & Van Durme 2018, section 2).

`fit` for scores on a continuous scale, `ordinal` for labelled points, `standardised` for scores whose annotators
differ in strictness and in how much of the scale they use, as in WMT (Graham et al. 2013).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.bootstrap import DRAWS
from app.inference.inestimable import Inestimable
from app.inference.law import Array, checked_level
from app.inference.long_form import Integers, check_equal_length, finite, numbered

Mask = npt.NDArray[np.bool_]

_CELLS = 2_000_000  # numbers held at once while judgments are drawn again


@dataclass(frozen=True, slots=True)
class DirectAssessment:
    """What the judgments of each of N items say of it.

    score: the mean, on the judgments' own scale, (N,). judgments: how many there are, (N,). estimable: where there is
    one at least, (N,). standard_error: s / sqrt(m), with s of m - 1 degrees of freedom, and low, high: the bootstrap
    interval, (N,); both need two judgments. NaN where there is no figure; notes say so in sentences.
    """

    score: Array
    standard_error: Array
    low: Array
    high: Array
    judgments: Integers
    estimable: Mask
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ordinal:
    """`mean` of the labels 0..K-1 as if they were equally far apart, and `median`, which needs only their order, (N,).

    The median of an even number of judgments is midway between the two in the middle.
    """

    mean: DirectAssessment
    median: Array


@dataclass(frozen=True, slots=True)
class Standardised:
    """`scores`: direct assessment of z-scores, in standard deviations of an annotator.

    annotator_mean, annotator_sd: of each annotator's judgments, (J,), NaN where there are none, the deviation also
    where there is one. usable: whose judgments have a z-score, (J,).
    """

    scores: DirectAssessment
    annotator_mean: Array
    annotator_sd: Array
    usable: Mask


def fit(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> DirectAssessment:
    """Mean, standard error and bootstrap interval per item; all judgments count alike, whoever gave them.

    items, annotators: (T,) integers from 0; scores: (T,) finite numbers. The interval holds `level` of the means of
    `draws` draws of an item's m judgments out of themselves, with replacement; it is too narrow by about
    sqrt(1 - 1 / m), so that of few judgments it is a lower bound. Time grows with draws times T, memory does not.
    Raises ValueError for arrays that cannot be, a level outside (0, 1) or fewer than 0 draws, `Inestimable`
    (`no_judgments`).
    """
    items, count = numbered("items", items, n_items)
    annotators, _ = numbered("annotators", annotators, n_annotators)
    values = finite("scores", scores)
    check_equal_length(items=items, annotators=annotators, scores=values)
    return _assessed(items, values, count, draws=draws, level=level, rng=rng)


def ordinal(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_labels: int | None = None,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Ordinal:
    """Mean and median label per item. labels: (T,) integers 0..n_labels - 1, from lowest to highest; else as `fit`."""
    labels, _ = numbered("labels", labels, n_labels)
    mean = fit(items, annotators, labels, n_items=n_items, n_annotators=n_annotators, draws=draws, level=level, rng=rng)
    return Ordinal(mean, _medians(np.asarray(items, dtype=np.intp), labels, mean.judgments))


def standardised(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Standardised:
    """Direct assessment of z = (score - annotator's mean) / annotator's standard deviation (Graham et al. 2013, WMT).

    The deviation has m - 1 degrees of freedom. An annotator with one judgment, or who always gave the same score, has
    no z-scores: those judgments are left out, and a note says how many. It assumes that annotators saw items that are
    alike on the whole: who saw only good ones is taken for mild. The intervals take each annotator's mean and
    deviation as known. Arrays and errors as for `fit`; also `Inestimable` (`nothing_varies`) if nobody has z-scores.
    """
    items, count = numbered("items", items, n_items)
    annotators, annotator_count = numbered("annotators", annotators, n_annotators)
    values = finite("scores", scores)
    check_equal_length(items=items, annotators=annotators, scores=values)
    mean, sd, given = _spread(annotators, values, annotator_count)
    usable = np.nan_to_num(sd) > 0.0
    if len(items) and not usable.any():
        raise Inestimable(
            "No annotator has two different scores, so no scores can be standardised.", code="nothing_varies"
        )
    kept = usable[annotators]
    z = (values[kept] - mean[annotators[kept]]) / sd[annotators[kept]]
    notes = _left_out(given, usable)
    scored = _assessed(items[kept], z, count, draws=draws, level=level, rng=rng, notes=notes)
    return Standardised(scored, mean, sd, usable)


def _assessed(
    items: Integers,
    values: Array,
    count: int,
    *,
    draws: int,
    level: float,
    rng: np.random.Generator,
    notes: tuple[str, ...] = (),
) -> DirectAssessment:
    checked_level(level)
    if draws < 0:
        raise ValueError(f"the number of draws must be at least 0, not {draws}")
    if not len(items):
        raise Inestimable("There are no judgments yet.", code="no_judgments")
    mean, sd, judgments = _spread(items, values, count)
    low, high = _intervals(items, values, judgments, draws=draws, level=level, rng=rng)
    return DirectAssessment(
        score=mean,
        standard_error=sd / np.sqrt(np.maximum(judgments, 1)),
        low=low,
        high=high,
        judgments=judgments,
        estimable=judgments > 0,
        notes=notes + _notes(judgments, sd),
    )


def _spread(groups: Integers, values: Array, count: int) -> tuple[Array, Array, Integers]:
    """Mean, standard deviation and number of the values of each of `count` groups, NaN where there is none."""
    numbers = np.bincount(groups, minlength=count)
    least = np.full(count, np.inf)
    np.minimum.at(least, groups, values)
    # Differences from a group's lowest value: so equal values have a deviation of 0, not one of rounding.
    above = values - least[groups]
    mean = _per(np.bincount(groups, weights=above, minlength=count), numbers)
    squares = np.bincount(groups, weights=(above - mean[groups]) ** 2, minlength=count)
    mean_of_values = np.where(numbers > 0, least + mean, np.nan)
    return mean_of_values, np.sqrt(_per(squares, numbers - 1)), numbers


def _per(totals: npt.NDArray[Any], numbers: Integers) -> Array:
    """The quotient, NaN where the number is not above 0."""
    quotient: Array = np.divide(totals, numbers, out=np.full(len(totals), np.nan), where=numbers > 0)
    return quotient


def _intervals(
    items: Integers, values: Array, judgments: Integers, *, draws: int, level: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Percentiles of the means of each item's judgments drawn again; a block of items at a time, no item by itself."""
    low, high = np.full(len(judgments), np.nan), np.full(len(judgments), np.nan)
    several = np.flatnonzero(judgments >= 2)
    if not draws or not len(several):
        return low, high
    ordered = values[np.argsort(items, kind="stable")]
    first = (np.cumsum(judgments) - judgments)[several]
    block = (np.cumsum(judgments[several]) - 1) * draws // _CELLS
    for number in np.unique(block):
        here = block == number
        means = _drawn_means(ordered, first[here], judgments[several[here]], draws, rng)
        low[several[here]], high[several[here]] = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _drawn_means(values: Array, first: Integers, numbers: Integers, draws: int, rng: np.random.Generator) -> Array:
    """Means of `numbers` values drawn from those that start at `first`, (draws, items)."""
    size, starts = np.repeat(numbers, numbers), np.cumsum(numbers) - numbers
    means = np.empty((draws, len(numbers)))
    at_once = max(1, _CELLS // len(size))  # one item may have more judgments than are held at once
    for start in range(0, draws, at_once):
        rows = min(at_once, draws - start)
        drawn = (rng.random((rows, len(size))) * size).astype(np.intp) + np.repeat(first, numbers)
        means[start : start + rows] = np.add.reduceat(values[drawn], starts, axis=1) / numbers
    return means


def _medians(items: Integers, labels: Integers, judgments: Integers) -> Array:
    ordered = labels[np.lexsort((labels, items))]
    first, seen = np.cumsum(judgments) - judgments, judgments > 0
    median = np.full(len(judgments), np.nan)
    lower, upper = first + (judgments - 1) // 2, first + judgments // 2
    median[seen] = (ordered[lower[seen]] + ordered[upper[seen]]) / 2.0
    return median


def _notes(judgments: Integers, sd: Array) -> tuple[str, ...]:
    unseen, single, alike = ((judgments == 0).sum(), (judgments == 1).sum(), (sd == 0.0).sum())
    notes = []
    if unseen:
        notes.append(f"{_items(unseen, 'has', 'have')} no judgment, and so no score.")
    if single:
        notes.append(
            f"{_items(single, 'has', 'have')} one judgment, and so a score without a standard error or interval."
        )
    if alike:
        notes.append(
            f"{_items(alike, 'was', 'were')} given the same score every time. A standard error of 0 says that no "
            "difference was seen, not that there is none."
        )
    return tuple(notes)


def _items(count: int, one: str, more: str) -> str:
    return f"1 item {one}" if count == 1 else f"{count:,} items {more}"


def _left_out(given: Integers, usable: Mask) -> tuple[str, ...]:
    """What is said of annotators without z-scores, given how many judgments each gave."""
    notes = []
    for left, why in ((given == 1, "gave one judgment"), ((given > 1) & ~usable, "always gave the same score")):
        if annotators := int(left.sum()):
            who, lost = f"{annotators:,} annotator" + "s" * (annotators > 1), int(given[left].sum())
            judgments = f"{lost:,} judgment" + "s" * (lost > 1)
            notes.append(f"{who} {why}, which cannot be standardised: {judgments} left out.")
    return tuple(notes)
