"""Checks among the items of a HIT: where they stand, and their answers apart from the others; pure.

A check stands under the number of an item that the HIT does not show, another one in every HIT. So nothing in a page's
source tells it from an item of the campaign.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


class MixedIn(NamedTuple):
    """A check in a HIT: its place as presented, 0 for the first; its number among the checks; the number under which
    it stands.
    """

    place: int
    check: int
    number: int


def placed(
    checks: Sequence[int], items: Sequence[int], count: int, rng: np.random.Generator, seen: Collection[int] = ()
) -> list[MixedIn] | None:
    """Checks at random places among the items of a HIT, which are numbers below `count`, under numbers of other items;
    None where there are too few.

    seen: numbers under which somebody has read other texts, taken last: by them they would know a check when they see
    it.
    """
    free = rng.integers(0, count, 20 + 4 * (len(items) + len(checks))).tolist() if count else []
    numbers = list(dict.fromkeys(number for number in free if number not in set(items)))
    if len(numbers) < len(checks):
        return None
    numbers.sort(key={*seen}.__contains__)
    places = rng.permutation(len(items) + len(checks))[: len(checks)].tolist()
    return sorted(map(MixedIn, places, checks, numbers))


def presented(items: Sequence[T], mixed: Sequence[MixedIn], of_checks: Mapping[int, T]) -> list[T]:
    """What is known of items, and of checks by their numbers, in the order in which they are shown."""
    shown = list(items)
    for one in mixed:
        shown.insert(one.place, of_checks[one.check])
    return shown


def numbers_shown(items: Sequence[int], mixed: Sequence[MixedIn]) -> list[int]:
    """The numbers under which items and checks stand in a page, as presented."""
    return presented(items, mixed, {one.check: one.number for one in mixed})


def without(values: Sequence[T], mixed: Sequence[MixedIn]) -> list[T]:
    """Of what there is of all that was shown, that of the items."""
    places = {one.place for one in mixed}
    return [value for place, value in enumerate(values) if place not in places]
