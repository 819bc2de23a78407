"""Rule on the probability that an annotator answers at random, as estimated with the scores of the items."""

from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import (
    MISSED_RATE,
    AssessmentState,
    QualityRule,
    RuleAssessment,
    RuleRequirement,
    share_as_percent,
)


class AtRandom(QualityRule):
    """Finds annotators who answer at random, as far as an estimate that accounts for annotators can tell."""

    name: ClassVar[str] = "at_random"
    title: ClassVar[str] = "Answers at random"
    condition: ClassVar[str] = (
        "an annotator answers at random with a probability of {least_probability} "
        "or more, after {fewest_judgments} judgments"
    )
    explanation: ClassVar[str] = (
        "Finds people who probably answer at random, as estimated by the update laws easl-aware and trueskill-aware; "
        "for comparisons and rankings, by annotator-aware Bradley-Terry from all answers. Other update laws make no "
        "such estimate. It compares annotators by how well their answers agree, so it has the same limits as the rule "
        "on agreement."
    )

    least_probability: float = Field(
        default=0.99, ge=0.5, lt=1, title="Probability, at least",
        description="The rule finds annotators whose probability of random answers is this or higher.",
    )  # fmt: skip
    fewest_judgments: int = Field(
        default=40, ge=1, le=100_000, title="Judgments, at least", description="Annotators with fewer are ignored."
    )

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of judgments that the threshold asks for."""
        return RuleRequirement(self.fewest_judgments, "judgment")

    @override
    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if the estimate is nearly sure, at any look.

        The share of careful people who ever reach a probability p is at most (1 - p) / p times the prior odds of
        answering at random, so the prior of the estimate keeps false alarms rare.
        """
        value, judgments = behaviour.random_answer_probability, len(behaviour.share)
        if np.isnan(value):
            return RuleAssessment("unknown", "There is no estimate yet.")
        probability = share_as_percent(value)
        source = "a fit to all comparisons" if behaviour.answer_kind == "order" else "the update law"
        sentence = f"Answers at random with a probability of {probability}, according to {source}."
        state: AssessmentState = "unknown"
        if judgments >= self.fewest_judgments and value >= self.least_probability:
            state = "flagged"
        elif judgments >= self.fewest_judgments and value < MISSED_RATE:
            state = "fine"
        return RuleAssessment(state, sentence, {"probability": value, "judgments": judgments})
