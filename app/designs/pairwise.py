"""Pairwise comparison: annotators see two items side by side and choose one, or neither."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from app.designs.design import TaskSettings, items_not_in_hit_error
from app.designs.number_parsing import parse_nonnegative_int_or_none
from app.designs.rank_base import OrderDesign
from app.errors import Invalid
from app.http.languages.catalogue import Message

PREFERRED_FIELD = "preferred"
TIE_CHOICE = "tie"


class Pairwise(OrderDesign):
    """Two items in a random order: the first is on the left. The chosen one has place 1, the other 2.

    TrueSkill is the default: in simulated crowds with ten judgments of an item it recovered the truth better than `ra`.
    """

    name: ClassVar[str] = "pairwise"
    title: ClassVar[str] = "Pairwise comparison"
    summary: ClassVar[str] = "Choose one of two items, or call them equal."
    example: ClassVar[str] = "Which translation is better?"
    items_per_hit: ClassVar[range] = range(2, 3)
    default_items: ClassVar[int] = 2
    item_naming: ClassVar[Literal["letter", "side"] | None] = "side"
    shows_items_once: ClassVar[bool] = True
    default_law: ClassVar[str] = "trueskill"

    submit_on_choice: bool = Field(
        default=False,
        title="Submit on choice",
        description="Submit as soon as one is chosen, if people may change their last answers.",
    )

    def task_message_for_first_page(self, task: TaskSettings) -> Message:  # noqa: ARG002  (others name the number of items)
        if self.ties_allowed:
            return Message("You see two items at a time and choose one of them, or say that they are about equal.")
        return Message("You see two items at a time and choose one of them.")

    def format_value_at_position(self, values: Sequence[float], position: int) -> str:
        """Return whether the item was chosen, and its side."""
        if values[0] == values[1]:
            return "tie"
        chosen = "chosen" if values[position] == min(values) else "not chosen"
        return f"{chosen}, {('left', 'right')[position]}"

    def parse_form_values_by_item(self, form: Mapping[str, str], items: Sequence[int]) -> dict[int, float]:
        """Parse the field `preferred`: the name of the chosen item, or `tie`.

        Raises `Invalid` (`scores_unknown`).
        """
        chosen = form.get(PREFERRED_FIELD, "").strip()
        if not chosen:
            return {}
        if chosen == TIE_CHOICE:
            return dict.fromkeys(items, 1.0)
        if (winner := parse_nonnegative_int_or_none(chosen)) not in items:
            raise items_not_in_hit_error()
        return {item: 1.0 if item == winner else 2.0 for item in items}

    def form_fields(self, values: Mapping[int, float]) -> dict[str, str]:
        """Return the field `preferred`."""
        if not values:
            return {}
        best = [item for item, value in values.items() if value == min(values.values())]
        return {PREFERRED_FIELD: TIE_CHOICE if len(best) > 1 else str(best[0])}

    def missing_values_error(self, positions: Sequence[int], count: int) -> Invalid:
        """Return the refusal of an answer without a choice; a program may also have sent a place for only one of the
        two.
        """
        refusal = super().missing_values_error(positions, count)
        if len(positions) < count:
            return refusal
        return Invalid("Nothing was chosen yet. Choose, then submit.", code=refusal.code, **refusal.details)
