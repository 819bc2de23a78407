"""Checks among the items of a HIT: where they stand, and their answers apart from the others; pure.

A check stands under the number of an item that the HIT does not show, another one in every HIT. So nothing in a page's
source tells it from an item of the campaign.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


class PlacedCheck(NamedTuple):
    """A check in a HIT: its place as presented, 0 for the first; its number among the checks; the number under which
    it stands.
    """

    place: int
    check_number: int
    shown_number: int


def place_checks(
    check_numbers: Sequence[int],
    item_numbers: Sequence[int],
    item_count: int,
    rng: np.random.Generator,
    read_numbers: Collection[int] = (),
) -> list[PlacedCheck] | None:
    """Checks at random places among the items of a HIT, which are numbers below `count`, under numbers of other items;
    None where there are too few.

    seen: numbers under which somebody has read other texts, taken last: by them they would know a check when they see
    it.
    """
    candidates = (
        rng.integers(0, item_count, 20 + 4 * (len(item_numbers) + len(check_numbers))).tolist() if item_count else []
    )
    numbers = list(dict.fromkeys(number for number in candidates if number not in set(item_numbers)))
    if len(numbers) < len(check_numbers):
        return None
    numbers.sort(key={*read_numbers}.__contains__)
    places = rng.permutation(len(item_numbers) + len(check_numbers))[: len(check_numbers)].tolist()
    return sorted(map(PlacedCheck, places, check_numbers, numbers))


def presented_sequence(items: Sequence[T], placed_checks: Sequence[PlacedCheck], checks: Mapping[int, T]) -> list[T]:
    """What is known of items, and of checks by their numbers, in the order in which they are shown."""
    shown = list(items)
    for placed_check in placed_checks:
        shown.insert(placed_check.place, checks[placed_check.check_number])
    return shown


def presented_numbers(item_numbers: Sequence[int], placed_checks: Sequence[PlacedCheck]) -> list[int]:
    """The numbers under which items and checks stand in a page, as presented."""
    return presented_sequence(
        item_numbers, placed_checks, {one.check_number: one.shown_number for one in placed_checks}
    )


def drop_checks(values: Sequence[T], placed_checks: Sequence[PlacedCheck]) -> list[T]:
    """Of what there is of all that was shown, that of the items."""
    places = {one.place for one in placed_checks}
    return [value for place, value in enumerate(values) if place not in places]
