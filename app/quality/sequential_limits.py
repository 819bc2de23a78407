"""Statistical limits for an annotator who is looked at again after every answer; pure mathematics.

A limit for a single look does not hold for the worst of a hundred looks: a careful annotator would cross it at some
time. So these limits hold for all looks together (Ville 1939: a martingale that begins at 1 ever exceeds 1 /
`false_alarm_rate` with a probability of at most `false_alarm_rate`).
"""

import math
from itertools import count

import numpy as np
import scipy

from app.inference.ground.arrays import Array

SHARE_BISECTIONS = 20  # to a millionth
MIN_JUDGMENTS_FOR_INTERVAL = 4  # Fisher's transformation uses three of them


def log_bayes_factor(event_count: int, case_count: int, max_share: float) -> float:
    """Logarithm of the Bayes factor for an event that occurs in more than `max_share` of all cases, against one that
    occurs in just that share.

    The prior over the larger shares is uniform. As cases come, the factor is a martingale if the share is `max_share`,
    whatever came before each case, and falls on average if it is smaller.

    Args:
        event_count: Number of cases with the event.
        case_count: Number of cases.
        max_share: The share, 0 to 1, both excluded.

    """
    a, b = event_count + 1.0, case_count - event_count + 1.0
    above = scipy.special.betaincc(a, b, max_share)
    if above <= 0.0:
        return -math.inf
    expected = event_count * math.log(max_share) + (case_count - event_count + 1) * math.log1p(-max_share)
    return float(scipy.special.betaln(a, b) + math.log(above) - expected)


def is_event_share_above_limit(event_count: int, case_count: int, max_share: float, false_alarm_rate: float) -> bool:
    """Return whether the event occurred too often for a share of `max_share`. The answer is wrong with a probability of
    at most `false_alarm_rate`, however often it is asked.
    """
    return case_count > 0 and log_bayes_factor(event_count, case_count, max_share) >= -math.log(false_alarm_rate)


def ends_of_sequential_share_interval(
    event_count: int, case_count: int, false_alarm_rate: float
) -> tuple[float, float]:
    """Confidence interval of a share, 0 to 1, that holds for all looks together: the shares that neither
    `is_event_share_above_limit` nor the same test of the opposite event excludes, each with half the rate.
    """
    return (
        largest_share_below_events(event_count, case_count, false_alarm_rate / 2),
        1.0 - largest_share_below_events(case_count - event_count, case_count, false_alarm_rate / 2),
    )


def largest_share_below_events(event_count: int, case_count: int, false_alarm_rate: float) -> float:
    """Return the largest share above which the events are too many, 0 if there is none."""
    low, high = 0.0, event_count / case_count if case_count else 0.0
    for _ in range(SHARE_BISECTIONS):
        middle = (low + high) / 2
        if 0.0 < middle < 1.0 and is_event_share_above_limit(event_count, case_count, middle, false_alarm_rate):
            low = middle
        else:
            high = middle
    return low


def min_consecutive_events_above_limit(max_share: float, false_alarm_rate: float) -> int:
    """Return the number of consecutive events, with no other case, that is too large for a share of `max_share`."""
    return next(times for times in count(1) if is_event_share_above_limit(times, times, max_share, false_alarm_rate))


def pearson_correlation_or_zero(x: Array, y: Array) -> float:
    """Pearson correlation; 0 if one of the two is constant, since nothing correlates with a constant."""
    x, y = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / spread if spread > 1e-9 else 0.0


def ends_of_sequential_correlation_interval(
    correlation: float, judgment_count: int, false_alarm_rate: float
) -> tuple[float, float]:
    """Confidence interval of a correlation, -1 to 1, that holds for all looks together.

    On Fisher's scale, where the standard error is 1 / sqrt(judgments - 3), this is the confidence sequence of the
    normal mixture (Robbins 1970; Waudby-Smith et al. 2021, "Time-uniform central limit theory", equation 5), which is
    narrowest around `NARROWEST_AT_JUDGMENTS` judgments.

    Args:
        correlation: The correlation found so far.
        judgment_count: Number of judgments it was found in.
        false_alarm_rate: Probability that the interval ever misses the true correlation.

    """
    if judgment_count < MIN_JUDGMENTS_FOR_INTERVAL:
        return -1.0, 1.0
    n = judgment_count - 3.0
    twice = -2.0 * math.log(false_alarm_rate)
    mixture_variance = (twice + math.log(twice + 1.0)) / NARROWEST_AT_JUDGMENTS
    scaled = n * mixture_variance
    half = math.sqrt(2.0 * (scaled + 1.0) / (n * scaled) * math.log(math.sqrt(scaled + 1.0) / false_alarm_rate))
    middle = math.atanh(min(max(correlation, -0.999999), 0.999999))
    return math.tanh(middle - half), math.tanh(middle + half)


NARROWEST_AT_JUDGMENTS = 80.0
"""Number of judgments of one annotator around which intervals are narrowest."""


def median_of_other_annotators_or_nan(values: Array) -> float:
    """Median of the others' known values, NaN if there are too few. Up to half of the values may be arbitrary."""
    known_values = values[~np.isnan(values)]
    return float(np.median(known_values)) if len(known_values) >= MIN_OTHER_ANNOTATORS else math.nan


MIN_OTHER_ANNOTATORS = 5
"""Smallest number of other annotators that defines what is usual in a campaign."""
