"""Which segment a HIT of systems is about."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.selection.segments import (
    SegmentIndex,
    items_of_hit_with_distinct_outputs,
    value_of_each_item_by_its_shown_item,
)


def segments(alike):
    """Return an index of outputs: for each segment and system the lowest system with the same output, -1 for none."""
    table = np.array(alike)
    segment, system = np.nonzero(table >= 0)
    size, systems = table.shape
    return SegmentIndex(size, systems, segment, system, table[segment, system])


def pick(of, systems, *, must=None, had=(), never=(), again=True, leases=None, different=1, possible=None, seed=0):
    return of.pick_segment_or_none(
        systems,
        systems[:1] if must is None else must,
        seen_segments=had,
        excluded_segments=never,
        seen_as_last_resort=again,
        open_hit_counts=leases or {},
        wanted_different=different,
        possible_segments=possible,
        rng=np.random.default_rng(seed),
    )


def judge(of, counts):
    """Let all outputs of these segments have been judged so often."""
    of.update_output_judgment_counts(
        [(segment, system, count) for segment, count in counts.items() for system in range(of.system_count)]
    )


FULL = [[0, 1, 2]] * 4


def test_the_least_used_is_taken():
    of = segments(FULL)
    judge(of, {0: 3, 1: 2, 2: 3, 3: 3})
    assert pick(of, [0, 1]) == 1
    assert pick(of, [0, 1], leases={1: 2}) in (0, 2, 3)


def test_the_outputs_of_the_systems_in_the_hit_count_and_those_of_others_decide_a_tie():
    of = segments(FULL)
    of.update_output_judgment_counts([(0, 0, 1), (1, 1, 9), (2, 1, 8), (3, 0, 1)])
    assert {pick(of, [0], seed=seed) for seed in range(40)} == {2}
    assert {pick(of, [1], seed=seed) for seed in range(40)} == {0, 3}
    assert {pick(of, [0, 1], seed=seed) for seed in range(40)} == {0, 3}


def test_all_outputs_of_a_system_are_judged_about_equally_often():
    """24 people see each of 40 segments once, with one of 8 systems."""
    of, rng = segments([[*range(8)]] * 40), np.random.default_rng(1)
    had: list[set[int]] = [set() for _ in range(24)]
    for _ in range(40):
        for seen in had:
            system = int(rng.integers(8))
            segment = pick(of, [system], had=seen, again=False, seed=rng)
            seen.add(segment)
            of.update_output_judgment_counts([(segment, system, of.uses[segment, system] + 1)])
    mean_of_each_system = of.uses.mean(axis=0)
    assert np.abs(of.uses - mean_of_each_system).max() < 2.5
    assert np.abs(of.uses - mean_of_each_system).mean() < 0.6


def test_equally_used_ones_are_taken_at_random():
    of = segments(FULL)
    assert {pick(of, [0, 1], seed=seed) for seed in range(40)} == {0, 1, 2, 3}


def test_counts_only_grow():
    of = segments(FULL)
    of.update_output_judgment_counts([(1, 2, 5)])
    of.update_output_judgment_counts([(1, 2, 4)])
    assert of.uses.tolist() == [[0, 0, 0], [0, 0, 5], [0, 0, 0], [0, 0, 0]]


def test_what_somebody_has_had_comes_last_or_never():
    of = segments(FULL)
    judge(of, {3: 9})
    assert pick(of, [0, 1], had={0, 1, 2}) == 3
    assert pick(of, [0, 1], had={0, 1, 2, 3}) in (0, 1, 2)
    assert pick(of, [0, 1], had={0, 1, 2, 3}, again=False) is None
    assert pick(of, [0, 1], had={0, 1, 2, 3}, never={0, 1, 3}) == 2
    assert pick(of, [0, 1], had={0, 1, 2, 3}, never={0, 1, 2, 3}) is None


def test_segments_that_joined_since_are_passed_over():
    of = segments(FULL)
    assert pick(of, [0, 1], had={0, 1, 2, 9}, leases={9: 1}) == 3


def test_a_segment_with_outputs_of_all_is_taken_before_others():
    of = segments([[0, -1, 2], [0, 1, 2], [-1, 1, 2]])
    judge(of, {1: 100})
    assert pick(of, [0, 1, 2]) == 1
    assert pick(of, [0, 1, 2], had={1}) == 0
    assert pick(of, [0, 1, 2], had={0, 1}, again=False) is None


def test_a_segment_in_which_outputs_differ_is_taken_before_others():
    of = segments([[0, 0, 0], [0, 0, 2], [0, 1, 2]])
    judge(of, {1: 1, 2: 2})
    assert pick(of, [0, 1, 2], different=1) == 0
    assert pick(of, [0, 1, 2], different=2) == 1
    assert pick(of, [0, 1, 2], different=3) == 2


def test_systems_whose_segments_somebody_has_had_are_used_up():
    of = segments([[0, 1, -1], [0, -1, 2]])
    assert of.systems_without_unseen_segment(set()) == set()
    assert of.systems_without_unseen_segment({0}) == {1}
    assert of.systems_without_unseen_segment({0, 1}) == {0, 1, 2}
    assert segments(FULL).systems_without_unseen_segment({0, 1, 2}) == set()
    assert segments(FULL).systems_without_unseen_segment({0, 1, 2, 3}) == {0, 1, 2}


def test_systems_without_company_are_told():
    of = segments([[0, 0, -1], [-1, -1, 2], [0, -1, 2]])
    assert of.systems_without_usable_segment(2, ()) == [1]
    assert of.systems_without_usable_segment(1, ()) == []
    assert of.systems_without_usable_segment(2, [2]) == [1]


@given(st.lists(st.sampled_from([0, 1, 3, -1]), min_size=1, max_size=6))
def test_each_output_is_shown_once_and_speaks_for_all_that_are_the_same(row):
    systems = [k for k, output in enumerate(row) if output >= 0]
    of = segments([row])
    shown_as = of.first_equal_system_of_each_or_none(0, systems)
    shown = items_of_hit_with_distinct_outputs(systems, shown_as)
    assert len(shown) == of.count_different_outputs(0, systems) == len({row[k] for k in systems})
    values = value_of_each_item_by_its_shown_item({item: row[item] for item in shown}, systems, shown_as)
    assert values == [row[k] for k in systems]


def test_what_is_the_same_everywhere_cannot_be_compared():
    of = segments([[0, 0, 2], [0, 0, -1], [-1, 1, 2]])
    assert not of.can_any_segment_compare_systems([0, 1], [], n=2, min_outputs=2)
    assert of.can_any_segment_compare_systems([0, 1, 2], [], n=2, min_outputs=2)
    assert of.can_any_segment_compare_systems([0, 1], [], n=2, min_outputs=1)
    assert of.can_any_segment_compare_systems([0], [2], n=1, min_outputs=2)
    assert not of.can_any_segment_compare_systems([0], [1], n=1, min_outputs=2)
    assert not of.can_any_segment_compare_systems([], [], n=2, min_outputs=1)


def test_a_segment_can_be_asked_about_where_enough_outputs_differ():
    of = segments([[0, 0, 2, 2], [0, 1, 2, 3], [0, -1, 0, 0], [-1, 1, 2, 3]])
    assert of.mask_of_comparable_segments([0], [1, 2, 3], max_others=1, min_outputs=2).tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert of.mask_of_comparable_segments([0], [1, 2, 3], max_others=3, min_outputs=3).tolist() == [
        False,
        True,
        False,
        False,
    ]
    assert of.mask_of_comparable_segments([0], [1, 2, 3], max_others=1, min_outputs=3).tolist() == [False] * 4
    assert pick(of, [0, 1, 2], possible=of.mask_of_comparable_segments([0], [1, 2], max_others=2, min_outputs=3)) == 1


def test_of_outputs_that_are_the_same_one_stays():
    of = segments([[0, 0, 2, 2, 4]])
    assert of.systems_with_already_shown_output(0, [0], [3, 2, 1, 4]) == {1, 2}
