"""The interface of a design: a way of asking, and the meaning of its answers."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, ConfigDict, field_validator

from app.designs.answer import MAX_VIEWPORT_CHARACTERS, Answer, AnswerValue, Form, parse_touches_by_item
from app.designs.field_flags import InputModel, text_not_looking_empty_or_raise
from app.designs.item_names import item_names, rename_form_items_to_positions
from app.designs.media_sentences import message_about_content
from app.designs.number_parsing import parse_nonnegative_int_or_none, parse_strict_decimal
from app.designs.playback import parse_playbacks_by_item
from app.designs.remarks import parse_remarks_by_subject
from app.designs.scale import MAX_POINTS
from app.designs.unit import LIKELIEST_LABEL_UNIT, Unit, unit_of_order_only_law
from app.designs.unit import POINTS_UNIT as IN_POINTS
from app.designs.unjudged import parse_unjudged_reasons_by_item
from app.errors import (
    Conflict,
    Invalid,
    Refusal,
    join_names,
    shorten_echo,
    shortened_names_that_message_shows,
)
from app.http.languages.catalogue import Message
from app.inference.ground.arrays import Array
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.online.law import Law

ValueKind: TypeAlias = JudgmentKind
EqualMeans = Literal["tie", "unknown"]

SCORE_PREFIX = "score-"
CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but tabs and the ends of lines


def value_or_raise_for_loose_number(value: object) -> object:
    """Return the value, refusing what Pydantic alone accepts as a number: `true`, or "1_0". Raises ValueError."""
    try:
        return parse_strict_decimal(str(value).strip()) if isinstance(value, str | bool) else value
    except ValueError:
        raise ValueError("must be a number") from None


PlainNumber = BeforeValidator(value_or_raise_for_loose_number)


def visible_text_without_controls_or_raise(value: object) -> object:
    """Return the text or texts, refusing control characters and invisible text. Raises ValueError."""
    text_not_looking_empty_or_raise(value)
    for text in value if isinstance(value, list | tuple) else [value]:
        if isinstance(text, str) and CONTROL_CHARACTER.search(text):
            raise ValueError("must not contain control characters")
    return value


class TaskSettings(Protocol):
    """The settings that a sentence about the task names, of a criterion or of a campaign with one question."""

    @property
    def items_per_hit(self) -> int: ...
    @property
    def low_label(self) -> str: ...
    @property
    def high_label(self) -> str: ...


class Design(InputModel, ABC):
    """A way of asking, with a campaign's settings of it as fields: each has a title, a description and a default.

    `templates/designs/NAME.html` is the annotator's form, which works without scripts.

    Attributes:
        name: The key in `DESIGNS`, stored with a campaign.
        summary: What annotators do, in a line for researchers, shown with `templates/designs/NAME_picture.svg`.
        example: A question that it can ask.
        value_kind: The kind of an item's value: points 0 to 100, a positive ratio, a class, an ordered class, or a
            place.
        equal_means: The meaning of equal values of two items for their order: a tie, or nothing.
        items_per_hit: The possible numbers of items.
        default_method: The default method of analysis, by name; empty where no method is closer to the design.
        fewest_items: The fewest items of an informative answer; fewer are never asked.
        repeats_items: Whether annotators of a new campaign may judge an item again, as it takes several partners to
            compare an item with.
        noun: The annotators' word for the value of an item.
        item_naming: How an item is named, a letter or the side, where unjudged items are chosen below the items.
        fits_in_grid: Whether each item has one control, so that several criteria fit side by side.
        shows_items_once: Whether its template asks by all criteria below items that it shows once.
        ticks_criteria: Whether each criterion is a label that annotators tick, so that its template asks by all
            criteria, and scripts treat them as one part.
        unit: The unit of the means of its values, and of the scores of laws that read more than their order.

    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str] = ""
    example: ClassVar[str] = "How good is this answer?"
    value_kind: ClassVar[ValueKind]
    equal_means: ClassVar[EqualMeans] = "tie"
    items_per_hit: ClassVar[range]
    default_items: ClassVar[int]
    default_law: ClassVar[str]
    default_method: ClassVar[str] = ""
    fewest_items: ClassVar[int] = 1
    repeats_items: ClassVar[bool] = False
    noun: ClassVar[str] = "score"
    item_naming: ClassVar[Literal["letter", "side"] | None] = None
    fits_in_grid: ClassVar[bool] = False
    shows_items_once: ClassVar[bool] = False
    ticks_criteria: ClassVar[bool] = False
    unit: ClassVar[Unit] = IN_POINTS

    @field_validator("*", mode="before")
    @classmethod
    def reject_invisible_text(cls, value: object) -> object:
        return visible_text_without_controls_or_raise(value)

    @property
    @abstractmethod
    def value_range(self) -> tuple[float, float]:
        """Return the lowest and the highest value of an item; for classes, the first and the last."""

    @property
    def classes(self) -> Sequence[str]:
        """Return the names of its classes, in order; empty where values are no classes."""
        return ()

    def criterion_texts_of_labels(self, question: str) -> list[tuple[str, str]]:  # noqa: ARG002  (one asks)
        """Return a name and a question for each criterion that a campaign with this question has because of its
        design's labels; empty where a researcher writes the criteria.
        """
        return []

    @property
    def always_shown(self) -> Sequence[str]:
        """Return the ids of the items that every HIT shows besides the drawn ones: they have no cap."""
        return ()

    def unknown_always_shown_item_error(self, item_name: str) -> Refusal:
        """Return the refusal of a launch without an item that every HIT shows."""
        return Conflict(
            f"Every task should show the item “{shorten_echo(item_name)}”, but there is no such item.",
            code="item_unknown",
        )

    @property
    def compares_pairs(self) -> bool:
        """Return whether a HIT asks for the order of two drawn items, so that some answers may imply others."""
        return self.value_kind == "order" and self.items_per_hit == range(2, 3) and not self.always_shown

    @property
    def is_ordered(self) -> bool:
        """Return whether one value can be higher than another, so that means, ranks and distances are meaningful."""
        return self.value_kind != "classes"

    def score_unit(self, law: Law) -> Unit:
        """Return the unit of a law's scores of these answers."""
        if law.family.counts_classes:
            return LIKELIEST_LABEL_UNIT
        return unit_of_order_only_law(law) if law.reads == "order" else self.unit

    def number_or_class_number_of_label_or_refuse(self, value: AnswerValue) -> float:
        """Return a number unchanged, and the class of a label. Raises `Invalid` (`class_unknown`)."""
        if not isinstance(value, str):
            return value
        if value not in self.classes:
            expected = f"none of the labels {join_names(self.classes)}" if self.classes else "no number"
            raise Invalid(
                f"“{shorten_echo(value)}” is {expected}. Nothing was stored.",
                code="class_unknown",
                classes=shortened_names_that_message_shows(self.classes),
            )
        return float(self.classes.index(value))

    def has_same_unit_as_scores_of(self, law: Law) -> bool:
        """Return whether means of its values and a law's scores share an axis."""
        return self.is_ordered and self.score_unit(law) == self.unit

    def format_value_at_position(self, values: Sequence[float], position: int) -> str:
        """Return one of the stored values of a HIT in words; position 0 is the first item as presented."""
        value = values[position]
        return self.classes[int(value)] if self.classes else f"{value:g}"

    @abstractmethod
    def task_message_for_first_page(self, task: TaskSettings) -> Message:
        """Return what annotators do with the items of a HIT, in a sentence for their first page."""

    def first_page_message(self, task: TaskSettings, content: str) -> Message:
        """Return that sentence for a campaign with this content: about recordings, pictures or videos, else items."""
        return message_about_content(self.task_message_for_first_page(task), content)

    @abstractmethod
    def stored_value_or_none(self, value: float) -> float | None:
        """Return a value as it is stored, None if it is invalid."""

    @abstractmethod
    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Return the values that an annotator gives who sees the items of a HIT at these shares of the scale.

        Shares may be outside 0 to 1; higher is better.
        """

    def fields_with_unticked_labels(self, form: Mapping[str, str], field_prefixes: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG002  (one asks)
        """Return the fields of a form of all criteria, with those that a browser leaves out since they are not ticked.

        Raises `Invalid` (`answer_impossible`). `field_prefixes` are those of the criteria.
        """
        return form

    def parse_answer(self, submission: Answer | Form, items: Sequence[int]) -> Answer:
        """Return the submission for a HIT of these items as an answer. Raises `Invalid`; the form keeps the input."""
        if isinstance(submission, Answer):
            return submission
        form, names = rename_form_items_to_positions(submission.fields, items), item_names(len(items))
        unjudged = parse_unjudged_reasons_by_item(form, names)
        if unjudged:  # a form without scripts cannot take back what was entered before
            form = {**form, **dict.fromkeys((f"{SCORE_PREFIX}{item}" for item in unjudged), "")}
        values = {
            item: value for item, value in self.parse_form_values_by_item(form, names).items() if item not in unjudged
        }
        if not values.keys() <= {*names}:
            raise items_not_in_hit_error()
        viewport = form.get("viewport", "")[:MAX_VIEWPORT_CHARACTERS] or None
        remarks = parse_remarks_by_subject(form, names)
        return Answer(
            values,
            parse_touches_by_item(form, names),
            viewport,
            submission.source,
            unjudged,
            remarks,
            playbacks=parse_playbacks_by_item(form, names),
        ).with_item_numbers(items)

    def parse_form_values_by_item(self, form: Mapping[str, str], items: Sequence[int]) -> dict[int, float]:  # noqa: ARG002  (some ask)
        """Return the values in a form's fields `score-NAME`, by position; an empty one counts as not given.

        Args:
            form: The fields, as the design's template names them.
            items: The names of the items of the HIT, as the template has them.

        Raises:
            Invalid: `score_not_a_number`, `scores_unknown`.

        """
        values: dict[int, float] = {}
        for position, name in enumerate([name for name in form if name.startswith(SCORE_PREFIX)], start=1):
            item = parse_nonnegative_int_or_none(name.removeprefix(SCORE_PREFIX))
            if item is None:
                raise items_not_in_hit_error()
            if raw := form[name].strip():
                values[item] = self.parse_number(raw, position)
        return values

    def form_fields(self, values: Mapping[int, float]) -> dict[str, str]:
        """Return the form fields for these values: the inverse of `parse_form_values_by_item`."""
        return {f"{SCORE_PREFIX}{item}": np.format_float_positional(value, trim="-") for item, value in values.items()}

    def parse_number(self, text: str, position: int) -> float:
        """Return a typed value as a number. Raises `Invalid` (`score_not_a_number`)."""
        try:
            return parse_strict_decimal(text)
        except ValueError as problem:
            raise Invalid(
                f"The {self.noun} of item {position} is not a number. What you entered is kept.",
                code="score_not_a_number",
                position=position,
            ) from problem

    def checked_values_in_item_order_or_refuse(self, answer: Answer, items: Sequence[int]) -> list[float]:
        """Return the answer's values in the order of `items`, as they are stored.

        NaN marks an item without a value, since it cannot be judged, or too few others can. Raises `Invalid`:
        `scores_missing` (details: `missing`, the positions 1..n), `scores_unknown`, `score_out_of_range`, and what
        `number_or_class_number_of_label_or_refuse` and `possible_hit_values_or_refuse` raise.
        """
        positions = {item: place for place, item in enumerate(items, start=1) if item not in answer.unjudged}
        if not answer.unjudged.keys() <= set(items):
            raise items_not_in_hit_error()
        if answer.unjudged and len(positions) < self.fewest_items:
            return [math.nan] * len(items)
        missing = [place for item, place in positions.items() if item not in answer.values]
        if missing:
            raise self.missing_values_error(missing, len(items))
        if len(answer.values) != len(positions):
            raise items_not_in_hit_error()
        numbers = {item: self.number_or_class_number_of_label_or_refuse(answer.values[item]) for item in positions}
        combined = self.possible_hit_values_or_refuse(
            [self.value_in_range_or_refuse(numbers[item], place) for item, place in positions.items()]
        )
        if not answer.unjudged:
            return combined
        value_of = dict(zip(positions, combined, strict=True))
        return [value_of.get(item, math.nan) for item in items]

    def stored_values_of_whole_hit_or_none(self, values: Sequence[float | None]) -> list[float] | None:
        """Return the values of all items of a HIT as they are stored; None if one is missing, invalid or impossible.

        This is `checked_values_in_item_order_or_refuse` for many HITs: several times faster, and without reasons.
        """
        stored_values: list[float] = []
        for value in values:
            stored_value = None if value is None else self.stored_value_or_none(value)
            if stored_value is None:
                return None
            stored_values.append(stored_value)
        try:
            return self.possible_hit_values_or_refuse(stored_values)
        except Invalid:
            return None

    def possible_hit_values_or_refuse(self, values: list[float]) -> list[float]:
        """Return the values of one HIT as they are stored. Raises `Invalid` (`answer_impossible`) if they exclude each
        other.
        """
        return values

    def value_in_range_or_refuse(self, value: float, position: int) -> float:
        """Return a value as it is stored. Raises `Invalid` (`score_out_of_range`)."""
        normalised = self.stored_value_or_none(value)
        if normalised is None:
            raise Invalid(
                f"The {self.noun} of item {position} must be {self.allowed_values_text}. What you entered is kept.",
                code="score_out_of_range",
                position=position,
            )
        return normalised

    @property
    def allowed_values_text(self) -> str:
        """Return the possible values of an item, in words."""
        low, high = self.value_range
        return f"between {low:g} and {high:g}"

    def missing_values_error(self, positions: Sequence[int], count: int) -> Invalid:
        """Return the refusal of an answer that leaves out the items at these positions, 1 to `count`."""
        names = ", ".join(str(position) for position in positions)
        return Invalid(
            f"Not all items have a {self.noun} yet: {names} of {count}. What you entered is kept.",
            code="scores_missing",
            missing=positions,
        )

    def values_to_scale_shares(self, values: Sequence[float]) -> list[float]:
        """Return stored values as shares of their scale, 0 to 1, higher is better: the input of laws, except for
        classes.
        """
        low, high = self.value_range
        return [(value - low) / (high - low) for value in values]

    def values_to_points(self, values: Array, hit: npt.NDArray[np.intp] | None = None) -> Array:  # noqa: ARG002  (some ask)
        """Return stored values in points, 0 to 100, the scale of pages and estimators; higher is better.

        Args:
            values: (M,).
            hit: (M,), the number of each value's HIT, None where all are of one: places mean something only among all
                items of
            a HIT.

        """
        low, high = self.value_range
        if (low, high) == (0.0, MAX_POINTS):
            return values  # to divide and multiply would move bits
        return MAX_POINTS * (values - low) / (high - low)


def items_not_in_hit_error() -> Invalid:
    """Return the refusal of an answer about other items than those of its HIT."""
    return Invalid("The answer is about items that are not in this HIT. Nothing was stored.", code="scores_unknown")
