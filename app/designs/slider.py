"""Sliders: n items, each scored 0 to 100; the order of the scores is the ranking, equal scores are ties."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from app.designs.design import Design, TaskSettings, ValueKind
from app.designs.scale import MAX_POINTS, points_in_range_or_none
from app.http.languages.catalogue import Message


class Slider(Design):
    """Ranking with scores: Sakaguchi & Van Durme 2018, section 4."""

    name: ClassVar[str] = "slider"
    title: ClassVar[str] = "Ranking with scores"
    summary: ClassVar[str] = "Score several items side by side on sliders."
    example: ClassVar[str] = "How often is this verb used?"
    value_kind: ClassVar[ValueKind] = "points"
    items_per_hit: ClassVar[range] = range(2, 11)
    default_items: ClassVar[int] = 5
    item_naming: ClassVar[Literal["letter", "side"] | None] = "letter"
    default_law: ClassVar[str] = "easl"

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, MAX_POINTS

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return the sentence for the first page, with the labels of the ends."""
        return Message(
            "You see %(items)d items at a time and place each on a scale from “%(low)s” to “%(high)s”, comparing it "
            "with the others.",
            items=task.items_per_hit,
            low=task.low_label,
            high=task.high_label,
        )

    def stored_value_or_none(self, value: float) -> float | None:
        return points_in_range_or_none(value)

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Return the steps of the slider at these shares of the scale, or its ends."""
        return [min(max(float(round(MAX_POINTS * share)), 0.0), MAX_POINTS) for share in shares]
