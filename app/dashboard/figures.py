"""The charts of a campaign's page as drawings for papers, black on white: where everything stands, in SVG units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.dashboard.course import EARLY
from app.dashboard.facts import shortened
from app.dashboard.item import Curve, ItemPage
from app.dashboard.table import ItemsPage
from app.designs.scale import POINTS
from app.designs.unit import Unit
from app.drawing import Scale, Tick, round_step
from app.errors import plural

LEFT, RIGHT, TOP, BOTTOM = 64, 616, 40, 312  # of the axes; the template is 640 wide
ROW, NAMES = 20, 200  # of a forest plot: height of a row, room for the names

# How the curves after 1, 5 and 10 judgments are told apart, here and on the page: length of a dash, and of its gap.
DASHES = dict(zip(EARLY, ((1, 3), (4, 3), (9, 3)), strict=True))

CALIBRATED = "; thick: calibrated 95 % interval"


@dataclass(frozen=True)
class ForestRow:
    """One row of a forest plot: name, where its posterior's interval begins, its score lies and that interval ends, and
    where the calibrated interval begins and ends, if there is one.
    """

    name: str
    y: float
    low: float
    at: float
    high: float
    calibrated: tuple[float, float] | None = None


@dataclass(frozen=True)
class Earlier:
    """A curve from before, with the words that name it in the key and its dashes: lengths of line and of gap."""

    curve: list[tuple[float, float]]
    words: str
    dash: tuple[int, int]


@dataclass(frozen=True)
class Drawing:
    """A drawing: ticks at their places with their words, and bars (x, y, width, height), curves, or marks;
    where on the x axis the campaign was changed.
    """

    title: str
    x_title: str
    x_ticks: list[Tick]
    y_title: str = ""
    y_ticks: list[Tick] = field(default_factory=list)
    bars: list[tuple[float, float, float, float]] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=list)
    marks: list[ForestRow] = field(default_factory=list)
    earlier: list[Earlier] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    key_x: float = 0
    left: float = LEFT
    bottom: float = BOTTOM


def upright(highest: float) -> tuple[Scale, list[Tick]]:
    """A y axis from 0 to at least `highest`, in two to five steps of 1, 2 or 5 times a power of ten."""
    highest = highest or 1.0
    step = round_step(highest)
    steps = math.ceil(highest / step)
    y = Scale(0, steps * step, BOTTOM, TOP)
    return y, y.ticks(steps)


def bar_chart(title: str, x_title: str, y_title: str, x_ticks: list[Tick], heights: Sequence[float]) -> Drawing:
    """Bars of equal width side by side over the whole x axis."""
    y, y_ticks = upright(max(heights, default=0))
    step = (RIGHT - LEFT) / max(1, len(heights))
    bars = [
        (round(LEFT + i * step, 2), y(height), round(step - 1, 2), round(BOTTOM - y(height), 2))
        for i, height in enumerate(heights)
    ]
    return Drawing(title, x_title, x_ticks, y_title, y_ticks, bars)


def bars_title(unit: Unit, *, calibrated: bool) -> str:
    """What an axis says on which scores lie with their intervals."""
    return f"{unit.axis} (line: the posterior’s 95 % interval{CALIBRATED * calibrated})"


def ticks(x: Scale, unit: Unit) -> list[Tick]:
    """Of an axis of places."""
    if unit.ticks is None:
        return x.ticks()
    return [(x(place), words) for place, words in unit.ticks if x.low <= place <= x.high]


def distribution(figures: dict[str, Any], unit: Unit) -> Drawing:
    histogram = figures["histogram"]
    x = Scale(histogram["low"], histogram["high"], LEFT, RIGHT)
    title = f"Distribution of {unit.title.lower()}s"
    return bar_chart(title, unit.axis, "items", ticks(x, unit), histogram["counts"])


def hits_per_hour(figures: dict[str, Any]) -> Drawing:
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


def density(item: ItemPage, unit: Unit, *, calibrated: bool) -> Drawing:
    """The posterior's curve and, dashed, those before; the mark in it is the score with its 95 % interval, and the
    calibrated one if that is in the same unit.
    """
    now = item.now
    x = Scale(min(0.0, item.x[0]), max(POINTS, item.x[-1]), LEFT, RIGHT)
    y, y_ticks = upright(max(max(one.density) for one in (now, *item.earlier)))

    def drawn(one: Curve) -> list[tuple[float, float]]:
        return [(x(at), y(value)) for at, value in zip(item.x, one.density, strict=True)]

    earlier = [Earlier(drawn(one), f"after {one.judgments}", DASHES[one.judgments]) for one in item.earlier]
    ends = (x(item.calibrated[1]), x(item.calibrated[2])) if item.calibrated and calibrated else None
    mark = ForestRow("", BOTTOM - 6, x(now.low), x(now.score), x(now.high), ends)
    title = f"{shortened(item.row.shown)}: posterior after {plural(now.judgments, 'judgment')}"
    x_title = bars_title(unit, calibrated=ends is not None)
    figure = Drawing(title, x_title, ticks(x, unit), unit.density, y_ticks, curve=drawn(now), marks=[mark])
    # The key stands where the curves are low.
    return replace(figure, earlier=earlier, key_x=LEFT + 12 if now.score > POINTS / 2 else RIGHT - 96)


def uncertainty(figures: dict[str, Any], unit: Unit) -> Drawing:
    """How the typical interval shrinks as answers come in. unit: of means."""
    points = figures["uncertainty"]["points"] or [[0, 0]]
    x, (y, y_ticks) = Scale(0, max(1, points[-1][0]), LEFT, RIGHT), upright(max(value for _, value in points))
    curve = [(x(answers), y(value)) for answers, value in points]
    y_title = f"typical interval, {unit.spread_axis}"
    changes = [x(min(answers, points[-1][0])) for answers in figures["uncertainty"]["changes"]]
    return Drawing("Uncertainty", "HITs answered", x.ticks(), y_title, y_ticks, curve=curve, changes=changes)


def forest(shown: ItemsPage, domain: tuple[float, float], unit: Unit, *, calibrated: bool) -> Drawing:
    """The rows of the table with their intervals, in its order."""
    bottom = TOP + ROW * max(1, len(shown.lines))
    x = Scale(domain[0], domain[1], NAMES, RIGHT)
    marks = [
        ForestRow(
            shortened(f"{line.label}: {line.item.shown}" if line.label else line.item.shown),
            TOP + ROW * (i + 0.5),
            x(line.low),
            x(line.score),
            x(line.high),
            (x(line.calibrated_low), x(line.calibrated_high)) if line.calibrated and calibrated else None,
        )
        for i, line in enumerate(shown.lines)
    ]
    title, x_title = f"{unit.title}s", bars_title(unit, calibrated=calibrated)
    return Drawing(title, x_title, ticks(x, unit), marks=marks, left=NAMES, bottom=bottom)
