"""Rules on items with a known answer, and on items that say what to answer."""

from abc import abstractmethod
from typing import ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour, MetFlags
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleRequirement
from app.quality.sequential_limits import is_event_share_above_limit, min_consecutive_events_above_limit


class FailedChecksRule(QualityRule):
    """Finds annotators who fail more checks of one kind than a careful person does."""

    reads_values: ClassVar[bool] = False
    failure_unit: ClassVar[Literal["failed gold item", "failed attention item"]]

    careful_percent: Percent

    @abstractmethod
    def met_flags(self, behaviour: AnnotatorBehaviour) -> MetFlags:
        """Return which checks of this kind were answered as expected."""

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of failed checks that suffices if none was met."""
        count = min_consecutive_events_above_limit(self.careful_percent / 100, false_alarm_rate)
        return RuleRequirement(count, self.failure_unit)

    @override
    def finding_about_annotator_or_none(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleFinding | None:
        """Return a finding if too many checks were failed for an accident."""
        met_flags = self.met_flags(behaviour)
        failures, shown = int((~met_flags).sum()), len(met_flags)
        if not is_event_share_above_limit(failures, shown, self.careful_percent / 100, false_alarm_rate):
            return None
        return RuleFinding(
            {"failed": failures, "shown": shown},
            f"Failed {failures} of {shown} {self.failure_unit.removeprefix('failed ')}s.",
        )


class FailedGoldRule(FailedChecksRule):
    """Finds annotators who fail more gold items than a careful person does."""

    name: ClassVar[str] = "gold"
    title: ClassVar[str] = "Fails gold items"
    condition: ClassVar[str] = "an annotator fails more than {careful_percent} % of gold items"
    explanation: ClassVar[str] = (
        "Finds people who miss known answers. Gold items that most people fail are ignored, since they are probably "
        "wrong. The rule cannot distinguish carelessness from a different view of these items."
    )
    failure_unit = "failed gold item"

    careful_percent: Percent = Field(
        default=20,
        title="A careful person may fail (%)",
        description="Share of gold items that a careful person may fail.",
    )

    @override
    def met_flags(self, behaviour: AnnotatorBehaviour) -> MetFlags:
        return behaviour.gold_met


class FailedAttentionRule(FailedChecksRule):
    """Finds annotators who do not do what attention items ask."""

    name: ClassVar[str] = "attention"
    title: ClassVar[str] = "Fails attention items"
    condition: ClassVar[str] = "an annotator fails more than {careful_percent} % of attention items"
    explanation: ClassVar[str] = (
        "Finds people who do not follow the instruction in an item, and so probably do not read items. It misses "
        "people who "
        "read these items and answer the others at random."
    )
    failure_unit = "failed attention item"

    careful_percent: Percent = Field(
        default=5,
        title="A careful person may fail (%)",
        description="Share of attention items that a careful person may fail.",
    )

    @override
    def met_flags(self, behaviour: AnnotatorBehaviour) -> MetFlags:
        return behaviour.attention_met
