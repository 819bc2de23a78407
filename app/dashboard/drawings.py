"""The charts of a campaign's page as black-on-white drawings for papers, laid out in SVG units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.analysis.chart_axes import LinearScale, Tick, choose_round_tick_step
from app.dashboard.history import EARLY_JUDGMENTS
from app.dashboard.item import ItemPage, PosteriorCurve
from app.dashboard.snapshot import shorten_to_one_line_name
from app.dashboard.table import ItemRow
from app.designs.scale import MAX_POINTS
from app.designs.unit import Unit
from app.errors import pluralize
from app.http.paging import Page

DRAWING_LEFT, DRAWING_RIGHT, DRAWING_TOP, DRAWING_BOTTOM = 64, 616, 40, 312  # ends of the axes in a drawing 640 wide
FOREST_ROW_HEIGHT, FOREST_NAMES_WIDTH = 20, 200

# Lengths of dash and gap that distinguish the curves after 1, 5 and 10 judgments, here and on the page.
EARLY_CURVE_DASHES = dict(zip(EARLY_JUDGMENTS, ((1, 3), (4, 3), (9, 3)), strict=True))

THICK_KEY_TEXT = "; thick: {} 95 % interval"


@dataclass(frozen=True)
class ForestRow:
    """One row of a forest plot, in SVG units.

    Attributes:
        name: Name of the item.
        y: Height of the row.
        low: Lower end of the posterior's 95 % interval.
        high: Upper end of the posterior's interval.
        thick: Ends of the calibrated or shrunken interval, if there is one.

    """

    name: str
    y: float
    low: float
    score: float
    high: float
    thick: tuple[float, float] | None = None


@dataclass(frozen=True)
class EarlierCurve:
    """Earlier curve of a posterior, its label in the key, and its dashes: lengths of line and of gap."""

    curve: list[tuple[float, float]]
    label: str
    dash: tuple[int, int]


@dataclass(frozen=True)
class Drawing:
    """A chart with its axes, its ticks, and the bars, curves or marks in it.

    Attributes:
        x_ticks: Ticks of the x axis, at their places with their words.
        bars: (x, y, width, height) of each bar.
        curve: Points of the main curve.
        marks: Rows of a forest plot, or the mark in a density.
        earlier: Earlier curves, drawn with dashes.
        changes: Where on the x axis the campaign was changed.
        key_x: Left end of the key.
        left: Left end of the x axis.
        bottom: Lower end of the y axis.

    """

    title: str
    x_title: str
    x_ticks: list[Tick]
    y_title: str = ""
    y_ticks: list[Tick] = field(default_factory=list)
    bars: list[tuple[float, float, float, float]] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=list)
    marks: list[ForestRow] = field(default_factory=list)
    earlier: list[EarlierCurve] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    key_x: float = 0
    left: float = DRAWING_LEFT
    bottom: float = DRAWING_BOTTOM


def vertical_scale_and_ticks(maximum: float) -> tuple[LinearScale, list[Tick]]:
    """Return a y axis from 0 to at least `maximum`, in two to five steps of 1, 2 or 5 times a power of ten."""
    maximum = maximum or 1.0
    step = choose_round_tick_step(maximum)
    steps = math.ceil(maximum / step)
    y = LinearScale(0, steps * step, DRAWING_BOTTOM, DRAWING_TOP)
    return y, y.evenly_spaced_ticks(steps)


def bar_chart_drawing(title: str, x_title: str, y_title: str, x_ticks: list[Tick], heights: Sequence[float]) -> Drawing:
    """Return bars of equal width side by side over the whole x axis."""
    y, y_ticks = vertical_scale_and_ticks(max(heights, default=0))
    step = (DRAWING_RIGHT - DRAWING_LEFT) / max(1, len(heights))
    bars = [
        (round(DRAWING_LEFT + i * step, 2), y(height), round(step - 1, 2), round(DRAWING_BOTTOM - y(height), 2))
        for i, height in enumerate(heights)
    ]
    return Drawing(title, x_title, x_ticks, y_title, y_ticks, bars)


def score_axis_title(unit: Unit, thick_interval: str) -> str:
    """Return the title of an axis that shows scores with their intervals; `thick_interval` is `calibrated`, `shrunken`
    or empty.
    """
    thick_text = THICK_KEY_TEXT.format(thick_interval) if thick_interval else ""
    return f"{unit.axis_title} (line: the score’s 95 % interval{thick_text})"


def axis_ticks_in_unit(scale: LinearScale, unit: Unit) -> list[Tick]:
    """Return the ticks of an axis of places in this unit."""
    if unit.ticks is None:
        return scale.evenly_spaced_ticks()
    return [(scale(place), words) for place, words in unit.ticks if scale.low <= place <= scale.high]


def score_distribution_drawing(state_figures: dict[str, Any], unit: Unit) -> Drawing:
    histogram = state_figures["histogram"]
    x = LinearScale(histogram["low"], histogram["high"], DRAWING_LEFT, DRAWING_RIGHT)
    title = f"Distribution of {unit.title.lower()}s"
    return bar_chart_drawing(title, unit.axis_title, "items", axis_ticks_in_unit(x, unit), histogram["counts"])


def pace_drawing(state_figures: dict[str, Any]) -> Drawing:
    pace_figures = state_figures["pace"]
    seconds = pace_figures["minutes"] * 60
    end = pace_figures["start"] + len(pace_figures["bars"]) * seconds
    x = LinearScale(pace_figures["start"], end, DRAWING_LEFT, DRAWING_RIGHT)
    moments = [
        datetime.fromtimestamp(pace_figures["start"] + (end - pace_figures["start"]) * step / 4, UTC)
        for step in range(5)
    ]
    ticks = [(x(moment.timestamp()), f"{moment:%H:%M}") for moment in moments]
    x_title = f"time (UTC, from {moments[0]:%Y-%m-%d %H:%M}; a bar is {pace_figures['minutes']} min)"
    return bar_chart_drawing("Pace", x_title, "tasks per hour", ticks, pace_figures["bars"])


def hits_per_hour_table_rows(state_figures: dict[str, Any]) -> list[tuple[datetime, int]]:
    """Return the bars of the pace chart as a table: when each begins, and its HITs per hour."""
    pace_figures = state_figures["pace"]
    step = timedelta(minutes=pace_figures["minutes"])
    start = datetime.fromtimestamp(pace_figures["start"], UTC)
    return [(start + i * step, hits) for i, hits in enumerate(pace_figures["bars"])]


def posterior_density_drawing(item_page: ItemPage, unit: Unit, *, calibrated: bool) -> Drawing:
    """Draw the density of an item's posterior now and, dashed, after its first judgments.

    The mark in it is the score with its 95 % interval, and the calibrated or shrunken interval if it is in the same
    unit.
    """
    current_curve = item_page.now
    x = LinearScale(min(0.0, item_page.x[0]), max(MAX_POINTS, item_page.x[-1]), DRAWING_LEFT, DRAWING_RIGHT)
    y, y_ticks = vertical_scale_and_ticks(max(max(curve.density) for curve in (current_curve, *item_page.earlier)))

    def curve_points(posterior_curve: PosteriorCurve) -> list[tuple[float, float]]:
        return [(x(at), y(value)) for at, value in zip(item_page.x, posterior_curve.density, strict=True)]

    earlier = [
        EarlierCurve(curve_points(curve), f"after {curve.judgments}", EARLY_CURVE_DASHES[curve.judgments])
        for curve in item_page.earlier
    ]
    interval = item_page.displayed_interval_or_none if calibrated else None
    ends = (x(interval[0]), x(interval[1])) if interval else None
    mark = ForestRow("", DRAWING_BOTTOM - 6, x(current_curve.low), x(current_curve.score), x(current_curve.high), ends)
    judgments_text = pluralize(current_curve.judgments, "judgment")
    title = f"{shorten_to_one_line_name(item_page.row.shown)}: likely scores after {judgments_text}"
    x_title = score_axis_title(unit, ("shrunken" if item_page.shrunken else "calibrated") if ends else "")
    figure = Drawing(
        title,
        x_title,
        axis_ticks_in_unit(x, unit),
        unit.density_axis_title,
        y_ticks,
        curve=curve_points(current_curve),
        marks=[mark],
    )
    # The key goes where the curves are low.
    return replace(
        figure, earlier=earlier, key_x=DRAWING_LEFT + 12 if current_curve.score > MAX_POINTS / 2 else DRAWING_RIGHT - 96
    )


def typical_interval_curve_drawing(state_figures: dict[str, Any], unit: Unit) -> Drawing:
    """Draw how the typical interval shrinks as answers come in, in the unit of means."""
    points = state_figures["uncertainty"]["points"] or [[0, 0]]
    x, (y, y_ticks) = (
        LinearScale(0, max(1, points[-1][0]), DRAWING_LEFT, DRAWING_RIGHT),
        vertical_scale_and_ticks(max(value for _, value in points)),
    )
    curve = [(x(answers), y(value)) for answers, value in points]
    y_title = f"typical interval, {unit.half_width_axis_title}"
    changes = [x(min(answers, points[-1][0])) for answers in state_figures["uncertainty"]["changes"]]
    return Drawing(
        "Uncertainty", "tasks answered", x.evenly_spaced_ticks(), y_title, y_ticks, curve=curve, changes=changes
    )


def forest_plot_drawing(
    items_page: Page[ItemRow], domain: tuple[float, float], unit: Unit, *, calibrated: bool
) -> Drawing:
    """Draw the rows of the item table with their intervals, in the order of the table."""
    bottom = DRAWING_TOP + FOREST_ROW_HEIGHT * max(1, len(items_page.rows))
    x = LinearScale(domain[0], domain[1], FOREST_NAMES_WIDTH, DRAWING_RIGHT)
    marks = [
        ForestRow(
            shorten_to_one_line_name(f"{line.label}: {line.item.shown}" if line.label else line.item.shown),
            DRAWING_TOP + FOREST_ROW_HEIGHT * (i + 0.5),
            x(line.low),
            x(line.score),
            x(line.high),
            (x(line.displayed_interval_or_none[0]), x(line.displayed_interval_or_none[1]))
            if line.displayed_interval_or_none and calibrated
            else None,
        )
        for i, line in enumerate(items_page.rows)
    ]
    is_shrunken = any(math.isfinite(line.shrunken_low) for line in items_page.rows)
    title = f"{unit.title}s"
    x_title = score_axis_title(unit, ("shrunken" if is_shrunken else "calibrated") if calibrated else "")
    return Drawing(title, x_title, axis_ticks_in_unit(x, unit), marks=marks, left=FOREST_NAMES_WIDTH, bottom=bottom)
