"""Rule on agreement with the other annotators, whose values do not include the annotator's own."""

from itertools import count
from math import nan, sqrt, tanh
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from app.errors import pluralize
from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import AssessmentState, Percent, QualityRule, RuleAssessment, RuleRequirement, share_as_percent
from app.quality.sequential_limits import (
    MIN_OTHER_ANNOTATORS,
    ends_of_sequential_correlation_interval,
    ends_of_sequential_share_interval,
    is_event_share_above_limit,
    median_of_other_annotators_or_nan,
    min_consecutive_events_above_limit,
    pearson_correlation_or_zero,
)
from app.text.numbers import format_with_places

MIN_COMPARED_JUDGMENTS = 20
MIN_AGREEMENT_ABOVE_CHANCE = 0.1  # usual share of equal classes, minus the share by chance
LOWEST_TENTH = -1.28  # quantile of the standard normal distribution
MIN_USUAL_CORRELATION = 0.1  # below it, no annotator can be distinguished from chance


def lowest_agreement_of_guessers(judgment_count: int) -> float:
    """Return the correlation with the others below which 1 of 10 annotators are who answer at random."""
    return tanh(LOWEST_TENTH / sqrt(judgment_count - 3))


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
            "The usual agreement is the median of the other annotators. For labels, 0 % is chance and 100 "
            "% is the usual share."
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
        """Return the amount with which 1 of 10 annotators who answer at random is found if the others agree perfectly.

        Their agreement by chance is about normal on Fisher's scale. For labels, all of them differ from the others.
        """
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
            if ends_of_sequential_correlation_interval(lowest_agreement_of_guessers(n), n, 2 * false_alarm_rate)[1]
            < min_share
        )
        return RuleRequirement(
            next(enough),
            "judgment",
            MIN_COMPARED_JUDGMENTS,
            "even 1 of 10 people who answer at random",
            MIN_OTHER_ANNOTATORS,
            " and agree perfectly",
        )

    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if even the upper end of the interval is too low. Nothing is found if even the lower end
        is above the agreement of a guesser.
        """
        comparable = self.mask_of_judgments_with_enough_other_annotators(behaviour)
        judgments = int(comparable.sum())
        if judgments < MIN_COMPARED_JUDGMENTS:
            return RuleAssessment(
                "unknown",
                f"Judged {pluralize(judgments, 'item')} that {self.fewest_others} or more others judged; the rule "
                f"compares from {MIN_COMPARED_JUDGMENTS} on.",
            )
        assess = self.assess_label_agreement if behaviour.answer_kind == "classes" else self.assess_score_correlation
        return assess(behaviour, comparable, median_of_other_annotators_or_nan(other_measures), false_alarm_rate)

    def assess_score_correlation(
        self, behaviour: AnnotatorBehaviour, comparable: npt.NDArray[np.bool_], usual: float, false_alarm_rate: float
    ) -> RuleAssessment:
        """Assess the correlation with the others' means, which is 0 for a guesser.

        The places in a HIT of n items have n - 1 degrees of freedom.
        """
        degrees_of_freedom = int(comparable.sum())
        if behaviour.answer_kind == "order":
            degrees_of_freedom -= len(np.unique(behaviour.hit[comparable]))
        agreement = pearson_correlation_or_zero(behaviour.share[comparable], behaviour.others_share[comparable])
        # Either end may miss with the rate, so the interval gets twice the rate.
        low, high = ends_of_sequential_correlation_interval(agreement, degrees_of_freedom, 2 * false_alarm_rate)
        figure = f"{format_with_places(agreement, 2)} ({format_with_places(low, 2)} to {format_with_places(high, 2)})"
        state: AssessmentState = "fine" if low > 0.0 else "unknown"
        usual_text = f"; the usual value is {format_with_places(usual, 2)}"
        if np.isnan(usual):
            state, usual_text = "unknown", ""
        elif usual < MIN_USUAL_CORRELATION:
            state, usual_text = "unknown", f"{usual_text}, too low to tell anyone from a guesser"
        elif high < self.share_percent / 100 * usual:
            state = "flagged"
        sentence = (
            f"Agreement with the others is {figure}{usual_text}. It is from {comparable.sum()} judgments of items that "
            f"{self.fewest_others} or more others judged."
        )
        measures = {"agreement": agreement, "low": low, "high": high, "usual": usual}
        return RuleAssessment(state, sentence, measures, figure)

    def assess_label_agreement(
        self, behaviour: AnnotatorBehaviour, comparable: npt.NDArray[np.bool_], usual: float, false_alarm_rate: float
    ) -> RuleAssessment:
        """Assess how often the labels differ from the others' most frequent ones.

        By chance, an annotator agrees as often as the others use each label.
        """
        label_shares = np.unique(behaviour.others_share[comparable], return_counts=True)[1] / comparable.sum()
        chance = float(label_shares @ label_shares)
        differs, judgments = int((behaviour.share != behaviour.others_share)[comparable].sum()), int(comparable.sum())
        low, high = ends_of_sequential_share_interval(judgments - differs, judgments, 2 * false_alarm_rate)
        figure = f"{share_as_percent(1 - differs / judgments)} ({share_as_percent(low)} to {share_as_percent(high)})"
        state: AssessmentState = "fine" if low > chance else "unknown"
        usual_text = f"; the usual share is {share_as_percent(1 - usual)}"
        if np.isnan(usual):
            state, usual_text = "unknown", ""
        elif usual - chance < MIN_AGREEMENT_ABOVE_CHANCE:
            state, usual_text = "unknown", f"{usual_text}, too high to tell anyone from a guesser"
        elif is_event_share_above_limit(
            differs, judgments, 1.0 - chance - self.share_percent / 100 * (usual - chance), false_alarm_rate
        ):
            state = "flagged"
        sentence = f"Gave a different label from most others in {differs} of {judgments} judgments{usual_text}."
        return RuleAssessment(state, sentence, {"differs": differs, "judgments": judgments, "usual": usual}, figure)
