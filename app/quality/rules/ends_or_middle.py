"""Rules for annotators who always answer at the ends of the scale, or always in its middle."""

from abc import abstractmethod
from math import nan
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field
from typing_extensions import override

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleAssessment, RuleRequirement, assess_event_share, share_as_percent
from app.quality.rules.straight_lining import MIN_REPEATABLE_ANSWERS, share_halfway_from_usual_to_always
from app.quality.sequential_limits import (
    MIN_OTHER_ANNOTATORS,
    median_of_other_annotators_or_nan,
    min_consecutive_events_above_limit,
)

REGION_TOLERANCE = 0.05  # of the scale
MIN_SCALE_POINTS = 4  # fewer labelled points are nearly all ends and middle


class ScaleRegionRule(QualityRule):
    """Finds annotators who keep to one part of the scale."""

    least_percent: Percent = Field(
        default=70, title="At least (%)",
        description="The rule ignores people with a lower share of such answers.",
    )  # fmt: skip

    region_text: ClassVar[str]

    @abstractmethod
    def mask_of_answers_in_region(self, shares: Array) -> npt.NDArray[np.bool_]:
        """Return which answers are in that part."""

    def measure_for_comparison(self, behaviour: AnnotatorBehaviour) -> float:
        """Return the share of answers in that part."""
        return (
            float(self.mask_of_answers_in_region(behaviour.share).mean())
            if is_behaviour_on_scale_with_ends_and_middle(behaviour) and len(behaviour.share) >= MIN_REPEATABLE_ANSWERS
            else nan
        )

    def supports_answers(self, answer_kind: JudgmentKind, class_count: int) -> bool:
        """Return whether the answers are on a scale with ends and a middle."""
        return has_answer_scale_ends_and_middle(answer_kind, class_count)

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the amount that suffices if all answers are in that part, and no other annotator's are."""
        return RuleRequirement(
            min_consecutive_events_above_limit(
                share_halfway_from_usual_to_always(0.0, self.least_percent), false_alarm_rate
            ),
            "judgment",
            MIN_REPEATABLE_ANSWERS,
            other_annotators=MIN_OTHER_ANNOTATORS,
        )

    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if their share is beyond half-way from the usual share to all."""
        usual = median_of_other_annotators_or_nan(other_measures)
        if not is_behaviour_on_scale_with_ends_and_middle(behaviour):
            return RuleAssessment("unknown", "The answers are not on a scale with ends and a middle.")
        inside_count, answer_count = int(self.mask_of_answers_in_region(behaviour.share).sum()), len(behaviour.share)
        answers_are = "answer is" if answer_count == 1 else "answers are"
        finding = f"{inside_count} of {answer_count} {answers_are} {self.region_text}"
        if np.isnan(usual) or not answer_count:
            return RuleAssessment("unknown", f"{finding}.")
        share = share_as_percent(inside_count / answer_count)
        sentence = f"{finding} ({share}); the usual share is {share_as_percent(usual)}."
        return assess_event_share(
            inside_count,
            answer_count,
            share_halfway_from_usual_to_always(usual, self.least_percent),
            false_alarm_rate,
            sentence=sentence,
            measures={"there": inside_count, "answers": answer_count, "usual": usual},
        )


class ScaleEndsRule(ScaleRegionRule):
    """Finds annotators who use little but the two ends of the scale."""

    name: ClassVar[str] = "ends"
    title: ClassVar[str] = "Always the ends of the scale"
    condition: ClassVar[str] = "more than {least_percent} % of an annotator’s answers are at the ends of the scale"
    explanation: ClassVar[str] = (
        "Finds people who answer within a twentieth of the two ends far more often than others. "
        "Some people and some items are extreme, and their order can still be right."
    )
    region_text: ClassVar[str] = "at the ends of the scale"

    def mask_of_answers_in_region(self, shares: Array) -> npt.NDArray[np.bool_]:
        """Return which answers are within a twentieth of an end."""
        return (shares <= REGION_TOLERANCE) | (shares >= 1.0 - REGION_TOLERANCE)


class ScaleMiddleRule(ScaleRegionRule):
    """Finds annotators who use little but the middle of the scale."""

    name: ClassVar[str] = "middle"
    title: ClassVar[str] = "Always the middle of the scale"
    condition: ClassVar[str] = "more than {least_percent} % of an annotator’s answers are in the middle of the scale"
    explanation: ClassVar[str] = (
        "Finds people who answer within a twentieth of the middle far more often than others. People who are honestly "
        "unsure do the same; offer “cannot be judged” for them."
    )
    region_text: ClassVar[str] = "in the middle of the scale"

    def mask_of_answers_in_region(self, shares: Array) -> npt.NDArray[np.bool_]:
        """Return which answers are within a twentieth of the middle."""
        return (shares >= 0.5 - REGION_TOLERANCE) & (shares <= 0.5 + REGION_TOLERANCE)


def is_behaviour_on_scale_with_ends_and_middle(behaviour: AnnotatorBehaviour) -> bool:
    """Return whether the answers are on a scale with ends and a middle."""
    return has_answer_scale_ends_and_middle(behaviour.answer_kind, behaviour.class_count)


def has_answer_scale_ends_and_middle(answer_kind: JudgmentKind, class_count: int) -> bool:
    return answer_kind == "points" or (answer_kind == "ordered_classes" and class_count >= MIN_SCALE_POINTS)
