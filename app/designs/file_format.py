"""A design's values as files have them: numbers, or what its classes are called."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from app.designs.criteria import criterion_views
from app.designs.design import Design
from app.designs.number_parsing import parse_strict_decimal
from app.designs.registry import design_of
from app.errors import join_names

INPUT_KEPT_MESSAGE = "What you entered is kept."  # how refusals of what was sent from a page end


class ValueFormat:
    """How the values of a design stand in a file.

    A class is named by its label or by its number, 0 for the first. Where a label is another number, only labels
    name classes: of a scale labelled 1 to 5 nobody could tell which class a 1 is.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.classes: Sequence[str] = design.classes

    @property
    def has_point_values(self) -> bool:
        """Whether values are points, 0 to 100."""
        return self.design.value_kind == "points"

    @property
    def allowed_numbers_text(self) -> str:
        """Which numbers an item can have, in words."""
        return self.design.allowed_values_text

    @property
    def allowed_values_text(self) -> str:
        """What an item can have, in words."""
        if not self.classes:
            return self.allowed_numbers_text
        numbers = "" if self.has_number_labels else f", or its number, 0 to {len(self.classes) - 1}"
        return f"one of {join_names(self.classes)}{numbers}"

    def format_value(self, value: float) -> str:
        """A value as people would write it."""
        return self.classes[int(value)] if self.classes else f"{value:g}"

    @property
    def criterion_names(self) -> list[str]:
        """The names of the criteria by which values are; none where there are none."""
        return []

    def criterion_format(self, criterion: str) -> "ValueFormat | None":
        """How values stand there by one of them, empty where none is named; None for another."""
        return None if criterion else self

    @cached_property
    def class_by_label(self) -> dict[str, int]:
        """The class that each label names."""
        return {label: number for number, label in enumerate(self.classes)}

    @cached_property
    def has_number_labels(self) -> bool:
        """Whether a label is itself a number, and not that of its class."""
        return any(is_different_number(label, number) for label, number in self.class_by_label.items())

    def parse_number(self, cell: str) -> float | None:
        """A number as it is stored, None where it cannot be a value. Raises ValueError where it is no number."""
        return self.design.normalise_value(parse_strict_decimal(cell))

    def parse_value(self, cell: str) -> float | None:
        """A label's class, or a number. Raises ValueError for any other text."""
        if cell in self.class_by_label:
            return self.design.normalise_value(float(self.class_by_label[cell]))
        if self.has_number_labels:
            raise ValueError(cell)
        return self.parse_number(cell)


class CriterionValueFormat(ValueFormat):
    """How a campaign's values stand in a file, which names the criterion by which each is where there are several."""

    def __init__(self, campaign: Any) -> None:
        views = criterion_views(campaign)
        super().__init__(design_of(views[0]))
        self.parts = {view.criterion_name: ValueFormat(design_of(view)) for view in views} if campaign.criteria else {}

    @property
    def criterion_names(self) -> list[str]:
        """Those of the campaign."""
        return [*self.parts]

    def criterion_format(self, criterion: str) -> ValueFormat | None:
        """By one of these; where there are none, and none is named, the campaign's own."""
        return self.parts.get(criterion) if self.parts or criterion else self


def is_different_number(label: str, number: int) -> bool:
    try:
        return parse_strict_decimal(label) != number
    except ValueError:
        return False
