"""What a researcher expects of an answer: of each item a score, a class or its place in an order; pure.

An expectation is about the values of one HIT as they are stored, by one criterion. Items of which nothing is expected
have none, and may have any value.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from app.designs.design import Design
from app.designs.number_parsing import parse_nonnegative_int, parse_strict_decimal
from app.errors import Invalid, join_names, shorten_echo, shorten_names
from app.field_flags import InputModel

DEFAULT_TOLERANCE_POINTS = 15.0  # of a tolerance where nobody chooses
DEFAULT_TOLERANCE_FACTOR = 2.0  # of ratios: twice as much, or half
LABEL_SEPARATOR = "|"  # between labels of which each will do
PLACE_PREFIX = "#"  # begins a place where a number alone would be a score
MAX_PLACE = 10

FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
ExpectedLabel = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class ExpectedAnswer(InputModel):
    """What is expected of one item: one of a value, labels, or a place.

    value: a score in points or a ratio; tolerance: how far from it an answer may be, in points, or as a factor of at
    least 1. labels: the classes of which each will do; tolerance: of ordered ones, how many steps from one of them.
    place: 1 for the best among the items of the HIT that have one; of items with the same place nothing is expected
    of their order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: FiniteFloat | None = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    labels: Annotated[tuple[ExpectedLabel, ...], Field(max_length=30)] = ()
    place: Annotated[int, Field(ge=1, le=MAX_PLACE)] | None = None

    @model_validator(mode="after")
    def check_one_expectation(self) -> Self:
        """Raises ValueError."""
        if (self.value is not None) + bool(self.labels) + (self.place is not None) != 1:
            raise ValueError("give one of value, labels and place")
        return self


class Feedback(NamedTuple):
    """What was expected of one item, or of the order of all that have a place, and whether the answer is so.

    position: of the item, 0 for the first as presented; of an order, of the first that has a place. unjudged: the item
    was said to be one that cannot be judged. lowest, highest: of a score. labels: of a class, each of which will do.
    order: positions of the items, the best first; those that share a place stand together.
    """

    kind: Literal["score", "class", "order"]
    position: int
    met: bool
    unjudged: bool = False
    lowest: float = 0.0
    highest: float = 0.0
    labels: Sequence[str] = ()
    order: Sequence[Sequence[int]] = ()


def meets_expectations(design: Design, expected: Sequence[ExpectedAnswer | None], values: Sequence[float]) -> bool:
    """Whether the stored values of a HIT's items are as expected of each, in the same order."""
    return all(one.met for one in feedback(design, expected, values))


def feedback(design: Design, expected: Sequence[ExpectedAnswer | None], values: Sequence[float]) -> list[Feedback]:
    """What was expected of the items of a HIT, in their order; of places together, last.

    values: as stored, NaN of an item that cannot be judged. Lengths are equal.
    """
    pairs = enumerate(zip(expected, values, strict=True))
    feedbacks = [
        feedback_on_item(design, position, one, value) for position, (one, value) in pairs if one and one.place is None
    ]
    positions_with_place = [
        position for position, expectation in enumerate(expected) if expectation and expectation.place is not None
    ]
    return (
        [*feedbacks, feedback_on_order(design, positions_with_place, expected, values)]
        if positions_with_place
        else feedbacks
    )


def feedback_on_item(design: Design, position: int, expected: ExpectedAnswer, value: float) -> Feedback:
    """Of an item of which a score or a class is expected."""
    unjudged = value != value  # noqa: PLR0124  (NaN)
    if expected.labels:
        met = not unjudged and any(
            abs(value - number) <= max_class_distance(expected) for number in named_class_numbers(design, expected)
        )
        return Feedback("class", position, met, unjudged, labels=accepted_labels(design, expected))
    low, high = accepted_range(design, expected)
    return Feedback("score", position, low <= value <= high, unjudged, low, high)


def accepted_range(design: Design, expected: ExpectedAnswer) -> tuple[float, float]:
    """The lowest and the highest value that will do."""
    expected_value = expected.value or 0.0
    if design.value_kind == "ratio":
        factor = DEFAULT_TOLERANCE_FACTOR if expected.tolerance is None else expected.tolerance
        return expected_value / factor, expected_value * factor
    tolerance = DEFAULT_TOLERANCE_POINTS if expected.tolerance is None else expected.tolerance
    low, high = design.value_range
    return max(low, expected_value - tolerance), min(high, expected_value + tolerance)


def max_class_distance(expected: ExpectedAnswer) -> float:
    """How far a class may be from one that is named."""
    return expected.tolerance or 0.0


def named_class_numbers(design: Design, expected: ExpectedAnswer) -> list[int]:
    """Of the classes that are named; none of those that the design does not have."""
    return [number for number, label in enumerate(design.classes) if label in expected.labels]


def accepted_labels(design: Design, expected: ExpectedAnswer) -> list[str]:
    """The labels of all classes that are near enough."""
    class_numbers = named_class_numbers(design, expected)
    return [
        label
        for number, label in enumerate(design.classes)
        if any(abs(number - one) <= max_class_distance(expected) for one in class_numbers)
    ]


def feedback_on_order(
    design: Design, positions: Sequence[int], expected: Sequence[ExpectedAnswer | None], values: Sequence[float]
) -> Feedback:
    """Of the items at the positions `placed`, which have places."""
    place_by_position = {
        position: expectation.place or 0 for position, expectation in enumerate(expected) if expectation
    }
    unjudged = any(values[position] != values[position] for position in positions)
    met = not unjudged and not any(
        contradicts_order(design, values, better, worse)
        for better, worse in permutations(positions, 2)
        if place_by_position[better] < place_by_position[worse]
    )
    groups = [
        [one for one in positions if place_by_position[one] == which]
        for which in sorted({place_by_position[one] for one in positions})
    ]
    return Feedback("order", positions[0], met, unjudged, order=groups)


def contradicts_order(design: Design, values: Sequence[float], better: int, worse: int) -> bool:
    """Whether the values say anything else than that one item is better than another. What says nothing of two items
    contradicts nothing.
    """
    if values[better] == values[worse]:
        return design.equal_means == "tie"
    shares = design.to_shares(values)
    return shares[better] < shares[worse]


def parse_expected_cells(design: Design, expected_cell: str, tolerance_cell: str = "") -> ExpectedAnswer | None:
    """What two cells of a table say; None where the first is empty.

    cell: a score, a ratio, a place where an order is asked for, or labels with `|` between them; `#2` is a place in
    every design that has an order. Raises `Invalid` (`expected_unreadable`, `expected_impossible`).
    """
    expected_text = expected_cell.strip()
    if not expected_text:
        return None
    try:
        margin = parse_strict_decimal(tolerance_cell.strip()) if tolerance_cell.strip() else None
    except ValueError:
        raise unreadable_expectation(tolerance_cell, "a tolerance is a number") from None
    if design.value_kind == "order" or expected_text.startswith(PLACE_PREFIX):
        place = parse_nonnegative_int(expected_text.removeprefix(PLACE_PREFIX).strip(), maximum=MAX_PLACE)
        if not place:
            raise unreadable_expectation(expected_text, f"a place is a whole number from 1 to {MAX_PLACE}")
        return require_possible_answer(design, ExpectedAnswer(place=place))
    return require_possible_answer(
        design,
        parse_expected_labels(design, expected_text, margin)
        if design.classes
        else parse_expected_value(expected_text, margin),
    )


def format_expected_cells(expected: ExpectedAnswer) -> tuple[str, str]:
    """The two cells of which `from_cells` makes this."""
    tolerance = "" if expected.tolerance is None else format_number_exactly(expected.tolerance)
    if expected.place is not None:
        return f"{PLACE_PREFIX}{expected.place}", tolerance
    if expected.labels:
        return f" {LABEL_SEPARATOR} ".join(expected.labels), tolerance
    return format_number_exactly(expected.value or 0.0), tolerance


def format_number_exactly(number: float) -> str:
    """A number as short as it can be told."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def parse_expected_labels(design: Design, text: str, tolerance: float | None) -> ExpectedAnswer:
    """One label, which may hold the sign that stands between several, or these."""
    labels = [text] if text in design.classes else [label.strip() for label in text.split(LABEL_SEPARATOR)]
    return ExpectedAnswer(labels=tuple(filter(None, labels)) or (text,), tolerance=tolerance)


def parse_expected_value(text: str, tolerance: float | None) -> ExpectedAnswer:
    """A number. Raises `Invalid` (`expected_unreadable`)."""
    try:
        return ExpectedAnswer(value=parse_strict_decimal(text), tolerance=tolerance)
    except ValueError:
        raise unreadable_expectation(text, "it is no number") from None


def require_possible_answer(design: Design, expected: ExpectedAnswer) -> ExpectedAnswer:
    """As it is. Raises `Invalid` (`expected_impossible`) for what no answer could be by this design."""
    for problem in impossibility_reasons(design, expected):
        raise Invalid(f"{problem}.", code="expected_impossible", possible=shorten_names([*design.classes]))
    return expected


def impossibility_reasons(design: Design, expected: ExpectedAnswer) -> Iterator[str]:
    """Why no answer could be as expected, in words without a full stop; nothing where one could."""
    if expected.place is not None:
        if not design.is_ordered:
            yield f"Answers of “{design.title}” have no order, so no place can be expected"
    elif expected.labels:
        if unknown := [label for label in expected.labels if label not in design.classes]:
            known = f"none of the labels {join_names(design.classes)}" if design.classes else "no label, but a number"
            yield f"“{shorten_echo(unknown[0])}” is {known}"
        if expected.tolerance and not design.is_ordered:
            yield f"Labels of “{design.title}” have no order, so no tolerance either"
    elif design.classes or design.value_kind == "order" or design.normalise_value(expected.value or 0.0) is None:
        yield f"{expected.value:g} is no possible {design.noun}; it is {design.allowed_values_text}"
    elif design.value_kind == "ratio" and (expected.tolerance or DEFAULT_TOLERANCE_FACTOR) < 1:
        yield "The tolerance of a ratio is a factor of 1 or more"


def unreadable_expectation(text: str, reason: str) -> Invalid:
    """The refusal of a cell."""
    return Invalid(f"“{shorten_echo(text)}” cannot be expected: {reason}.", code="expected_unreadable")
