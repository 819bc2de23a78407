"""What a design is: a way of asking, and how its answers read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.designs.answer import Answer, Form

Yields = Literal["points", "ratio", "classes", "ordered_classes", "order"]


class ReadsForm(Protocol):
    """From a form's fields to an answer. Raises `Invalid`; what was entered is kept."""

    def __call__(self, form: Mapping[str, str], /, *, source: str) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Design:
    """A way of asking.

    name: the key in `DESIGNS`, stored with a campaign. title: for people.
    yields: what the value of an item is: points 0 to 100, a positive ratio, a class, one of ordered classes, a place.
    equal: what two equal values of a HIT say: that their items tie, or nothing.

    read_form(form, source=...): an answer from a form's fields.
    values(answer, items): the answer's values in the order of `items`, as they are stored. Raises `Invalid` where one
    is missing or cannot be.
    shares(values): stored values as update laws take them, in [0, 1].
    """

    name: str
    title: str
    yields: Yields
    equal: Literal["tie", "unknown"]
    read_form: ReadsForm
    values: Callable[[Answer, Sequence[int]], list[float]]
    shares: Callable[[Sequence[float]], list[float]]

    def read(self, sent: Answer | Form) -> Answer:
        """What was sent, as an answer. Raises `Invalid`."""
        return self.read_form(sent.fields, source=sent.source) if isinstance(sent, Form) else sent
