"""Two-component mixture: which annotators answer attentively and which at random, and the noise of the attentive ones.

An attentive annotator gives item i the score t_i + s e, with t_i and e normal; a random one, any score from 0 to 1.
Each judgment is compared with the attentive judgments of its item by others, so that no annotator agrees with
themselves. Probabilities, their prior, and s follow from each other in rounds (expectation-maximisation). Because the
model knows that random answers are uniform, it detects them from few judgments, earlier than `annotator_beliefs`, which
only compares annotators; but it has no kind in between. It makes simulated annotators, no scores.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from app.inference.ground.arrays import Array
from app.inference.ratings.annotator_evidence import ScoredJudgments

_EM_ROUNDS = 50
PRIOR_KIND_COUNTS = 1.0, 9.0  # annotators at random, and who look, before anybody has answered
_MIN_VARIANCE = 1e-4  # a variance, on 0 to 1: a slider's step
_MAX_RANDOM_PROBABILITY = 1 - 1e-6  # so that something is left to weigh where everybody answers at random


@dataclass(frozen=True, slots=True)
class AttentionMixture:
    """Estimates of the mixture.

    Attributes:
        at_random: The probability that an annotator answers at random, (J,).
        noise: s, on 0 to 1.

    """

    at_random: Array
    noise: float


def fit(judgments: ScoredJudgments) -> AttentionMixture:
    """Fit the mixture to one judgment or more; time is linear in their number."""
    y, at_random = judgments.scores, np.zeros(judgments.n_annotators)
    share, variance = PRIOR_KIND_COUNTS[0] / sum(PRIOR_KIND_COUNTS), max(_MIN_VARIANCE, float(y.var()) / 2)
    for _ in range(_EM_ROUNDS):
        attentive = (1 - at_random)[judgments.annotators]
        centre = attentive @ y / attentive.sum()
        between = max(_MIN_VARIANCE, float(attentive @ (y - centre) ** 2 / attentive.sum()) - variance)
        precision = 1 / between + judgments.sum_of_others_on_item_of_each_judgment(attentive) / variance
        expected = (
            centre / between + judgments.sum_of_others_on_item_of_each_judgment(attentive * y) / variance
        ) / precision
        spread = variance + 1 / precision
        square = (y - expected) ** 2 / spread
        log_likelihood = judgments.sum_of_each_annotator(-0.5 * (square + np.log(2 * np.pi * spread)))
        at_random = np.minimum(expit(np.log(share / (1 - share)) - log_likelihood), _MAX_RANDOM_PROBABILITY)
        share = (PRIOR_KIND_COUNTS[0] + at_random.sum()) / (sum(PRIOR_KIND_COUNTS) + len(at_random))
        attentive = (1 - at_random)[judgments.annotators]
        variance = max(_MIN_VARIANCE, variance * float(attentive @ square / attentive.sum()))
    return AttentionMixture(at_random, float(np.sqrt(variance)))
