"""By what a campaign's goal is measured: its law's own scores, or the plain means. Decided here for all who ask."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.goals.settings import RELEASE
from app.inference.ground.arrays import Integers
from app.inference.observations.said import Said
from app.inference.observations.tally import Tally
from app.inference.online.law import Law
from app.inference.ratings.moderated import Moderated

MOST = 50_000  # judgments that a law is fitted to: less than a second of a processor
MEANS = "means"


def law_may(campaign: Any) -> bool:
    """Whether the goal is one for which a law was right as often as it says: `benchmarks.stopping_aware`. Of sides of a
    line it was not, probably as it takes the errors of all judgments to be alike: an item with few of them, some at
    random, seems too sure. To release the best asks of single items, too.
    """
    return campaign.goal in ({"intervals"} if campaign.when_reached == RELEASE else {"best", "intervals"})


class Measured(NamedTuple):
    """What is known of all items, and by what: a law's name, or `MEANS`."""

    known: Moderated
    by: str


@dataclass(frozen=True, eq=False)
class GoalEvidence:
    """What a campaign's judgments add up to, and what they say to its law. said: None where the law makes nothing of
    them, or there are more than `MOST`.
    """

    law: Law
    tally: Tally
    said: Said | None

    @classmethod
    def nothing(cls, law: Law, n_items: int) -> "GoalEvidence":
        """Before the first judgment."""
        return cls(law, Tally.nothing(n_items), Said.nothing(n_items) if law.fit else None)

    def after(self, items: npt.ArrayLike, annotators: npt.ArrayLike, scores: npt.ArrayLike) -> "GoalEvidence":
        """With these judgments too; see `Tally.after`."""
        known = self.said
        if known is not None:
            known = known.after(items, annotators, scores) if len(known.items) + np.size(items) <= MOST else None
        return GoalEvidence(self.law, self.tally.after(items, annotators, scores), known)

    def of(self, items: Integers) -> "GoalEvidence":
        """That of some items alone, by their numbers in order, which are numbered anew."""
        return GoalEvidence(self.law, self.tally.of(items), self.said and self.said.of(items))

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.tally.nbytes + (self.said.nbytes if self.said else 0)

    @property
    def to_fit(self) -> int:
        """How many judgments the law is fitted to; 0 where it is to none."""
        return len(self.said.items) if self.said else 0

    @cached_property
    def fitted(self) -> Moderated | None:
        """What the law says of the items; up to a second for `MOST` judgments, the first time."""
        if self.law.fit is None or self.said is None:
            return None
        return self.law.fit(self.said, self.tally)

    def fits(self, campaign: Any) -> bool:
        """Whether the goal is measured by the law, as soon as that can tell."""
        return self.law.fit is not None and self.said is not None and law_may(campaign)

    def measured(self, campaign: Any, means: Moderated) -> Measured:
        """By the law where it can tell and `law_may`; else by the means."""
        fitted = self.fitted if self.fits(campaign) else None
        return Measured(means, MEANS) if fitted is None else Measured(fitted, self.law.name)
