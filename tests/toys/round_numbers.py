"""Quality rule that finds annotators who give round scores only."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleAssessment, RuleRequirement, assess_event_share, share_as_percent
from app.quality.sequential_limits import min_consecutive_events_above_limit

ROUND_STEPS = 10  # a round score is a multiple of a tenth of the scale


class RoundNumbers(QualityRule):
    """Finds annotators most of whose scores are round."""

    name: ClassVar[str] = "round_numbers"
    title: ClassVar[str] = "Gives round scores"
    explanation: ClassVar[str] = (
        "Finds people most of whose scores are multiples of ten points. Round scores are coarse; they need not be "
        "careless."
    )

    most_percent: Percent = Field(
        default=60, title="More than (%)", description="The rule finds people with a larger share of round scores."
    )

    def supports_answers(self, answer_kind: JudgmentKind, class_count: int) -> bool:
        """Return whether answers are points: only these can be round."""
        return answer_kind == "points"

    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of judgments that suffices if all of them are round."""
        return RuleRequirement(
            min_consecutive_events_above_limit(self.most_percent / 100, false_alarm_rate), "judgment"
        )

    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if too many scores are round, however often the rule looks."""
        steps = ROUND_STEPS * behaviour.share
        round_count, count = int((np.abs(steps - np.round(steps)) < 1e-9).sum()), len(steps)
        return assess_event_share(
            round_count,
            count,
            self.most_percent / 100,
            false_alarm_rate,
            sentence=f"{round_count} of {count} scores are round ({share_as_percent(round_count / max(1, count))}).",
            measures={"round": round_count, "judgments": count},
        )
