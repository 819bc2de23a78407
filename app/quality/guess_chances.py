"""Probability that an annotator who answers at random meets a check, by design and tolerance; pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from app.designs.design import Design
from app.quality.behaviour import GUESS_CHANCE
from app.quality.check_expectations import CriterionDesigns, expected_answer_or_none_of_each_criterion
from app.quality.expected_answers import (
    ExpectedAnswer,
    labels_of_accepted_classes,
    lowest_and_highest_accepted_value,
)


def chance_that_guess_meets_check(designs: CriterionDesigns, stored_expectations: Mapping[str, Any]) -> float:
    """Return the probability that random answers by all criteria meet a check that is shown by itself."""
    expected = expected_answer_or_none_of_each_criterion(designs, stored_expectations)
    return math.prod(
        chance_that_guess_is_accepted(design, answer)
        for (_, design), answer in zip(designs, expected, strict=True)
        if answer and answer.place is None
    )


def chance_that_guess_is_accepted(design: Design, expected: ExpectedAnswer) -> float:
    """Return the share of the scale, or of the labels, that is accepted; `GUESS_CHANCE` for ratios, which have no
    scale.
    """
    if expected.labels:
        return len(labels_of_accepted_classes(design, expected)) / len(design.classes)
    if design.value_kind == "ratio":
        return GUESS_CHANCE
    lowest, highest = design.value_range
    low, high = lowest_and_highest_accepted_value(design, expected)
    return max(0.0, high - low) / (highest - lowest)


def chance_that_guess_meets_order(designs: CriterionDesigns, stored: Sequence[Mapping[str, Any]]) -> float:
    """Return the probability that random orders by all criteria meet the expected places of checks that are shown
    together.
    """
    places_by_criterion = zip(*(places_of_check(designs, one) for one in stored), strict=True)
    return math.prod(chance_of_random_order(Counter(filter(None, places))) for places in places_by_criterion)


def places_of_check(designs: CriterionDesigns, stored_expectations: Mapping[str, Any]) -> list[int]:
    """Return the expected place by each criterion, 0 where there is none."""
    expected = expected_answer_or_none_of_each_criterion(designs, stored_expectations)
    return [(answer.place or 0) if answer else 0 for answer in expected]


def chance_of_random_order(counts_by_place: Mapping[Any, int]) -> float:
    """Return the probability that a random order puts items with a better place first, whatever the order of items with
    the same place.
    """
    accepted = math.prod(math.factorial(count) for count in counts_by_place.values())
    return accepted / math.factorial(sum(counts_by_place.values()))
