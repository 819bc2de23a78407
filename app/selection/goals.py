"""Rules for a campaign that is for something else than the whole scale: the best items, or those above a threshold."""

from app.inference.ground.arrays import Array
from app.selection.cut import BelowBest, Line, Threshold
from app.selection.index import AlgorithmOne
from app.selection.rule import Asking


def below_best(asking: Asking, score: Array) -> Line:
    """Scores (N,). Where there are no more items than best ones, the lowest is settled last."""
    return BelowBest(score, min(asking.best, len(score) - 1)) if len(score) > 1 else Threshold(score.item(0))


def threshold(asking: Asking, _score: Array) -> Line:
    """Whatever the scores are."""
    return Threshold(asking.threshold)


BEST = AlgorithmOne("best", "Best items: whoever may or may not be among the best leads", places=True, line=below_best)
THRESHOLD = AlgorithmOne(
    "threshold", "Threshold: whoever may lie on either side of it leads", places=True, on_scale=True, line=threshold
)
