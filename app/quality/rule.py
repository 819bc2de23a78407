"""What a rule on annotators is: a pure function from what is known of one of them to what it found, or nothing."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import nan
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import ConfigDict, Field

from app.field_flags import InputModel
from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour

RuleAction = Literal["nothing", "warn", "hold", "exclude"]

Percent = Annotated[float, Field(ge=1, le=99, allow_inf_nan=False)]


class RuleFinding(NamedTuple):
    """What a rule saw of an annotator: in numbers by name, and in a sentence."""

    measures: dict[str, float]
    sentence: str


@dataclass(frozen=True)
class RuleRequirement:
    """The least that a rule needs of one annotator before it can find them.

    count: of `what`, in the singular, where all of them speak against the annotator. others: how many of the same each
    of `LEAST_OTHERS` other annotators needs; 0 where the rule compares nobody. whom: the rule finds with so many.
    """

    count: int
    unit: Literal["failed gold item", "failed attention item", "HIT", "judgment", "implied pair"]
    count_per_other: int = 0
    target: str = "anybody"


class QualityRule(InputModel, ABC):
    """A rule, with a campaign's thresholds, which are its fields: each has a title, a description and a default.

    name: the key in `RULES`, stored with what it found. title: for people. tells: what it can tell, and what it cannot.
    of_values: whether it reads what was answered, and so looks at each criterion of a campaign for itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    name: ClassVar[str]
    title: ClassVar[str]
    explanation: ClassVar[str]
    reads_values: ClassVar[bool] = True

    def measure(self, behaviour: AnnotatorBehaviour) -> float:  # noqa: ARG002  (some ask)
        """What annotators are compared by; NaN where too little is known, and for rules that compare nobody."""
        return nan

    def supports(self, answer_kind: JudgmentKind, class_count: int) -> bool:  # noqa: ARG002  (some ask)
        """Return whether the rule says anything of such answers; classes: how many labels there are, 0 of others."""
        return True

    @abstractmethod
    def requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the least that it needs of an annotator; alarm: as `look` has it."""

    @abstractmethod
    def evaluate(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleFinding | None:
        """What is to be said of an annotator, None for nothing.

        others: the `measure` of every other annotator. alarm: of how many careful people one may be found all the
        same, as a share, 0 to 1, however often they are looked at.
        """


def format_share(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.0f} %"
