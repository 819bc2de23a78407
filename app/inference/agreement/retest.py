"""Test and retest: does an annotator who is asked the same again answer the same?"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.long_form import check_equal_length, finite, numbered, sums
from app.inference.ground.notes import Note
from app.inference.observations.comparisons import Booleans, checked


@dataclass(frozen=True, slots=True)
class ScoreRetest:
    """Scores given again, per annotator, (n_annotators,), NaN without repeats; pooled_...: all repeats together.

    repeats: times an item was scored again. same: share of them no further from the time before than the margin.
    shift: mean of new score minus old. error: standard error of measurement, sqrt(mean of squared differences / 2): how
    far one score is from the annotator's own long-run mean. correlation: Pearson, old with new; NaN for fewer
    than 3 repeats or where one side does not vary. estimable: whether there are repeats. notes: what is missing.
    """

    repeats: Integers
    same: Array
    shift: Array
    error: Array
    correlation: Array
    pooled_same: float
    pooled_shift: float
    pooled_error: float
    pooled_correlation: float
    estimable: Booleans
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class LabelRetest:
    """Labels given again, per annotator, (n_annotators,), NaN without repeats; pooled_...: all repeats together.

    repeats: times something was labelled again. same: share of them with the label of the time before. kappa: Cohen's,
    old with new, so beyond what an annotator's habits give by chance; NaN where old and new are one label throughout.
    estimable: whether there are repeats. notes: what is missing.
    """

    repeats: Integers
    same: Array
    kappa: Array
    pooled_same: float
    pooled_kappa: float
    estimable: Booleans
    notes: tuple[Note, ...]


def scores(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_annotators: int | None = None,
    margin: float = 0.0,
) -> ScoreRetest:
    """Compares every score with the one that the same annotator gave the same item the time before.

    (J,) each, in order of time; scores in [0, 1]. margin >= 0: how far apart two scores may be and still count as the
    same. Raises ValueError as `long_form` does, and Inestimable (code "no_repeats") if nobody scored anything twice.
    """
    items, _ = numbered("items", items)
    annotators, n_annotators = numbered("annotators", annotators, n_annotators)
    values = finite("scores", scores)
    check_equal_length(items=items, annotators=annotators, scores=values)
    before, again = _repeats(items, annotators)
    old, new, who = values[before], values[again], annotators[before]
    figures = _score_figures(old, new, who, n_annotators, margin)
    pooled = _score_figures(old, new, np.zeros_like(who), 1, margin)
    same, shift, error, correlation = (float(figure[0]) for figure in pooled)
    repeats = np.bincount(who, minlength=n_annotators)
    return ScoreRetest(repeats, *figures, same, shift, error, correlation, repeats > 0, _notes(repeats, annotators))


def labels(
    items: npt.ArrayLike, annotators: npt.ArrayLike, labels: npt.ArrayLike, *, n_annotators: int | None = None
) -> LabelRetest:
    """Compares every label with the one that the same annotator gave the same item the time before.

    (J,) each, in order of time; labels 0 to K - 1. Errors as `scores`.
    """
    items, _ = numbered("items", items)
    annotators, n_annotators = numbered("annotators", annotators, n_annotators)
    values, _ = numbered("labels", labels)
    check_equal_length(items=items, annotators=annotators, labels=values)
    before, again = _repeats(items, annotators)
    old, new, who = values[before], values[again], annotators[before]
    same, kappa = _label_figures(old, new, who, n_annotators)
    pooled_same, pooled_kappa = _label_figures(old, new, np.zeros_like(who), 1)
    repeats = np.bincount(who, minlength=n_annotators)
    return LabelRetest(
        repeats=repeats,
        same=same,
        kappa=kappa,
        pooled_same=float(pooled_same[0]),
        pooled_kappa=float(pooled_kappa[0]),
        estimable=repeats > 0,
        notes=(*_notes(repeats, annotators), *_kappa_note(kappa, repeats)),
    )


def pairs(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_annotators: int | None = None,
) -> LabelRetest:
    """Compares every judgment of a pair with the one that the same annotator made of it the time before.

    (J,) each, in order of time; outcomes +1, 0, -1. It does not matter which item is shown first. Errors as `scores`.
    """
    first, second, outcomes, n_items = checked(first, second, outcomes)
    pair = np.minimum(first, second) * n_items + np.maximum(first, second)
    return labels(pair, annotators, np.where(first < second, outcomes, -outcomes) + 1, n_annotators=n_annotators)


def _repeats(items: Integers, annotators: Integers) -> tuple[Integers, Integers]:
    """Positions of each judgment that has been made before, and of the last one before it."""
    order = np.lexsort((items, annotators))  # stable: within an annotator's item, time is kept
    again = (np.diff(items[order]) == 0) & (np.diff(annotators[order]) == 0)
    if not again.any():
        raise Inestimable("Nobody judged anything twice, so there is nothing to compare.", code="no_repeats")
    return order[:-1][again], order[1:][again]


def _score_figures(
    old: Array, new: Array, who: Integers, n_annotators: int, margin: float
) -> tuple[Array, Array, Array, Array]:
    mean = _Means(who, n_annotators)
    difference = new - old
    same = mean((np.abs(difference) <= margin + 1e-9).astype(np.float64))
    error = np.sqrt(mean(difference**2) / 2.0)
    x, y = old - mean(old)[who], new - mean(new)[who]
    spread = np.sqrt(mean(x**2) * mean(y**2))
    # Scores have steps of .01 or so; a spread below this is rounding.
    varied = (mean.count >= 3) & (spread > 1e-12)
    return same, mean(difference), error, mean(x * y) / np.where(varied, spread, np.nan)


def _label_figures(old: Integers, new: Integers, who: Integers, n_annotators: int) -> tuple[Array, Array]:
    mean = _Means(who, n_annotators)
    same = mean((old == new).astype(np.float64))
    # The mean over old labels of how common each is among the new: the sum over labels of both shares.
    chance = mean(mean.share(old, of=new))
    return same, (same - chance) / np.where(chance < 1.0 - 1e-12, 1.0 - chance, np.nan)


class _Means:
    """Means per annotator; NaN for one without values."""

    def __init__(self, who: Integers, n_annotators: int) -> None:
        self.who, self.count = who, np.bincount(who, minlength=n_annotators)
        self.divisor = np.where(self.count > 0, self.count, np.nan)

    def __call__(self, values: Array) -> Array:
        return sums(self.who, values, self.count.size) / self.divisor

    def share(self, labels: Integers, *, of: Integers) -> Array:
        """For each label, how often its annotator gave it among `of`."""
        n_labels = int(max(labels.max(), of.max())) + 1
        keys, times = np.unique(self.who * n_labels + of, return_counts=True)
        wanted = self.who * n_labels + labels
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[at] == wanted, times[at], 0) / self.divisor[self.who]


def _notes(repeats: Integers, annotators: Integers) -> tuple[Note, ...]:
    present = np.unique(annotators)
    without = int((repeats[present] == 0).sum())
    sentence = f"{without} of {present.size} annotators judged nothing twice: no figure for them."
    return (Note("nothing_judged_twice", sentence),) if without else ()


def _kappa_note(kappa: Array, repeats: Integers) -> tuple[Note, ...]:
    asked_again = repeats > 0
    constant = int((np.isnan(kappa) & asked_again).sum())
    if not constant:
        return ()
    of = f"{constant} of {int(asked_again.sum())} annotators asked again"
    sentence = f"{of} gave one and the same label throughout, as chance would: no kappa for them."
    return (Note("one_label_again", sentence),)
