"""Elo ratings (Elo 1978): one judgment of a pair after another."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.comparisons import Booleans, checked, named
from app.inference.law import Array, checked_level
from app.inference.long_form import Integers


@dataclass(frozen=True, slots=True)
class EloRatings:
    """score: (n_items,) in points; NaN for an item without a judgment. estimable: (n_items,) whether it has any.

    low, high: (n_items,) bootstrap interval; NaN without resamples. notes: what this can and cannot tell.
    """

    score: Array
    low: Array
    high: Array
    estimable: Booleans
    notes: tuple[str, ...]


def fit(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_items: int | None = None,
    k: float = 32.0,
    initial: float = 1500.0,
    scale: float = 400.0,
    resamples: int = 0,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> EloRatings:
    """Each judgment moves both items by k (outcome - expected), outcome 1, 1/2 or 0 for the item.

    What is expected of it is 1 / (1 + 10^((other's rating - its own) / scale)).

    (J,) each, in the order in which they were made, which matters: the last judgments weigh most, and ratings never
    settle. Elo has no standard error of its own. With resamples > 0, low and high are quantiles of the ratings
    after that many bootstrap samples of the judgments in random order, drawn from rng; they hold the
    uncertainty from both. An item that a sample lacks keeps its initial rating there. One pass is O(J).
    Raises ValueError as `comparisons.checked`, for k or scale not above 0, and for resamples without rng;
    Inestimable without judgments.
    """
    if not (0.0 < k < np.inf and 0.0 < scale < np.inf and np.isfinite(initial)):
        raise ValueError("k and scale must be finite and above 0, and initial finite")
    if resamples and rng is None:
        raise ValueError("resamples are random: they need rng")
    first, second, outcomes, n_items = checked(first, second, outcomes, n_items)
    seen = np.bincount(first, minlength=n_items) + np.bincount(second, minlength=n_items) > 0
    start = np.where(seen, initial, np.nan)
    score = _played(first, second, outcomes, start, k=k, scale=scale)
    samples = [np.full(n_items, np.nan)]
    if rng is not None and resamples:
        draws = (rng.integers(first.size, size=first.size) for _ in range(resamples))
        samples = [_played(first[draw], second[draw], outcomes[draw], start, k=k, scale=scale) for draw in draws]
    tail = 50.0 * (1.0 - checked_level(level))
    low, high = np.percentile(samples, [tail, 100.0 - tail], axis=0)
    return EloRatings(score, low, high, seen, _notes(seen))


def _played(first: Integers, second: Integers, outcomes: Integers, start: Array, *, k: float, scale: float) -> Array:
    # Each judgment needs what the one before left, so this is a loop; on lists, which are faster than arrays at it.
    rating: list[float] = start.tolist()
    for i, j, outcome in zip(first.tolist(), second.tolist(), outcomes.tolist(), strict=True):
        odds: float = 10.0 ** ((rating[j] - rating[i]) / scale)
        surprise = 0.5 * (outcome + 1) - 1.0 / (1.0 + odds)
        rating[i] += k * surprise
        rating[j] -= k * surprise
    return np.array(rating)


def _notes(seen: Booleans) -> tuple[str, ...]:
    order = "Elo ratings depend on the order of the judgments; Bradley-Terry uses all of them alike."
    unseen = np.flatnonzero(~seen)
    return (order, f"Nothing is known about {named(unseen)}: no judgment.") if unseen.size else (order,)
