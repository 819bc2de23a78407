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

    side: of the label, 1 for the right, -1 for the left. everywhere: there is room for the label on a phone too.
    """

    x: float
    y: float
    words: str
    across: tuple[float, float] | None = None
    upright: tuple[float, float] | None = None
    radius: float = 3.0
    label: str = ""
    side: int = 1
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
    """Dots with their names at the right or the left, as far as there is room; those far from the middle come first.

    Names that a phone has room for come before all others: what is clear there is clear on a wide page.
    """
    middle = np.median([(dot.x, dot.y) for dot in dots], axis=0)
    order = sorted(range(len(dots)), key=lambda i: -math.hypot(dots[i].x - middle[0], dots[i].y - middle[1]))
    shown = list(dots)
    for room in (NARROW, WIDE):
        taken = [(dot.x - room.dot, dot.x + room.dot, dot.y - room.dot, dot.y + room.dot) for dot in dots]
        taken += [label_box(dot, dot.label, dot.side, room) for dot in shown if dot.label]
        for i in order:
            side = None if shown[i].label else free_side(dots[i], names[i], room, taken)
            if side:
                taken.append(label_box(dots[i], names[i], side, room))
                shown[i] = replace(dots[i], label=names[i], side=side, everywhere=room is NARROW)
    return shown


def free_side(dot: Dot, name: str, room: Room, taken: Sequence[Box]) -> int | None:
    """1 or -1 if the name has room at the right or left of its dot."""
    for side in (1, -1):
        box = label_box(dot, name, side, room)
        if box[0] >= 0 and box[1] <= 100 and not any(overlap(box, other) for other in taken):
            return side
    return None


def label_box(dot: Dot, name: str, side: int, room: Room = WIDE) -> Box:
    """Left, right, top and bottom of a dot's name."""
    near, far = dot.x + side * (room.dot + 0.5), dot.x + side * (room.dot + 0.5 + room.letter * len(name))
    return min(near, far), max(near, far), dot.y - room.line / 2, dot.y + room.line / 2


def overlap(box: Box, other: Box) -> bool:
    return box[0] < other[1] and other[0] < box[1] and box[2] < other[3] and other[2] < box[3]
