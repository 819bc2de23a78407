"""How sure one can be of somebody who is looked at again and again, after every answer; pure mathematics.

A limit that holds for one look does not hold for the worst of a hundred: whoever is careful would cross it some time.
So these limits hold for all looks together (Ville 1939: a martingale that begins at 1 passes 1 / alarm at any time with
a probability of `alarm` at most).
"""

import math
from itertools import count

import numpy as np
from scipy.special import betaincc, betaln

from app.inference.ground.arrays import Array

MIN_JUDGMENTS_FOR_INTERVAL = 4  # judgments, of which three are lost to Fisher's transformation


def log_bayes_factor(events: int, cases: int, max_share: float) -> float:
    """The logarithm of how much likelier it is that something happened `times` `of` so many times if it happens more
    often than in a share `most` of all cases, than if it happens just so often; 0 < most < 1.

    The shares above are all taken to be as likely as each other. Over the cases as they come it is a martingale where
    the share is `most`, whatever was before each case, and falls on the average where it is less.
    """
    a, b = events + 1.0, cases - events + 1.0
    above = betaincc(a, b, max_share)
    if above <= 0.0:
        return -math.inf
    expected = events * math.log(max_share) + (cases - events + 1) * math.log1p(-max_share)
    return float(betaln(a, b) + math.log(above) - expected)


def is_share_exceeded(events: int, cases: int, max_share: float, false_alarm_rate: float) -> bool:
    """Whether it happened so often that a share of `most` is out of the question; wrong for one of 1 / alarm at most,
    however often it is asked.
    """
    return cases > 0 and log_bayes_factor(events, cases, max_share) >= -math.log(false_alarm_rate)


def min_consecutive_events(max_share: float, false_alarm_rate: float) -> int:
    """Return how many cases in a row, with nothing else, are too many to have a share of `most`."""
    return next(times for times in count(1) if is_share_exceeded(times, times, max_share, false_alarm_rate))


def pearson_correlation_or_zero(x: Array, y: Array) -> float:
    """Pearson's; 0 where one of the two is always the same, since nothing goes with that."""
    x, y = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / spread if spread > 1e-9 else 0.0


def sequential_correlation_interval(correlation: float, judgments: int, false_alarm_rate: float) -> tuple[float, float]:
    """Where a correlation lies that was found in so many judgments, -1 to 1, for all looks together.

    On Fisher's scale, where its standard error is 1 / sqrt(judgments - 3), by the confidence sequence of the normal
    mixture (Robbins 1970; Waudby-Smith et al. 2021, "Time-uniform central limit theory", equation 5), which is at its
    narrowest around `USUAL` judgments.
    """
    if judgments < MIN_JUDGMENTS_FOR_INTERVAL:
        return -1.0, 1.0
    n = judgments - 3.0
    scaled = n * mixture_variance(false_alarm_rate)
    half = math.sqrt(2.0 * (scaled + 1.0) / (n * scaled) * math.log(math.sqrt(scaled + 1.0) / false_alarm_rate))
    middle = math.atanh(min(max(correlation, -0.999999), 0.999999))
    return math.tanh(middle - half), math.tanh(middle + half)


NARROWEST_AT_JUDGMENTS = 80.0
"""Judgments of one annotator around which intervals are narrowest."""


def mixture_variance(false_alarm_rate: float) -> float:
    """Of the mixture."""
    twice = -2.0 * math.log(false_alarm_rate)
    return (twice + math.log(twice + 1.0)) / NARROWEST_AT_JUDGMENTS


def median_of_others(values: Array) -> float:
    """The median of what is known of the others; half of them may be anything. NaN where they are too few."""
    known_values = values[~np.isnan(values)]
    return float(np.median(known_values)) if len(known_values) >= MIN_OTHER_ANNOTATORS else math.nan


MIN_OTHER_ANNOTATORS = 5
"""Other annotators, so that what is usual in a campaign means anything."""
