"""Rule on recordings and videos that were judged without having been played enough."""

from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleAssessment, RuleRequirement, assess_event_share
from app.quality.sequential_limits import min_consecutive_events_above_limit

CARELESS_UNPLAYED_SHARE = 0.5  # of the items of someone who does not care to play them


class UnplayedRule(QualityRule):
    """Finds annotators who judge recordings or videos that they have hardly played."""

    name: ClassVar[str] = "played"
    is_evidence_reported: ClassVar[bool] = True
    reads_values: ClassVar[bool] = False
    title: ClassVar[str] = "Does not play recordings"
    condition: ClassVar[str] = (
        "an annotator plays less than {least_percent} % of the recording or video for more than {careful_percent} % "
        "of the items"
    )
    explanation: ClassVar[str] = (
        "Finds people who judge recordings or videos after playing only a small part of them. The longest part that "
        "anyone played counts as the whole. The browser reports what was played; answers without a report are ignored. "
        "The rule cannot tell whether anyone listened."
    )

    least_percent: Percent = Field(
        default=50,
        title="Enough played (% of the length)",
        description="Share of a recording or video that must be played before its item is judged.",
    )
    careful_percent: Percent = Field(
        default=20,
        title="A careful person may skip (%)",
        description="Share of items that a careful person may judge after playing less.",
    )

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of judgments that suffices if none of the recordings was played."""
        return RuleRequirement(
            min_consecutive_events_above_limit(self.careful_percent / 100, false_alarm_rate), "judgment"
        )

    @override
    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if too many items were judged after playing too little."""
        unplayed, count = int((behaviour.played_share < self.least_percent / 100).sum()), len(behaviour.played_share)
        careful_share = self.careful_percent / 100
        return assess_event_share(
            unplayed,
            count,
            careful_share,
            false_alarm_rate,
            sentence=f"Judged {unplayed} of {count} recordings or videos after playing less than "
            f"{self.least_percent:g} %.",
            measures={"unplayed": unplayed, "judgments": count},
            careless_share=max(careful_share, CARELESS_UNPLAYED_SHARE),
        )
