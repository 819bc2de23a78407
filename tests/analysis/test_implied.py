"""The table of implied pairs and its export."""

import pytest

from app.analysis.available_methods import available_methods_for_design
from app.analysis.implied_pairs_table import (
    IMPLIED_PAIRS_TABLE,
    build_table_of_implied_pair_counts,
    lazy_answered_and_implied_pair_table,
)
from app.analysis.result_types import Options
from app.designs.registry import DESIGNS
from tests.analysis.answers import answers

BEST, WORST = 100.0, 0.0
MADE = answers(
    [
        (0, {0: BEST, 1: WORST}),
        (1, {0: BEST, 2: WORST}),
        (0, {1: BEST, 2: WORST}),
        (0, {0: WORST, 2: BEST}),
        (0, {2: BEST, 3: WORST}),
    ],
    compares_pairs=True,
)


def test_a_row_for_everybody_and_one_for_each_annotator():
    found = build_table_of_implied_pair_counts(MADE, Options())
    told = {row[0]: row[1:6] for row in found.rows}
    assert told == {"all": (5, 2, 1, 1, 1), "A1": (4, 2, 1, 1, 1), "A2": (1, 0, 0, 0, 0)}
    wrong = {row[0]: row[6:] for row in found.rows}
    assert wrong["A2"] == (None, None, None)
    assert wrong["A1"] == pytest.approx((1.0, 0.2065, 1.0), abs=1e-4)


def test_the_export_marks_what_is_implied_and_says_what_was_implied_of_what_was_asked():
    found = lazy_answered_and_implied_pair_table(MADE, Options())
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.make_rows(0, found.row_count)]
    assert [(row["first"], row["second"], row["preferred"], row["implied"]) for row in rows] == [
        ("i0", "i1", "i0", False),
        ("i0", "i2", "i0", False),
        ("i1", "i2", "i1", False),
        ("i0", "i2", "i2", False),
        ("i2", "i3", "i2", False),
        ("i0", "i3", "i0", True),
        ("i1", "i3", "i1", True),
    ]
    assert [row["implied_before"] for row in rows] == [None, None, None, "i0", None, None, None]
    assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5, None, None]


def test_pieces_of_the_export_make_the_whole(subtests):
    for size in (1, 2, 3, 100):
        with subtests.test(size=size):
            found = lazy_answered_and_implied_pair_table(MADE, Options())
            pieces = [
                row
                for start in range(0, found.row_count, size)
                for row in found.make_rows(start, min(start + size, found.row_count))
            ]
            assert pieces == [*found.make_rows(0, found.row_count)]


def test_designs_that_compare_any_two_items_reach_it_and_no_others():
    assert [
        name
        for name, design in DESIGNS.items()
        if IMPLIED_PAIRS_TABLE in available_methods_for_design(design()).tables.values()
    ] == ["pairwise"]
