"""Design in which annotators tap one of three smileys for each item."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from app.designs.design import Design, TaskSettings, ValueKind
from app.http.languages.catalogue import Message

FACES = 3


class Smiley(Design):
    """Three smileys, which the campaign can name."""

    name: ClassVar[str] = "smiley"
    title: ClassVar[str] = "Smileys"
    value_kind: ClassVar[ValueKind] = "ordered_classes"
    items_per_hit: ClassVar[range] = range(2, 5)
    default_items: ClassVar[int] = 3
    default_law: ClassVar[str] = "smiles"
    noun: ClassVar[str] = "smiley"

    names: tuple[str, str, str] = Field(default=("sad", "so so", "happy"), title="Smileys", description="Their names.")

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, FACES - 1.0

    @property
    def classes(self) -> Sequence[str]:
        return self.names

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        return Message("You see %(n)d items at a time and tap a smiley for each.", n=task.items_per_hit)

    def parse_form_values_by_item(self, form: Mapping[str, str], items: Sequence[int]) -> dict[int, float]:
        return {item: self.parse_number(form[name], item) for item in items if (name := f"face-{item}") in form}

    def form_fields(self, values: Mapping[int, float]) -> dict[str, str]:
        return {f"face-{item}": f"{value:g}" for item, value in values.items()}

    def stored_value_or_none(self, value: float) -> float | None:
        return value + 0.0 if value in range(FACES) else None

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        return [float(min(max(round(share * (FACES - 1)), 0), FACES - 1)) for share in shares]
