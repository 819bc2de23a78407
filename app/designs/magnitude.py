"""Magnitude: any number above 0 for each item, relative to a reference that is shown with its value.

Magnitude estimation (Stevens 1971) with a reference, as RankME asks it: Novikova, Dušek & Rieser 2018.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, StringConstraints

from app.designs.design import Design, PlainNumber, TaskSettings, ValueKind
from app.designs.field_flags import text_with_visible_character_or_raise
from app.designs.number_parsing import AmbiguousNumber, parse_localized_decimal_or_refuse
from app.designs.scale import MAX_POINTS
from app.designs.unit import RATIO_UNIT, Unit, format_three_significant_digits
from app.errors import Invalid
from app.http.languages.catalogue import Message
from app.inference.ground.arrays import Array

MAX_REFERENCE_RATIO = 1_000_000.0
"""Largest ratio of a value to the reference, and its inverse the smallest. Beyond it the input is probably a typing
error, and the share of the scale would lose its digits.
"""
MAX_SIMULATED_RATIO = 10.0  # largest ratio of a simulated annotator: the ends of the scale are infinitely far away


class Magnitude(Design):
    """Values are stored as given; their ratio to the reference's value carries the information. The share of the scale
    is v / (v + reference_value), the logistic of the logarithm of the ratio: half of the scale is the reference.
    """

    name: ClassVar[str] = "magnitude"
    title: ClassVar[str] = "Magnitude"
    summary: ClassVar[str] = "Give each item a number compared with a reference."
    example: ClassVar[str] = "How natural is this sentence?"
    value_kind: ClassVar[ValueKind] = "ratio"
    items_per_hit: ClassVar[range] = range(1, 11)
    default_items: ClassVar[int] = 3
    default_law: ClassVar[str] = "log-normal"
    default_method: ClassVar[str] = "geometric_mean"
    noun: ClassVar[str] = "value"
    unit: ClassVar[Unit] = RATIO_UNIT

    reference: Annotated[
        str, StringConstraints(max_length=100_000), AfterValidator(text_with_visible_character_or_raise)
    ] = Field(
        default="An item of average quality",
        title="Reference",
        description="Text that items are compared with. Choose one of average quality.",
    )
    reference_value: Annotated[float, PlainNumber] = Field(
        default=100.0,
        ge=0.01,
        le=1_000_000.0,
        allow_inf_nan=False,
        title="Value of the reference",
        description="Annotators give twice this value to an item that is twice as good. The RankME study used 100.",
    )

    @property
    def value_range(self) -> tuple[float, float]:
        """Return the smallest and the largest accepted value; the scale itself has no ends but 0 and infinity."""
        return self.reference_value / MAX_REFERENCE_RATIO, self.reference_value * MAX_REFERENCE_RATIO

    @property
    def allowed_values_text(self) -> str:
        low, high = (format_number_without_exponent(end) for end in self.value_range)
        return f"a number above 0, from {low} to {high}"

    @property
    def reference_value_text(self) -> str:
        """Return the value of the reference, as people read it."""
        return format_number_without_exponent(self.reference_value)

    def format_reference_multiple(self, multiple: float) -> str:
        """Return a multiple of the reference's value, as people read it."""
        return format_number_without_exponent(multiple * self.reference_value)

    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return the sentence for the first page, with the value of the reference."""
        value = self.reference_value_text
        if task.items_per_hit == 1:
            return Message(
                "You see one item at a time and give it a number compared with a reference of %(value)s.", value=value
            )
        return Message(
            "You see %(items)d items at a time and give each a number compared with a reference of %(value)s.",
            items=task.items_per_hit,
            value=value,
        )

    def format_value_at_position(self, values: Sequence[float], position: int) -> str:
        """Return the answer with its ratio to the reference."""
        value = values[position]
        multiple = format_three_significant_digits(value / self.reference_value)
        return f"{format_number_without_exponent(value)}, {multiple} × the reference"

    def stored_value_or_none(self, value: float) -> float | None:
        low, high = self.value_range
        return float(value) if low <= value <= high else None

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Return the reference's value times the odds of the share, in two digits, as people write numbers."""
        least = 1.0 / (1.0 + MAX_SIMULATED_RATIO)
        inside = [min(max(share, least), 1.0 - least) for share in shares]
        return [float(f"{self.reference_value * share / (1.0 - share):.1e}") for share in inside]

    def parse_number(self, text: str, position: int) -> float:
        """Return a value as it was typed. Raises `Invalid` (`score_ambiguous`, `score_not_a_number`)."""
        try:
            return parse_localized_decimal_or_refuse(text)
        except AmbiguousNumber as problem:
            raise Invalid(
                f"The value of item {position} can be read as two numbers. Write it without the comma, "
                "or with a point. What you entered is kept.",
                code="score_ambiguous",
                position=position,
            ) from problem
        except ValueError as problem:
            raise Invalid(
                f"The value of item {position} is not a number. Write it in digits, for example 150 or 0.5. "
                "What you entered is kept.",
                code="score_not_a_number",
                position=position,
            ) from problem

    def values_to_scale_shares(self, values: Sequence[float]) -> list[float]:
        """Return shares in (0, 1), the reference at 1/2."""
        return [value / (value + self.reference_value) for value in values]

    def values_to_points(self, values: Array, hit: npt.NDArray[np.intp] | None = None) -> Array:  # noqa: ARG002  (each by itself)
        """Return points in (0, 100), the reference at 50."""
        return MAX_POINTS * (values / (values + self.reference_value))


def format_number_without_exponent(number: float) -> str:
    """Return the number without an exponent and with commas: 0.0001, 1.5, 100,000,000."""
    text = np.format_float_positional(number, trim="-")
    integer, point, fraction = text.partition(".")
    return f"{int(integer):,}{point}{fraction}"
