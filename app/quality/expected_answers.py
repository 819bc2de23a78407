"""Expected answers of checks: a score, a class or a place in an order for each item; pure.

An expectation is about the stored values of one HIT for one criterion. Items without an expectation may have any value.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from app.designs.design import Design
from app.designs.field_flags import InputModel
from app.designs.number_parsing import parse_nonnegative_int_or_none, parse_strict_decimal
from app.designs.scale import MAX_POINTS
from app.errors import Invalid, join_names, shorten_echo, shortened_names_that_message_shows

DEFAULT_TOLERANCE_POINTS = 15.0
DEFAULT_TOLERANCE_FACTOR = 2.0  # ratios between half and twice the expected one
LABEL_SEPARATOR = "|"  # between alternative labels
PLACE_PREFIX = "#"  # marks a place where a number alone would be a score
MAX_PLACE = 10

FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
ExpectedLabel = Annotated[str, StringConstraints(min_length=1, max_length=500)]


def default_tolerance_cell_or_empty(design: Design) -> str:
    """Return the tolerance of an expected answer that names none; empty if the design has no tolerance."""
    defaults = {
        "points": f"{DEFAULT_TOLERANCE_POINTS:g}",
        "ratio": f"{DEFAULT_TOLERANCE_FACTOR:g}",
        "ordered_classes": "0",
    }
    return defaults.get(design.value_kind, "")


def proposed_tolerance_cell_or_empty(design: Design) -> str:
    """Return the tolerance that editors enter for a new expected answer; empty if its default suits the scale.

    On an ordinal scale it is as much of the scale as the default of scores, in whole steps.
    """
    steps = round(DEFAULT_TOLERANCE_POINTS / MAX_POINTS * (len(design.classes) - 1))
    return f"{steps}" if design.value_kind == "ordered_classes" and steps else ""


def reason_for_proposed_tolerance_or_empty(design: Design) -> str:
    """Return why the proposed or default tolerance suits the scale, as a sentence; empty without tolerances."""
    if design.value_kind == "points":
        return f"{DEFAULT_TOLERANCE_POINTS:g} points leave room for people who use the scale a little differently."
    if design.value_kind == "ratio":
        return "Half to twice the expected ratio leaves room for people who use numbers a little differently."
    if design.value_kind != "ordered_classes":
        return ""
    if steps := proposed_tolerance_cell_or_empty(design):
        amount = "1 step leaves" if steps == "1" else f"{steps} steps leave"
        return f"{amount} room for people who choose a neighbouring label, so one label is enough."
    return "With so few labels, only the expected one is right."


class ExpectedAnswer(InputModel):
    """The expected answer for one item: exactly one of a value, labels, or a place.

    Attributes:
        value: A score in points, or a ratio.
        tolerance: Largest difference from `value` in points, or the factor, at least 1, for ratios. For ordered
            classes, the largest number of steps from one of the labels.
        labels: Classes that are accepted.
        place: 1 for the best among the items of the HIT that have a place. No order is expected of items with equal
            places.

    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: FiniteFloat | None = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    labels: Annotated[tuple[ExpectedLabel, ...], Field(max_length=30)] = ()
    place: Annotated[int, Field(ge=1, le=MAX_PLACE)] | None = None

    @model_validator(mode="after")
    def require_exactly_one_expectation(self) -> Self:
        """Raise `ValueError` unless exactly one of value, labels and place is given."""
        if (self.value is not None) + bool(self.labels) + (self.place is not None) != 1:
            raise ValueError("give one of value, labels and place")
        return self


class Feedback(NamedTuple):
    """Expectation for one item, or for the order of all items with a place, and whether the answer meets it.

    Attributes:
        position: Position of the item, 0 for the first as presented; for an order, of the first item with a place.
        met: Whether the answer meets the expectation.
        unjudged: Whether the annotator could not judge the item.
        lowest: Lowest accepted score.
        highest: Highest accepted score.
        labels: Accepted classes: the expected ones, and those that are near enough.
        order: Positions of the items, the best first; items with equal places are grouped.

    """

    kind: Literal["score", "class", "order"]
    position: int
    met: bool
    unjudged: bool = False
    lowest: float = 0.0
    highest: float = 0.0
    labels: Sequence[str] = ()
    order: Sequence[Sequence[int]] = ()


def feedback_on_check_answers(
    design: Design, expected: Sequence[ExpectedAnswer | None], values: Sequence[float]
) -> list[Feedback]:
    """Return the feedback on the items of a HIT in their order, followed by the feedback on their order.

    Args:
        design: The campaign's design.
        expected: The expectation for each item, None without one.
        values: The stored values, as many; NaN for an item that cannot be judged.

    """
    pairs = enumerate(zip(expected, values, strict=True))
    feedbacks = [
        feedback_on_item(design, position, expectation, value)
        for position, (expectation, value) in pairs
        if expectation and expectation.place is None
    ]
    positions_with_place = [
        position for position, expectation in enumerate(expected) if expectation and expectation.place is not None
    ]
    return (
        [*feedbacks, feedback_on_expected_order(design, positions_with_place, expected, values)]
        if positions_with_place
        else feedbacks
    )


def feedback_on_item(design: Design, position: int, expected: ExpectedAnswer, value: float) -> Feedback:
    """Return the feedback on an item for which a score or a class is expected."""
    unjudged = value != value  # noqa: PLR0124  (NaN)
    if expected.labels:
        met = not unjudged and any(
            abs(value - number) <= largest_accepted_class_distance(expected)
            for number in expected_class_numbers(design, expected)
        )
        return Feedback("class", position, met, unjudged, labels=labels_of_accepted_classes(design, expected))
    low, high = lowest_and_highest_accepted_value(design, expected)
    return Feedback("score", position, low <= value <= high, unjudged, low, high)


def lowest_and_highest_accepted_value(design: Design, expected: ExpectedAnswer) -> tuple[float, float]:
    """Return the lowest and the highest accepted value."""
    expected_value = expected.value or 0.0
    if design.value_kind == "ratio":
        factor = DEFAULT_TOLERANCE_FACTOR if expected.tolerance is None else expected.tolerance
        return expected_value / factor, expected_value * factor
    tolerance = DEFAULT_TOLERANCE_POINTS if expected.tolerance is None else expected.tolerance
    low, high = design.value_range
    return max(low, expected_value - tolerance), min(high, expected_value + tolerance)


def largest_accepted_class_distance(expected: ExpectedAnswer) -> float:
    """Return the largest accepted distance from a named class, in steps."""
    return expected.tolerance or 0.0


def expected_class_numbers(design: Design, expected: ExpectedAnswer) -> list[int]:
    """Return the numbers of the expected classes; labels that the design does not have are skipped."""
    return [number for number, label in enumerate(design.classes) if label in expected.labels]


def labels_of_accepted_classes(design: Design, expected: ExpectedAnswer) -> list[str]:
    """Return the labels of all classes that are near enough to an expected one."""
    class_numbers = expected_class_numbers(design, expected)
    return [
        label
        for number, label in enumerate(design.classes)
        if any(abs(number - named) <= largest_accepted_class_distance(expected) for named in class_numbers)
    ]


def feedback_on_expected_order(
    design: Design, positions: Sequence[int], expected: Sequence[ExpectedAnswer | None], values: Sequence[float]
) -> Feedback:
    """Return the feedback on the order of the items at `positions`, which have places."""
    place_by_position = {
        position: expectation.place or 0 for position, expectation in enumerate(expected) if expectation
    }
    unjudged = any(values[position] != values[position] for position in positions)
    met = not unjudged and not any(
        do_values_contradict_known_order(design, values, better, worse)
        for better, worse in permutations(positions, 2)
        if place_by_position[better] < place_by_position[worse]
    )
    groups = [
        [position for position in positions if place_by_position[position] == place]
        for place in sorted({place_by_position[position] for position in positions})
    ]
    return Feedback("order", positions[0], met, unjudged, order=groups)


def do_values_contradict_known_order(
    design: Design, values: Sequence[float], better_position: int, worse_position: int
) -> bool:
    """Return whether the values contradict that one item is better than another. Values that say nothing about two
    items do not.
    """
    if values[better_position] == values[worse_position]:
        return design.equal_means == "tie"
    shares = design.values_to_scale_shares(values)
    return shares[better_position] < shares[worse_position]


def expected_answer_of_cells_or_none(
    design: Design, expected_cell: str, tolerance_cell: str = ""
) -> ExpectedAnswer | None:
    """Parse an expected answer from two cells of a table; None if the first is empty.

    Args:
        design: The campaign's design.
        expected_cell: A score, a ratio, a place if the design asks for an order, or labels separated by `|`; `#2` is a
            place in every design that has an order.
        tolerance_cell: The tolerance, or an empty text.

    Raises:
        Invalid: `expected_unreadable`, `expected_impossible`.

    """
    expected_text = expected_cell.strip()
    if not expected_text:
        return None
    margin = parse_tolerance_or_none(tolerance_cell.strip())
    if design.value_kind == "order" or expected_text.startswith(PLACE_PREFIX):
        if margin is not None:
            raise unreadable_tolerance_error(tolerance_cell, "a place has none")
        place = parse_nonnegative_int_or_none(expected_text.removeprefix(PLACE_PREFIX).strip(), maximum=MAX_PLACE)
        if not place:
            raise unreadable_expectation_error(expected_text, f"a place is a whole number from 1 to {MAX_PLACE}")
        return possible_expectation_or_refuse(design, ExpectedAnswer(place=place))
    return possible_expectation_or_refuse(
        design,
        parse_expected_answer_of_labels(design, expected_text, margin)
        if design.classes
        else parse_expected_answer_of_value(expected_text, margin),
    )


def parse_tolerance_or_none(text: str) -> float | None:
    """Parse a tolerance; None for an empty text. Raises `Invalid` (`expected_unreadable`)."""
    if not text:
        return None
    try:
        tolerance = parse_strict_decimal(text)
    except ValueError:
        raise unreadable_tolerance_error(text, "it must be a number from 0") from None
    if not 0 <= tolerance < math.inf:
        raise unreadable_tolerance_error(text, "it must be a number from 0")
    return tolerance


def answer_and_tolerance_cells(expected: ExpectedAnswer) -> tuple[str, str]:
    """Return the two cells that `expected_answer_of_cells_or_none` reads as this answer."""
    tolerance = "" if expected.tolerance is None else format_number_without_rounding(expected.tolerance)
    if expected.place is not None:
        return f"{PLACE_PREFIX}{expected.place}", tolerance
    if expected.labels:
        return f" {LABEL_SEPARATOR} ".join(expected.labels), tolerance
    return format_number_without_rounding(expected.value or 0.0), tolerance


def format_number_without_rounding(number: float) -> str:
    """Return the shortest text that reads as the same number."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def parse_expected_answer_of_labels(design: Design, text: str, tolerance: float | None) -> ExpectedAnswer:
    """Parse one label, which may contain the separator, or several labels. Upper and lower case need not agree."""
    whole = label_of_design_ignoring_case_or_same_text(design, text)
    labels = [text] if whole in design.classes else [label.strip() for label in text.split(LABEL_SEPARATOR)]
    named = tuple(label_of_design_ignoring_case_or_same_text(design, label) for label in labels if label)
    return ExpectedAnswer(labels=named or (text,), tolerance=tolerance)


def label_of_design_ignoring_case_or_same_text(design: Design, text: str) -> str:
    """Return the design's label that differs from a text in upper and lower case at most; the text if not just one."""
    if text in design.classes:
        return text
    alike = [label for label in design.classes if label.casefold() == text.casefold()]
    return alike[0] if len(alike) == 1 else text


def parse_expected_answer_of_value(text: str, tolerance: float | None) -> ExpectedAnswer:
    """Parse a number. Raises `Invalid` (`expected_unreadable`)."""
    try:
        return ExpectedAnswer(value=parse_strict_decimal(text), tolerance=tolerance)
    except ValueError:
        raise unreadable_expectation_error(text, "it is not a number") from None


def possible_expectation_or_refuse(design: Design, expected: ExpectedAnswer) -> ExpectedAnswer:
    """Return the expectation. Raises `Invalid` (`expected_impossible`) if no answer in this design can meet it."""
    for problem in iterate_reasons_expectation_is_impossible(design, expected):
        raise Invalid(
            f"{problem}.", code="expected_impossible", possible=shortened_names_that_message_shows([*design.classes])
        )
    return expected


def iterate_reasons_expectation_is_impossible(design: Design, expected: ExpectedAnswer) -> Iterator[str]:
    """Yield the reasons why no answer can meet the expectation, without a full stop."""
    if expected.place is not None:
        if not design.is_ordered:
            yield f"Answers of “{design.title}” have no order, so no place can be expected"
    elif expected.labels:
        if unknown := [label for label in expected.labels if label not in design.classes]:
            known = f"none of the labels {join_names(design.classes)}" if design.classes else "a number, not a label"
            yield f"“{shorten_echo(unknown[0])}” is {known}"
        if expected.tolerance and not design.is_ordered:
            yield f"Labels of “{design.title}” have no order, so a tolerance is not allowed"
    elif design.classes or design.value_kind == "order" or design.stored_value_or_none(expected.value or 0.0) is None:
        yield f"{expected.value:g} is not a possible {design.noun}; it must be {design.allowed_values_text}"
    elif design.value_kind == "ratio" and (expected.tolerance or DEFAULT_TOLERANCE_FACTOR) < 1:
        yield "The tolerance of a ratio is a factor of 1 or more"


def unreadable_expectation_error(text: str, reason: str) -> Invalid:
    """Return the refusal of a cell."""
    return Invalid(f"“{shorten_echo(text)}” cannot be an expected answer: {reason}.", code="expected_unreadable")


def unreadable_tolerance_error(text: str, reason: str) -> Invalid:
    """Return the refusal of a cell with a tolerance."""
    return Invalid(
        f"“{shorten_echo(text)}” cannot be a tolerance: {reason}.", code="expected_unreadable", column="tolerance"
    )
