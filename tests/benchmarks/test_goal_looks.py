"""The table of how long it takes to say how near a goal is, in small."""

import numpy as np
import pytest

from benchmarks.goal_looks import GOALS, known, seconds

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("goal", GOALS)
def test_every_goal_is_timed(goal):
    assert seconds(goal, known(1_000, np.random.default_rng(1))) >= 0
