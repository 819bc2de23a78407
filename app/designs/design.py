"""What a design is: a way of asking, and how its answers read."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, ConfigDict, field_validator

from app.designs.answer import Answer, Form, Given, touches_in
from app.designs.item_names import form_by_position, item_names
from app.designs.numbers import decimal, whole_number
from app.designs.remarks import remarks_in
from app.designs.scale import POINTS
from app.designs.unit import LIKELIEST, Unit, by_order
from app.designs.unit import POINTS as IN_POINTS
from app.designs.unjudged import unjudged_in
from app.errors import Conflict, Invalid, Refusal, listed, shortened, some_of
from app.fields import InputModel, refuse_blank
from app.inference.ground.arrays import Array
from app.inference.observations.coarsening import Reads
from app.inference.online.law import Law

Yields: TypeAlias = Reads
Equal = Literal["tie", "unknown"]

FIELD = "score-"
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but tabs and the ends of lines


def plain_number(value: object) -> object:
    """Not what Pydantic alone takes for one: `true`, or "1_0". Raises ValueError."""
    try:
        return decimal(str(value).strip()) if isinstance(value, str | bool) else value
    except ValueError:
        raise ValueError("must be a number") from None


PlainNumber = BeforeValidator(plain_number)


def plain_text(value: object) -> object:
    """A text or several without control characters, which nobody sees, and with something to see. Raises ValueError."""
    refuse_blank(value)
    for text in value if isinstance(value, list | tuple) else [value]:
        if isinstance(text, str) and CONTROL.search(text):
            raise ValueError("must not contain control characters")
    return value


class Design(InputModel, ABC):
    """A way of asking, with a campaign's settings of it, which are its fields: each has a title, a description and a
    default. `templates/designs/NAME.html` is what an annotator sees of it, a form that works as it stands.

    name: the key in `DESIGNS`, stored with a campaign. title: for people. summary: what annotators do, in a line, where
    researchers choose; beside it stands `templates/designs/NAME_picture.svg`. example: a question that it can ask.
    yields: what the value of an item is: points 0 to 100, a positive ratio, a class, one of ordered classes, a place.
    equal: what equal values of two items say of their order: that it is a tie, or nothing.
    items_per_hit: how many items it can ask about at once. usual_items: how many where nobody chooses.
    usual_law: the update law where nobody chooses. usual_method: the method of analysis that is shown beside it then,
        by name; empty where none is nearer to the design than any other.
    fewest_items: of how many items an answer says something; fewer are never asked.
    noun: what annotators call the value of an item.
    calls_items_by: what stands beside its items, a letter or the side, where what cannot be judged is asked below them.
    stands_in_grid: whether each item has one control, so that those of several criteria can stand beside each other.
    unit: of the means of its values, and of the scores of laws that take more than their order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str] = ""
    example: ClassVar[str] = "How good is this answer?"
    yields: ClassVar[Yields]
    equal: ClassVar[Equal] = "tie"
    items_per_hit: ClassVar[range]
    usual_items: ClassVar[int]
    usual_law: ClassVar[str]
    usual_method: ClassVar[str] = ""
    fewest_items: ClassVar[int] = 1
    noun: ClassVar[str] = "score"
    calls_items_by: ClassVar[Literal["letter", "side"] | None] = None
    stands_in_grid: ClassVar[bool] = False
    unit: ClassVar[Unit] = IN_POINTS

    @field_validator("*", mode="before")
    @classmethod
    def plainly_written(cls, value: object) -> object:
        """No text that nobody sees."""
        return plain_text(value)

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value that an item can have; of classes, the first and the last."""

    @property
    def classes(self) -> Sequence[str]:
        """What its classes are called, in their order; none where values are no classes."""
        return ()

    @property
    def always_shown(self) -> Sequence[str]:
        """What the researcher calls the items that every HIT shows besides those that are drawn: they have no cap."""
        return ()

    def not_there(self, name: str) -> Refusal:
        """Why a campaign cannot begin without an item that every HIT shows."""
        return Conflict(f"No item is called “{shortened(name)}”, which every HIT shows.", code="item_unknown")

    @property
    def compares_pairs(self) -> bool:
        """Whether a HIT asks for the order of two drawn items, so that some answers may imply others."""
        return self.yields == "order" and self.items_per_hit == range(2, 3) and not self.always_shown

    @property
    def ordered(self) -> bool:
        """Whether one value can be higher than another, so that means, ranks and distances say something."""
        return self.yields != "classes"

    def unit_of(self, law: Law) -> Unit:
        """What a law's scores of these answers are in."""
        if law.family.counts_classes:
            return LIKELIEST
        return by_order(law) if law.reads == "order" else self.unit

    def number_of(self, given: Given) -> float:
        """A number as it is, and the class that a label names. Raises `Invalid` (`class_unknown`)."""
        if not isinstance(given, str):
            return given
        if given not in self.classes:
            known = f"none of the labels {listed(self.classes)}" if self.classes else "no number"
            raise Invalid(
                f"“{shortened(given)}” is {known}. Nothing was stored.",
                code="class_unknown",
                classes=some_of(self.classes),
            )
        return float(self.classes.index(given))

    def means_beside(self, law: Law) -> bool:
        """Whether means of its values and a law's scores share an axis."""
        return self.ordered and self.unit_of(law) == self.unit

    def said(self, values: Sequence[float], place: int) -> str:
        """One of the stored values of a HIT as its annotator gave it, in words. place: 0 is the first as presented."""
        value = values[place]
        return self.classes[int(value)] if self.classes else f"{value:g}"

    @abstractmethod
    def task(self, campaign: Any) -> str:
        """What annotators do with the items of a HIT, in a sentence for their first page."""

    @abstractmethod
    def stored(self, value: float) -> float | None:
        """A value as it is stored, None if it cannot be one."""

    @abstractmethod
    def given(self, shares: Sequence[float]) -> list[float]:
        """The values that someone gives who sees the items of a HIT at these shares of the scale, which may lie beyond
        0 to 1; the higher, the better.
        """

    def read(self, sent: Answer | Form, items: Sequence[int]) -> Answer:
        """What was sent for a HIT of these items, as an answer. Raises `Invalid`; what was entered is kept."""
        if isinstance(sent, Answer):
            return sent
        form, names = form_by_position(sent.fields, items), item_names(len(items))
        unjudged = unjudged_in(form, names)
        if unjudged:  # a form without scripts cannot take back what was entered before
            form = {**form, **dict.fromkeys((f"{FIELD}{item}" for item in unjudged), "")}
        values = {item: value for item, value in self.entered(form, names).items() if item not in unjudged}
        if not values.keys() <= {*names}:
            raise unknown_items()
        viewport = form.get("viewport", "")[:40] or None
        remarks = remarks_in(form, names)
        return Answer(values, touches_in(form, names), viewport, sent.source, unjudged, remarks).for_items(items)

    def entered(self, form: Mapping[str, str], items: Sequence[int]) -> dict[int, float]:  # noqa: ARG002  (some ask)
        """Return the values in a form's fields `score-NAME`, by position; an empty one counts as not given.

        Args:
            form: The fields, as the design's template names them.
            items: The names of the items of the HIT, as the template has them.

        Raises:
            Invalid: `score_not_a_number`, `scores_unknown`.

        """
        values: dict[int, float] = {}
        for position, name in enumerate([name for name in form if name.startswith(FIELD)], start=1):
            item = whole_number(name.removeprefix(FIELD))
            if item is None:
                raise unknown_items()
            if raw := form[name].strip():
                values[item] = self.number(raw, position)
        return values

    def form_of(self, values: Mapping[int, float]) -> dict[str, str]:
        """The fields of a form in which somebody entered these values: what `entered` reads as them again."""
        return {f"{FIELD}{item}": np.format_float_positional(value, trim="-") for item, value in values.items()}

    def number(self, raw: str, position: int) -> float:
        """A value as it was typed. Raises `Invalid` (`score_not_a_number`)."""
        try:
            return decimal(raw)
        except ValueError as problem:
            raise Invalid(
                f"The {self.noun} of item {position} is not a number. What you entered is kept.",
                code="score_not_a_number",
                position=position,
            ) from problem

    def values(self, answer: Answer, items: Sequence[int]) -> list[float]:
        """The answer's values in the order of `items`, as they are stored: NaN where nothing is said of an item, since
        it cannot be judged, or too few others can.

        Raises `Invalid`: `scores_missing` (details: `missing`, the positions 1..n), `scores_unknown`,
        `score_out_of_range`, and what `number_of` and `together` raise.
        """
        judged = {item: place for place, item in enumerate(items, start=1) if item not in answer.unjudged}
        if not answer.unjudged.keys() <= set(items):
            raise unknown_items()
        if answer.unjudged and len(judged) < self.fewest_items:
            return [math.nan] * len(items)
        missing = [place for item, place in judged.items() if item not in answer.values]
        if missing:
            raise self.missing(missing, len(items))
        if len(answer.values) != len(judged):
            raise unknown_items()
        given = {item: self.number_of(answer.values[item]) for item in judged}
        told = self.together([self.checked(given[item], place) for item, place in judged.items()])
        if not answer.unjudged:
            return told
        value_of = dict(zip(judged, told, strict=True))
        return [value_of.get(item, math.nan) for item in items]

    def together(self, values: list[float]) -> list[float]:
        """The values of one HIT as they are stored. Raises `Invalid` (`answer_impossible`) for those that cannot be
        given together.
        """
        return values

    def checked(self, value: float, position: int) -> float:
        """A value as it is stored. Raises `Invalid` (`score_out_of_range`)."""
        stored = self.stored(value)
        if stored is None:
            raise Invalid(
                f"The {self.noun} of item {position} must be {self.possible}. What you entered is kept.",
                code="score_out_of_range",
                position=position,
            )
        return stored

    @property
    def possible(self) -> str:
        """Which values an item can have, in words."""
        low, high = self.ends
        return f"between {low:g} and {high:g}"

    def missing(self, positions: Sequence[int], count: int) -> Invalid:
        """The refusal of an answer that leaves out the items at these positions, 1 to `count`."""
        names = ", ".join(str(position) for position in positions)
        return Invalid(
            f"Not all items have a {self.noun} yet: {names} of {count}. What you entered is kept.",
            code="scores_missing",
            missing=positions,
        )

    def shares(self, values: Sequence[float]) -> list[float]:
        """Stored values as shares of their scale, 0 to 1, the better the higher: as laws take them, but those of
        classes.
        """
        low, high = self.ends
        return [(value - low) / (high - low) for value in values]

    def points(self, values: Array, hit: npt.NDArray[np.intp] | None = None) -> Array:  # noqa: ARG002  (some ask)
        """Stored values in points, 0 to 100, in which pages and estimators think; the better the higher.

        values: (M,). hit: (M,), the number of the HIT that each is of, None where all are of one: places mean something
        only among all items of a HIT.
        """
        low, high = self.ends
        if (low, high) == (0.0, POINTS):
            return values  # to divide and multiply would move bits
        return POINTS * (values - low) / (high - low)


def unknown_items() -> Invalid:
    """The refusal of an answer about other items than those of its HIT."""
    return Invalid("The answer is about items that are not in this HIT. Nothing was stored.", code="scores_unknown")
