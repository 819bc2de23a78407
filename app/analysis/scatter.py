"""Scatter plots: dots in per cent of the frame, so that one drawing fits page and paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from app.analysis.chart_axes import Axis, DrawnArray
from app.analysis.result_types import Cell

MAX_SCATTER_DOTS = 1_000  # above, squares that count the dots in them
SQUARES_PER_AXIS = 48


@dataclass(frozen=True)
class LabelMetrics:
    """Width of a letter, height of a line and half a dot, in per cent of the frame."""

    letter_width: float
    line_height: float
    dot_radius: float


WIDE_LABEL_METRICS, PHONE_LABEL_METRICS = (
    LabelMetrics(1.3, 3.5, 1.2),
    LabelMetrics(2.6, 5.0, 3.2),
)  # next to the text, and on a phone


def cells_to_array(cells: Sequence[Cell]) -> DrawnArray:
    """Return cells as an array, NaN for None."""
    return np.array([float(cell) if isinstance(cell, int | float) else np.nan for cell in cells])


@dataclass(frozen=True)
class Dot:
    """A dot; positions and ends of intervals are in per cent from the left and from the top.

    Attributes:
        x: Position from the left.
        y: Position from the top.
        words: Text about the dot.
        across: Ends of the horizontal interval.
        upright: Ends of the vertical interval.
        radius: Radius in pixels.
        label: Name next to the dot.
        side: Side of the label, 1 for the right, -1 for the left, 0 for the middle.
        rise: -1 for a label above, 1 below, 0 level with the dot.
        end: End of a line that leads to the label, None if the label is at the dot.
        everywhere: Whether a phone has room for the label, too.

    """

    x: float
    y: float
    words: str
    across: tuple[float, float] | None = None
    upright: tuple[float, float] | None = None
    radius: float = 3.0
    label: str = ""
    side: int = 1
    rise: int = 0
    end: tuple[float, float] | None = None
    everywhere: bool = False


@dataclass(frozen=True)
class Square:
    """A square of counted dots: corner and side in per cent, and shade from 0 to 1."""

    x: float
    y: float
    side: float
    shade: float


@dataclass(frozen=True)
class Scatter:
    """Dots over two axes, or squares if there are too many dots.

    `has_diagonal` draws the line on which both values are equal. `readout` says in a sentence what a dot or a square
    is.
    """

    title: str
    x: Axis
    y: Axis
    dots: list[Dot] = field(default_factory=list)
    squares: list[Square] = field(default_factory=list)
    has_diagonal: bool = False
    readout: str = ""

    @property
    def has_intervals(self) -> bool:
        return any(dot.across or dot.upright for dot in self.dots)


def to_percent_from_top(percent_from_bottom: float) -> float:
    """Convert per cent from the bottom to per cent from the top."""
    return round(100 - percent_from_bottom, 2)


def squares_shaded_by_dot_count(x: Axis, y: Axis, first: DrawnArray, second: DrawnArray) -> list[Square]:
    """Count the dots in each square; the shade grows with the logarithm of the number."""
    counts, _, _ = np.histogram2d(first, second, SQUARES_PER_AXIS, [[x.low, x.high], [y.low, y.high]])
    side = 100 / SQUARES_PER_AXIS
    shades = np.log1p(counts) / np.log1p(max(1.0, counts.max()))
    return [
        Square(round(i * side, 3), round(100 - (j + 1) * side, 3), round(side, 3), round(0.12 + 0.88 * shades[i, j], 3))
        for i, j in np.argwhere(counts > 0).tolist()
    ]


Box = tuple[float, float, float, float]


def label_dots_where_room(dots: Sequence[Dot], names: Sequence[str]) -> list[Dot]:
    """Return dots with their names next to, above or below them, where it is clear which dot is meant.

    Dots far from the middle come first. If there are few dots, the others get their names further away, with a line to
    the dot. Names that fit on a phone come before all others: a name that is clear there is clear on a wide page.
    """
    middle = np.median([(dot.x, dot.y) for dot in dots], axis=0)
    order = sorted(range(len(dots)), key=lambda i: -math.hypot(dots[i].x - middle[0], dots[i].y - middle[1]))
    shown = list(dots)
    for metrics in (PHONE_LABEL_METRICS, WIDE_LABEL_METRICS):
        taken_boxes = [label_left_right_top_bottom(dot, metrics) for dot in shown if dot.label]
        for i in order:
            others = [
                dot_left_right_top_bottom(dot, LABEL_CLEARANCE_RADII * metrics.dot_radius)
                for dot in dots
                if dot is not dots[i]
            ]
            new_dot = (
                None
                if shown[i].label
                else labelled_dot_or_none(replace(dots[i], label=names[i]), metrics, taken_boxes + others)
            )
            if new_dot:
                taken_boxes.append(label_left_right_top_bottom(new_dot, metrics))
                shown[i] = replace(new_dot, everywhere=metrics is PHONE_LABEL_METRICS)
    return label_all_dots_using_lines(shown, names) if len(dots) <= MAX_DOTS_WITH_LABEL_LINES else shown


LABEL_SIDES = ((1, 0), (-1, 0), (0, -1), (0, 1))  # right, left, above, below: steps from the dot
LABEL_CLEARANCE_RADII = 2.5  # from how many of its radii on a dot is taken for that of a name
MAX_DOTS_WITH_LABEL_LINES = 20  # with more dots, names without room close by are left out
LABEL_DISTANCES_PERCENT = (7.0, 11.0, 15.0, 20.0, 26.0)  # per cent of the frame, from a dot to a distant name


def labelled_dot_or_none(dot: Dot, metrics: LabelMetrics, taken_boxes: Sequence[Box]) -> Dot | None:
    """Return a dot with its name, or None if there is no room for it."""
    return next(
        (
            at
            for side, rise in LABEL_SIDES
            if is_label_place_free(at := replace(dot, side=side, rise=rise), metrics, taken_boxes)
        ),
        None,
    )


def label_all_dots_using_lines(dots: Sequence[Dot], names: Sequence[str]) -> list[Dot]:
    """Return all dots with a name; without room nearby, the name is as near as possible, at the end of a line."""
    shown = list(dots)
    taken_boxes = [label_left_right_top_bottom(dot, WIDE_LABEL_METRICS) for dot in dots if dot.label] + [
        dot_left_right_top_bottom(dot, WIDE_LABEL_METRICS.dot_radius) for dot in dots
    ]
    for i, dot in enumerate(dots):
        if dot.label:
            continue
        turns = ((ring, math.tau * turn / 16) for ring in LABEL_DISTANCES_PERCENT for turn in range(16))
        ends = ((round(dot.x + ring * math.cos(at), 2), round(dot.y + ring * math.sin(at), 2)) for ring, at in turns)
        places = (replace(dot, label=names[i], side=1 if end[0] >= dot.x else -1, end=end) for end in ends)
        if found := next(
            (place for place in places if is_label_place_free(place, WIDE_LABEL_METRICS, taken_boxes)), None
        ):
            taken_boxes.append(label_left_right_top_bottom(found, WIDE_LABEL_METRICS))
            shown[i] = found
    return shown


def is_label_place_free(dot: Dot, metrics: LabelMetrics, taken_boxes: Sequence[Box]) -> bool:
    """Return whether a dot's name is inside the frame and covers nothing."""
    left, right, top, bottom = box = label_left_right_top_bottom(dot, metrics)
    inside = left >= 0 and right <= 100 and top >= 0 and bottom <= 100
    return inside and not any(has_overlap(box, other) for other in taken_boxes)


def dot_left_right_top_bottom(dot: Dot, half_width: float) -> Box:
    return dot.x - half_width, dot.x + half_width, dot.y - half_width, dot.y + half_width


def label_left_right_top_bottom(dot: Dot, metrics: LabelMetrics = WIDE_LABEL_METRICS) -> Box:
    """Return left, right, top and bottom of a dot's name."""
    x, y = dot.end or (dot.x, dot.y)
    width, gap = metrics.letter_width * len(dot.label), 0.0 if dot.end else metrics.dot_radius + 0.5
    middle = y + dot.rise * (gap + metrics.line_height / 2)
    if not dot.side:
        return x - width / 2, x + width / 2, middle - metrics.line_height / 2, middle + metrics.line_height / 2
    near, far = x + dot.side * gap, x + dot.side * (gap + width)
    return min(near, far), max(near, far), middle - metrics.line_height / 2, middle + metrics.line_height / 2


def has_overlap(box: Box, other_box: Box) -> bool:
    return box[0] < other_box[1] and other_box[0] < box[1] and box[2] < other_box[3] and other_box[2] < box[3]
