"""Rule for annotators who give the same answer again and again."""

from itertools import pairwise
from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleAssessment, RuleRequirement, assess_event_share, share_as_percent
from app.quality.sequential_limits import (
    MIN_OTHER_ANNOTATORS,
    median_of_other_annotators_or_nan,
    min_consecutive_events_above_limit,
)

SAME_VALUE_TOLERANCE = 0.025  # of the scale
MIN_REPEATABLE_ANSWERS = 10  # a share of fewer answers says little


class StraightLining(QualityRule):
    """Finds annotators who give the same answers whatever they are asked."""

    name: ClassVar[str] = "straight_lining"
    title: ClassVar[str] = "Repeats the same answer"
    condition: ClassVar[str] = "more than {least_percent} % of an annotator’s answers are like the one before"
    explanation: ClassVar[str] = (
        "Finds people who repeat nearly the same values, labels or order from one judgment or task to the next, far "
        "more often than others. Careful people also repeat answers for similar items, so the rule compares with "
        "others."
    )

    least_percent: Percent = Field(
        default=50, title="At least (%)",
        description="The rule ignores people with a lower share of answers like the previous one.",
    )  # fmt: skip

    def measure_for_comparison(self, behaviour: AnnotatorBehaviour) -> float:
        """Return the share of answers that are like the one before."""
        repeats, repeatable = count_repeated_and_repeatable_answers(behaviour)
        return repeats / repeatable if repeatable >= MIN_REPEATABLE_ANSWERS else nan

    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the amount that suffices if all answers are like the one before, and no other annotator repeats
        answers. The first answer has none before it.
        """
        consecutive_repeats = min_consecutive_events_above_limit(
            share_halfway_from_usual_to_always(0.0, self.least_percent), false_alarm_rate
        )
        return RuleRequirement(
            1 + consecutive_repeats,
            "task" if answer_kind == "order" else "judgment",
            1 + MIN_REPEATABLE_ANSWERS,
            other_annotators=MIN_OTHER_ANNOTATORS,
        )

    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if their share is beyond half-way from the usual share to all."""
        usual = median_of_other_annotators_or_nan(other_measures)
        repeats, repeatable = count_repeated_and_repeatable_answers(behaviour)
        finding = f"{repeats} of {repeatable} {'answer is' if repeatable == 1 else 'answers are'} like the previous one"
        if np.isnan(usual) or not repeatable:
            return RuleAssessment("unknown", f"{finding}.")
        sentence = (
            f"{finding} ({share_as_percent(repeats / repeatable)}); the usual share is {share_as_percent(usual)}."
        )
        return assess_event_share(
            repeats,
            repeatable,
            share_halfway_from_usual_to_always(usual, self.least_percent),
            false_alarm_rate,
            sentence=sentence,
            measures={"alike": repeats, "answers": repeatable, "usual": usual},
        )


def share_halfway_from_usual_to_always(usual_share: float, least_percent: float) -> float:
    """Return the share half-way from the usual one to 1, but at least `least_percent`."""
    return min(max(least_percent / 100, (1.0 + usual_share) / 2.0), 0.99)


def count_repeated_and_repeatable_answers(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """Return the number of answers like the one before, and of answers that could be."""
    return (
        count_repeated_and_repeatable_orders(behaviour)
        if behaviour.answer_kind == "order"
        else count_repeated_and_repeatable_values(behaviour)
    )


def count_repeated_and_repeatable_orders(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """Return how many HITs repeat the order of the HIT before, among HITs with as many items as the one before."""
    hit_shares = np.split(behaviour.share, behaviour.index_of_first_judgment_of_each_hit[1:-1])
    pairs = [(earlier, later) for earlier, later in pairwise(hit_shares) if len(earlier) == len(later)]
    return sum(np.array_equal(earlier, later) for earlier, later in pairs), len(pairs)


def count_repeated_and_repeatable_values(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """Return how many judgments repeat the one before, or, for points and ratios, any judgment of the HIT before, and
    the number of judgments after the first. With classes, only the same place of the HIT before is compared: classes
    are few, so most answers occur somewhere in the HIT before.
    """
    share, starts = behaviour.share, behaviour.index_of_first_judgment_of_each_hit
    if len(share) < 2:
        return 0, 0
    sizes = np.diff(starts)
    hit_index = np.repeat(np.arange(len(sizes)), sizes)
    before, size = starts[hit_index - 1], np.where(hit_index > 0, sizes[hit_index - 1], 0)
    own_places = np.arange(len(share)) - starts[hit_index]
    is_continuous = behaviour.answer_kind in ("points", "ratio")
    near, places = (SAME_VALUE_TOLERANCE, np.arange(sizes.max())) if is_continuous else (0.0, np.zeros(1, np.intp))
    is_repeated = np.abs(share - np.roll(share, 1)) <= near
    for place in places:
        place_before = np.full_like(own_places, place) if is_continuous else own_places
        comparable = place_before < size
        is_repeated |= comparable & (np.abs(share - share[np.where(comparable, before + place_before, 0)]) <= near)
    return int(is_repeated[1:].sum()), len(share) - 1
