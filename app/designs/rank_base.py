"""Designs whose values are places: 1 is the best, and only the order of the items of a HIT means something."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from app.designs.design import Design, ValueKind
from app.designs.unit import PERCENT_BEATEN_UNIT, Unit
from app.errors import Invalid
from app.inference.ground.arrays import Array

TIE_STEPS = 20  # of the scale, that people who say 'about equal' tell apart: items nearer than that are alike to them
ORDINAL_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


class PlaceDesign(Design):
    """Values are whole numbers from 1, the best, up to the most items of a HIT."""

    value_kind: ClassVar[ValueKind] = "order"
    fewest_items: ClassVar[int] = 2
    repeats_items: ClassVar[bool] = True
    noun: ClassVar[str] = "place"
    unit: ClassVar[Unit] = PERCENT_BEATEN_UNIT

    @property
    def value_range(self) -> tuple[float, float]:
        """Return the first and the last place."""
        return 1.0, float(self.items_per_hit[-1])

    @property
    def allowed_values_text(self) -> str:
        return f"a whole number from 1 to {self.value_range[1]:g}"

    def format_value_at_position(self, values: Sequence[float], position: int) -> str:
        """Return "2nd of 4", and mark shared places."""
        tied = ", tied" if list(values).count(values[position]) > 1 else ""
        return f"{format_ordinal(int(values[position]))} of {len(values)}{tied}"

    def stored_value_or_none(self, value: float) -> float | None:
        """Return a whole number in the range of the places; None for other values."""
        return float(value) if value in range(1, int(self.value_range[1]) + 1) else None

    def values_to_scale_shares(self, values: Sequence[float]) -> list[float]:
        """Return the share of the other items of the HIT that an item beats, plus half of the share that it ties with.

        So the shares of a HIT average one half with or without ties, and a place means the same in a short HIT as in a
        long one. values: those of one whole HIT; a single item beats as many as it loses to.
        """
        if len(values) < 2:
            return [0.5] * len(values)
        others = 2 * (len(values) - 1)
        return [(2 * sum(v > value for v in values) + values.count(value) - 1) / others for value in values]

    def values_to_points(self, values: Array, hit: npt.NDArray[np.intp] | None = None) -> Array:
        """Return a hundred times the share in the item's HIT."""
        return 100.0 * beaten_share_of_each_item(values, np.zeros(len(values), np.intp) if hit is None else hit)


class OrderDesign(PlaceDesign):
    """An order of all items of a HIT, perhaps with ties: equal places. The place after two firsts is the third."""

    ties_allowed: bool = Field(
        default=True,
        title="Allow ties",
        description="Let annotators say that items are about equal.",
    )

    def possible_hit_values_or_refuse(self, values: list[float]) -> list[float]:
        """Return places without gaps except after ties: only the order counts."""
        places = [1.0 + sum(other < value for other in values) for value in values]
        if not self.ties_allowed and len(set(places)) < len(places):
            raise Invalid(
                "Two items have the same place, which this campaign does not allow. What you entered is kept.",
                code="answer_impossible",
            )
        return places

    def simulate_answer_values(self, shares: Sequence[float]) -> list[float]:
        """Return places by the shares. With ties allowed, items in the same twentieth of the scale tie; else the
        earlier wins.
        """
        perceived = [(round(share * TIE_STEPS), 0.0, 0) for share in shares]
        if not self.ties_allowed:
            perceived = [(0, share, -place) for place, share in enumerate(shares)]
        return [1.0 + sum(other > one for other in perceived) for one in perceived]


def format_ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th; up to 20th."""
    return f"{number}{ORDINAL_SUFFIXES.get(number, 'th')}"


def beaten_share_of_each_item(values: Array, hit: npt.NDArray[np.intp]) -> Array:
    """Return the shares of `PlaceDesign` for many HITs at once, (M,) in [0, 1]. Time: that of sorting.

    `values` and `hit` are (M,), the place of an item and the number of its HIT, in any order.
    """
    order = np.lexsort((-values, hit))  # the items of a HIT together, the last place first
    value, hit_numbers = values[order], hit[order]
    new_hit = np.append(True, hit_numbers[1:] != hit_numbers[:-1])[: len(hit_numbers)]
    first, size = span_start_and_length_of_each_position(new_hit)
    tie, tied = span_start_and_length_of_each_position(
        new_hit | np.append(True, value[1:] != value[:-1])[: len(hit_numbers)]
    )
    shares = np.full(len(values), 0.5)
    several = size > 1
    shares[order[several]] = (2 * (tie - first) + tied - 1)[several] / (2 * (size - 1))[several]
    return shares


def span_start_and_length_of_each_position(
    is_start: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return, for each position, the start and the length of its span.

    `is_start` is True where a span begins; its first entry is True.
    """
    starts = np.flatnonzero(is_start)
    span_numbers = np.cumsum(is_start) - 1
    return starts[span_numbers], np.diff(np.append(starts, len(is_start)))[span_numbers]
