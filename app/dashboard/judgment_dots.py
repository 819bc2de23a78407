"""Judgments of an item as dots on the scale, stacked where they would cover each other. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.designs.design import Design
from app.designs.scale import MAX_POINTS
from app.goals.settings import SCALE_ANSWER_KINDS

DOT_WIDTH = 3.0  # as places on the scale of 0 to 100


class DrawnJudgment(Protocol):
    """A judgment, as far as its dot shows it."""

    @property
    def annotator(self) -> str: ...
    @property
    def answer_text(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def counts(self) -> bool: ...


@dataclass(frozen=True)
class JudgmentDot:
    """A dot on the scale.

    Attributes:
        annotator: Name of the annotator.
        answer_text: The judgment in words.
        place: Where the dot is, 0 to 100.
        level: Number of dots below it.
        counts: False if a decision excludes the judgment.

    """

    annotator: str
    answer_text: str
    place: float
    level: int
    counts: bool


def judgment_dots(design: Design, judgments: Sequence[DrawnJudgment]) -> list[JudgmentDot]:
    """Return the dots of an item's judgments, from the left; empty for a design whose answers are not on a scale."""
    if design.value_kind not in SCALE_ANSWER_KINDS:
        return []
    low, high = design.value_range
    dots: list[JudgmentDot] = []
    ends: list[float] = []  # of the dots on each level
    for judgment in sorted(judgments, key=lambda one: (one.value, one.annotator)):
        place = round((judgment.value - low) / (high - low) * MAX_POINTS, 2)
        level = next((k for k, end in enumerate(ends) if place - end >= DOT_WIDTH), len(ends))
        ends[level : level + 1] = [place]
        dots.append(JudgmentDot(judgment.annotator, judgment.answer_text, place, level, judgment.counts))
    return dots
