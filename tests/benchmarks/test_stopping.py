"""The table of what stopping at a goal is worth, in small."""

import numpy as np
import pytest

from benchmarks.stopping import CAP, CROWDS, ROWS, TRUTHS, ended, released

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.goal}, {row.rule}")
def test_campaigns_end_and_are_right_or_not(row):
    end = ended(row, "two heaps", 3)
    assert end is not None
    assert 0 <= end.right <= 1
    assert 1 <= end.judgments <= 60


def test_every_kind_of_items_lies_on_the_scale():
    for made in TRUTHS.values():
        truth = made(np.random.default_rng(1))
        assert len(truth) == 30
        assert 0 <= truth.min() < truth.max() <= 1


@pytest.mark.parametrize("crowd", CROWDS)
def test_campaigns_release_items_that_are_right_or_not(crowd):
    found = released("threshold", crowd, "two heaps", 3)
    assert 0 < found.right <= found.items <= 30
    assert 1 <= min(found.judgments, found.evenly) <= max(found.judgments, found.evenly) <= CAP
