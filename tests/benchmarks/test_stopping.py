"""The table of what stopping at a goal is worth, in small."""

import numpy as np
import pytest

from benchmarks.stopping import (
    CROWDS,
    MAX_JUDGMENTS_WITH_RELEASE,
    ROWS,
    VALUE_DISTRIBUTIONS,
    simulate_end_or_none,
    simulate_release,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.goal}, {row.rule}")
def test_campaigns_end_and_are_right_or_not(row):
    end = simulate_end_or_none(row, "two heaps", 3)
    assert end is not None
    assert 0 <= end.accuracy <= 1
    assert 1 <= end.judgments_per_item <= 60


def test_every_kind_of_items_lies_on_the_scale():
    for made in VALUE_DISTRIBUTIONS.values():
        truth = made(np.random.default_rng(1))
        assert len(truth) == 30
        assert 0 <= truth.min() < truth.max() <= 1


@pytest.mark.parametrize("crowd", CROWDS)
def test_campaigns_release_items_that_are_right_or_not(crowd):
    found = simulate_release("threshold", crowd, "two heaps", 3)
    assert 0 < found.right_items <= found.items <= 30
    assert (
        1
        <= min(found.judgments_per_item, found.even_judgments_per_item)
        <= max(found.judgments_per_item, found.even_judgments_per_item)
        <= MAX_JUDGMENTS_WITH_RELEASE
    )
