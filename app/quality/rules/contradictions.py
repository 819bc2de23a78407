"""Answers that contradict what the same annotator's earlier answers imply."""

from itertools import combinations
from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.preferences.implied_pairs import Implications, pair_outcome
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleRequirement, format_share
from app.quality.sequential_limits import is_share_exceeded, median_of_others, min_consecutive_events

MIN_IMPLIED_PAIRS = 10  # answers about pairs that others imply
CHANCE_OF_CONTRADICTION = 0.5


class Contradictions(QualityRule):
    """Prefers a to b and b to c, and then c to a."""

    name: ClassVar[str] = "contradictions"
    title: ClassVar[str] = "Contradicts their own answers"
    explanation: ClassVar[str] = (
        "Of pairs whose order follows from somebody’s earlier answers, how many they then put the other way round; by "
        "chance it is half. It needs many answers of one person about the same items, and tells nothing of who is "
        "consistently wrong. Where close items are compared, careful people contradict themselves, too."
    )

    least_percent: Percent = Field(
        default=25, title="At least (%)",
        description="Of implied pairs put the other way round, below which nobody is found, whatever others do.",
    )  # fmt: skip

    def measure(self, behaviour: AnnotatorBehaviour) -> float:
        """The share of implied pairs that were put the other way round."""
        contradictions, implied_pairs = count_contradictions(behaviour)
        return contradictions / implied_pairs if implied_pairs >= MIN_IMPLIED_PAIRS else nan

    def supports(self, answer_kind: JudgmentKind, class_count: int) -> bool:  # noqa: ARG002  (no labels are read)
        """Orders of items."""
        return answer_kind == "order"

    def requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:  # noqa: ARG002  (of orders alone)
        """So many that were all put the other way round."""
        return RuleRequirement(
            min_consecutive_events(max(self.least_percent / 100, CHANCE_OF_CONTRADICTION / 2), false_alarm_rate),
            "implied pair",
            MIN_IMPLIED_PAIRS,
        )

    def evaluate(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleFinding | None:
        """Beyond the middle between what is usual and chance."""
        usual = median_of_others(other_measures)
        contradictions, implied_pairs = count_contradictions(behaviour)
        max_share = max(self.least_percent / 100, (CHANCE_OF_CONTRADICTION + usual) / 2)
        if np.isnan(usual) or not is_share_exceeded(contradictions, implied_pairs, max_share, false_alarm_rate):
            return None
        sentence = f"Put {contradictions} of {implied_pairs} pairs the other way round than earlier answers imply; usual is {format_share(usual)}."
        return RuleFinding({"contradicted": contradictions, "implied": implied_pairs, "usual": usual}, sentence)


def count_contradictions(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """How many pairs that were implied were put the other way round, and how many were asked: of each HIT the first
    such pair, since the others follow from each other.
    """
    if behaviour.yields != "order":
        return 0, 0
    implications, contradictions, implied_pairs = Implications(), 0, 0
    for start, end in zip(behaviour.hit_starts, behaviour.hit_starts[1:], strict=False):
        items, shares = behaviour.item[start:end].tolist(), behaviour.share[start:end].tolist()
        pairs = [
            (items[a], items[b], pair_outcome((shares[a], shares[b])))
            for a, b in combinations(range(len(items)), 2)
            if behaviour.ties or shares[a] != shares[b]
        ]
        implied = [(implications.implied_outcome(a, b), outcome) for a, b, outcome in pairs]
        first = next(((before, outcome) for before, outcome in implied if before is not None), None)
        if first is not None:
            contradictions, implied_pairs = contradictions + (first[1] == -first[0]), implied_pairs + 1
        for pair in pairs:
            implications.add_outcome(*pair)
    return contradictions, implied_pairs
