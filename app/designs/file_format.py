"""A design's values in files: numbers, or names of classes."""

from collections.abc import Sequence
from functools import cached_property

from app.designs.criteria import AskedCampaign
from app.designs.design import Design
from app.designs.number_parsing import parse_strict_decimal
from app.designs.scale import MAX_POINTS
from app.errors import join_names

INPUT_KEPT_MESSAGE = "What you entered is kept."  # how refusals of what was sent from a page end


class ValueFormat:
    """The format of a design's values in a file.

    A class is named by its label or by its number, 0 for the first. Where a label is another number, only labels name
    classes: on a scale labelled 1 to 5 a 1 would be ambiguous.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.classes: Sequence[str] = design.classes

    @property
    def is_points_scale(self) -> bool:
        """Return whether values are points, 0 to 100."""
        return self.design.value_kind == "points"

    @property
    def is_order(self) -> bool:
        """Return whether values are places, 1 for the best."""
        return self.design.value_kind == "order"

    @property
    def scale_ends_or_none(self) -> tuple[float, float] | None:
        """Return the lowest and the highest value, of ordered classes their numbers; None for values without ends."""
        if self.is_points_scale:
            return 0.0, float(MAX_POINTS)
        return (0.0, len(self.classes) - 1.0) if self.design.value_kind == "ordered_classes" else None

    @property
    def allowed_numbers_text(self) -> str:
        """Return the possible numbers of an item, in words."""
        return self.design.allowed_values_text

    @property
    def allowed_values_text(self) -> str:
        """Return the possible values of an item, in words."""
        if not self.classes:
            return self.allowed_numbers_text
        numbers = "" if self.has_label_that_is_another_number else f", or its number, 0 to {len(self.classes) - 1}"
        return f"one of {join_names(self.classes)}{numbers}"

    def format_value(self, value: float) -> str:
        """Return a value as people would write it."""
        return self.classes[int(value)] if self.classes else f"{value:g}"

    @property
    def criterion_names(self) -> list[str]:
        """Return the names of the criteria; empty where there are none."""
        return []

    def find_reader_of_criterion_or_none(self, criterion: str) -> "ValueFormat | None":
        """Return the format of values by a criterion, by the empty name where there are no criteria; None for another
        name.
        """
        return None if criterion else self

    @cached_property
    def class_by_label(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.classes)}

    @cached_property
    def has_label_that_is_another_number(self) -> bool:
        """Return whether a label is a number other than that of its class."""
        return any(is_label_another_number(label, number) for label, number in self.class_by_label.items())

    def parse_number(self, cell: str) -> float | None:
        """Return a number as it is stored, None where it is no valid value. Raises ValueError for other text."""
        return self.design.stored_value_or_none(parse_strict_decimal(cell))

    def parse_value_or_none(self, cell: str) -> float | None:
        """Return a label's class, or a number. Raises ValueError for any other text."""
        if cell in self.class_by_label:
            return self.design.stored_value_or_none(float(self.class_by_label[cell]))
        if self.has_label_that_is_another_number:
            raise ValueError(cell)
        return self.parse_number(cell)


class CriterionValueFormat(ValueFormat):
    """The format of a campaign's values in a file, which names the criterion of each value where there are several."""

    def __init__(self, campaign: AskedCampaign) -> None:
        super().__init__(campaign.criteria[0].design)
        self.parts = {part.name: ValueFormat(part.design) for part in campaign.criteria if campaign.has_criteria}

    @property
    def criterion_names(self) -> list[str]:
        """Return the names of the campaign's criteria."""
        return [*self.parts]

    def find_reader_of_criterion_or_none(self, criterion: str) -> ValueFormat | None:
        """Return the format by a criterion; without criteria and without a name, the campaign's own."""
        return self.parts.get(criterion) if self.parts or criterion else self


def is_label_another_number(label: str, number: int) -> bool:
    try:
        return parse_strict_decimal(label) != number
    except ValueError:
        return False
