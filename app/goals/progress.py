"""How far a campaign is from its goal. Pure: from what annotators' disagreement tells, whatever the update law is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.designs.scale import POINTS
from app.goals.settings import NONE
from app.inference.ground.arrays import Array
from app.inference.ratings.moderated import Moderated
from app.inference.ratings.settled import (
    Believed,
    agreement_of_halves,
    believed,
    chance_of_best,
    chance_of_order,
    chance_of_sides,
)

MOST_IN_ORDER = 1_000  # items, whose order is more than anybody settles


@dataclass(frozen=True)
class Progress:
    """now, wanted: 0 to 1; a chance, a share of items, or a correlation. goal: in words, which tell one goal from
    another.
    """

    goal: str
    now: float
    wanted: float

    @property
    def reached(self) -> bool:
        return self.now >= self.wanted


def progress(campaign: Any, known: Moderated, score: Array) -> Progress | None:
    """None without a goal. known, score: of the campaign's N items, (N,), on 0 to 1."""
    if campaign.goal == NONE:
        return None
    now = MEASURES[campaign.goal](campaign, known, score) if len(score) else 0.0
    return Progress(words(campaign), float(now), wanted(campaign))


def wanted(campaign: Any) -> float:
    """What a goal's measure is to be."""
    return float(campaign.goal_correlation if campaign.goal == "halves" else campaign.goal_percent / 100)


def words(campaign: Any) -> str:
    """What is to be reached."""
    but = f" but for differences of {campaign.goal_within:g} points" if campaign.goal_within else ""
    sure = f"with {campaign.goal_percent} % probability"
    return {
        "best": f"The best {campaign.best_items:,} are settled{but}, {sure}",
        "threshold": f"It is settled who is above {campaign.threshold:g}{but}, {sure}",
        "order": f"The order is settled{but}, {sure}",
        "intervals": f"Intervals of {campaign.goal_percent} % of items are ±{campaign.goal_width:g} points or less",
        "halves": f"Two halves of the answers agree with a correlation of {campaign.goal_correlation:g}",
    }[campaign.goal]


def of_beliefs(chance: Callable[[Any, Believed, Array], float]) -> Callable[[Any, Moderated, Array], float]:
    """The smaller one of the chances; 0 as long as nothing can be believed."""

    def measure(campaign: Any, known: Moderated, score: Array) -> float:
        return min((chance(campaign, beliefs, score) for beliefs in believed(known)), default=0.0)

    return measure


def share_of_narrow(campaign: Any, known: Moderated, _score: Array) -> float:
    """Of items; those without an interval are not narrow. A scale's end cuts an interval, and says nothing."""
    low, high = Moderated(known.mean, known.standard_error, known.freedom, None).interval()
    return float(np.mean(high - low <= 2 * campaign.goal_width / POINTS))


def of_best(campaign: Any, beliefs: Believed, score: Array) -> float:
    """Where there are no more items than best ones, the lowest is settled, as the rule `best` has it."""
    best = max(1, min(campaign.best_items, len(score) - 1))
    return chance_of_best(beliefs, score, best, campaign.goal_within / POINTS)


def of_order(campaign: Any, beliefs: Believed, score: Array) -> float:
    many = len(score) > MOST_IN_ORDER
    return 0.0 if many else chance_of_order(beliefs, score, campaign.goal_within / POINTS)


MEASURES: Mapping[str, Callable[[Any, Moderated, Array], float]] = {
    "best": of_beliefs(of_best),
    "threshold": of_beliefs(lambda c, known, _: chance_of_sides(known, c.threshold / POINTS, c.goal_within / POINTS)),
    "order": of_beliefs(of_order),
    "intervals": share_of_narrow,
    "halves": lambda _c, known, _score: agreement_of_halves(known),
}
