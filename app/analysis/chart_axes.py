"""Axes of charts: positions of values on a scale, and round ticks.

Charts for papers use SVG units (`LinearScale`); charts that fit any page use percent of their frame (`Axis`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.text.numbers import format_with_places, replace_hyphen_by_minus_sign

DrawnArray = npt.NDArray[np.float64]
Tick = tuple[float, str]


@dataclass(frozen=True)
class LinearScale:
    """Linear map from values to places; a range without width counts as 1 wide, to avoid division by 0."""

    low: float
    high: float
    first_place: float
    last_place: float

    def __call__(self, value: float) -> float:
        return round(self.unrounded_place(value), 2)

    def unrounded_place(self, value: float) -> float:
        width = (self.high - self.low) or 1.0
        return self.first_place + (value - self.low) / width * (self.last_place - self.first_place)

    def evenly_spaced_ticks(self, step_count: int = 4) -> list[Tick]:
        """Return evenly spaced ticks from end to end."""
        values = [self.low + (self.high - self.low) * step / step_count for step in range(step_count + 1)]
        return [(self(value), replace_hyphen_by_minus_sign(f"{value:.4g}")) for value in values]


def choose_round_tick_step(width: float) -> float:
    """Return 1, 2 or 5 times a power of ten, such that two to five of them fit into the width."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(digit * power for digit in (0.2, 0.5, 1, 2) if width / (digit * power) <= 5)


@dataclass(frozen=True)
class Axis:
    """Axis from `low` to `high`, with the place (in percent) and the text of each tick."""

    title: str
    low: float
    high: float
    ticks: tuple[Tick, ...]

    def percent_of(self, value: float) -> float:
        """Return the position of a value in percent from the low end; values outside are just outside the frame."""
        return round(min(102.0, max(-2.0, LinearScale(self.low, self.high, 0, 100).unrounded_place(value))), 2)

    @property
    def percent_of_zero_or_none(self) -> float | None:
        """Position of 0 in percent, if it is inside the axis."""
        return self.percent_of(0.0) if self.low < 0 < self.high else None

    @property
    def title_lines(self) -> list[str]:
        """Title in short lines: the quantity, then its unit."""
        return self.title.split(": ", 1)

    def with_padding(self, padding_share: float) -> "Axis":
        """Return the axis extended by a share of its length at both ends, so that dots and names fit inside."""
        padding = padding_share * (self.high - self.low)
        wider_axis = Axis(self.title, self.low - padding, self.high + padding, ())
        places = [self.low + at / 100 * (self.high - self.low) for at, _ in self.ticks]
        words = [words for _, words in self.ticks]
        return replace(
            wider_axis,
            ticks=tuple((wider_axis.percent_of(place), label) for place, label in zip(places, words, strict=True)),
        )

    @property
    def at_most_four_ticks(self) -> tuple[Tick, ...]:
        """At most four of the ticks, the first and the last among them, for the head of a column."""
        gaps = len(self.ticks) - 1
        step = next(step for step in range(1, gaps + 1) if gaps % step == 0 and gaps // step <= 3)
        return self.ticks[::step]


def axis_with_round_ticks(title: str, low: float, high: float) -> Axis:
    """Return an axis with ticks at two to six multiples of 1, 2 or 5 times a power of ten.

    A range without width, or only as wide as rounding errors, is widened.
    """
    rounding = 1e-9 * max(1.0, abs(low), abs(high))
    if high - low < rounding:
        widening = max(0.5, rounding)
        low, high = low - widening, high + widening
    step = choose_round_tick_step(high - low)
    values = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    axis_without_ticks = Axis(title, low, high, ())
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return Axis(
        title,
        low,
        high,
        tuple((axis_without_ticks.percent_of(value), format_with_places(value, places)) for value in values),
    )


COEFFICIENT_AXIS = axis_with_round_ticks("", -1.0, 1.0)
SHARE_AXIS = axis_with_round_ticks("", 0.0, 1.0)


def finite_interval_ends_or_values(values: DrawnArray, ends: DrawnArray | None) -> DrawnArray:
    """Return the ends of intervals, or the values themselves where there are none."""
    return values if ends is None else np.where(np.isfinite(ends), ends, values)


def axis_around_intervals(title: str, values: DrawnArray, low: DrawnArray, high: DrawnArray) -> Axis:
    """Return an axis that holds all values, and at each end a typical half interval beyond the outermost value."""
    if not np.isfinite(values).any():
        return axis_with_round_ticks(title, 0.0, 1.0)
    first, last = float(np.nanmin(values)), float(np.nanmax(values))
    margin, typical = 0.04 * (last - first), float(np.nanmedian(high - low)) / 2
    lowest = max(first - typical, float(np.nanmin(low)))
    highest = min(last + typical, float(np.nanmax(high)))
    return axis_with_round_ticks(title, min(first, lowest) - margin, max(last, highest) + margin)


def percents_of_interval_ends_or_none(axis: Axis, low: float | None, high: float | None) -> tuple[float, float] | None:
    """Return both ends of an interval in percent, or None if there is no interval."""
    if low is None or high is None or not math.isfinite(low + high):
        return None
    return axis.percent_of(low), axis.percent_of(high)
