"""The same answer again and again."""

from itertools import pairwise
from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.coarsening import Reads
from app.quality.conduct import Conduct
from app.quality.evidence import min_in_a_row, too_often, typical
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleNeed, percent

NEAR = 0.025  # of the scale
FEWEST = 10  # answers that could be like the one before, so that a share of them means anything


class StraightLining(QualityRule):
    """Gives the same answers whatever is asked."""

    name: ClassVar[str] = "straight_lining"
    title: ClassVar[str] = "Gives the same answer again"
    tells: ClassVar[str] = (
        "Who gives nearly the same values as just before, or as in the HIT before (of labels: at the same place; of "
        "places: the same order), far more often than others do. Items that are alike get the same answers from "
        "careful people, too: that is why they are compared with others."
    )

    least_percent: Percent = Field(
        default=50, title="At least (%)",
        description="Of answers like the one before, below which nobody is found, whatever others do.",
    )  # fmt: skip

    def measure(self, conduct: Conduct) -> float:
        """The share of answers that are like the one before."""
        times, of = alike(conduct)
        return times / of if of >= FEWEST else nan

    def needs(self, yields: Reads, alarm: float) -> RuleNeed:
        """So many that are like the one before, where nobody else does that; the first has none before it."""
        alike_in_a_row = min_in_a_row(between(0.0, self.least_percent), alarm)
        return RuleNeed(1 + alike_in_a_row, "HIT" if yields == "order" else "judgment", 1 + FEWEST)

    def look(self, conduct: Conduct, others: Array, alarm: float) -> RuleFinding | None:
        """Beyond the middle between what is usual and always."""
        usual = typical(others)
        times, of = alike(conduct)
        if np.isnan(usual) or not too_often(times, of, between(usual, self.least_percent), alarm):
            return None
        said = f"{times} of {of} answers are like the one before ({percent(times / of)}); usual is {percent(usual)}."
        return RuleFinding({"alike": times, "answers": of, "usual": usual}, said)


def between(usual: float, least_percent: float) -> float:
    """The share half-way from what is usual to always, but no less than a least one."""
    return min(max(least_percent / 100, (1.0 + usual) / 2.0), 0.99)


def alike(conduct: Conduct) -> tuple[int, int]:
    """How many answers are like the one before, and how many could be."""
    return same_orders(conduct) if conduct.yields == "order" else same_values(conduct)


def same_orders(conduct: Conduct) -> tuple[int, int]:
    """Of HITs that show as many items as the one before, those with the same order."""
    rows = np.split(conduct.share, conduct.starts[1:-1])
    pairs = [(one, other) for one, other in pairwise(rows) if len(one) == len(other)]
    return sum(np.array_equal(one, other) for one, other in pairs), len(pairs)


def same_values(conduct: Conduct) -> tuple[int, int]:
    """Of judgments after the first, those near the one before or, in the HIT before, one of points or ratios, the one
    at the same place of classes: these are few, so most answers are also somewhere in the HIT before.
    """
    share, starts = conduct.share, conduct.starts
    if len(share) < 2:
        return 0, 0
    sizes = np.diff(starts)
    which = np.repeat(np.arange(len(sizes)), sizes)
    before, size = starts[which - 1], np.where(which > 0, sizes[which - 1], 0)
    own = np.arange(len(share)) - starts[which]
    of_points = conduct.yields in ("points", "ratio")
    near, places = (NEAR, np.arange(sizes.max())) if of_points else (0.0, np.zeros(1, np.intp))
    like = np.abs(share - np.roll(share, 1)) <= near
    for place in places:
        there = np.full_like(own, place) if of_points else own
        comparable = there < size
        like |= comparable & (np.abs(share - share[np.where(comparable, before + there, 0)]) <= near)
    return int(like[1:].sum()), len(share) - 1
