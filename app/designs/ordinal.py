"""Ordinal scale: each item gets one of a few labelled points, which have an order; equal points are ties."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from app.designs.design import Design, TaskSettings, ValueKind
from app.designs.field_flags import OneLine
from app.http.languages.catalogue import Message

NO_LABEL = "-"
POINT_KEYS = "1234567890-"  # of the points where labels are words
PointLabel = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine]


class Ordinal(Design):
    """A Likert scale and its relatives: Likert 1932, "A technique for the measurement of attitudes"."""

    name: ClassVar[str] = "ordinal"
    title: ClassVar[str] = "Ordinal scale"
    summary: ClassVar[str] = "Choose one of a few labelled points for each item."
    example: ClassVar[str] = "Do you agree with this statement?"
    value_kind: ClassVar[ValueKind] = "ordered_classes"
    items_per_hit: ClassVar[range] = range(1, 11)
    default_items: ClassVar[int] = 5
    default_law: ClassVar[str] = "easl"
    noun: ClassVar[str] = "rating"
    fits_in_grid: ClassVar[bool] = True

    labels: tuple[PointLabel, ...] = Field(
        default=("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
        min_length=2,
        max_length=11,
        title="Points of the scale",
        description="2 to 11 labels, one per line, from lowest to highest. Use a hyphen for a point without a label.",
    )

    @model_validator(mode="after")
    def require_distinct_labels(self) -> Self:
        """Refuse points that annotators could not tell apart."""
        if NO_LABEL in (self.labels[0], self.labels[-1]):
            raise ValueError("the first and the last point need a label")
        if len(set(self.classes)) < len(self.labels):
            raise ValueError("each point needs a different label")
        return self

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, len(self.labels) - 1.0

    @property
    def classes(self) -> Sequence[str]:
        """Return the labels; a point without one is named by its number, from 1."""
        return [str(k) if label == NO_LABEL else label for k, label in enumerate(self.labels, start=1)]

    @property
    def keys(self) -> list[str]:
        """Return the key of each point, empty where there is none: its own digit where labels are numbers."""
        numbers = {"10": "-"} | {digit: digit for digit in "0123456789"}
        if any(label in numbers for label in self.labels):
            return [numbers.get(label, "") for label in self.classes]
        return list(POINT_KEYS[: len(self.labels)])

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return the sentence for the first page, with the labels of the ends."""
        scale = {"points": len(self.labels), "low": self.labels[0], "high": self.labels[-1]}
        if task.items_per_hit == 1:
            return Message(
                "You see one item at a time and choose one of %(points)d points for it, from “%(low)s” to “%(high)s”.",
                **scale,
            )
        return Message(
            "You see %(items)d items at a time and choose one of %(points)d points for each, from “%(low)s” to "
            "“%(high)s”.",
            items=task.items_per_hit,
            **scale,
        )

    def stored_value_or_none(self, value: float) -> float | None:
        """Return the number of a point, from 0; None if there is no such point."""
        return value + 0.0 if value in range(len(self.labels)) else None

    @property
    def allowed_values_text(self) -> str:
        """Return the allowed numbers, as programs send them."""
        return f"one of the {len(self.labels)} points, numbered from 0"

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Return the points next to these shares of the scale."""
        highest = len(self.labels) - 1
        return [float(min(max(round(share * highest), 0), highest)) for share in shares]
