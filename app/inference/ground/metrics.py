"""Agreement of two sets of scores: Pearson, Spearman, Kendall and nDCG."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground import weighted_correlation
from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note

_MAX_ITEMS_COMPARED_PAIRWISE = 1_000  # items; from there on sorting them is faster than comparing each two


@dataclass(frozen=True, slots=True)
class Correlations:
    """Four measures of agreement of two sets of scores.

    Attributes:
        n: Number of items with a score on both sides.
        pearson: In [-1, 1], as are spearman and kendall; NaN where `notes` say why.
        ndcg: In [0, 1].

    """

    n: int
    pearson: float
    spearman: float
    kendall: float
    ndcg: float
    notes: tuple[Note, ...]


def correlate_scores(reference: npt.ArrayLike, scores: npt.ArrayLike) -> Correlations:
    """Return all four measures over the items where both (N,) arrays hold a number; NaN marks an item without a score.

    For nDCG the gain of an item is its reference score minus the lowest one, so that scores below 0 can be compared.
    Raises ValueError for shapes that differ or an infinite score, Inestimable if fewer than 2 items are left.
    """
    reference, scores = np.asarray(reference, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if reference.ndim != 1 or reference.shape != scores.shape:
        raise ValueError(f"both must be (N,), not {reference.shape} and {scores.shape}")
    both = ~(np.isnan(reference) | np.isnan(scores))
    reference_scores, other_scores = reference[both], scores[both]
    gain = reference_scores - reference_scores.min(initial=np.inf)
    missing = (
        f"Items left out because one side has no score for them: {both.size - reference_scores.size} of {both.size} "
        "items."
    )
    notes = [] if both.all() else [Note("unscored_left_out", missing)]
    figures: dict[str, float] = {}
    for name, measure, reference_values in (
        ("pearson", pearson, reference_scores),
        ("spearman", spearman, reference_scores),
        ("kendall", kendall, reference_scores),
        ("ndcg", ndcg, gain),
    ):
        figures[name], note = _measure_or_nan_and_note(measure, reference_values, other_scores)
        notes += [note] if note and note not in notes else []
    return Correlations(n=int(both.sum()), **figures, notes=tuple(notes))


def _measure_or_nan_and_note(
    measure: Callable[[Array, Array], float], reference: Array, scores: Array
) -> tuple[float, Note | None]:
    try:
        return measure(reference, scores), None
    except Inestimable as reason:
        if reason.code != "constant":
            raise
        return np.nan, Note("one_side_constant", str(reason))


def pearson(reference: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Pearson's correlation of two (N,) arrays. Raises ValueError for shapes that differ or a value that is not finite.

    Raises Inestimable for fewer than 2 items ("too_few") or if all scores on one side are equal ("constant").
    """
    return _pearson_correlation(*_two_varying_arrays_or_raise(reference, scores))


def spearman(reference: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Spearman's rank correlation, ties at their mean rank. Otherwise as `pearson`."""
    return _pearson_correlation(*map(_ranks_with_ties_at_mean_rank, _two_varying_arrays_or_raise(reference, scores)))


def kendall(reference: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Kendall's tau-b, which allows for ties. Otherwise as `pearson`."""
    x, y = _two_varying_arrays_or_raise(reference, scores)
    if len(x) <= _MAX_ITEMS_COMPARED_PAIRWISE:
        return float(weighted_correlation.weighted_kendall(x, y, np.ones((1, len(x))))[0])
    from scipy.stats import kendalltau  # it takes longer to import than all else that a server or a command needs

    return float(kendalltau(x, y).statistic)


def _pearson_correlation(x: Array, y: Array) -> float:
    x, y = (values / np.abs(values).max() for values in (x - x.mean(), y - y.mean()))  # so that no square overflows
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def _ranks_with_ties_at_mean_rank(values: Array) -> Array:
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(ties) - (ties - 1) / 2.0)[place]
    return ranks


def ndcg(reference: npt.ArrayLike, scores: npt.ArrayLike, *, cutoff: int | None = None) -> float:
    """Normalised discounted cumulative gain (Järvelin & Kekäläinen 2002) of ranking by score; 1 is the best order.

    The item at rank r, from 1, counts gain / log2(r + 1). Items of equal score share the mean of their ranks' weights,
    so their order in the arrays does not matter.

    Args:
        reference: Gains of at least 0, (N,).
        scores: The scores that rank the items, (N,).
        cutoff: Only this many ranks count.

    Raises:
        ValueError: As `pearson`, for a negative gain and a cutoff below 1.
        Inestimable: There are no items ("too_few"), or all gains are 0 ("constant").

    """
    gain, scores = _two_finite_arrays_or_raise(reference, scores)
    if gain.size and gain.min() < 0.0:
        raise ValueError("gains must be at least 0")
    if cutoff is not None and cutoff < 1:
        raise ValueError(f"cutoff must be at least 1, not {cutoff}")
    if not gain.size:
        raise Inestimable("There are no items to compare.", code="too_few")
    if not gain.any():
        raise Inestimable("All reference scores are equal, so no order is better than another.", code="constant")
    return _discounted_gain(gain, scores, cutoff) / _discounted_gain(gain, gain, cutoff)


def _discounted_gain(gains: Array, scores: Array, cutoff: int | None) -> float:
    weight = 1.0 / np.log2(np.arange(2.0, gains.size + 2.0))
    weight[gains.size if cutoff is None else cutoff :] = 0.0
    _, place, ties = np.unique(-scores, return_inverse=True, return_counts=True)
    mean_weights = np.add.reduceat(weight, np.cumsum(ties) - ties) / ties
    return float(gains @ mean_weights[place])


def _two_varying_arrays_or_raise(reference: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Array, Array]:
    reference, scores = _two_finite_arrays_or_raise(reference, scores)
    if reference.size < 2:
        raise Inestimable("A correlation needs at least two items.", code="too_few")
    for side, values in (("reference", reference), ("compared", scores)):
        # An error of rounding is not variation: the correlation would be of the rounding.
        if np.ptp(values) <= 1e-13 * np.abs(values).max():
            raise Inestimable(f"All {side} scores are equal, so there is no correlation.", code="constant")
    return reference, scores


def _two_finite_arrays_or_raise(reference: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Array, Array]:
    reference, scores = np.asarray(reference, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if reference.ndim != 1 or reference.shape != scores.shape:
        raise ValueError(f"both must be (N,), not {reference.shape} and {scores.shape}")
    if not (np.isfinite(reference).all() and np.isfinite(scores).all()):
        raise ValueError("scores must be finite numbers")
    return reference, scores
