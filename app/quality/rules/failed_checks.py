"""Rules on items with a known answer, and on items that say what to answer."""

from typing import ClassVar

from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour, MetFlags
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleRequirement
from app.quality.sequential_limits import is_share_exceeded, min_consecutive_events


class FailedGoldRule(QualityRule):
    """Finds annotators who fail more gold items than a careful person does."""

    name: ClassVar[str] = "gold"
    reads_values: ClassVar[bool] = False
    title: ClassVar[str] = "Fails gold items"
    explanation: ClassVar[str] = (
        "Finds people who miss known answers. Gold items that most people fail are ignored, since they are probably "
        "wrong. The rule cannot distinguish carelessness from a different view of these items."
    )

    careful_percent: Percent = Field(
        default=20,
        title="A careful person may fail (%)",
        description="Share of gold items that a careful person may fail.",
    )

    def requirement(
        self,
        answer_kind: JudgmentKind,  # noqa: ARG002  (the same for all kinds)
        false_alarm_rate: float,
    ) -> RuleRequirement:
        """Return the number of failed gold items that suffices if none was met."""
        return RuleRequirement(min_consecutive_events(self.careful_percent / 100, false_alarm_rate), "failed gold item")

    def evaluate(
        self,
        behaviour: AnnotatorBehaviour,
        other_measures: Array,  # noqa: ARG002  (the rule does not compare)
        false_alarm_rate: float,
    ) -> RuleFinding | None:
        """Find the annotator by the gold items failed so far."""
        return evaluate_failed_checks(behaviour.gold_met, self.careful_percent / 100, false_alarm_rate, "gold items")


class FailedAttentionRule(QualityRule):
    """Finds annotators who do not do what attention items ask."""

    name: ClassVar[str] = "attention"
    reads_values: ClassVar[bool] = False
    title: ClassVar[str] = "Fails attention items"
    explanation: ClassVar[str] = (
        "Finds people who do not read items, because they do not follow an item’s instruction. It misses people who "
        "read these items and answer the others at random."
    )

    careful_percent: Percent = Field(
        default=5,
        title="A careful person may fail (%)",
        description="Share of attention items that a careful person may fail.",
    )

    def requirement(
        self,
        answer_kind: JudgmentKind,  # noqa: ARG002  (the same for all kinds)
        false_alarm_rate: float,
    ) -> RuleRequirement:
        """Return the number of failed attention items that suffices if none was met."""
        return RuleRequirement(
            min_consecutive_events(self.careful_percent / 100, false_alarm_rate), "failed attention item"
        )

    def evaluate(
        self,
        behaviour: AnnotatorBehaviour,
        other_measures: Array,  # noqa: ARG002  (the rule does not compare)
        false_alarm_rate: float,
    ) -> RuleFinding | None:
        """Find the annotator by the attention items failed so far."""
        return evaluate_failed_checks(
            behaviour.attention_met, self.careful_percent / 100, false_alarm_rate, "attention items"
        )


def evaluate_failed_checks(
    met_flags: MetFlags, careful_share: float, false_alarm_rate: float, checks_title: str
) -> RuleFinding | None:
    """Return a finding if too many checks were failed for an accident."""
    failures, shown = int((~met_flags).sum()), len(met_flags)
    if not is_share_exceeded(failures, shown, careful_share, false_alarm_rate):
        return None
    return RuleFinding({"failed": failures, "shown": shown}, f"Failed {failures} of {shown} {checks_title}.")
