"""API schema of a design's values, for programs that answer instead of people."""

from typing import Self

from pydantic import BaseModel, Field

from app.designs.design import Design, EqualMeans, ValueKind


class ValueSchema(BaseModel):
    """Possible values of the items of a HIT."""

    kind: ValueKind = Field(
        description="What a value is: `points`, a positive `ratio` to the reference, the number of one of the "
        "`classes` or of the `ordered_classes`, counted from 0, or a place in an `order`; place 1 is the best."
    )
    lowest: float
    highest: float
    classes: list[str] = Field(
        description="What the classes are called, from number 0 on; empty where there are none. An answer may give a "
        "class by its number or, as a text, by its label."
    )
    equal: EqualMeans = Field(
        description="What equal values say of two items: a `tie`, or that their order is `unknown`."
    )
    possible: str = Field(description="The same in words.")

    @classmethod
    def from_design(cls, design: Design) -> Self:
        """Return the schema of a campaign's design."""
        low, high = design.value_range
        fields = {"kind": design.value_kind, "lowest": low, "highest": high, "classes": [*design.classes]}
        return cls.model_validate(fields | {"equal": design.equal_means, "possible": design.allowed_values_text})
