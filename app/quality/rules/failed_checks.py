"""Items with a known answer, and items that say what to answer."""

from typing import ClassVar

from pydantic import Field

from app.inference.ground.arrays import Array
from app.inference.observations.coarsening import Reads
from app.quality.conduct import Conduct, Met
from app.quality.evidence import min_in_a_row, too_often
from app.quality.rule import Percent, QualityRule, RuleFinding, RuleNeed


class Gold(QualityRule):
    """Fails more gold items than a careful person does."""

    name: ClassVar[str] = "gold"
    of_values: ClassVar[bool] = False
    title: ClassVar[str] = "Fails gold items"
    tells: ClassVar[str] = (
        "How often the known answer was missed. Gold items that most people fail are left out, since they are probably "
        "wrong. It cannot tell who does not care from who sees these items otherwise."
    )

    careful_percent: Percent = Field(
        default=20, title="A careful person may fail (%)", description="Of a hundred gold items."
    )

    def needs(self, yields: Reads, alarm: float) -> RuleNeed:  # noqa: ARG002  (of all kinds of answers)
        """So many that were failed, and none that was met."""
        return RuleNeed(min_in_a_row(self.careful_percent / 100, alarm), "failed gold item")

    def look(self, conduct: Conduct, others: Array, alarm: float) -> RuleFinding | None:  # noqa: ARG002  (compares nobody)
        """By what was failed so far."""
        return failed(conduct.gold, self.careful_percent / 100, alarm, "gold items")


class Attention(QualityRule):
    """Does not do what attention items ask."""

    name: ClassVar[str] = "attention"
    of_values: ClassVar[bool] = False
    title: ClassVar[str] = "Fails attention items"
    tells: ClassVar[str] = (
        "How often somebody did not do what an item plainly asked for. It tells who does not read; who reads these "
        "items and answers the others at random passes."
    )

    careful_percent: Percent = Field(
        default=5, title="A careful person may fail (%)", description="Of a hundred attention items."
    )

    def needs(self, yields: Reads, alarm: float) -> RuleNeed:  # noqa: ARG002  (of all kinds of answers)
        """So many that were failed, and none that was met."""
        return RuleNeed(min_in_a_row(self.careful_percent / 100, alarm), "failed attention item")

    def look(self, conduct: Conduct, others: Array, alarm: float) -> RuleFinding | None:  # noqa: ARG002  (compares nobody)
        """By what was failed so far."""
        return failed(conduct.attention, self.careful_percent / 100, alarm, "attention items")


def failed(met: Met, careful: float, alarm: float, called: str) -> RuleFinding | None:
    """Whether so many were failed that it is no accident."""
    times, of = int((~met).sum()), len(met)
    if not too_often(times, of, careful, alarm):
        return None
    return RuleFinding({"failed": times, "shown": of}, f"Failed {times} of {of} {called}.")
