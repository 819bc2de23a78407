"""The table of what stopping by the scores of `easl-aware` is worth, in small."""

import numpy as np
import pytest

from benchmarks.stopping_aware import ITEMS, MEASURES, simulate_ends_by_measure

pytestmark = pytest.mark.slow


def test_a_campaign_ends_by_each_way_or_does_not():
    ends = simulate_ends_by_measure("intervals", 0.0, 1)
    assert len(ends) == len(MEASURES)
    for right, judgments in ends:
        assert 0.5 <= right <= 1
        assert 2 <= judgments <= 40
        assert (right * ITEMS) == np.round(right * ITEMS)
