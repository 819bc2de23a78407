"""A set of items as a mask does what a set of numbers does."""

from array import array

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.selection.item_sets import MaskedItems, items_not_in_set

ITEMS = 12
NUMBERS = st.sets(st.integers(0, ITEMS - 1))


def masked(numbers: set[int]) -> MaskedItems:
    return MaskedItems(np.isin(np.arange(ITEMS), [*numbers]))


@given(NUMBERS, NUMBERS)
def test_unions_differences_and_comparisons_are_those_of_sets(numbers, others):
    items = masked(numbers)
    assert (sorted(items), len(items)) == (sorted(numbers), len(numbers))
    assert sorted(items | others) == sorted(others | items) == sorted(numbers | others)
    assert others - items == others - numbers
    assert (others <= items, items <= others) == (others <= numbers, numbers <= others)
    assert sorted(items) == sorted(numbers)


@given(NUMBERS, st.lists(st.tuples(st.booleans(), st.integers(0, ITEMS - 1))))
def test_items_are_added_and_removed(numbers, steps):
    items, expected = masked(numbers), {*numbers}
    for is_added, item in steps:
        (items.add if is_added else items.discard)(item)
        (expected.add if is_added else expected.discard)(item)
    assert (sorted(items), len(items)) == (sorted(expected), len(expected))
    assert [item in items for item in range(ITEMS + 1)] == [item in expected for item in range(ITEMS + 1)]


@given(NUMBERS, st.lists(st.lists(st.integers(0, ITEMS - 1))))
def test_items_outside_the_set_keep_the_order_of_their_buckets(numbers, buckets):
    arrays = [array("i", bucket) for bucket in buckets]
    expected = [item for bucket in buckets for item in bucket if item not in numbers]
    assert [*items_not_in_set(arrays, masked(numbers))] == [*items_not_in_set(arrays, numbers)] == expected
