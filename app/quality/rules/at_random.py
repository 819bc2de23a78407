"""What the update law learns of an annotator."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import QualityRule, RuleFinding, RuleRequirement, format_share


class AtRandom(QualityRule):
    """Answers at random, as far as the update law can tell."""

    name: ClassVar[str] = "at_random"
    title: ClassVar[str] = "Answers at random"
    explanation: ClassVar[str] = (
        "The probability that the update law `easl-aware` gives to answers at random; other laws learn none. It "
        "compares with the others and asks how far their answers go together, so what holds for agreement holds here."
    )

    least_probability: float = Field(
        default=0.99, ge=0.5, lt=1, title="Probability, at least",
        description="That somebody answers at random.",
    )  # fmt: skip
    fewest_judgments: int = Field(
        default=40, ge=1, le=100_000, title="Judgments, at least", description="Before anybody is judged."
    )

    def requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:  # noqa: ARG002  (the law decides)
        """As many as are asked for."""
        return RuleRequirement(self.fewest_judgments, "judgment")

    def evaluate(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleFinding | None:
        """Where the law is nearly sure, at any look. Of careful people a share of (1 - p) / p times the odds of
        answering at random before anything is known ever reach a probability p: the law's own prior keeps alarms rare.
        """
        unknown = np.isnan(behaviour.random_answer_probability) or len(behaviour.share) < self.fewest_judgments
        if unknown or behaviour.random_answer_probability < self.least_probability:
            return None
        sentence = f"Answers at random with a probability of {format_share(behaviour.random_answer_probability)}, says the update law."
        return RuleFinding(
            {"probability": behaviour.random_answer_probability, "judgments": len(behaviour.share)}, sentence
        )
