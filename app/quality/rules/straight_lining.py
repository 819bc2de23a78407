"""The same answer again and again."""

from itertools import pairwise
from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleRequirement, format_share
from app.quality.sequential_limits import is_share_exceeded, median_of_others, min_consecutive_events

SAME_VALUE_TOLERANCE = 0.025  # of the scale
MIN_REPEATABLE_ANSWERS = 10  # answers that could be like the one before, so that a share of them means anything


class StraightLining(QualityRule):
    """Gives the same answers whatever is asked."""

    name: ClassVar[str] = "straight_lining"
    title: ClassVar[str] = "Gives the same answer again"
    explanation: ClassVar[str] = (
        "Who gives nearly the same values as just before, or as in the HIT before (of labels: at the same place; of "
        "places: the same order), far more often than others do. Items that are alike get the same answers from "
        "careful people, too: that is why they are compared with others."
    )

    least_percent: Percent = Field(
        default=50, title="At least (%)",
        description="Of answers like the one before, below which nobody is found, whatever others do.",
    )  # fmt: skip

    def measure(self, behaviour: AnnotatorBehaviour) -> float:
        """The share of answers that are like the one before."""
        repeats, repeatable = count_repeats(behaviour)
        return repeats / repeatable if repeatable >= MIN_REPEATABLE_ANSWERS else nan

    def requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """So many that are like the one before, where nobody else does that; the first has none before it."""
        consecutive_repeats = min_consecutive_events(halfway_to_always(0.0, self.least_percent), false_alarm_rate)
        return RuleRequirement(
            1 + consecutive_repeats, "HIT" if answer_kind == "order" else "judgment", 1 + MIN_REPEATABLE_ANSWERS
        )

    def evaluate(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleFinding | None:
        """Beyond the middle between what is usual and always."""
        usual = median_of_others(other_measures)
        repeats, repeatable = count_repeats(behaviour)
        if np.isnan(usual) or not is_share_exceeded(
            repeats, repeatable, halfway_to_always(usual, self.least_percent), false_alarm_rate
        ):
            return None
        sentence = f"{repeats} of {repeatable} answers are like the one before ({format_share(repeats / repeatable)}); usual is {format_share(usual)}."
        return RuleFinding({"alike": repeats, "answers": repeatable, "usual": usual}, sentence)


def halfway_to_always(usual_share: float, least_percent: float) -> float:
    """The share half-way from what is usual to always, but no less than a least one."""
    return min(max(least_percent / 100, (1.0 + usual_share) / 2.0), 0.99)


def count_repeats(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """How many answers are like the one before, and how many could be."""
    return count_same_orders(behaviour) if behaviour.yields == "order" else count_same_values(behaviour)


def count_same_orders(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """Of HITs that show as many items as the one before, those with the same order."""
    hit_shares = np.split(behaviour.share, behaviour.hit_starts[1:-1])
    pairs = [(one, other) for one, other in pairwise(hit_shares) if len(one) == len(other)]
    return sum(np.array_equal(one, other) for one, other in pairs), len(pairs)


def count_same_values(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """Of judgments after the first, those near the one before or, in the HIT before, one of points or ratios, the one
    at the same place of classes: these are few, so most answers are also somewhere in the HIT before.
    """
    share, starts = behaviour.share, behaviour.hit_starts
    if len(share) < 2:
        return 0, 0
    sizes = np.diff(starts)
    hit_index = np.repeat(np.arange(len(sizes)), sizes)
    before, size = starts[hit_index - 1], np.where(hit_index > 0, sizes[hit_index - 1], 0)
    own_places = np.arange(len(share)) - starts[hit_index]
    of_points = behaviour.yields in ("points", "ratio")
    near, places = (SAME_VALUE_TOLERANCE, np.arange(sizes.max())) if of_points else (0.0, np.zeros(1, np.intp))
    is_repeated = np.abs(share - np.roll(share, 1)) <= near
    for place in places:
        place_before = np.full_like(own_places, place) if of_points else own_places
        comparable = place_before < size
        is_repeated |= comparable & (np.abs(share - share[np.where(comparable, before + place_before, 0)]) <= near)
    return int(is_repeated[1:].sum()), len(share) - 1
