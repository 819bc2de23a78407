"""Rule on seconds per HIT, compared with the usual time in the campaign."""

from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from app.errors import pluralize
from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import Percent, QualityRule, RuleAssessment, RuleRequirement, assess_event_share
from app.quality.sequential_limits import (
    MIN_OTHER_ANNOTATORS,
    median_of_other_annotators_or_nan,
    min_consecutive_events_above_limit,
)

MAX_FAST_SHARE = 0.5


class TooFast(QualityRule):
    """Finds annotators who answer most HITs in a small part of the time that others take."""

    name: ClassVar[str] = "too_fast"
    reads_values: ClassVar[bool] = False
    title: ClassVar[str] = "Answers too fast"
    condition: ClassVar[str] = (
        "an annotator answers most tasks in less than {share_percent} % of the usual time of annotators "
        "with {fewest_hits} or more tasks"
    )
    explanation: ClassVar[str] = (
        "Finds people who take only a small part of the usual time, which is the median of the others’ medians. "
        "Some people are quick and good. Slow answers are ignored, because people take breaks."
    )

    share_percent: Percent = Field(
        default=33,
        title="Too fast: below (% of the usual time)",
        description="The rule finds people who answer more than half of their tasks faster than that.",
    )
    fewest_hits: int = Field(
        default=5, ge=1, le=1000, title="Tasks, at least",
        description="Annotators with fewer tasks do not affect the usual time.",
    )  # fmt: skip

    def measure_for_comparison(self, behaviour: AnnotatorBehaviour) -> float:
        """Return the median of the seconds per HIT."""
        known_seconds = behaviour.seconds[~np.isnan(behaviour.seconds)]
        return float(np.median(known_seconds)) if len(known_seconds) >= self.fewest_hits else nan

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of HITs that suffices if all were too fast."""
        return RuleRequirement(
            min_consecutive_events_above_limit(MAX_FAST_SHARE, false_alarm_rate),
            "task",
            self.fewest_hits,
            other_annotators=MIN_OTHER_ANNOTATORS,
        )

    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if more than half of the HITs are too fast, but not if every second HIT is."""
        usual = median_of_other_annotators_or_nan(other_measures)
        known_seconds = behaviour.seconds[~np.isnan(behaviour.seconds)]
        fast_hits = int((known_seconds < self.share_percent / 100 * usual).sum())
        if np.isnan(usual) or not len(known_seconds):
            return RuleAssessment("unknown", f"Times of {pluralize(len(known_seconds), 'task')} are known.")
        median = float(np.median(known_seconds))
        sentence = f"Answered {fast_hits} of {len(known_seconds)} tasks in less than {self.share_percent:g} %"
        sentence += f" of the usual {usual:.1f} s; the median is {median:.1f} s."
        return assess_event_share(
            fast_hits,
            len(known_seconds),
            MAX_FAST_SHARE,
            false_alarm_rate,
            sentence=sentence,
            measures={"fast": fast_hits, "hits": len(known_seconds), "median": median, "usual": usual},
        )
