"""The scale of points on which people score, and on which pages and exports show scores."""

from collections.abc import Sequence

import numpy as np

from app.inference.ground.arrays import Array

POINTS = 100.0


def on_scale(score: float) -> float | None:
    """A score as it is stored, where -0 is 0; None if it is not in 0..100."""
    return score + 0.0 if 0 <= score <= POINTS else None


def in_points(shares: Array) -> Array:
    """Return shares of the scale, 0 to 1, as points. Rounded to 10 decimals, which drops the noise of the last bits."""
    points: Array = np.round(shares * POINTS, 10) + 0.0
    return points


def ranks(scores: Sequence[float]) -> list[int]:
    """Competition ranks, best first: the highest score is 1, equal scores share a rank, the next one is skipped."""
    return [1 + sum(other > score for other in scores) for score in scores]
