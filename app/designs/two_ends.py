"""Orders whose two ends annotators know by a word each."""

from typing import Annotated

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from app.designs.design import OneLine
from app.designs.places import Places

End = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine]


class TwoEnds(Places):
    """Words for the first place and for the last."""

    best_label: End = Field(
        default="most", title="Word for the best", description="What the first place is called, for example: most."
    )
    worst_label: End = Field(
        default="least", title="Word for the worst", description="What the last place is called, for example: least."
    )

    @field_validator("worst_label")
    @classmethod
    def ends_differ(cls, worst_label: str, info: ValidationInfo) -> str:
        """Else nobody could tell them apart."""
        if worst_label == info.data.get("best_label"):
            raise ValueError("the best and the worst need different words")
        return worst_label
