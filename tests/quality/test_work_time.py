"""Time at work leaves out what was only left open, and nothing else."""

import pytest

from app.quality.work_time import is_faster_than_reading, total_work_seconds

HOURS = 3600.0


def test_a_hit_that_was_left_open_counts_as_a_usual_one(subtests):
    for times, usual, seconds in (
        ([30] * 9 + [5 * HOURS], 30, 300),
        ([30] * 10, 30, 300),
        ([30] * 9 + [140], 30, 410),  # it may have been a hard one
        ([30] * 9 + [151], 30, 300),
        ([4] * 9 + [59], 4, 95),  # short ones vary more
        ([30] * 6 + [5 * HOURS] * 4, 30, 300),
        ([30, 5 * HOURS], 30, 60),
        ([30, 5 * HOURS], None, 60),
        ([5 * HOURS], 30, 30),
        ([8 * HOURS, 9 * HOURS, 40], 30, 100),
        ([20, 20], 600, 40),  # who is quicker than others is not made slower
        ([600] * 6, 30, 3600),  # and who always takes longer works longer
        ([-5, 30, 30], 30, 60),  # the clock was set back
        ([], 30, 0),
    ):
        with subtests.test(times=times, usual=usual, seconds=seconds):
            assert total_work_seconds(times, usual) == pytest.approx(seconds)


def test_no_one_reads_an_item_in_half_a_second_or_a_task_in_one(subtests):
    for seconds, seconds_per_item, tasks, is_faster in (
        (0.9, 0.9, 12, True),  # one item
        (1.1, 1.1, 12, False),
        (2.4, 0.48, 12, True),  # five items
        (2.6, 0.52, 12, False),
        (0.9, 0.9, 4, False),  # a few tasks do not show the usual time
        (None, None, 12, False),
    ):
        with subtests.test(seconds=seconds, items=seconds_per_item, tasks=tasks):
            assert is_faster_than_reading(seconds, seconds_per_item, tasks) == is_faster
