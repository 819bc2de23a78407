"""Pairwise comparison against a baseline: one of the two items is the same in every HIT."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from app.designs.field_flags import OneLine
from app.designs.pairwise import Pairwise
from app.errors import Conflict, Refusal, shorten_echo


class Baseline(Pairwise):
    """Otani et al. 2016: every other item is compared with one baseline, which is not marked as such."""

    name: ClassVar[str] = "baseline"
    title: ClassVar[str] = "Pairwise against a baseline"
    summary: ClassVar[str] = "Choose one of two items; one is always the baseline."
    example: ClassVar[str] = "Which translation is better?"
    repeats_items: ClassVar[bool] = False  # its partner is always the baseline

    baseline: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default="",
        title="Baseline",
        description="Id of the item that all others are compared with. Choose one of average quality.",
    )

    @property
    def always_shown(self) -> Sequence[str]:
        """Return the baseline's id: every HIT shows that item."""
        return (self.baseline,)

    def unknown_always_shown_item_error(self, item_name: str) -> Refusal:
        """Return the refusal for a baseline that is no item, or is not set."""
        problem = f"“{shorten_echo(item_name)}” is not the id of an item" if item_name else "No baseline is chosen"
        return Conflict(
            f"{problem}. Set the baseline to the id of one of the items, then launch.", code="baseline_unknown"
        )
