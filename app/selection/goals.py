"""Rules for a campaign that is for something else than the whole scale: the best items, or those above a threshold."""

from collections.abc import Callable
from functools import partial

from app.inference.ground.arrays import Array
from app.selection.cut import BelowBest, Line, Threshold
from app.selection.gain import log_gain
from app.selection.index import AlgorithmOne, Items
from app.selection.near_line import NearLine, NextBest
from app.selection.rule import Asking, Counts
from app.selection.wanted import WantedItems

LineOf = Callable[[Asking, Array, Counts], Line]


def below_best(asking: Asking, score: Array, judgments: Counts) -> Line:
    """Below the best of the items that the goal of the same name counts. score, judgments: (N,)."""
    return BelowBest(score, judgments, asking.best, asking.never)


def threshold(asking: Asking, _score: Array, _judgments: Counts) -> Line:
    """At the campaign's threshold, whatever the scores are."""
    return Threshold(asking.threshold)


def near(line: LineOf, asking: Asking, items: Items, known: WantedItems) -> tuple[NearLine, NextBest]:
    """An item that may lie on either side of the line leads, with those that come next beside it."""
    at = line(asking, known.score, known.judgments)
    found = NearLine(items, known.score, known.variance, known.judgments, at, wanted=asking.wanted)
    return found, NextBest(found)


def gain(line: LineOf, asking: Asking, score: Array, variance: Array, judgments: Counts) -> Array:
    """What another judgment gains on the line, (N,)."""
    return log_gain(score - line(asking, score, judgments).at, variance, judgments)


BEST = AlgorithmOne(
    "best",
    "Best items: an item that may or may not be among the best leads",
    places=True,
    arranged=partial(near, below_best),
    worth=partial(gain, below_best),
    reason="near_the_best",
)
THRESHOLD = AlgorithmOne(
    "threshold",
    "Threshold: an item that may lie on either side of it leads",
    places=True,
    on_scale=True,
    arranged=partial(near, threshold),
    worth=partial(gain, threshold),
    reason="near_the_threshold",
)
