"""Estimates that measure a campaign's goal: its law's own scores, or plain means. All callers get that decision from
here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.goals.settings import RELEASE_ITEMS, ChosenGoal
from app.inference.ground.arrays import Integers
from app.inference.observations.long_judgments import LongJudgments
from app.inference.observations.tally import Tally
from app.inference.online.law import Law
from app.inference.ratings.moderated_means import ModeratedMeans

MAX_FITTED_JUDGMENTS = 50_000  # fitted in less than a second
MEASURED_BY_MEANS = "means"


def is_law_reliable_for_goal(campaign: ChosenGoal) -> bool:
    """Return whether laws were right for this goal as often as they claim, by `benchmarks.stopping_aware`.

    For a threshold they were not, probably because a law takes the errors of all judgments to be alike: an item with
    few judgments, some of them random, seems too certain. Releasing the best items asks about single items too.
    """
    return campaign.goal in ({"intervals"} if campaign.when_reached == RELEASE_ITEMS else {"best", "intervals"})


class GoalEstimates(NamedTuple):
    """Estimates of all items, and their source: a law's name, or `MEASURED_BY_MEANS`."""

    estimates: ModeratedMeans
    source: str


@dataclass(frozen=True, eq=False)
class GoalEvidence:
    """Sums of a campaign's judgments, and the judgments themselves for its law.

    Attributes:
        law: The campaign's update law.
        tally: Sums of the judgments.
        judgments: The judgments; None if the law cannot be fitted, or there are more than `MAX_FITTED_JUDGMENTS`.

    """

    law: Law
    tally: Tally
    judgments: LongJudgments | None

    @classmethod
    def empty(cls, law: Law, n_items: int) -> "GoalEvidence":
        """Return the evidence before the first judgment."""
        return cls(law, Tally.empty(n_items), LongJudgments.empty(n_items) if law.fit else None)

    def with_judgments_added(
        self, items: npt.ArrayLike, annotators: npt.ArrayLike, scores: npt.ArrayLike
    ) -> "GoalEvidence":
        """Return the evidence with these judgments added; see `Tally.with_judgments_added`."""
        judgments = self.judgments
        if judgments is not None:
            judgments = (
                judgments.with_judgments_added(items, annotators, scores)
                if len(judgments.items) + np.size(items) <= MAX_FITTED_JUDGMENTS
                else None
            )
        return GoalEvidence(self.law, self.tally.with_judgments_added(items, annotators, scores), judgments)

    def select_items(self, items: Integers) -> "GoalEvidence":
        """Return the evidence of some items alone, given by ascending numbers, and renumber them from 0."""
        return GoalEvidence(
            self.law, self.tally.select_items(items), self.judgments and self.judgments.select_items(items)
        )

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.tally.nbytes + (self.judgments.nbytes if self.judgments else 0)

    @property
    def fitted_judgment_count(self) -> int:
        """Number of judgments that the law is fitted to; 0 if it is not fitted."""
        return len(self.judgments.items) if self.judgments else 0

    @cached_property
    def law_estimates_or_none(self) -> ModeratedMeans | None:
        """Estimates of the items by the law. The first access takes up to a second for `MAX_FITTED_JUDGMENTS`
        judgments.
        """
        if self.law.fit is None or self.judgments is None:
            return None
        return self.law.fit(self.judgments, self.tally)

    def is_measured_by_law(self, campaign: ChosenGoal) -> bool:
        """Return whether the law measures the goal, as soon as it has estimates."""
        return self.law.fit is not None and self.judgments is not None and is_law_reliable_for_goal(campaign)

    def goal_estimates(self, campaign: ChosenGoal, means: ModeratedMeans) -> GoalEstimates:
        """Return the law's estimates if it has any and may measure the goal; otherwise the means."""
        estimates = self.law_estimates_or_none if self.is_measured_by_law(campaign) else None
        return GoalEstimates(means, MEASURED_BY_MEANS) if estimates is None else GoalEstimates(estimates, self.law.name)
