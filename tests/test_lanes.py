"""Slow tests, which mostly wait, are begun first, by half of the processes."""

import pytest

from tests.lanes import order_for_processes


def test_half_of_the_processes_begin_with_slow_tests_and_the_others_with_quick_ones():
    ordered = order_for_processes(["chaos", "server"], list("abcdefghij"), 4)
    assert [ordered[start : start + 3] for start in (0, 3, 6, 9)] == [
        ["chaos", "a", "b"],
        ["server", "c", "d"],
        ["e", "f", "g"],
        ["h", "i", "j"],
    ]


def test_one_process_runs_the_slow_tests_first():
    assert order_for_processes(["server"], ["a", "b"], 1) == ["server", "a", "b"]


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(("slow", "quick"), [(0, 0), (0, 7), (1, 0), (9, 0), (9, 2), (2, 9), (3, 50)])
def test_each_test_runs_once(processes, slow, quick):
    slow_names, quick_names = [f"slow {k}" for k in range(slow)], [f"quick {k}" for k in range(quick)]
    ordered = order_for_processes(slow_names, quick_names, processes)
    assert sorted(ordered) == sorted(slow_names + quick_names)
    assert [name for name in ordered if name in slow_names] == slow_names
    assert [name for name in ordered if name in quick_names] == quick_names
