"""Positions of checks among the items of a HIT, and separation of their answers from the others; pure.

A check is shown under the number of an item that the HIT does not show, a different one in every HIT. So nothing in a
page's source distinguishes it from an item of the campaign.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


class PlacedCheck(NamedTuple):
    """A check in a HIT.

    Attributes:
        place: Position as presented, 0 for the first.
        check_number: Number among the campaign's checks.
        shown_number: Item number under which the page shows the check.

    """

    place: int
    check_number: int
    shown_number: int


def draw_check_placements_for_hit_or_none(
    check_numbers: Sequence[int],
    item_numbers: Sequence[int],
    item_count: int,
    rng: np.random.Generator,
    numbers_read_before: Collection[int] = (),
    *,
    hidden_item_count: int = 0,
) -> list[PlacedCheck] | None:
    """Place checks at random among the items of a HIT, under numbers of other items.

    Args:
        check_numbers: The checks to place.
        item_numbers: The items of the HIT, numbers below `item_count`.
        item_count: Number of items in the campaign.
        rng: Source of the random places and numbers.
        numbers_read_before: Numbers under which the annotator has read other texts. They are taken last, since the
            annotator could recognize a check by them.
        hidden_item_count: Number of the HIT's items that the page does not show, because others have the same output.

    Returns:
        The checks by place; None if too few item numbers are free.

    """
    candidates = (
        rng.integers(0, item_count, 20 + 4 * (len(item_numbers) + len(check_numbers))).tolist() if item_count else []
    )
    numbers = list(dict.fromkeys(number for number in candidates if number not in set(item_numbers)))
    if len(numbers) < len(check_numbers):
        return None
    numbers.sort(key={*numbers_read_before}.__contains__)
    place_count = len(item_numbers) - hidden_item_count + len(check_numbers)
    places = rng.permutation(place_count)[: len(check_numbers)].tolist()
    return sorted(map(PlacedCheck, places, check_numbers, numbers))


def entries_with_checks_inserted(
    items: Sequence[T], placed_checks: Sequence[PlacedCheck], checks: Mapping[int, T]
) -> list[T]:
    """Return entries of items, with entries of checks inserted at the places where they are shown."""
    shown = list(items)
    for placed_check in placed_checks:
        shown.insert(placed_check.place, checks[placed_check.check_number])
    return shown


def shown_numbers_of_items_and_checks(item_numbers: Sequence[int], placed_checks: Sequence[PlacedCheck]) -> list[int]:
    """Return the numbers under which a page shows items and checks, as presented."""
    return entries_with_checks_inserted(
        item_numbers, placed_checks, {placed.check_number: placed.shown_number for placed in placed_checks}
    )
