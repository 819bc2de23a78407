"""Direct assessment: each item's score is the mean of its judgments (Sakaguchi & Van Durme 2018, section 2).

`fit` for scores on a continuous scale, `ordinal` for labelled points, `standardised` for scores whose annotators
differ in strictness and in how much of the scale they use, as in WMT (Graham et al. 2013). Intervals are those of
`moderated`: a bootstrap over an item's own few judgments would hold the true mean far too seldom.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers, checked_level
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.long_form import check_equal_length, finite, numbered
from app.inference.ground.notes import Note
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated import Moderated, Scale, moderated

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DirectAssessment:
    """What the judgments of each of N items say of it.

    score: the mean, on the judgments' own scale, (N,). judgments: how many there are, (N,). estimable: where there is
    one at least, (N,). standard_error, low, high: (N,), from the item's own disagreement and that of all items, see
    `moderated`; so an item with one judgment has them too. NaN where there is no figure; notes say so in sentences.
    """

    score: Array
    standard_error: Array
    low: Array
    high: Array
    judgments: Integers
    estimable: Mask
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class MeanAndMedian:
    """`mean` of the labels 0..K-1 as if they were equally far apart, and `median`, which needs only their order, (N,).

    The median of an even number of judgments is midway between the two in the middle. standard_error, low, high: of
    the median, (N,): those of the mean, times how much further medians of so many Normal judgments vary.
    """

    mean: DirectAssessment
    median: Array
    standard_error: Array
    low: Array
    high: Array


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
    scale: Scale | None = None,
    level: float = 0.95,
) -> DirectAssessment:
    """Mean, standard error and interval per item; all judgments count alike, whoever gave them.

    items, annotators: (T,) integers from 0; scores: (T,) finite numbers. scale: the lowest and the highest score that
    there can be, None if there are no bounds; intervals are cut to it. Time and memory are linear in T.
    Raises ValueError for arrays that cannot be or a level outside (0, 1), `Inestimable` (`no_judgments`).
    """
    items, annotators, values, count, _ = _checked(items, annotators, scores, n_items, n_annotators)
    return _assessed(items, annotators, values, count, scale=scale, level=level)[0]


def ordinal(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_labels: int | None = None,
    level: float = 0.95,
) -> MeanAndMedian:
    """Mean and median label per item. labels: (T,) integers 0..n_labels - 1, from lowest to highest; else as `fit`."""
    labels, label_count = numbered("labels", labels, n_labels)
    items, annotators, values, count, _ = _checked(items, annotators, labels, n_items, n_annotators)
    scale = (0.0, label_count - 1.0) if label_count > 1 else None
    mean, found = _assessed(items, annotators, values, count, scale=scale, level=level)
    median, error = _medians(items, labels, mean.judgments), found.standard_error * _wider(mean.judgments)
    low, high = replace(found, mean=median, standard_error=error).interval(level)
    return MeanAndMedian(mean, median, error, low, high)


def standardised(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    level: float = 0.95,
) -> Standardised:
    """Direct assessment of z = (score - annotator's mean) / annotator's standard deviation (Graham et al. 2013, WMT).

    The deviation has m - 1 degrees of freedom. An annotator with one judgment, or who always gave the same score, has
    no z-scores: those judgments are left out, and a note says how many. It assumes that annotators saw items that are
    alike on the whole: who saw only good ones is taken for mild. Intervals hold the mean of what all annotators would
    give in z-scores; an error in one annotator's mean is part of how far annotators differ. Arrays and errors as for
    `fit`; also `Inestimable` (`nothing_varies`) if nobody has z-scores.
    """
    items, annotators, values, count, annotator_count = _checked(items, annotators, scores, n_items, n_annotators)
    mean, sd, given = _spread(annotators, values, annotator_count)
    usable = np.nan_to_num(sd) > 0.0
    if len(items) and not usable.any():
        raise Inestimable(
            "No annotator has two different scores, so no scores can be standardised.", code="nothing_varies"
        )
    kept = usable[annotators]
    who = annotators[kept]
    z = (values[kept] - mean[who]) / sd[who]
    scored, _ = _assessed(items[kept], who, z, count, scale=None, level=level, notes=_left_out(given, usable))
    return Standardised(scored, mean, sd, usable)


def _checked(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    n_items: int | None,
    n_annotators: int | None,
) -> tuple[Integers, Integers, Array, int, int]:
    """The judgments as arrays, and how many items and annotators there are."""
    items, item_count = numbered("items", items, n_items)
    annotators, annotator_count = numbered("annotators", annotators, n_annotators)
    values = finite("scores", scores)
    check_equal_length(items=items, annotators=annotators, scores=values)
    return items, annotators, values, item_count, annotator_count


def _assessed(
    items: Integers,
    annotators: Integers,
    values: Array,
    count: int,
    *,
    scale: Scale | None,
    level: float,
    notes: tuple[Note, ...] = (),
) -> tuple[DirectAssessment, Moderated]:
    checked_level(level)
    if not len(items):
        raise Inestimable("There are no judgments yet.", code="no_judgments")
    mean, _, judgments = _spread(items, values, count)
    tally = Tally.nothing(count).after(items, annotators, values)
    found = replace(moderated(tally, scale), mean=mean)
    low, high = found.interval(level)
    notes = (*notes, *_notes(tally, found))
    return DirectAssessment(mean, found.standard_error, low, high, judgments, judgments > 0, notes), found


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


def _medians(items: Integers, labels: Integers, judgments: Integers) -> Array:
    ordered = labels[np.lexsort((labels, items))]
    first, seen = np.cumsum(judgments) - judgments, judgments > 0
    median = np.full(len(judgments), np.nan)
    lower, upper = first + (judgments - 1) // 2, first + judgments // 2
    median[seen] = (ordered[lower[seen]] + ordered[upper[seen]]) / 2.0
    return median


def _wider(judgments: Integers) -> Array:
    """The standard error of the median of n Normal judgments, as a ratio to that of their mean: 1 for n of 1 and 2,
    then, to 1 %, sqrt(pi / 2 n / (n + h)), h being 1/2 for an odd number and 6/5 for an even one.
    """
    n = np.maximum(judgments, 1)
    ratio: Array = np.sqrt(np.pi / 2.0 * n / (n + np.where(n % 2 == 1, 0.5, 1.2)))
    return np.where(n <= 2, 1.0, ratio)


def _notes(tally: Tally, found: Moderated) -> tuple[Note, ...]:
    unseen, single = int((tally.judgments == 0).sum()), int((tally.judgments == 1).sum())
    again = int((tally.judgments > tally.annotators).sum())
    notes = []
    if unseen:
        notes.append(Note("no_score", f"{_items(unseen, 'has', 'have')} no judgment, and so no score."))
    if np.isnan(found.standard_error).all():
        notes.append(_nothing_told(tally))
    elif single:
        sentence = f"{_items(single, 'has', 'have')} one judgment: how far off it may be is taken from the others."
        notes.append(Note("one_judgment", sentence))
    if again:
        sentence = f"{_items(again, 'was', 'were')} judged again by the same annotator, which narrows no interval."
        notes.append(Note("judged_again", sentence))
    return tuple(notes)


def _nothing_told(tally: Tally) -> Note:
    """Why no item has an interval."""
    alone = tally.annotators.max() < 2
    why = "No item was judged by two annotators" if alone else "Annotators never gave an item different scores"
    return Note("no_intervals", f"{why}, so nothing tells how far they differ: there are no intervals.")


def _items(count: int, one: str, more: str) -> str:
    return f"1 item {one}" if count == 1 else f"{count:,} items {more}"


def _left_out(given: Integers, usable: Mask) -> tuple[Note, ...]:
    """What is said of annotators without z-scores, given how many judgments each gave."""
    notes = []
    for left, why in ((given == 1, "gave one judgment"), ((given > 1) & ~usable, "always gave the same score")):
        if annotators := int(left.sum()):
            who, lost = f"{annotators:,} annotator" + "s" * (annotators > 1), int(given[left].sum())
            judgments = f"{lost:,} judgment" + "s" * (lost > 1)
            sentence = f"{who} {why}, which cannot be standardised: {judgments} left out."
            notes.append(Note("not_standardised", sentence))
    return tuple(notes)
