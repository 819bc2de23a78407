"""What a design is: a way of asking, and how its answers read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.designs.answer import Answer, Form
from app.designs.scale import POINTS
from app.inference.ground.arrays import Array

Yields = Literal["points", "ratio", "classes", "ordered_classes", "order"]


class ReadsForm(Protocol):
    """From a form's fields to an answer. Raises `Invalid`; what was entered is kept."""

    def __call__(self, form: Mapping[str, str], /, *, source: str) -> Answer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A way of asking. `templates/designs/NAME.html` is what an annotator sees of it, a form that works as it stands.

    name: the key in `DESIGNS`, stored with a campaign. title: for people.
    yields: what the value of an item is: points 0 to 100, a positive ratio, a class, one of ordered classes, a place.
    lowest, highest: the ends of the scale of values.
    items_per_hit: how many items it can ask about at once.

    read_form(form, source=...): an answer from a form's fields.
    values(answer, items): the answer's values in the order of `items`, as they are stored. Raises `Invalid` where one
    is missing or cannot be.
    stored(value): a value as it is stored, None if it cannot be one.
    given(share): the value that someone gives who sees an item at this share of the scale, which may lie beyond 0 to 1.
    """

    name: str
    title: str
    yields: Yields
    lowest: float
    highest: float
    items_per_hit: range
    read_form: ReadsForm
    values: Callable[[Answer, Sequence[int]], list[float]]
    stored: Callable[[float], float | None]
    given: Callable[[float], float]

    def read(self, sent: Answer | Form) -> Answer:
        """What was sent, as an answer. Raises `Invalid`."""
        return self.read_form(sent.fields, source=sent.source) if isinstance(sent, Form) else sent

    def shares(self, values: Sequence[float]) -> list[float]:
        """Stored values as shares of their scale, 0 to 1, as laws take them that read points."""
        return [(value - self.lowest) / (self.highest - self.lowest) for value in values]

    def points(self, values: Array) -> Array:
        """Stored values on the scale of points, 0 to 100, in which pages and estimators think."""
        if (self.lowest, self.highest) == (0.0, POINTS):
            return values  # to divide and multiply would move bits
        return POINTS * (values - self.lowest) / (self.highest - self.lowest)
