"""What a researcher expects of an answer: of each item a score, a class or its place in an order; pure.

An expectation is about the values of one HIT as they are stored, by one criterion. Items of which nothing is expected
have none, and may have any value.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from app.designs.design import Design
from app.designs.numbers import decimal, whole_number
from app.errors import Invalid, listed, shortened, some_of
from app.fields import InputModel

USUAL_POINTS = 15.0  # of a tolerance where nobody chooses
USUAL_FACTOR = 2.0  # of ratios: twice as much, or half
OR = "|"  # between labels of which each will do
PLACE = "#"  # begins a place where a number alone would be a score
LAST_PLACE = 10

Finite = Annotated[float, Field(allow_inf_nan=False)]
ExpectedLabel = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class ExpectedAnswer(InputModel):
    """What is expected of one item: one of a value, labels, or a place.

    value: a score in points or a ratio; tolerance: how far from it an answer may be, in points, or as a factor of at
    least 1. labels: the classes of which each will do; tolerance: of ordered ones, how many steps from one of them.
    place: 1 for the best among the items of the HIT that have one; of items with the same place nothing is expected
    of their order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: Finite | None = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    labels: Annotated[tuple[ExpectedLabel, ...], Field(max_length=30)] = ()
    place: Annotated[int, Field(ge=1, le=LAST_PLACE)] | None = None

    @model_validator(mode="after")
    def says_one_thing(self) -> Self:
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


def meets(design: Design, expected: Sequence[ExpectedAnswer | None], values: Sequence[float]) -> bool:
    """Whether the stored values of a HIT's items are as expected of each, in the same order."""
    return all(one.met for one in feedback(design, expected, values))


def feedback(design: Design, expected: Sequence[ExpectedAnswer | None], values: Sequence[float]) -> list[Feedback]:
    """What was expected of the items of a HIT, in their order; of places together, last.

    values: as stored, NaN of an item that cannot be judged. Lengths are equal.
    """
    pairs = enumerate(zip(expected, values, strict=True))
    told = [of_one(design, position, one, value) for position, (one, value) in pairs if one and one.place is None]
    placed = [position for position, one in enumerate(expected) if one and one.place is not None]
    return [*told, of_order(design, placed, expected, values)] if placed else told


def of_one(design: Design, position: int, expected: ExpectedAnswer, value: float) -> Feedback:
    """Of an item of which a score or a class is expected."""
    unjudged = value != value  # noqa: PLR0124  (NaN)
    if expected.labels:
        met = not unjudged and any(abs(value - number) <= steps(expected) for number in numbers(design, expected))
        return Feedback("class", position, met, unjudged, labels=all_that_do(design, expected))
    low, high = span(design, expected)
    return Feedback("score", position, low <= value <= high, unjudged, low, high)


def span(design: Design, expected: ExpectedAnswer) -> tuple[float, float]:
    """The lowest and the highest value that will do."""
    value = expected.value or 0.0
    if design.yields == "ratio":
        factor = USUAL_FACTOR if expected.tolerance is None else expected.tolerance
        return value / factor, value * factor
    tolerance = USUAL_POINTS if expected.tolerance is None else expected.tolerance
    low, high = design.ends
    return max(low, value - tolerance), min(high, value + tolerance)


def steps(expected: ExpectedAnswer) -> float:
    """How far a class may be from one that is named."""
    return expected.tolerance or 0.0


def numbers(design: Design, expected: ExpectedAnswer) -> list[int]:
    """Of the classes that are named; none of those that the design does not have."""
    return [number for number, label in enumerate(design.classes) if label in expected.labels]


def all_that_do(design: Design, expected: ExpectedAnswer) -> list[str]:
    """The labels of all classes that are near enough."""
    near = numbers(design, expected)
    return [
        label
        for number, label in enumerate(design.classes)
        if any(abs(number - one) <= steps(expected) for one in near)
    ]


def of_order(
    design: Design, placed: Sequence[int], expected: Sequence[ExpectedAnswer | None], values: Sequence[float]
) -> Feedback:
    """Of the items at the positions `placed`, which have places."""
    place = {position: one.place or 0 for position, one in enumerate(expected) if one}
    unjudged = any(values[position] != values[position] for position in placed)
    met = not unjudged and not any(
        contradicts(design, values, better, worse)
        for better, worse in permutations(placed, 2)
        if place[better] < place[worse]
    )
    groups = [[one for one in placed if place[one] == which] for which in sorted({place[one] for one in placed})]
    return Feedback("order", placed[0], met, unjudged, order=groups)


def contradicts(design: Design, values: Sequence[float], better: int, worse: int) -> bool:
    """Whether the values say anything else than that one item is better than another. What says nothing of two items
    contradicts nothing.
    """
    if values[better] == values[worse]:
        return design.equal == "tie"
    shares = design.shares(values)
    return shares[better] < shares[worse]


def from_cells(design: Design, cell: str, tolerance: str = "") -> ExpectedAnswer | None:
    """What two cells of a table say; None where the first is empty.

    cell: a score, a ratio, a place where an order is asked for, or labels with `|` between them; `#2` is a place in
    every design that has an order. Raises `Invalid` (`expected_unreadable`, `expected_impossible`).
    """
    said = cell.strip()
    if not said:
        return None
    try:
        margin = decimal(tolerance.strip()) if tolerance.strip() else None
    except ValueError:
        raise unreadable(tolerance, "a tolerance is a number") from None
    if design.yields == "order" or said.startswith(PLACE):
        place = whole_number(said.removeprefix(PLACE).strip(), most=LAST_PLACE)
        if not place:
            raise unreadable(said, f"a place is a whole number from 1 to {LAST_PLACE}")
        return checked(design, ExpectedAnswer(place=place))
    return checked(design, with_labels(design, said, margin) if design.classes else with_value(said, margin))


def as_cells(expected: ExpectedAnswer) -> tuple[str, str]:
    """The two cells of which `from_cells` makes this."""
    tolerance = "" if expected.tolerance is None else exactly(expected.tolerance)
    if expected.place is not None:
        return f"{PLACE}{expected.place}", tolerance
    if expected.labels:
        return f" {OR} ".join(expected.labels), tolerance
    return exactly(expected.value or 0.0), tolerance


def exactly(number: float) -> str:
    """A number as short as it can be told."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def with_labels(design: Design, said: str, margin: float | None) -> ExpectedAnswer:
    """One label, which may hold the sign that stands between several, or these."""
    labels = [said] if said in design.classes else [label.strip() for label in said.split(OR)]
    return ExpectedAnswer(labels=tuple(filter(None, labels)) or (said,), tolerance=margin)


def with_value(said: str, margin: float | None) -> ExpectedAnswer:
    """A number. Raises `Invalid` (`expected_unreadable`)."""
    try:
        return ExpectedAnswer(value=decimal(said), tolerance=margin)
    except ValueError:
        raise unreadable(said, "it is no number") from None


def checked(design: Design, expected: ExpectedAnswer) -> ExpectedAnswer:
    """As it is. Raises `Invalid` (`expected_impossible`) for what no answer could be by this design."""
    for problem in impossible(design, expected):
        raise Invalid(f"{problem}.", code="expected_impossible", possible=some_of([*design.classes]))
    return expected


def impossible(design: Design, expected: ExpectedAnswer) -> Iterator[str]:
    """Why no answer could be as expected, in words without a full stop; nothing where one could."""
    if expected.place is not None:
        if not design.ordered:
            yield f"Answers of “{design.title}” have no order, so no place can be expected"
    elif expected.labels:
        if unknown := [label for label in expected.labels if label not in design.classes]:
            known = f"none of the labels {listed(design.classes)}" if design.classes else "no label, but a number"
            yield f"“{shortened(unknown[0])}” is {known}"
        if expected.tolerance and not design.ordered:
            yield f"Labels of “{design.title}” have no order, so no tolerance either"
    elif design.classes or design.yields == "order" or design.stored(expected.value or 0.0) is None:
        yield f"{expected.value:g} is no possible {design.noun}; it is {design.possible}"
    elif design.yields == "ratio" and (expected.tolerance or USUAL_FACTOR) < 1:
        yield "The tolerance of a ratio is a factor of 1 or more"


def unreadable(said: str, why: str) -> Invalid:
    """The refusal of a cell."""
    return Invalid(f"“{shortened(said)}” cannot be expected: {why}.", code="expected_unreadable")
