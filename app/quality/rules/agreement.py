"""Going with the others, who are asked without the annotator."""

from itertools import count
from math import nan
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from app.drawing import written
from app.inference.ground.arrays import Array
from app.inference.observations.coarsening import Reads
from app.quality.conduct import Conduct
from app.quality.evidence import correlation, interval, min_in_a_row, too_often, typical
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleNeed, percent

FEWEST = 20  # judgments beside others', so that agreement is compared at all
LEAST_TO_LOSE = 0.1  # between how often people agree and how often chance does, of classes
LEAST_USUAL = 0.1  # correlation of the others with each other, below which nobody can be told from chance


class AgreementWithOthers(QualityRule):
    """Goes with the others far less than they go with each other."""

    name: ClassVar[str] = "agreement"
    title: ClassVar[str] = "Does not go with the others"
    tells: ClassVar[str] = (
        "How far answers go with the mean of the others’ (correlation; of labels how often they are the others’ most "
        "frequent one), with an interval that holds for all looks together. Found is only whose whole interval is "
        "below what is asked. Being strict or kind does not matter. It cannot tell who is wrong: somebody alone may be "
        "right, and where most answer at random, those who do not stand out."
    )

    share_percent: Percent = Field(
        default=50, title="Of the usual agreement, at least (%)",
        description="The usual one is the median of the other annotators. Of labels: how far from agreement by chance "
        "to the usual one.",
    )  # fmt: skip
    fewest_others: int = Field(
        default=2, ge=1, le=100, title="Others who judged an item",
        description="Items with fewer are not compared.",
    )  # fmt: skip

    def compared(self, conduct: Conduct) -> npt.NDArray[np.bool_]:
        """Which judgments are."""
        return conduct.company >= self.fewest_others

    def measure(self, conduct: Conduct) -> float:
        """The correlation with the others' means; of labels the share of their most frequent ones."""
        which = self.compared(conduct)
        if which.sum() < FEWEST:
            return nan
        if conduct.yields == "classes":
            return float((conduct.share == conduct.others)[which].mean())
        return correlation(conduct.share[which], conduct.others[which])

    def needs(self, yields: Reads, alarm: float) -> RuleNeed:
        """So many by which somebody who answers at random is found, where the others go with each other perfectly."""
        asked = self.share_percent / 100
        if yields == "classes":
            return RuleNeed(max(FEWEST, min_in_a_row(1.0 - asked, alarm)), "judgment", FEWEST)
        enough = (n for n in count(FEWEST) if interval(0.0, n, 2 * alarm)[1] < asked)
        return RuleNeed(next(enough), "judgment", FEWEST, "anybody who answers at random")

    def look(self, conduct: Conduct, others: Array, alarm: float) -> RuleFinding | None:
        """Where even the upper end of the interval is too low."""
        usual, which = typical(others), self.compared(conduct)
        if np.isnan(usual) or which.sum() < FEWEST:
            return None
        return (self.of_labels if conduct.yields == "classes" else self.of_scores)(conduct, which, usual, alarm)

    def of_scores(
        self, conduct: Conduct, which: npt.NDArray[np.bool_], usual: float, alarm: float
    ) -> RuleFinding | None:
        """By the correlation. Of places in a HIT of n items n - 1 are free."""
        free = int(which.sum())
        if conduct.yields == "order":
            free -= len(np.unique(conduct.hit[which]))
        found = correlation(conduct.share[which], conduct.others[which])
        low, high = interval(found, free, 2 * alarm)  # only its upper end can raise an alarm
        if usual < LEAST_USUAL or high >= self.share_percent / 100 * usual:
            return None
        said = (
            f"Goes with the others at {written(found, 2)} ({written(low, 2)} to {written(high, 2)}) over {which.sum()} "
            f"judgments of items that {self.fewest_others} or more others judged; usual is {written(usual, 2)}."
        )
        return RuleFinding({"agreement": found, "low": low, "high": high, "usual": usual}, said)

    def of_labels(
        self, conduct: Conduct, which: npt.NDArray[np.bool_], usual: float, alarm: float
    ) -> RuleFinding | None:
        """By how often it is another label than the others'. By chance it is theirs as often as they use each."""
        said = np.unique(conduct.others[which], return_counts=True)[1] / which.sum()
        chance = float(said @ said)
        if usual - chance < LEAST_TO_LOSE:
            return None
        asked = chance + self.share_percent / 100 * (usual - chance)
        differs, of = int((conduct.share != conduct.others)[which].sum()), int(which.sum())
        if not too_often(differs, of, 1.0 - asked, alarm):
            return None
        words = f"Gave another label than most others in {differs} of {of} judgments; usual is {percent(1 - usual)}."
        return RuleFinding({"differs": differs, "judgments": of, "usual": usual}, words)
