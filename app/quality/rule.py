"""Base of rules for annotators. A rule is a pure function from an annotator's behaviour to a finding or None."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import ConfigDict, Field

from app.designs.field_flags import InputModel
from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.sequential_limits import is_event_share_above_limit

RuleAction = Literal["nothing", "warn", "hold", "exclude"]

Percent = Annotated[float, Field(ge=1, le=99, allow_inf_nan=False)]
AssessmentState = Literal["flagged", "fine", "unknown"]

MISSED_RATE = 0.05  # share of careless annotators about whom a rule may say, at any time, that it found nothing


class RuleFinding(NamedTuple):
    """Finding of a rule about an annotator: measured numbers by name, and a sentence."""

    measures: dict[str, float]
    sentence: str


class RuleAssessment(NamedTuple):
    """Everything that a rule can say about an annotator now.

    Attributes:
        state: "flagged" if the answers are too careless for an accident, "fine" if they exclude an annotator whom the
            rule looks for, "unknown" if neither is sure yet.
        sentence: The evidence, with the measured numbers.
        measures: Measured numbers by name, as they are stored with a finding.
        figure: The main number with its interval, shown next to the mark; empty if the rule has none.
        final_state: State if the annotator gets no further case that the rule reads; None for `state`.
        final_remark: Sentence that is added then; empty if there is none.

    """

    state: AssessmentState
    sentence: str
    measures: Mapping[str, float] = {}
    figure: str = ""
    final_state: AssessmentState | None = None
    final_remark: str = ""


@dataclass(frozen=True)
class RuleRequirement:
    """Smallest amount of work of one annotator with which a rule can find them.

    Attributes:
        count: Number of units, if all of them speak against the annotator.
        unit: The unit, in the singular.
        count_per_other: Number of units that each of `other_annotators` others needs; 0 for rules that do not compare
            annotators.
        target: Annotators that the rule can find with this amount.
        other_annotators: Number of others to compare with; 0 for rules that do not compare annotators.
        others_condition: Condition on the others, as the end of a sentence; empty if there is none.

    """

    count: int
    unit: Literal["failed gold item", "failed attention item", "task", "judgment", "implied pair"]
    count_per_other: int = 0
    target: str = "anyone"
    other_annotators: int = 0
    others_condition: str = ""


class QualityRule(InputModel, ABC):
    """A rule. Its fields are the thresholds that a campaign can set, each with a title, a description and a default.

    Attributes:
        name: Key in `QUALITY_RULES`, stored with findings.
        explanation: What the rule can tell and what it cannot, for people.
        condition: When the rule acts, as the end of a sentence: “Warn me when …”. A threshold stands in braces.
        is_evidence_reported: Whether the rule rests on what a browser reports, which proves nothing. No preset then
            holds an annotator by it.
        reads_values: Whether the rule reads the values of answers, and so looks at each criterion of a campaign
            separately.

    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    name: ClassVar[str]
    title: ClassVar[str]
    explanation: ClassVar[str]
    condition: ClassVar[str] = ""
    is_evidence_reported: ClassVar[bool] = False
    reads_values: ClassVar[bool] = True

    def measure_for_comparison(self, behaviour: AnnotatorBehaviour) -> float | tuple[float, ...]:  # noqa: ARG002  (some rules read it)
        """Return the number by which annotators are compared, or several; NaN if too little is known, or if the rule
        does not compare annotators.
        """
        return nan

    def supports_answers(self, answer_kind: JudgmentKind, class_count: int) -> bool:  # noqa: ARG002  (some rules read it)
        """Return whether the rule applies to such answers; `class_count` is 0 for answers without classes."""
        return True

    @abstractmethod
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the smallest amount of an annotator's work that the rule needs; `false_alarm_rate` is as in
        `assess_annotator`.
        """

    @abstractmethod
    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Return what the rule can say about an annotator.

        Args:
            behaviour: The annotator's behaviour.
            other_measures: `measure_for_comparison` of each other annotator, (O,), or (O, M) if it returns several
                numbers.
            false_alarm_rate: Share of careful people that the rule may find, 0 to 1, however often it looks at them.

        """


def assess_event_share(
    event_count: int,
    case_count: int,
    max_share: float,
    false_alarm_rate: float,
    *,
    sentence: str,
    measures: Mapping[str, float],
    careless_share: float | None = None,
) -> RuleAssessment:
    """Return the assessment of an annotator whose answers contain an event that is usual for careless people.

    Args:
        event_count: Number of cases with the event.
        case_count: Number of cases.
        max_share: Share of events of a careful person, at most, 0 to 1. The annotator is flagged beyond it.
        false_alarm_rate: As in `assess_annotator`.
        sentence: The evidence.
        measures: As in `RuleAssessment`.
        careless_share: Share of events of a careless person, at least; below it, nothing is found. None for
            `max_share`.

    """
    careless = max_share if careless_share is None else careless_share
    state: AssessmentState = "unknown"
    if is_event_share_above_limit(event_count, case_count, max_share, false_alarm_rate):
        state = "flagged"
    elif is_event_share_above_limit(case_count - event_count, case_count, 1.0 - careless, MISSED_RATE):
        state = "fine"
    return RuleAssessment(state, sentence, measures)


def share_as_percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.0f} %"
