"""Always the ends of the scale, or always its middle."""

from abc import abstractmethod
from math import nan
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.coarsening import Reads
from app.quality.conduct import Conduct
from app.quality.evidence import min_in_a_row, too_often, typical
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleNeed, percent
from app.quality.rules.straight_lining import FEWEST, between

NEAR = 0.05  # of the scale
LEAST_POINTS = 4  # of a scale of labelled points, of which fewer are nearly all ends and middle


class Region(QualityRule):
    """Keeps to one part of the scale."""

    least_percent: Percent = Field(
        default=70, title="At least (%)",
        description="Of all answers, below which nobody is found, whatever others do.",
    )  # fmt: skip

    place: ClassVar[str]

    @abstractmethod
    def inside(self, share: Array) -> npt.NDArray[np.bool_]:
        """Which answers are there."""

    def measure(self, conduct: Conduct) -> float:
        """The share of answers that are there."""
        return float(self.inside(conduct.share).mean()) if applies(conduct) and len(conduct.share) >= FEWEST else nan

    def reads(self, yields: Reads, classes: int) -> bool:
        """Those of a scale with ends and a middle."""
        return has_ends(yields, classes)

    def needs(self, yields: Reads, alarm: float) -> RuleNeed:  # noqa: ARG002  (of all that it reads)
        """So many that are all there, where nobody else is."""
        return RuleNeed(min_in_a_row(between(0.0, self.least_percent), alarm), "judgment", FEWEST)

    def look(self, conduct: Conduct, others: Array, alarm: float) -> RuleFinding | None:
        """Beyond the middle between what is usual and always."""
        usual = typical(others)
        if np.isnan(usual) or not applies(conduct):
            return None
        times, of = int(self.inside(conduct.share).sum()), len(conduct.share)
        if not too_often(times, of, between(usual, self.least_percent), alarm):
            return None
        said = f"{times} of {of} answers are {self.place} ({percent(times / of)}); usual is {percent(usual)}."
        return RuleFinding({"there": times, "answers": of, "usual": usual}, said)


class Ends(Region):
    """Uses little but the two ends of the scale."""

    name: ClassVar[str] = "ends"
    title: ClassVar[str] = "Always the ends of the scale"
    tells: ClassVar[str] = (
        "Who answers at one of the two ends (a twentieth of the scale each) far more often than others. Some people do "
        "see things in black and white, and some items are; their order can still be right."
    )
    place: ClassVar[str] = "at the ends of the scale"

    def inside(self, share: Array) -> npt.NDArray[np.bool_]:
        """Within a twentieth of an end."""
        return (share <= NEAR) | (share >= 1.0 - NEAR)


class Middle(Region):
    """Uses little but the middle of the scale."""

    name: ClassVar[str] = "middle"
    title: ClassVar[str] = "Always the middle of the scale"
    tells: ClassVar[str] = (
        "Who answers in the middle (a twentieth to each side) far more often than others. It is also what somebody "
        "does who is honestly unsure; offer “cannot be judged” for that."
    )
    place: ClassVar[str] = "in the middle of the scale"

    def inside(self, share: Array) -> npt.NDArray[np.bool_]:
        """Within a twentieth of the middle."""
        return np.abs(share - 0.5) <= NEAR


def applies(conduct: Conduct) -> bool:
    """Whether the way of asking has a scale with ends and a middle."""
    return has_ends(conduct.yields, conduct.classes)


def has_ends(yields: Reads, classes: int) -> bool:
    return yields == "points" or (yields == "ordered_classes" and classes >= LEAST_POINTS)
