"""Dots over two axes: what stands where, in per cent of the frame, so that one drawing fits page and paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from app.analysis.findings import Cell
from app.drawing import Array, Axis

MOST_DOTS = 1_000  # above, squares that count the dots in them
SQUARES = 48


@dataclass(frozen=True)
class Room:
    """What a letter's width, a line's height and half a dot take, in per cent of the frame."""

    letter: float
    line: float
    dot: float


WIDE, NARROW = Room(1.3, 3.5, 1.2), Room(2.6, 5.0, 3.2)  # beside the text, and on a phone


def numbers(cells: Sequence[Cell]) -> Array:
    """NaN where there is no figure."""
    return np.array([float(cell) if isinstance(cell, int | float) else np.nan for cell in cells])


@dataclass(frozen=True)
class Dot:
    """Per cent from the left and from the top; ends of its intervals likewise; radius in pixels.

    side: of the label, 1 for the right, -1 for the left, 0 for the middle; rise: -1 above, 1 below, 0 beside the dot.
    end: of a line that leads to the label, None where it is at the dot. everywhere: a phone has room for it, too.
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
    """A corner and the side in per cent, and how dark it is, 0 to 1."""

    x: float
    y: float
    side: float
    shade: float


@dataclass(frozen=True)
class Scatter:
    """Dots over two axes, or squares where there are too many. level: draw the line where both are the same.

    readout: what a dot or a square is, in a sentence.
    """

    title: str
    x: Axis
    y: Axis
    dots: list[Dot] = field(default_factory=list)
    squares: list[Square] = field(default_factory=list)
    level: bool = False
    readout: str = ""

    @property
    def intervals(self) -> bool:
        return any(dot.across or dot.upright for dot in self.dots)


def upside_down(at: float) -> float:
    """Per cent from the top of what is per cent from the bottom."""
    return round(100 - at, 2)


def squares(x: Axis, y: Axis, first: Array, second: Array) -> list[Square]:
    """How many dots lie in each square; the shade grows with the logarithm of the number."""
    counts, _, _ = np.histogram2d(first, second, SQUARES, [[x.low, x.high], [y.low, y.high]])
    side = 100 / SQUARES
    shades = np.log1p(counts) / np.log1p(max(1.0, counts.max()))
    return [
        Square(round(i * side, 3), round(100 - (j + 1) * side, 3), round(side, 3), round(0.12 + 0.88 * shades[i, j], 3))
        for i, j in np.argwhere(counts > 0).tolist()
    ]


Box = tuple[float, float, float, float]


def labelled(dots: Sequence[Dot], names: Sequence[str]) -> list[Dot]:
    """Return dots with their names beside, above or below them, where it is plain which dot is meant; those far from
    the middle come first. If there are few dots, the others get their names further away, with a line to the dot.

    Names that a phone has room for come before all others: what is clear there is clear on a wide page.
    """
    middle = np.median([(dot.x, dot.y) for dot in dots], axis=0)
    order = sorted(range(len(dots)), key=lambda i: -math.hypot(dots[i].x - middle[0], dots[i].y - middle[1]))
    shown = list(dots)
    for room in (NARROW, WIDE):
        taken = [label_box(dot, room) for dot in shown if dot.label]
        for i in order:
            others = [dot_box(dot, CLEAR * room.dot) for dot in dots if dot is not dots[i]]
            found = None if shown[i].label else labelled_dot(replace(dots[i], label=names[i]), room, taken + others)
            if found:
                taken.append(label_box(found, room))
                shown[i] = replace(found, everywhere=room is NARROW)
    return with_lines(shown, names) if len(dots) <= MOST_LINES else shown


SIDES = ((1, 0), (-1, 0), (0, -1), (0, 1))  # right, left, above, below: steps from the dot
CLEAR = 2.5  # from how many of its radii on a dot is taken for that of a name
MOST_LINES = 20  # with more dots, names without room close by are left out
RINGS = (7.0, 11.0, 15.0, 20.0, 26.0)  # per cent of the frame, from a dot to a name that stands further away


def labelled_dot(dot: Dot, room: Room, taken: Sequence[Box]) -> Dot | None:
    """Return a dot with its name where that has room, None where it has none."""
    return next((at for side, rise in SIDES if is_free(at := replace(dot, side=side, rise=rise), room, taken)), None)


def with_lines(dots: Sequence[Dot], names: Sequence[str]) -> list[Dot]:
    """Return all dots with a name; one that had no room gets its name as near as possible, at the end of a line."""
    shown = list(dots)
    taken = [label_box(dot, WIDE) for dot in dots if dot.label] + [dot_box(dot, WIDE.dot) for dot in dots]
    for i, dot in enumerate(dots):
        if dot.label:
            continue
        turns = ((ring, math.tau * turn / 16) for ring in RINGS for turn in range(16))
        ends = ((round(dot.x + ring * math.cos(at), 2), round(dot.y + ring * math.sin(at), 2)) for ring, at in turns)
        places = (replace(dot, label=names[i], side=1 if end[0] >= dot.x else -1, end=end) for end in ends)
        if found := next((place for place in places if is_free(place, WIDE, taken)), None):
            taken.append(label_box(found, WIDE))
            shown[i] = found
    return shown


def is_free(dot: Dot, room: Room, taken: Sequence[Box]) -> bool:
    """Return whether a dot's name is inside the frame and covers nothing."""
    left, right, top, bottom = box = label_box(dot, room)
    inside = left >= 0 and right <= 100 and top >= 0 and bottom <= 100
    return inside and not any(overlap(box, other) for other in taken)


def dot_box(dot: Dot, reach: float) -> Box:
    return dot.x - reach, dot.x + reach, dot.y - reach, dot.y + reach


def label_box(dot: Dot, room: Room = WIDE) -> Box:
    """Left, right, top and bottom of a dot's name."""
    x, y = dot.end or (dot.x, dot.y)
    width, gap = room.letter * len(dot.label), 0.0 if dot.end else room.dot + 0.5
    middle = y + dot.rise * (gap + room.line / 2)
    if not dot.side:
        return x - width / 2, x + width / 2, middle - room.line / 2, middle + room.line / 2
    near, far = x + dot.side * gap, x + dot.side * (gap + width)
    return min(near, far), max(near, far), middle - room.line / 2, middle + room.line / 2


def overlap(box: Box, other: Box) -> bool:
    return box[0] < other[1] and other[0] < box[1] and box[2] < other[3] and other[2] < box[3]
