"""Conversions between kinds of answers: a coarser kind loses information and never invents any."""

from typing import Literal

JudgmentKind = Literal["points", "ratio", "classes", "ordered_classes", "order"]

CLASS_KINDS: tuple[JudgmentKind, ...] = ("classes", "ordered_classes")

READABLE_KINDS: dict[JudgmentKind, tuple[JudgmentKind, ...]] = {
    "points": ("points", "ordered_classes", "classes", "order"),
    "ratio": ("ratio", "points", "ordered_classes", "classes", "order"),
    "ordered_classes": ("ordered_classes", "classes", "points", "order"),
    "classes": ("classes",),
    "order": ("order",),
}
"""Kinds as which answers of each kind can be read, the kind itself first.

Ratios become points by their logarithm, points become ordered classes by cuts of the scale, ordered classes become
points by their rank among the classes. Classes without an order and places convert to nothing else. The items of a HIT
with points, ratios or ordered classes have an order, and perhaps ties.
"""


def can_law_read_answers(law_kind: JudgmentKind, answer_kind: JudgmentKind, class_count: int) -> bool:
    """Return whether a law can read answers of this kind one by one: it cannot choose cuts, so classes must exist."""
    return law_kind in READABLE_KINDS[answer_kind] and (law_kind not in CLASS_KINDS or class_count > 1)
