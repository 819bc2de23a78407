"""By what a campaign's goal is measured: its law's own scores, or the plain means. Decided here for all who ask."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.goals.settings import RELEASE_ITEMS
from app.inference.ground.arrays import Integers
from app.inference.observations.long_judgments import LongJudgments
from app.inference.observations.tally import Tally
from app.inference.online.law import Law
from app.inference.ratings.moderated_means import ModeratedMeans

MAX_FITTED_JUDGMENTS = 50_000  # judgments that a law is fitted to: less than a second of a processor
MEASURED_BY_MEANS = "means"


def can_measure_goal_by_law(campaign: Any) -> bool:
    """Whether the goal is one for which a law was right as often as it says: `benchmarks.stopping_aware`. Of sides of a
    line it was not, probably as it takes the errors of all judgments to be alike: an item with few of them, some at
    random, seems too sure. To release the best asks of single items, too.
    """
    return campaign.goal in ({"intervals"} if campaign.when_reached == RELEASE_ITEMS else {"best", "intervals"})


class GoalEstimates(NamedTuple):
    """What is known of all items, and by what: a law's name, or `MEANS`."""

    estimates: ModeratedMeans
    source: str


@dataclass(frozen=True, eq=False)
class GoalEvidence:
    """What a campaign's judgments add up to, and what they say to its law. said: None where the law makes nothing of
    them, or there are more than `MOST`.
    """

    law: Law
    tally: Tally
    judgments: LongJudgments | None

    @classmethod
    def empty(cls, law: Law, n_items: int) -> "GoalEvidence":
        """Before the first judgment."""
        return cls(law, Tally.empty(n_items), LongJudgments.empty(n_items) if law.fit else None)

    def add_judgments(self, items: npt.ArrayLike, annotators: npt.ArrayLike, scores: npt.ArrayLike) -> "GoalEvidence":
        """With these judgments too; see `Tally.after`."""
        judgments = self.judgments
        if judgments is not None:
            judgments = (
                judgments.add_judgments(items, annotators, scores)
                if len(judgments.items) + np.size(items) <= MAX_FITTED_JUDGMENTS
                else None
            )
        return GoalEvidence(self.law, self.tally.add_judgments(items, annotators, scores), judgments)

    def select_items(self, items: Integers) -> "GoalEvidence":
        """That of some items alone, by their numbers in order, which are numbered anew."""
        return GoalEvidence(
            self.law, self.tally.select_items(items), self.judgments and self.judgments.select_items(items)
        )

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.tally.nbytes + (self.judgments.nbytes if self.judgments else 0)

    @property
    def fitted_judgment_count(self) -> int:
        """How many judgments the law is fitted to; 0 where it is to none."""
        return len(self.judgments.items) if self.judgments else 0

    @cached_property
    def law_estimates(self) -> ModeratedMeans | None:
        """What the law says of the items; up to a second for `MOST` judgments, the first time."""
        if self.law.fit is None or self.judgments is None:
            return None
        return self.law.fit(self.judgments, self.tally)

    def is_measured_by_law(self, campaign: Any) -> bool:
        """Whether the goal is measured by the law, as soon as that can tell."""
        return self.law.fit is not None and self.judgments is not None and can_measure_goal_by_law(campaign)

    def goal_estimates(self, campaign: Any, means: ModeratedMeans) -> GoalEstimates:
        """By the law where it can tell and `law_may`; else by the means."""
        estimates = self.law_estimates if self.is_measured_by_law(campaign) else None
        return GoalEstimates(means, MEASURED_BY_MEANS) if estimates is None else GoalEstimates(estimates, self.law.name)
