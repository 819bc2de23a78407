"""What every drawing needs: where a value stands on its scale, round ticks, and numbers in words.

A drawing for papers counts in SVG units; one that has to fit page and paper alike in per cent of its frame (`Axis`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Tick = tuple[float, str]

NOTHING = "–"


def written(value: float | None, places: int) -> str:
    """With a true minus sign; a dash where there is no figure."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return true_minus(f"{round(value, places) + 0.0:,.{places}f}")


def true_minus(number: str) -> str:
    """Return a number in words with a true minus sign, not the hyphen of programs."""
    return number.replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """A linear map from values to places; a range of no width is widened, so that nothing divides by 0."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        return round(self.exactly(value), 2)

    def exactly(self, value: float) -> float:
        width = (self.high - self.low) or 1.0
        return self.first + (value - self.low) / width * (self.last - self.first)

    def ticks(self, steps: int = 4) -> list[Tick]:
        """Evenly from end to end."""
        values = [self.low + (self.high - self.low) * step / steps for step in range(steps + 1)]
        return [(self(value), true_minus(f"{value:.4g}")) for value in values]


def round_step(width: float) -> float:
    """1, 2 or 5 times a power of ten, of which two to five fit into this width."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(digit * power for digit in (0.2, 0.5, 1, 2) if width / (digit * power) <= 5)


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; ticks at their places with their words."""

    title: str
    low: float
    high: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> float:
        """Where a value stands, in per cent from the low end, or just outside the frame."""
        return round(min(102.0, max(-2.0, Scale(self.low, self.high, 0, 100).exactly(value))), 2)

    @property
    def zero(self) -> float | None:
        """Where 0 stands, if it lies inside."""
        return self.at(0.0) if self.low < 0 < self.high else None

    @property
    def lines(self) -> list[str]:
        """The title in short lines: what is measured, then its unit."""
        return self.title.split(": ", 1)

    def padded(self, share: float) -> "Axis":
        """The same ticks, with so much of its length before and after it: dots and names keep clear of the edge."""
        more = share * (self.high - self.low)
        wider = Axis(self.title, self.low - more, self.high + more, ())
        places = [self.low + at / 100 * (self.high - self.low) for at, _ in self.ticks]
        words = [words for _, words in self.ticks]
        return replace(wider, ticks=tuple((wider.at(place), said) for place, said in zip(places, words, strict=True)))

    @property
    def few_ticks(self) -> tuple[Tick, ...]:
        """Two to four, for the head of a column."""
        return self.ticks[::2] if len(self.ticks) > 4 else self.ticks


def axis(title: str, low: float, high: float) -> Axis:
    """With ticks at two to six multiples of 1, 2 or 5 times a power of ten.

    A range of no width is widened, and so is one that is only rounding.
    """
    rounding = 1e-9 * max(1.0, abs(low), abs(high))
    if high - low < rounding:
        more = max(0.5, rounding)
        low, high = low - more, high + more
    step = round_step(high - low)
    values = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    empty = Axis(title, low, high, ())
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return Axis(title, low, high, tuple((empty.at(value), written(value, places)) for value in values))


COEFFICIENTS = axis("", -1.0, 1.0)
SHARES = axis("", 0.0, 1.0)


def known_ends(values: Array, ends: Array | None) -> Array:
    """The ends of intervals, the values themselves where there are none."""
    return values if ends is None else np.where(np.isfinite(ends), ends, values)


def around(title: str, values: Array, low: Array, high: Array) -> Axis:
    """An axis that holds all values, and beyond the outermost as much of their intervals as a typical one needs."""
    if not np.isfinite(values).any():
        return axis(title, 0.0, 1.0)
    first, last = float(np.nanmin(values)), float(np.nanmax(values))
    margin, typical = 0.04 * (last - first), float(np.nanmedian(high - low)) / 2
    lowest = max(first - typical, float(np.nanmin(low)))
    highest = min(last + typical, float(np.nanmax(high)))
    return axis(title, min(first, lowest) - margin, max(last, highest) + margin)


def interval(along: Axis, low: float | None, high: float | None) -> tuple[float, float] | None:
    """Both ends of an interval in per cent, if there is one."""
    if low is None or high is None or not math.isfinite(low + high):
        return None
    return along.at(low), along.at(high)
