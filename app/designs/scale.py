"""The scale of points for scores, in pages and exports."""

from collections.abc import Sequence

import numpy as np

from app.inference.ground.arrays import Array

MAX_POINTS = 100.0


def points_in_range_or_none(score: float) -> float | None:
    """Return a score as it is stored, where -0 is 0; None if it is not in 0..100."""
    return score + 0.0 if 0 <= score <= MAX_POINTS else None


def shares_to_points(shares: Array) -> Array:
    """Return shares of the scale, 0 to 1, as points. Rounded to 10 decimals, which drops the noise of the last bits."""
    points: Array = np.round(shares * MAX_POINTS, 10) + 0.0
    return points


def competition_ranks_best_first(scores: Sequence[float]) -> list[int]:
    """Competition ranks, best first: the highest score is 1, equal scores share a rank, the next one is skipped."""
    return [1 + sum(other > score for other in scores) for score in scores]
