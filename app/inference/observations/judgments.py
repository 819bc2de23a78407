"""Judgments in long form, one entry each, validated and sorted: the input of every measure of agreement."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.validation import (
    finite_vector_or_raise,
    index_array_and_count_or_raise,
    refuse_columns_of_unequal_length,
)


@dataclass(frozen=True, slots=True)
class Judgments:
    """T judgments of I items by J annotators, sorted by item, then annotator, no annotator twice on an item.

    Attributes:
        items: (T,), renumbered 0..I-1, so that each item has a judgment.
        annotators: (T,), renumbered 0..J-1 likewise.
        values: (T,), float64.
        per_item: (I,), judgments of each item.
        notes: Notes on judgments that were left out.

    """

    items: Integers
    annotators: Integers
    values: Array
    per_item: Integers
    notes: tuple[Note, ...]

    @property
    def n_items(self) -> int:
        """Number of items with a judgment."""
        return len(self.per_item)

    @property
    def n_annotators(self) -> int:
        """Number of annotators with a judgment."""
        return int(self.annotators.max()) + 1

    @property
    def n_pairs(self) -> int:
        """Number of pairs of judgments of the same item."""
        return int((self.per_item * (self.per_item - 1) // 2).sum())

    def sum_of_each_item(self, values: npt.ArrayLike) -> Array:
        """Return the sum of one number per judgment (T,) over each item's judgments, (I,)."""
        weights = np.asarray(values, dtype=np.float64)
        return np.asarray(np.bincount(self.items, weights=weights, minlength=self.n_items), dtype=np.float64)


def judgments_of_shared_items(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    min_annotators: int = 2,
) -> Judgments:
    """Return the judgments of items that at least `min_annotators` annotators judged.

    If an annotator judged an item several times, the first judgment counts. Raises ValueError as the checks in
    `validation` do, and `Inestimable` if no item has two annotators: `one_annotator`, `no_shared_items`.
    """
    items, _ = index_array_and_count_or_raise("items", items, n_items)
    annotators, _ = index_array_and_count_or_raise("annotators", annotators, n_annotators)
    values = finite_vector_or_raise("judgments", values)
    refuse_columns_of_unequal_length(items=items, annotators=annotators, judgments=values)
    order = np.lexsort((annotators, items))
    items, annotators, values = items[order], annotators[order], values[order]
    is_repeat = np.zeros(len(items), dtype=bool)
    is_repeat[1:] = (items[1:] == items[:-1]) & (annotators[1:] == annotators[:-1])
    notes = [left_out_repeats_note(int(is_repeat.sum()))] if is_repeat.any() else []
    items, annotators, values = items[~is_repeat], annotators[~is_repeat], values[~is_repeat]
    counts = np.bincount(items)
    refuse_unshared_judgments(annotators, counts)
    has_enough = counts[items] >= min_annotators
    if excluded_items := int(((counts > 0) & (counts < min_annotators)).sum()):
        notes.append(items_judged_once_left_out_note(excluded_items))
    per_item = counts[counts >= max(min_annotators, 1)]
    return Judgments(
        np.repeat(np.arange(len(per_item)), per_item),
        np.unique(annotators[has_enough], return_inverse=True)[1],
        values[has_enough],
        per_item,
        tuple(notes),
    )


def refuse_unshared_judgments(annotators: Integers, judgments_per_item: Integers) -> None:
    """Raise `Inestimable` unless some item has two judgments, given how many each item has."""
    if (judgments_per_item >= 2).any():
        return
    if len(annotators) and (annotators == annotators[0]).all():
        raise Inestimable(
            "All judgments are by one annotator, so there is no agreement to measure.", code="one_annotator"
        )
    raise Inestimable("No item was judged by two annotators, so no judgments can be compared.", code="no_shared_items")


def left_out_repeats_note(count: int) -> Note:
    """Return the note on judgments by an annotator who had judged the item before."""
    singular = "1 judgment was left out: its annotator had judged the same item before."
    plural = f"{count:,} judgments were left out: their annotators had judged the same items before."
    return Note("repeats_left_out", singular if count == 1 else plural)


def items_judged_once_left_out_note(count: int) -> Note:
    """Return the note on items with a single judgment."""
    singular = "1 item was left out: only one annotator judged it."
    plural = f"{count:,} items were left out: only one annotator judged each of them."
    return Note("single_judgments_left_out", singular if count == 1 else plural)


def judgment_pairs_within_items(judgments: Judgments) -> tuple[Integers, Integers]:
    """Return every pair of judgments of one item, as two arrays of positions (P,); the lower annotator comes first."""
    total = len(judgments.items)
    ends = np.cumsum(judgments.per_item)[judgments.items]
    follower_counts = ends - np.arange(total) - 1  # how many judgments of the same item follow
    first = np.repeat(np.arange(total), follower_counts)
    before = np.cumsum(follower_counts) - follower_counts
    return first, first + 1 + np.arange(len(first)) - before[first]
