"""How well one set of scores agrees with another: Pearson, Spearman, Kendall and nDCG."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground import weighted_correlation
from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note

_FEW = 1_000  # items; from there on sorting them is faster than comparing each two


@dataclass(frozen=True, slots=True)
class Correlations:
    """n: items that both have a score for. The figures in [-1, 1], ndcg in [0, 1]; NaN where notes say why."""

    n: int
    pearson: float
    spearman: float
    kendall: float
    ndcg: float
    notes: tuple[Note, ...]


def compare(reference: npt.ArrayLike, score: npt.ArrayLike) -> Correlations:
    """All four figures over the items where both (N,) arrays hold a number; NaN marks an item without a score.

    For nDCG the gain of an item is its reference score above the lowest one, so that scores below 0 can be compared.
    Raises ValueError for shapes that differ or an infinite score, Inestimable if fewer than 2 items are left.
    """
    reference, score = np.asarray(reference, dtype=np.float64), np.asarray(score, dtype=np.float64)
    if reference.ndim != 1 or reference.shape != score.shape:
        raise ValueError(f"both must be (N,), not {reference.shape} and {score.shape}")
    both = ~(np.isnan(reference) | np.isnan(score))
    kept, other = reference[both], score[both]
    gain = kept - kept.min(initial=np.inf)
    missing = f"Left out, as one side has no score for them: {both.size - kept.size} of {both.size} items."
    notes = [] if both.all() else [Note("unscored_left_out", missing)]
    figures: dict[str, float] = {}
    for name, measure, left in (
        ("pearson", pearson, kept),
        ("spearman", spearman, kept),
        ("kendall", kendall, kept),
        ("ndcg", ndcg, gain),
    ):
        figures[name], note = _tried(measure, left, other)
        notes += [note] if note and note not in notes else []
    return Correlations(n=int(both.sum()), **figures, notes=tuple(notes))


def _tried(measure: Callable[[Array, Array], float], reference: Array, score: Array) -> tuple[float, Note | None]:
    try:
        return measure(reference, score), None
    except Inestimable as reason:
        if reason.code != "constant":
            raise
        return np.nan, Note("one_side_constant", str(reason))


def pearson(reference: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Pearson's correlation of two (N,) arrays. Raises ValueError for shapes that differ or a value that is not finite.

    Raises Inestimable for fewer than 2 items ("too_few") or if all scores on one side are equal ("constant").
    """
    return _correlation(*_varied(reference, score))


def spearman(reference: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Spearman's rank correlation, ties at their mean rank. Otherwise as `pearson`."""
    return _correlation(*map(_ranks, _varied(reference, score)))


def kendall(reference: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Kendall's tau-b, which allows for ties. Otherwise as `pearson`."""
    x, y = _varied(reference, score)
    if len(x) <= _FEW:
        return float(weighted_correlation.kendall(x, y, np.ones((1, len(x))))[0])
    from scipy.stats import kendalltau  # it takes longer to import than all else that a server or a command needs

    return float(kendalltau(x, y).statistic)


def _correlation(x: Array, y: Array) -> float:
    x, y = (values / np.abs(values).max() for values in (x - x.mean(), y - y.mean()))  # so that no square overflows
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def _ranks(values: Array) -> Array:
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(ties) - (ties - 1) / 2.0)[place]
    return ranks


def ndcg(reference: npt.ArrayLike, score: npt.ArrayLike, *, cutoff: int | None = None) -> float:
    """Normalised discounted cumulative gain (Järvelin & Kekäläinen 2002) of ranking by score; 1 is the best order.

    (N,) each. reference: gains of at least 0, taken as they are. The item at rank r, from 1, counts gain / log2(r + 1);
    items of equal score share the mean of their places' weights, so their order in the arrays does not matter.
    cutoff: only that many places count. Raises ValueError as `pearson`, for a negative gain and a cutoff below 1;
    Inestimable without items ("too_few") or if all gains are 0 ("constant").
    """
    gain, score = _paired(reference, score)
    if gain.size and gain.min() < 0.0:
        raise ValueError("gains must be at least 0")
    if cutoff is not None and cutoff < 1:
        raise ValueError(f"cutoff must be at least 1, not {cutoff}")
    if not gain.size:
        raise Inestimable("There are no items to compare.", code="too_few")
    if not gain.any():
        raise Inestimable("All reference scores are equal, so no order is better than another.", code="constant")
    return _dcg(gain, score, cutoff) / _dcg(gain, gain, cutoff)


def _dcg(gain: Array, score: Array, cutoff: int | None) -> float:
    weight = 1.0 / np.log2(np.arange(2.0, gain.size + 2.0))
    weight[gain.size if cutoff is None else cutoff :] = 0.0
    _, place, ties = np.unique(-score, return_inverse=True, return_counts=True)
    shared = np.add.reduceat(weight, np.cumsum(ties) - ties) / ties
    return float(gain @ shared[place])


def _varied(reference: npt.ArrayLike, score: npt.ArrayLike) -> tuple[Array, Array]:
    reference, score = _paired(reference, score)
    if reference.size < 2:
        raise Inestimable("A correlation needs at least two items.", code="too_few")
    for side, values in (("reference", reference), ("compared", score)):
        # An error of rounding is not variation: the correlation would be of the rounding.
        if np.ptp(values) <= 1e-13 * np.abs(values).max():
            raise Inestimable(f"All {side} scores are equal, so there is no correlation.", code="constant")
    return reference, score


def _paired(reference: npt.ArrayLike, score: npt.ArrayLike) -> tuple[Array, Array]:
    reference, score = np.asarray(reference, dtype=np.float64), np.asarray(score, dtype=np.float64)
    if reference.ndim != 1 or reference.shape != score.shape:
        raise ValueError(f"both must be (N,), not {reference.shape} and {score.shape}")
    if not (np.isfinite(reference).all() and np.isfinite(score).all()):
        raise ValueError("scores must be finite numbers")
    return reference, score
