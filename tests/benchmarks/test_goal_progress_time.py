"""The table of how long it takes to say how near a goal is, in small."""

import numpy as np
import pytest

from benchmarks.goal_progress_time import GOALS, processor_seconds_of_progress, simulate_means

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("goal", GOALS)
def test_every_goal_is_timed(goal):
    assert processor_seconds_of_progress(goal, simulate_means(1_000, np.random.default_rng(1))) >= 0
