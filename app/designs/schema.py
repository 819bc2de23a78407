"""API schema of a design's values, for programs that answer instead of people."""

from typing import Self

from pydantic import BaseModel, Field

from app.designs.design import Design, EqualMeans, ValueKind


class ValueSchema(BaseModel):
    """Possible values of the items of a HIT."""

    kind: ValueKind = Field(
        description="The kind of value: `points`, a positive `ratio` to the reference, the number of one of the "
        "`classes` or of the `ordered_classes`, counted from 0, or a place in an `order`; place 1 is the best."
    )
    lowest: float
    highest: float
    classes: list[str] = Field(
        description="Labels of the classes, from number 0 on; empty if there are none. An answer may give a "
        "class by its number or, as a text, by its label."
    )
    equal: EqualMeans = Field(description="The meaning of equal values: a `tie`, or an `unknown` order.")
    possible: str = Field(description="Possible values in words.")

    @classmethod
    def from_design(cls, design: Design) -> Self:
        """Return the schema of a campaign's design."""
        low, high = design.value_range
        fields = {"kind": design.value_kind, "lowest": low, "highest": high, "classes": [*design.classes]}
        return cls.model_validate(fields | {"equal": design.equal_means, "possible": design.allowed_values_text})
