"""Rank designs with a label for each end of the order."""

from typing import Annotated

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from app.designs.field_flags import OneLine
from app.designs.rank_base import PlaceDesign

EndLabel = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), OneLine]


class LabelledEndsDesign(PlaceDesign):
    """Labels for the best item and for the worst."""

    best_label: EndLabel = Field(
        default="most",
        title="Label for the best",
        description="Shown where the best item goes, for example: most fluent.",
    )
    worst_label: EndLabel = Field(
        default="least",
        title="Label for the worst",
        description="Shown where the worst item goes, for example: least fluent.",
    )

    @field_validator("worst_label")
    @classmethod
    def require_different_end_labels(cls, worst_label: str, info: ValidationInfo) -> str:
        """Refuse equal labels, which annotators could not tell apart."""
        if worst_label == info.data.get("best_label"):
            raise ValueError("the best and the worst need different labels")
        return worst_label
