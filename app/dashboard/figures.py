"""The charts of a campaign's page as drawings for papers, black on white: where everything stands, in SVG units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from app.dashboard.item import Item
from app.dashboard.state import shortened
from app.dashboard.table import Page
from app.designs.slider import POINTS

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 616, 40, 312
ROW, NAMES = 20, 200  # of a forest plot: height of a row, room for the names

Tick = tuple[float, str]


@dataclass(frozen=True)
class Mark:
    """One row of a forest plot: name, and where its interval begins, its score lies and its interval ends."""

    name: str
    y: float
    low: float
    at: float
    high: float


@dataclass(frozen=True)
class Figure:
    """A drawing: ticks at their places with their words, and bars (x, y, width, height), a curve, or marks."""

    title: str
    x_title: str
    x_ticks: list[Tick]
    y_title: str = ""
    y_ticks: list[Tick] = field(default_factory=list)
    bars: list[tuple[float, float, float, float]] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    left: float = LEFT
    bottom: float = BOTTOM


@dataclass(frozen=True)
class Scale:
    """A linear map from values to places; a range of no width is widened, so that nothing divides by 0."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        width = (self.high - self.low) or 1.0
        return round(self.first + (value - self.low) / width * (self.last - self.first), 2)

    def ticks(self, steps: int = 4) -> list[Tick]:
        """Evenly from end to end."""
        values = [self.low + (self.high - self.low) * step / steps for step in range(steps + 1)]
        return [(self(value), f"{value:.4g}") for value in values]


def upright(highest: float) -> tuple[Scale, list[Tick]]:
    """A y axis from 0 to at least `highest`, in two to five steps of 1, 2 or 5 times a power of ten."""
    highest = highest or 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    step = next(digit * power for digit in (0.2, 0.5, 1, 2) if math.ceil(highest / (digit * power)) <= 5)
    steps = math.ceil(highest / step)
    y = Scale(0, steps * step, BOTTOM, TOP)
    return y, y.ticks(steps)


def bar_chart(title: str, x_title: str, y_title: str, x_ticks: list[Tick], heights: Sequence[float]) -> Figure:
    """Bars of equal width side by side over the whole x axis."""
    y, y_ticks = upright(max(heights, default=0))
    step = (RIGHT - LEFT) / max(1, len(heights))
    bars = [
        (round(LEFT + i * step, 2), y(height), round(step - 1, 2), round(BOTTOM - y(height), 2))
        for i, height in enumerate(heights)
    ]
    return Figure(title, x_title, x_ticks, y_title, y_ticks, bars)


def distribution(figures: dict[str, Any], score_name: str) -> Figure:
    histogram = figures["histogram"]
    x = Scale(histogram["low"], histogram["high"], LEFT, RIGHT)
    title = "Distribution of scores"
    return bar_chart(title, f"score ({score_name} of the posterior, points)", "items", x.ticks(), histogram["counts"])


def hits_per_hour(figures: dict[str, Any]) -> Figure:
    bars = figures["pace"]
    seconds = bars["minutes"] * 60
    end = bars["start"] + len(bars["bars"]) * seconds
    x = Scale(bars["start"], end, LEFT, RIGHT)
    moments = [datetime.fromtimestamp(bars["start"] + (end - bars["start"]) * step / 4, UTC) for step in range(5)]
    ticks = [(x(moment.timestamp()), f"{moment:%H:%M}") for moment in moments]
    x_title = f"time (UTC, from {moments[0]:%Y-%m-%d %H:%M}; a bar is {bars['minutes']} min)"
    return bar_chart("Pace", x_title, "HITs per hour", ticks, bars["bars"])


def pace_rows(figures: dict[str, Any]) -> list[tuple[datetime, int]]:
    """The bars as a table: when each begins, and its HITs per hour."""
    bars = figures["pace"]
    step = timedelta(minutes=bars["minutes"])
    start = datetime.fromtimestamp(bars["start"], UTC)
    return [(start + i * step, hits) for i, hits in enumerate(bars["bars"])]


def density(item: Item, score_name: str) -> Figure:
    """The posterior's curve; the mark in it is the score with its 95 % interval."""
    x = Scale(min(0.0, item.x[0]) * POINTS, max(1.0, item.x[-1]) * POINTS, LEFT, RIGHT)
    per_point = [value / POINTS for value in item.density]
    y, y_ticks = upright(max(per_point))
    curve = [(x(at * POINTS), y(value)) for at, value in zip(item.x, per_point, strict=True)]
    mark = Mark("", BOTTOM - 6, x(item.low * POINTS), x(item.row.score * POINTS), x(item.high * POINTS))
    title = f"{shortened(item.row.shown)}: posterior after {item.row.judgments} judgments"
    x_title = f"score (points; dot: {score_name}, bar: 95 % interval)"
    return Figure(title, x_title, x.ticks(), "density per point", y_ticks, curve=curve, marks=[mark])


def forest(shown: Page, domain: tuple[float, float], score_name: str) -> Figure:
    """The rows of the table with their intervals, in its order."""
    bottom = TOP + ROW * max(1, len(shown.lines))
    x = Scale(domain[0], domain[1], NAMES, RIGHT)
    marks = [
        Mark(
            shortened(line.item.shown),
            TOP + ROW * (i + 0.5),
            *(x(value * POINTS) for value in (line.low, line.item.score, line.high)),
        )
        for i, line in enumerate(shown.lines)
    ]
    x_title = f"score (points; dot: {score_name}, bar: 95 % interval)"
    return Figure("Scores", x_title, x.ticks(), marks=marks, left=NAMES, bottom=bottom)
