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

FEW = 4  # judgments, of which three are lost to Fisher's transformation


def surprise(times: int, of: int, most: float) -> float:
    """The logarithm of how much likelier it is that something happened `times` `of` so many times if it happens more
    often than in a share `most` of all cases, than if it happens just so often; 0 < most < 1.

    The shares above are all taken to be as likely as each other. Over the cases as they come it is a martingale where
    the share is `most`, whatever was before each case, and falls on the average where it is less.
    """
    a, b = times + 1.0, of - times + 1.0
    above = betaincc(a, b, most)
    if above <= 0.0:
        return -math.inf
    expected = times * math.log(most) + (of - times + 1) * math.log1p(-most)
    return float(betaln(a, b) + math.log(above) - expected)


def too_often(times: int, of: int, most: float, alarm: float) -> bool:
    """Whether it happened so often that a share of `most` is out of the question; wrong for one of 1 / alarm at most,
    however often it is asked.
    """
    return of > 0 and surprise(times, of, most) >= -math.log(alarm)


def min_in_a_row(most: float, alarm: float) -> int:
    """Return how many cases in a row, with nothing else, are too many to have a share of `most`."""
    return next(times for times in count(1) if too_often(times, times, most, alarm))


def correlation(x: Array, y: Array) -> float:
    """Pearson's; 0 where one of the two is always the same, since nothing goes with that."""
    x, y = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / spread if spread > 1e-9 else 0.0


def interval(found: float, judgments: int, alarm: float) -> tuple[float, float]:
    """Where a correlation lies that was found in so many judgments, -1 to 1, for all looks together.

    On Fisher's scale, where its standard error is 1 / sqrt(judgments - 3), by the confidence sequence of the normal
    mixture (Robbins 1970; Waudby-Smith et al. 2021, "Time-uniform central limit theory", equation 5), which is at its
    narrowest around `USUAL` judgments.
    """
    if judgments < FEW:
        return -1.0, 1.0
    n = judgments - 3.0
    scaled = n * width_squared(alarm)
    half = math.sqrt(2.0 * (scaled + 1.0) / (n * scaled) * math.log(math.sqrt(scaled + 1.0) / alarm))
    middle = math.atanh(min(max(found, -0.999999), 0.999999))
    return math.tanh(middle - half), math.tanh(middle + half)


USUAL = 80.0
"""Judgments of one annotator around which intervals are narrowest."""


def width_squared(alarm: float) -> float:
    """Of the mixture."""
    twice = -2.0 * math.log(alarm)
    return (twice + math.log(twice + 1.0)) / USUAL


def typical(others: Array) -> float:
    """The median of what is known of the others; half of them may be anything. NaN where they are too few."""
    known = others[~np.isnan(others)]
    return float(np.median(known)) if len(known) >= LEAST_OTHERS else math.nan


LEAST_OTHERS = 5
"""Other annotators, so that what is usual in a campaign means anything."""
