"""Rule on answers that contradict the order implied by the same annotator's earlier answers."""

from itertools import combinations
from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.preferences.implied_pairs import Implications, pair_outcome_from_scale_shares
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleAssessment, RuleRequirement, assess_event_share, share_as_percent
from app.quality.sequential_limits import (
    MIN_OTHER_ANNOTATORS,
    median_of_other_annotators_or_nan,
    min_consecutive_events_above_limit,
)

MIN_IMPLIED_PAIRS = 10
CHANCE_OF_CONTRADICTION = 0.5


class Contradictions(QualityRule):
    """Finds annotators who prefer a to b and b to c, and then c to a."""

    name: ClassVar[str] = "contradictions"
    title: ClassVar[str] = "Contradicts their own answers"
    condition: ClassVar[str] = (
        "an annotator reverses more than {least_percent} % of the pairs that earlier answers imply"
    )
    explanation: ClassVar[str] = (
        "Finds people who reverse pairs whose order follows from their earlier answers. It needs many answers by one "
        "person about the same items, and misses people who are always wrong. Careful people contradict themselves "
        "too if items are close."
    )

    least_percent: Percent = Field(
        default=25, title="At least (%)",
        description="The rule ignores people with a lower share of reversed implied pairs.",
    )  # fmt: skip

    def measure_for_comparison(self, behaviour: AnnotatorBehaviour) -> float:
        """Return the share of implied pairs that were reversed."""
        contradictions, implied_pairs = count_contradicted_and_implied_pairs(behaviour)
        return contradictions / implied_pairs if implied_pairs >= MIN_IMPLIED_PAIRS else nan

    @override
    def supports_answers(self, answer_kind: JudgmentKind, class_count: int) -> bool:
        """Return whether the answers are orders of items."""
        return answer_kind == "order"

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of implied pairs that suffices if all of them were reversed."""
        return RuleRequirement(
            min_consecutive_events_above_limit(
                max(self.least_percent / 100, CHANCE_OF_CONTRADICTION / 2), false_alarm_rate
            ),
            "implied pair",
            MIN_IMPLIED_PAIRS,
            other_annotators=MIN_OTHER_ANNOTATORS,
        )

    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if more pairs are reversed than half-way between the usual share and chance."""
        usual = median_of_other_annotators_or_nan(other_measures)
        contradictions, implied_pairs = count_contradicted_and_implied_pairs(behaviour)
        reversed_text = f"Reversed {contradictions} of {implied_pairs} pairs whose order earlier answers imply"
        if np.isnan(usual):
            return RuleAssessment("unknown", f"{reversed_text}.")
        return assess_event_share(
            contradictions,
            implied_pairs,
            max(self.least_percent / 100, (CHANCE_OF_CONTRADICTION + usual) / 2),
            false_alarm_rate,
            sentence=f"{reversed_text}; the usual share is {share_as_percent(usual)}.",
            measures={"contradicted": contradictions, "implied": implied_pairs, "usual": usual},
        )


def count_contradicted_and_implied_pairs(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """Return the number of reversed implied pairs, and of all implied pairs. Only the first implied pair of each HIT
    counts, since the others follow from each other.
    """
    if behaviour.answer_kind != "order":
        return 0, 0
    implications, contradictions, implied_pairs = Implications(), 0, 0
    for start, end in zip(
        behaviour.index_of_first_judgment_of_each_hit, behaviour.index_of_first_judgment_of_each_hit[1:], strict=False
    ):
        items, shares = behaviour.item[start:end].tolist(), behaviour.share[start:end].tolist()
        pairs = [
            (items[a], items[b], pair_outcome_from_scale_shares((shares[a], shares[b])))
            for a, b in combinations(range(len(items)), 2)
            if behaviour.ties or shares[a] != shares[b]
        ]
        implied = [(implications.implied_outcome_or_none(a, b), outcome) for a, b, outcome in pairs]
        first = next(((before, outcome) for before, outcome in implied if before is not None), None)
        if first is not None:
            contradictions, implied_pairs = contradictions + (first[1] == -first[0]), implied_pairs + 1
        for pair in pairs:
            implications.add_outcome_and_return_implied_or_none(*pair)
    return contradictions, implied_pairs
