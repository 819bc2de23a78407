"""Judgments in long form, one entry each, checked and put in order: what every measure of agreement starts from."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.long_form import check_equal_length, finite, numbered
from app.inference.ground.notes import Note


@dataclass(frozen=True, slots=True)
class Judgments:
    """T judgments of I items by J annotators, sorted by item, then annotator, no annotator twice on an item.

    items, annotators: (T,), renumbered 0..I-1 and 0..J-1, so that each has a judgment.
    values: (T,), float64. per_item: (I,), judgments of each item.
    notes: what was left out.
    """

    items: Integers
    annotators: Integers
    values: Array
    per_item: Integers
    notes: tuple[Note, ...]

    @property
    def n_items(self) -> int:
        """How many items have a judgment here."""
        return len(self.per_item)

    @property
    def n_annotators(self) -> int:
        """How many annotators have a judgment here."""
        return int(self.annotators.max()) + 1

    @property
    def n_pairs(self) -> int:
        """How many pairs of judgments are of the same item."""
        return int((self.per_item * (self.per_item - 1) // 2).sum())

    def per_item_sum(self, of: npt.ArrayLike) -> Array:
        """The sum of one number per judgment (T,) over each item's judgments, (I,)."""
        weights = np.asarray(of, dtype=np.float64)
        return np.asarray(np.bincount(self.items, weights=weights, minlength=self.n_items), dtype=np.float64)


def compared(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    least: int = 2,
) -> Judgments:
    """The judgments of items that at least `least` annotators judged; of an annotator's several on one item the first.

    Raises ValueError as `long_form` does, and `Inestimable` if no item has two annotators: `one_annotator`,
    `no_shared_items`.
    """
    items, _ = numbered("items", items, n_items)
    annotators, _ = numbered("annotators", annotators, n_annotators)
    values = finite("judgments", values)
    check_equal_length(items=items, annotators=annotators, judgments=values)
    order = np.lexsort((annotators, items))
    items, annotators, values = items[order], annotators[order], values[order]
    again = np.zeros(len(items), dtype=bool)
    again[1:] = (items[1:] == items[:-1]) & (annotators[1:] == annotators[:-1])
    notes = [repeats_note(int(again.sum()))] if again.any() else []
    items, annotators, values = items[~again], annotators[~again], values[~again]
    counts = np.bincount(items)
    refuse_if_nothing_is_shared(annotators, counts)
    enough = counts[items] >= least
    if alone := int(((counts > 0) & (counts < least)).sum()):
        notes.append(alone_note(alone))
    per_item = counts[counts >= max(least, 1)]
    return Judgments(
        np.repeat(np.arange(len(per_item)), per_item),
        np.unique(annotators[enough], return_inverse=True)[1],
        values[enough],
        per_item,
        tuple(notes),
    )


def refuse_if_nothing_is_shared(annotators: Integers, counts: Integers) -> None:
    """Raises `Inestimable` unless some item has two judgments, given how many each has."""
    if (counts >= 2).any():
        return
    if len(annotators) and (annotators == annotators[0]).all():
        raise Inestimable("All judgments are by one annotator, so there is nobody to agree with.", code="one_annotator")
    raise Inestimable("No item was judged by two annotators, so no judgments can be compared.", code="no_shared_items")


def repeats_note(count: int) -> Note:
    """What is said of judgments by an annotator who had judged the item before."""
    one = "1 judgment was left out: its annotator had judged the same item before."
    more = f"{count:,} judgments were left out: their annotators had judged the same items before."
    return Note("repeats_left_out", one if count == 1 else more)


def alone_note(count: int) -> Note:
    """What is said of items with a single judgment."""
    one = "1 item was left out: only one annotator judged it."
    more = f"{count:,} items were left out: only one annotator judged each of them."
    return Note("single_judgments_left_out", one if count == 1 else more)


def pairs_within_items(judgments: Judgments) -> tuple[Integers, Integers]:
    """Every pair of judgments of one item, as two arrays of positions (P,); the lower annotator comes first."""
    total = len(judgments.items)
    ends = np.cumsum(judgments.per_item)[judgments.items]
    partners = ends - np.arange(total) - 1  # how many judgments of the same item follow
    first = np.repeat(np.arange(total), partners)
    before = np.cumsum(partners) - partners
    return first, first + 1 + np.arange(len(first)) - before[first]
