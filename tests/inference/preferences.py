"""Judgments of pairs simulated from known scores."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Numbers = npt.NDArray[np.int64]


def simulate_preferences(
    scores: npt.NDArray[np.float64], judgments: int, rng: np.random.Generator, *, threshold: float = 0.0
) -> tuple[Numbers, Numbers, Numbers]:
    """Return first items, second items and outcomes of random pairs, by Rao-Kupper (Bradley-Terry for threshold 0)."""
    first = rng.integers(scores.size, size=judgments)
    second = (first + rng.integers(1, scores.size, size=judgments)) % scores.size
    difference, chance = scores[first] - scores[second], rng.random(judgments)
    won, lost = chance < expit(difference - threshold), chance > 1.0 - expit(-difference - threshold)
    return first, second, won.astype(np.int64) - lost
