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

LineOf = Callable[[Asking, Array], Line]


def below_best(asking: Asking, score: Array) -> Line:
    """Scores (N,). Where there are no more items than best ones, the lowest is settled last."""
    return BelowBest(score, min(asking.best, len(score) - 1)) if len(score) > 1 else Threshold(score.item(0))


def threshold(asking: Asking, _score: Array) -> Line:
    """Whatever the scores are."""
    return Threshold(asking.threshold)


def near(line: LineOf, asking: Asking, items: Items, known: WantedItems) -> tuple[NearLine, NextBest]:
    """Who may lie on either side of the line leads, and is beside those that come next."""
    found = NearLine(items, known.score, known.variance, known.judgments, line(asking, known.score))
    return found, NextBest(found)


def gain(line: LineOf, asking: Asking, score: Array, variance: Array, judgments: Counts) -> Array:
    """What another judgment gains on the line, (N,)."""
    return log_gain(score - line(asking, score).at, variance, judgments)


BEST = AlgorithmOne(
    "best",
    "Best items: those that may or may not be among the best lead",
    places=True,
    arranged=partial(near, below_best),
    worth=partial(gain, below_best),
    reason="near_the_best",
)
THRESHOLD = AlgorithmOne(
    "threshold",
    "Threshold: items that may lie on either side of it lead",
    places=True,
    on_scale=True,
    arranged=partial(near, threshold),
    worth=partial(gain, threshold),
    reason="near_the_threshold",
)
