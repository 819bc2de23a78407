"""Seconds per HIT beside what is usual in the campaign."""

from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.coarsening import Reads
from app.quality.conduct import Conduct
from app.quality.evidence import min_in_a_row, too_often, typical
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleNeed

HALF = 0.5


class TooFast(QualityRule):
    """Answers most HITs in a small part of the time that others take."""

    name: ClassVar[str] = "too_fast"
    of_values: ClassVar[bool] = False
    title: ClassVar[str] = "Answers too fast"
    tells: ClassVar[str] = (
        "Who needs a small part of what is usual: the median of the other annotators’ own medians. Some people are "
        "quick and good; whether the answers are any worse it cannot tell. Slow answers say nothing: people take "
        "breaks."
    )

    share_percent: Percent = Field(
        default=33,
        title="Too fast is below (% of the usual time)",
        description="Found is whoever answers more than half of their HITs faster than that.",
    )
    fewest_hits: int = Field(
        default=5, ge=1, le=1000, title="HITs until a pace is known",
        description="Annotators with fewer do not count for what is usual.",
    )  # fmt: skip

    def measure(self, conduct: Conduct) -> float:
        """The median of the seconds per HIT."""
        known = conduct.seconds[~np.isnan(conduct.seconds)]
        return float(np.median(known)) if len(known) >= self.fewest_hits else nan

    def needs(self, yields: Reads, alarm: float) -> RuleNeed:  # noqa: ARG002  (of all kinds of answers)
        """So many that were all too fast."""
        return RuleNeed(min_in_a_row(HALF, alarm), "HIT", self.fewest_hits)

    def look(self, conduct: Conduct, others: Array, alarm: float) -> RuleFinding | None:
        """Where more than half of the HITs are too fast; who is as quick as that in every second one is not found."""
        usual = typical(others)
        known = conduct.seconds[~np.isnan(conduct.seconds)]
        fast = int((known < self.share_percent / 100 * usual).sum())
        if not too_often(fast, len(known), HALF, alarm):
            return None
        median = float(np.median(known))
        said = f"Answered {fast} of {len(known)} HITs in less than {self.share_percent:g} %"
        said += f" of the usual {usual:.1f} s; the median is {median:.1f} s."
        return RuleFinding({"fast": fast, "hits": len(known), "median": median, "usual": usual}, said)
