"""Units in which pages show the numbers of a campaign, and how they are formatted.

Posteriors, means and intervals are on 0 to 1, or near it for a law without bounds. Drawings use hundredths of that as
their step, a *place*; a unit maps places to numbers.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.designs.scale import MAX_POINTS as STEPS
from app.designs.scale import shares_to_points
from app.inference.ground.arrays import Array
from app.inference.online.law import Law
from app.text.numbers import format_with_places

UNKNOWN_SPREAD = "not known yet"
RATIO_TICKS = (0.1, 0.5, 1.0, 2.0, 10.0)  # that an axis names, and its ends


@dataclass(frozen=True)
class Unit:
    """A unit of scores and means.

    Attributes:
        title: The title of a column.
        sign: The text after a number.
        mean_column: The name of means in files.
        typical_interval_text: The explanation of a typical interval, in sentences.
        scale_text: The explanation of the scale, where the axis does not suffice.
        score_column: The name of scores in files, if not that of their posterior.
        mean_phrase: The name of means within a sentence.
        mean_title: The name of means in a heading.

    """

    title: str
    axis_title: str
    sign: str
    density_axis_title: str
    mean_column: str = "mean_score"
    typical_interval_text: str = ""
    scale_text: str = ""
    score_column: str = ""
    mean_phrase: str = "mean score"
    mean_title: str = "Mean"

    def value_in_unit_at_place(self, place: float) -> float:
        """Return the number at a place, 0 to 100."""
        return place

    def shares_to_unit_values(self, shares: Array) -> Array:
        """Return shares of the scale, 0 to 1, as in pages and files. Also for distances where
        `can_express_standard_errors` is true.
        """
        return shares_to_points(shares)

    @property
    def can_express_standard_errors(self) -> bool:
        """Return whether a standard error or deviation in hundredths of the scale is one in this unit, too."""
        return True

    def format_standard_deviation_of_variance(self, variance: float) -> str:
        """Return the standard deviation of a posterior of this variance, on 0 to 1, as people read it."""
        return f"{STEPS * math.sqrt(variance):.1f}"

    def format_variance(self, variance: float) -> str:
        """Return a variance on 0 to 1 in squared units, as people read it; only where `can_express_standard_errors`."""
        return format_with_places(STEPS * STEPS * variance, 1)

    def format_value(self, place: float) -> str:
        """Return the number at a place, as people read it."""
        return format_with_places(place, 1)

    def format_number_at_place_rounded(self, place: float) -> str:
        """Return the number with fewer digits, for an end of an interval."""
        return format_with_places(place, 0)

    def half_width_text_or_empty(self, places: float) -> str:
        """Return half the width of an interval as text; empty for the whole scale, which says nothing."""
        return f"± {places:.1f} {self.sign}".rstrip() if places < STEPS / 2 else UNKNOWN_SPREAD

    def half_width_or_factor_or_none(self, half_width: float) -> float | None:
        """Return half the width of an interval as a number, None where it says nothing."""
        return half_width

    @property
    def half_width_axis_title(self) -> str:
        """Return the title of an axis of half widths."""
        return f"± {self.sign}".rstrip()

    @property
    def ticks(self) -> list[tuple[float, str]] | None:
        """Return places and labels of the ticks of an axis from 0 to 100; None where the places are the numbers."""
        return None

    @property
    def unit_settings_for_script(self) -> dict[str, Any]:
        """Return the unit's settings for the page's script."""
        settings = {"title": self.title, "axis": self.axis_title, "sign": self.sign, "density": self.density_axis_title}
        return settings | {"spread": self.half_width_axis_title, "ticks": self.ticks}


class RatioUnit(Unit):
    """Ratios to a reference: 1 is in the middle, and 0 and infinity are at the ends."""

    def value_in_unit_at_place(self, place: float) -> float:
        """Return the odds of the place's share."""
        return place / (STEPS - place) if place < STEPS else math.inf

    def shares_to_unit_values(self, shares: Array) -> Array:
        """Return ratios; infinite at the end of the scale."""
        with np.errstate(divide="ignore"):
            ratios: Array = shares / (1.0 - shares)
        return ratios

    @property
    def can_express_standard_errors(self) -> bool:
        """Return False: an error of a ratio is a factor."""
        return False

    def format_value(self, place: float) -> str:
        """Return the ratio in three digits."""
        return format_ratio(self.value_in_unit_at_place(place))

    def format_number_at_place_rounded(self, place: float) -> str:
        """Return the ratio in two digits."""
        return format_ratio(self.value_in_unit_at_place(place), digits=2)

    def format_standard_deviation_of_variance(self, variance: float) -> str:
        """Return a factor, for an item that is about as good as the reference."""
        factor = self.half_width_or_factor_or_none(STEPS * math.sqrt(variance))
        return "–" if factor is None else f"×/÷ {format_ratio(factor)}"

    def half_width_text_or_empty(self, places: float) -> str:
        """Return a factor, for an item that is about as good as the reference."""
        factor = self.half_width_or_factor_or_none(places)
        return UNKNOWN_SPREAD if factor is None else f"×/÷ {format_ratio(factor)}"

    def half_width_or_factor_or_none(self, half_width: float) -> float | None:
        """Return the factor from the middle to the upper end."""
        return self.value_in_unit_at_place(STEPS / 2 + half_width) if half_width < STEPS / 2 - 0.5 else None

    @property
    def half_width_axis_title(self) -> str:
        return "×/÷"

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return ticks at round ratios, and the ends."""
        inside = [(STEPS * ratio / (1.0 + ratio), format_three_significant_digits(ratio)) for ratio in RATIO_TICKS]
        return [(0.0, "0"), *inside, (STEPS, "∞")]


def format_ratio(ratio: float, *, digits: int = 3) -> str:
    """Return a ratio in so many significant digits, such as 0.0123, 1.50, 1,230 or ∞."""
    if ratio == math.inf:
        return "∞"
    rounded = float(f"{ratio:.{digits - 1}e}")
    return f"{rounded:,.0f}" if rounded >= 10.0 ** (digits - 1) else f"{rounded:#.{digits}g}"


def format_three_significant_digits(number: float) -> str:
    """Return the number as 0.0123, 1.5 or 1,230, without zeros at the end."""
    return f"{number:,.0f}" if number >= 1000.0 else f"{number:.3g}"


POINTS_UNIT = Unit(
    "Score",
    "score, points",
    "points",
    "density per point",
    typical_interval_text="For 95 % of items, the mean score over all possible annotators is within this many points "
    "of the mean so far.",
)
RATIO_UNIT = RatioUnit(
    "Ratio",
    "ratio to the reference",
    "× the reference",
    "density",
    "mean_ratio",
    "For 95 % of items about as good as the reference, the mean of all possible annotators lies between the mean so "
    "far divided by this factor and multiplied by it. In means, a ratio r counts as r / (1 + r), so that no single "
    "large number outweighs the others.",
    "The reference is in the middle; a ratio r is drawn at r / (1 + r) of the line.",
    "ratio",
    "mean ratio",
)
PERCENT_BEATEN_UNIT = Unit(
    "Share",
    "win rate within its tasks, %",
    "%",
    "density per %",
    "mean_percent_beaten",
    "The win rate is the share of the other items in its tasks that an item beats; a tie counts half. For 95 % of "
    "items, the win rate among all possible annotators lies within this many percentage points of the one so far.",
    mean_phrase="win rate",
    mean_title="Win rate",
)
LIKELIEST_LABEL_UNIT = Unit(
    "Share", "share of the likeliest label, %", "%", "density per %", score_column="label_percent"
)


def unit_of_order_only_law(law: Law) -> Unit:
    """Return the unit of a law that reads only an order: its own scale, on which only distances are meaningful."""
    return Unit(
        "Score",
        f"{law.short_title} score, from the order alone",
        "",
        "density",
        scale_text="Items start at 50 on this law’s own scale. Only distances and intervals on it are meaningful.",
    )
