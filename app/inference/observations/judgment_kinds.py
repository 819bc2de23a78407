"""Which kinds of answers can be read as which: a coarser kind forgets something, and never makes anything up."""

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
"""What answers of each kind can be read as, the kind itself first.

Ratios become points by their logarithm, points become ordered classes by cuts of the scale, ordered classes become
points by their place among the classes; of classes without an order nothing else is known, nor of places. The items of
a HIT with points, ratios or ordered classes have an order, and perhaps ties.
"""


def can_law_read(law_kind: JudgmentKind, answer_kind: JudgmentKind, class_count: int) -> bool:
    """Whether a law can follow answers of this kind, one by one: it cannot choose cuts, so classes must be there."""
    return law_kind in READABLE_KINDS[answer_kind] and (law_kind not in CLASS_KINDS or class_count > 1)
