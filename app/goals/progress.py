"""How far a campaign is from its goal. Pure: from what is known of its items, by whatever `evidence` measures it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import floor
from typing import Any

import numpy as np

from app.designs.scale import POINTS
from app.goals.evidence import MEANS
from app.goals.settings import NONE, RELEASE
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ratings.moderated import Moderated
from app.inference.ratings.settled import (
    Believed,
    agreement_of_halves,
    believed,
    chance_of_best,
    chance_of_order,
    chance_of_sides,
    chances_of_best,
    chances_of_side,
)
from app.selection.cut import best_among

FEWEST_DIFFERENCES = 20  # degrees of freedom: half of the true spread or less is found once in 3,600 times
MOST_IN_ORDER = 1_000  # items, whose order is more than anybody settles


@dataclass(frozen=True)
class Progress:
    """now, wanted: 0 to 1; a chance, a share of items, or a correlation. goal: in words, which tell one goal from
    another. by: see `Measured`. settled: the numbers of the items that are to be released.
    """

    goal: str
    now: float
    wanted: float
    by: str = MEANS
    settled: Integers = field(default_factory=lambda: np.zeros(0, np.intp))

    @property
    def reached(self) -> bool:
        return self.now >= self.wanted

    @property
    def told(self) -> float:
        """`now`; until it is as wanted, in hundredths and rounded down, so that it never looks as if it were."""
        if self.reached:
            return self.now
        hundredths = floor(100 * self.now + 1e-9)  # 0.29 is 29 of them
        return (hundredths - (hundredths / 100 >= self.wanted)) / 100

    def of(self, items: Integers) -> "Progress":
        """Where it was measured by these items alone, of all."""
        return replace(self, settled=items[self.settled])


def counting(campaign: Any, in_pool: Mask) -> Integers:
    """The numbers of the items that count for a goal: those in the pool, (N,), but for those that every HIT shows."""
    counted = in_pool.copy()
    counted[campaign.always_shown] = False
    return np.flatnonzero(counted)


def progress(campaign: Any, known: Moderated, score: Array, by: str = MEANS) -> Progress | None:
    """None without a goal. known, score: of the N items that count for it, (N,), on 0 to 1. by: what `known` comes
    from.
    """
    if campaign.goal == NONE:
        return None
    if campaign.when_reached == RELEASE:
        each = settled(campaign, known, score)
        share = float(each.mean()) if len(each) else 0.0
        return Progress(words(campaign), share, wanted(campaign), by, np.flatnonzero(each))
    now = MEASURES[campaign.goal](campaign, known, score) if len(score) else 0.0
    return Progress(words(campaign), float(now), wanted(campaign), by)


def settled(campaign: Any, known: Moderated, score: Array) -> Mask:
    """Which items are settled, each for itself, (N,), by the goal of a campaign that releases them.

    None before it is known how far annotators differ: in some campaigns the first ones agree by chance, and nothing
    more would be asked then (Chow & Robbins 1965, on intervals of a fixed width).
    """
    if known.together < FEWEST_DIFFERENCES:
        return np.zeros(len(score), bool)
    if campaign.goal == "intervals":
        return narrow(campaign, known)
    return np.asarray(chances(campaign, known, score) >= campaign.goal_percent / 100)


def chances(campaign: Any, known: Moderated, score: Array) -> Array:
    """Of each item, (N,), the probability that it is where it belongs, on its side of the line that a goal draws: the
    smaller one of two beliefs; NaN as long as nothing can be believed.
    """
    found = [CHANCES[campaign.goal](campaign, beliefs, score) for beliefs in believed(known)]
    least: Array = np.min(found, axis=0) if found else np.full(len(score), np.nan)
    return least


def wanted(campaign: Any) -> float:
    """What a goal's measure is to be."""
    if campaign.goal == "halves":
        return float(campaign.goal_correlation)
    each = campaign.when_reached == RELEASE and campaign.goal != "intervals"
    return 1.0 if each else campaign.goal_percent / 100


def words(campaign: Any) -> str:
    """What is to be reached."""
    but = f" but for differences of {campaign.goal_within:g} points" if campaign.goal_within else ""
    each = " for each" if campaign.when_reached == RELEASE else ""
    sure = f"with {campaign.goal_percent} % probability{each}"
    return {
        "best": f"The best {campaign.best_items:,} are settled{but}, {sure}",
        "threshold": f"It is settled who is above {campaign.threshold:g}{but}, {sure}",
        "order": f"The order is settled{but}, {sure}",
        "intervals": f"Intervals of {campaign.goal_percent} % of items are ±{campaign.goal_width:g} points or less",
        "halves": f"Two halves of the answers agree with a correlation of {campaign.goal_correlation:g}",
    }[campaign.goal]


def figure(campaign: Any, found: Progress) -> str:
    """How near a goal is, as people read it."""
    return f"{found.told:.2f}" if campaign.goal == "halves" else f"{100 * found.told:.0f} %"


def of_beliefs(chance: Callable[[Any, Believed, Array], float]) -> Callable[[Any, Moderated, Array], float]:
    """The smaller one of the chances; 0 as long as nothing can be believed."""

    def measure(campaign: Any, known: Moderated, score: Array) -> float:
        return min((chance(campaign, beliefs, score) for beliefs in believed(known)), default=0.0)

    return measure


def narrow(campaign: Any, known: Moderated) -> Mask:
    """Items without an interval are not narrow. A scale's end cuts an interval, and says nothing."""
    low, high = Moderated(known.mean, known.standard_error, known.freedom, None).interval()
    return np.asarray(high - low <= 2 * campaign.goal_width / POINTS)


def of_best(campaign: Any, beliefs: Believed, score: Array) -> float:
    return chance_of_best(beliefs, score, best_among(campaign.best_items, len(score)), campaign.goal_within / POINTS)


def of_order(campaign: Any, beliefs: Believed, score: Array) -> float:
    many = len(score) > MOST_IN_ORDER
    return 0.0 if many else chance_of_order(beliefs, score, campaign.goal_within / POINTS)


MEASURES: Mapping[str, Callable[[Any, Moderated, Array], float]] = {
    "best": of_beliefs(of_best),
    "threshold": of_beliefs(lambda c, known, _: chance_of_sides(known, c.threshold / POINTS, c.goal_within / POINTS)),
    "order": of_beliefs(of_order),
    "intervals": lambda c, known, _score: float(narrow(c, known).mean()),
    "halves": lambda _c, known, _score: agreement_of_halves(known),
}

# Of each item, (N,): that it is where it belongs.
CHANCES: Mapping[str, Callable[[Any, Believed, Array], Array]] = {
    "best": lambda c, known, score: chances_of_best(
        known, score, best_among(c.best_items, len(score)), c.goal_within / POINTS
    ),
    "threshold": lambda c, known, _: chances_of_side(known, c.threshold / POINTS, c.goal_within / POINTS),
}
