"""Pairs whose outcome one annotator's answers imply, so that they need not be asked (Amidei 2020, section 4).

An annotator who prefers a to b and b to c is assumed to prefer a to c, so that pair need not be asked. The implied
relation is a strict order that follows from the answers in the order in which they came. Two things the paper leaves
open are decided by the behaviour of real annotators, the 84,445 judgments of pairs of UKPConvArg1 (`python -m
benchmarks.implied`):

- Only preferences carry over, ties do not: a chain of items that are each about equal to the next one ends far from its
  start. In these data, annotators contradict the implications of chains of preferences in 20 of 100 pairs; with ties in
  the chains, as the paper has it, in 32.
- Only an annotator's own answers imply: of the pairs that all annotators' answers imply together, 40 of 100 are
  answered otherwise.

An answer that contradicts an implication counts for its own pair alone, and the implication stays. To let it in would
close a circle, and then nothing could be told of any two items between its ends, which is most of them where the ends
are far apart: with 100 items and an annotator who errs about close ones, 69 of 100 pairs would be asked instead of 20,
to lower the share of implied pairs that are wrong from .10 to .07.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Integers
from app.inference.ground.proportions import wilson_shares_and_interval_ends

PairOutcome: TypeAlias = Literal[1, 0, -1]
"""Outcome of a pair: the first is better, a tie, the second is better."""

MAX_IMPLIED_ITEMS = 8_192
"""Largest number of items in an order; later items imply nothing. Two tables of this size take 16 MB."""

BitTable = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ImpliedCounts:
    """Number of implied pairs, and how often the implication was wrong where the pair was asked.

    Attributes:
        answered: Answered pairs.
        not_asked: Implied pairs that were not answered.
        asked_anyway: Pairs that were answered when they were implied.
        answered_otherwise: Those of them with another answer than implied.
        answered_reversed: Those of them with the opposite answer.

    """

    answered: int = 0
    not_asked: int = 0
    asked_anyway: int = 0
    answered_otherwise: int = 0
    answered_reversed: int = 0

    def __add__(self, other: "ImpliedCounts") -> "ImpliedCounts":
        return ImpliedCounts(
            self.answered + other.answered,
            self.not_asked + other.not_asked,
            self.asked_anyway + other.asked_anyway,
            self.answered_otherwise + other.answered_otherwise,
            self.answered_reversed + other.answered_reversed,
        )

    def contradicted_share_and_interval_or_none(self, level: float = 0.95) -> tuple[float, float, float] | None:
        """Share of implied pairs answered otherwise, with Wilson's interval (1927); None where none was asked.

        Pairs of one annotator share items, so the interval is rather too narrow.
        """
        if not self.asked_anyway:
            return None
        share, low, high = wilson_shares_and_interval_ends([self.answered_otherwise], [self.asked_anyway], level)
        return float(share[0]), float(low[0]), float(high[0])


def pair_outcome_from_scale_shares(shares: Sequence[float]) -> PairOutcome:
    """Return the outcome of a pair from two items' shares of a scale; higher is better."""
    first, second = shares
    return 1 if first > second else -1 if second > first else 0


class Implications:
    """The strict order that follows from one annotator's answers, kept transitively closed.

    Items are whole numbers; items that were never compared take no room, n others n * n / 4 bytes. An answer that is
    new to the order takes time O(n * n / 8) at worst, any other one and a query about one pair O(1), about all pairs of
    an item O(n).
    """

    def __init__(self) -> None:
        self.tally = ImpliedCounts()
        self._row: dict[int, int] = {}
        self._items = np.zeros(0, np.int64)
        self._below: BitTable = np.zeros((0, 0), np.uint8)  # bit j of row i: item i is above item j
        self._told: BitTable = np.zeros((0, 0), np.uint8)  # bit j of row i: the pair was answered

    @property
    def nbytes(self) -> int:
        """Approximate memory, in bytes."""
        return 200 * len(self._row) + self._below.nbytes + self._told.nbytes

    def add_answer(self, items: Sequence[int], shares: Sequence[float]) -> None:
        """Add an answer: items and their shares of a scale, higher is better.

        It is used only if there are two items, and both shares are known.
        """
        if len(items) == 2 and not any(map(math.isnan, shares)):
            self.add_outcome_and_return_implied_or_none(items[0], items[1], pair_outcome_from_scale_shares(shares))

    def add_outcome_and_return_implied_or_none(
        self, first_item: int, second_item: int, outcome: PairOutcome
    ) -> PairOutcome | None:
        """Add an answer; return the outcome that was implied for its pair, if any. A pair’s second answer changes
        nothing.
        """
        a, b = self._find_or_add_row_number_or_none(first_item), self._find_or_add_row_number_or_none(second_item)
        if a is None or b is None or _is_bit_set(self._told, a, b):
            return None
        implied = self.implied_outcome_or_none(first_item, second_item)
        _set_bit(self._told, a, b)
        _set_bit(self._told, b, a)
        if implied is not None:
            self.tally += ImpliedCounts(1, -1, 1, outcome != implied, outcome == -implied)
        else:
            self.tally += ImpliedCounts(
                1, self._insert_preference_and_count_implied(*((a, b) if outcome > 0 else (b, a))) if outcome else 0
            )
        return implied

    def implied_outcome_or_none(self, first_item: int, second_item: int) -> PairOutcome | None:
        """Return the implied outcome of two items, None if there is none."""
        a, b = self._row.get(first_item), self._row.get(second_item)
        if a is None or b is None:
            return None
        return 1 if _is_bit_set(self._below, a, b) else -1 if _is_bit_set(self._below, b, a) else None

    def items_already_compared_with(self, item: int) -> Integers:
        """Return the items with which an item was compared, in no particular order."""
        row = self._row.get(item)
        return self._items[:0] if row is None else self._items_of_bits(self._told[row])

    def unanswered_items_implied_with(self, item: int) -> Integers:
        """Return the items whose outcome with this item is implied but not answered, in no particular order."""
        row = self._row.get(item)
        if row is None:
            return self._items[:0]
        return self._items_of_bits((self._below[row] | np.packbits(self._mask_of_rows_above(row))) & ~self._told[row])

    def items_in_order_of_arrival(self) -> list[int]:
        """Return the items of the order, in the order in which they came."""
        return [*self._row]

    def implied_items_below(self, item: int) -> Integers:
        """Return the items that are implied to be below an item and were not compared with it, in numerical order."""
        row = self._row[item]
        return np.sort(self._items_of_bits(self._below[row] & ~self._told[row]))

    def _insert_preference_and_count_implied(self, winner_row: int, loser_row: int) -> int:
        """Put all rows above the winner above all rows below the loser.

        Rows that are above both already know the latter. Returns the number of newly implied pairs beyond the answered
        ones.
        """
        rows = np.append(
            np.flatnonzero(self._mask_of_rows_above(winner_row) & ~self._mask_of_rows_above(loser_row)), winner_row
        )
        lower = self._below[loser_row].copy()
        lower[loser_row >> 3] |= _byte_value_of_column_bit(loser_row)
        new = lower & ~self._below[rows]
        self._below[rows] |= new
        return int(np.bitwise_count(new & ~self._told[rows]).sum())

    def _mask_of_rows_above(self, row: int) -> npt.NDArray[np.bool_]:
        """Return which rows are above this one."""
        return np.asarray((self._below[:, row >> 3] & _byte_value_of_column_bit(row)) != 0)

    def _items_of_bits(self, bits: BitTable) -> Integers:
        return self._items[np.flatnonzero(np.unpackbits(bits))]

    def _find_or_add_row_number_or_none(self, item: int) -> int | None:
        """Return the item's row, a new one if it has none; None if there is no more room."""
        row = self._row.get(item)
        if row is None and len(self._row) < MAX_IMPLIED_ITEMS:
            row = self._row[item] = len(self._row)
            if row == len(self._items):
                self._double_capacity()
            self._items[row] = item
        return row

    def _double_capacity(self) -> None:
        """Double the room of the tables."""
        capacity = max(8, 2 * len(self._items))
        self._items = np.resize(self._items, capacity) if len(self._items) else np.zeros(capacity, np.int64)
        self._below, self._told = (_enlarge_table(table, capacity) for table in (self._below, self._told))


def _enlarge_table(table: BitTable, capacity: int) -> BitTable:
    larger = np.zeros((capacity, capacity // 8), np.uint8)
    larger[: table.shape[0], : table.shape[1]] = table
    return larger


def _byte_value_of_column_bit(column: int) -> int:
    """Return the bit of a column in its byte, as `packbits` orders them."""
    return 128 >> (column & 7)


def _is_bit_set(table: BitTable, row: int, column: int) -> bool:
    return bool(table.item(row, column >> 3) & _byte_value_of_column_bit(column))


def _set_bit(table: BitTable, row: int, column: int) -> None:
    table[row, column >> 3] |= _byte_value_of_column_bit(column)


def implications_and_implied_outcomes(
    first: Iterable[int], second: Iterable[int], outcomes: Iterable[PairOutcome], annotators: Iterable[int]
) -> tuple[dict[int, Implications], list[PairOutcome | None]]:
    """Return each annotator's implications, and the outcome implied for each pair before it was answered.

    The arguments are (J,) each, in order of time.
    """
    implications_by_annotator: dict[int, Implications] = {}
    implied_outcomes = []
    for first_item, second_item, outcome, annotator in zip(first, second, outcomes, annotators, strict=True):
        implied_outcomes.append(
            implications_by_annotator.setdefault(annotator, Implications()).add_outcome_and_return_implied_or_none(
                first_item, second_item, outcome
            )
        )
    return implications_by_annotator, implied_outcomes
