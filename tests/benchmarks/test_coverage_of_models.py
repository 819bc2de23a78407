"""The table of how often intervals of models hold the truth can be made."""

import numpy as np

from benchmarks.coverage import CROWDS
from benchmarks.coverage_of_models import INTERVALS, one_run


def test_every_interval_has_a_share_that_holds_the_truth_and_a_width():
    crowd, at_random = CROWDS["the same, 15 % random"]
    found = one_run(crowd, at_random, 20, 0)
    assert [*found] == [*INTERVALS]
    for held, width, *_ in found.values():
        assert 0 <= held <= 1
        assert width > 0
    assert np.mean([held for held, *_ in found.values()]) > 0.8


def test_a_run_is_decided_by_its_number():
    crowd, at_random = CROWDS["biases .15"]
    assert one_run(crowd, at_random, 5, 1) == one_run(crowd, at_random, 5, 1)
