"""Answers that contradict what the same annotator's earlier answers imply."""

from itertools import combinations
from math import nan
from typing import ClassVar

import numpy as np
from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.coarsening import Reads
from app.inference.preferences.implied import Implications, outcome_of
from app.quality.conduct import Conduct
from app.quality.evidence import min_in_a_row, too_often, typical
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleNeed, percent

FEWEST = 10  # answers about pairs that others imply
CHANCE = 0.5


class Contradictions(QualityRule):
    """Prefers a to b and b to c, and then c to a."""

    name: ClassVar[str] = "contradictions"
    title: ClassVar[str] = "Contradicts their own answers"
    tells: ClassVar[str] = (
        "Of pairs whose order follows from somebody’s earlier answers, how many they then put the other way round; by "
        "chance it is half. It needs many answers of one person about the same items, and tells nothing of who is "
        "consistently wrong. Where close items are compared, careful people contradict themselves, too."
    )

    least_percent: Percent = Field(
        default=25, title="At least (%)",
        description="Of implied pairs put the other way round, below which nobody is found, whatever others do.",
    )  # fmt: skip

    def measure(self, conduct: Conduct) -> float:
        """The share of implied pairs that were put the other way round."""
        times, of = contradicted(conduct)
        return times / of if of >= FEWEST else nan

    def reads(self, yields: Reads, classes: int) -> bool:  # noqa: ARG002  (no labels are read)
        """Orders of items."""
        return yields == "order"

    def needs(self, yields: Reads, alarm: float) -> RuleNeed:  # noqa: ARG002  (of orders alone)
        """So many that were all put the other way round."""
        return RuleNeed(min_in_a_row(max(self.least_percent / 100, CHANCE / 2), alarm), "implied pair", FEWEST)

    def look(self, conduct: Conduct, others: Array, alarm: float) -> RuleFinding | None:
        """Beyond the middle between what is usual and chance."""
        usual = typical(others)
        times, of = contradicted(conduct)
        most = max(self.least_percent / 100, (CHANCE + usual) / 2)
        if np.isnan(usual) or not too_often(times, of, most, alarm):
            return None
        said = f"Put {times} of {of} pairs the other way round than earlier answers imply; usual is {percent(usual)}."
        return RuleFinding({"contradicted": times, "implied": of, "usual": usual}, said)


def contradicted(conduct: Conduct) -> tuple[int, int]:
    """How many pairs that were implied were put the other way round, and how many were asked: of each HIT the first
    such pair, since the others follow from each other.
    """
    if conduct.yields != "order":
        return 0, 0
    known, times, of = Implications(), 0, 0
    for start, end in zip(conduct.starts, conduct.starts[1:], strict=False):
        items, shares = conduct.item[start:end].tolist(), conduct.share[start:end].tolist()
        pairs = [
            (items[a], items[b], outcome_of((shares[a], shares[b])))
            for a, b in combinations(range(len(items)), 2)
            if conduct.ties or shares[a] != shares[b]
        ]
        implied = [(known.implied(a, b), outcome) for a, b, outcome in pairs]
        first = next(((before, outcome) for before, outcome in implied if before is not None), None)
        if first is not None:
            times, of = times + (first[1] == -first[0]), of + 1
        for pair in pairs:
            known.add(*pair)
    return times, of
