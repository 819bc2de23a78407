"""Rule on agreement with the other annotators, whose values do not include the annotator's own."""

from itertools import count
from math import nan
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleRequirement, share_as_percent
from app.quality.sequential_limits import (
    MIN_OTHER_ANNOTATORS,
    ends_of_sequential_correlation_interval,
    is_event_share_above_limit,
    median_of_other_annotators_or_nan,
    min_consecutive_events_above_limit,
    pearson_correlation_or_zero,
)
from app.text.numbers import format_with_places

MIN_COMPARED_JUDGMENTS = 20
MIN_AGREEMENT_ABOVE_CHANCE = 0.1  # usual share of equal classes, minus the share by chance
MIN_USUAL_CORRELATION = 0.1  # below it, no annotator can be distinguished from chance


class AgreementWithOthers(QualityRule):
    """Finds annotators who agree with the others far less than they agree with each other."""

    name: ClassVar[str] = "agreement"
    title: ClassVar[str] = "Disagrees with others"
    condition: ClassVar[str] = (
        "an annotator reaches less than {share_percent} % of the usual agreement, "
        "on items that {fewest_others} or more others judged"
    )
    explanation: ClassVar[str] = (
        "Compares answers with those of the others: by the correlation with their mean or, for labels, by the share "
        "equal to their most frequent label. An annotator is flagged only if even the upper end of the interval is "
        "below the limit. Strict or lenient people are not flagged. The rule cannot tell who is right, and if most "
        "people answer at random, careful people stand out."
    )

    share_percent: Percent = Field(
        default=50, title="At least (% of the usual agreement)",
        description=(
            "The usual agreement is the median of the other annotators. For labels, agreement counts from chance (0 "
            "%) to the usual (100 %)."
        ),
    )  # fmt: skip
    fewest_others: int = Field(
        default=2, ge=1, le=100, title="Other annotators per item, at least",
        description="Items with fewer others are not compared.",
    )  # fmt: skip

    def mask_of_judgments_with_enough_other_annotators(self, behaviour: AnnotatorBehaviour) -> npt.NDArray[np.bool_]:
        """Return which judgments are of items with enough other annotators."""
        return behaviour.other_judge_counts >= self.fewest_others

    def measure_for_comparison(self, behaviour: AnnotatorBehaviour) -> float:
        """Return the correlation with the others' means; for labels, the share equal to the others' most frequent
        label.
        """
        comparable = self.mask_of_judgments_with_enough_other_annotators(behaviour)
        if comparable.sum() < MIN_COMPARED_JUDGMENTS:
            return nan
        if behaviour.answer_kind == "classes":
            return float((behaviour.share == behaviour.others_share)[comparable].mean())
        return pearson_correlation_or_zero(behaviour.share[comparable], behaviour.others_share[comparable])

    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the amount with which an annotator who answers at random is found if the others agree perfectly."""
        min_share = self.share_percent / 100
        if answer_kind == "classes":
            return RuleRequirement(
                max(MIN_COMPARED_JUDGMENTS, min_consecutive_events_above_limit(1.0 - min_share, false_alarm_rate)),
                "judgment",
                MIN_COMPARED_JUDGMENTS,
                other_annotators=MIN_OTHER_ANNOTATORS,
            )
        enough = (
            n
            for n in count(MIN_COMPARED_JUDGMENTS)
            if ends_of_sequential_correlation_interval(0.0, n, 2 * false_alarm_rate)[1] < min_share
        )
        return RuleRequirement(
            next(enough), "judgment", MIN_COMPARED_JUDGMENTS, "anyone who answers at random", MIN_OTHER_ANNOTATORS
        )

    def finding_about_annotator_or_none(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleFinding | None:
        """Return a finding if even the upper end of the interval is too low."""
        usual, comparable = (
            median_of_other_annotators_or_nan(other_measures),
            self.mask_of_judgments_with_enough_other_annotators(behaviour),
        )
        if np.isnan(usual) or comparable.sum() < MIN_COMPARED_JUDGMENTS:
            return None
        return (
            self.finding_on_label_agreement_or_none
            if behaviour.answer_kind == "classes"
            else self.finding_on_score_correlation_or_none
        )(behaviour, comparable, usual, false_alarm_rate)

    def finding_on_score_correlation_or_none(
        self, behaviour: AnnotatorBehaviour, comparable: npt.NDArray[np.bool_], usual: float, false_alarm_rate: float
    ) -> RuleFinding | None:
        """Return a finding if the correlation with the others' means is too low, else None.

        The places in a HIT of n items have n - 1 degrees of freedom.
        """
        degrees_of_freedom = int(comparable.sum())
        if behaviour.answer_kind == "order":
            degrees_of_freedom -= len(np.unique(behaviour.hit[comparable]))
        agreement = pearson_correlation_or_zero(behaviour.share[comparable], behaviour.others_share[comparable])
        # Only the upper end can raise an alarm, so the interval gets twice the rate.
        low, high = ends_of_sequential_correlation_interval(agreement, degrees_of_freedom, 2 * false_alarm_rate)
        if usual < MIN_USUAL_CORRELATION or high >= self.share_percent / 100 * usual:
            return None
        sentence = (
            f"Agreement with the others is {format_with_places(agreement, 2)} ({format_with_places(low, 2)} to "
            f"{format_with_places(high, 2)}) over {comparable.sum()} judgments of items that {self.fewest_others} or "
            f"more others judged; the usual value is {format_with_places(usual, 2)}."
        )
        return RuleFinding({"agreement": agreement, "low": low, "high": high, "usual": usual}, sentence)

    def finding_on_label_agreement_or_none(
        self, behaviour: AnnotatorBehaviour, comparable: npt.NDArray[np.bool_], usual: float, false_alarm_rate: float
    ) -> RuleFinding | None:
        """Return a finding if the labels differ from the others' too often, else None.

        By chance, an annotator agrees as often as the others use each label.
        """
        label_shares = np.unique(behaviour.others_share[comparable], return_counts=True)[1] / comparable.sum()
        chance = float(label_shares @ label_shares)
        if usual - chance < MIN_AGREEMENT_ABOVE_CHANCE:
            return None
        min_agreement = chance + self.share_percent / 100 * (usual - chance)
        differs, judgments = int((behaviour.share != behaviour.others_share)[comparable].sum()), int(comparable.sum())
        if not is_event_share_above_limit(differs, judgments, 1.0 - min_agreement, false_alarm_rate):
            return None
        sentence = (
            f"Gave a different label from most others in {differs} of {judgments} judgments; the usual share is "
            f"{share_as_percent(1 - usual)}."
        )
        return RuleFinding({"differs": differs, "judgments": judgments, "usual": usual}, sentence)
