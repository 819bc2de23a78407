"""Who of some annotators looks, if the others answer at random, and how far who looks differs: a mixture of two kinds.

Who looks gives item i the score t_i + s e, with t_i and e normal; who does not, any score from 0 to 1. Each judgment is
held against what others say of its item, as far as they look, so that nobody agrees with themselves. Probabilities, how
common they are, and s follow from each other in rounds (expectation-maximisation). Knowing that random answers lie
anywhere, it tells them from few judgments, before `annotator_beliefs` do, which ask only who goes with whom; but it
knows of nobody in between. It makes simulated annotators, no scores.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from app.inference.ground.arrays import Array
from app.inference.ratings.annotator_evidence import Judged

_ROUNDS = 50
MADE_UP = 1.0, 9.0  # annotators at random, and who look, before anybody has answered
_LEAST = 1e-4  # a variance, on 0 to 1: a slider's step
_SUREST = 1 - 1e-6  # so that something is left to weigh where everybody answers at random


@dataclass(frozen=True, slots=True)
class WhoLooks:
    """at_random: the probability that an annotator does not look, (J,). noise: s, on 0 to 1."""

    at_random: Array
    noise: float


def fit(judged: Judged) -> WhoLooks:
    """From one judgment or more; time is linear in their number."""
    y, random = judged.scores, np.zeros(judged.n_annotators)
    share, variance = MADE_UP[0] / sum(MADE_UP), max(_LEAST, float(y.var()) / 2)
    for _ in range(_ROUNDS):
        looks = (1 - random)[judged.annotators]
        centre = looks @ y / looks.sum()
        between = max(_LEAST, float(looks @ (y - centre) ** 2 / looks.sum()) - variance)
        precision = 1 / between + judged.of_others(looks) / variance
        expected = (centre / between + judged.of_others(looks * y) / variance) / precision
        spread = variance + 1 / precision
        square = (y - expected) ** 2 / spread
        told = judged.by_annotator(-0.5 * (square + np.log(2 * np.pi * spread)))
        random = np.minimum(expit(np.log(share / (1 - share)) - told), _SUREST)
        share = (MADE_UP[0] + random.sum()) / (sum(MADE_UP) + len(random))
        looks = (1 - random)[judged.annotators]
        variance = max(_LEAST, variance * float(looks @ square / looks.sum()))
    return WhoLooks(random, float(np.sqrt(variance)))
