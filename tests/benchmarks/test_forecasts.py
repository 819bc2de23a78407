"""The table of how near plans are to what campaigns need, in small."""

import numpy as np
import pytest

from benchmarks.forecasts import ITEMS, ROWS, Planned, line_of, planned, rows_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("row", ROWS[6:8], ids=lambda row: f"{row.goal} after {row.before}")
def test_a_campaign_needs_about_what_was_planned(row):
    found = planned(row, 3)
    assert found.low <= found.middle <= found.high
    assert 0 < found.needed < np.inf
    assert found.middle == pytest.approx(found.needed, rel=0.9)


def test_a_line_counts_what_lies_below_in_and_above_the_bands():
    below, within, above = Planned(10, 30, 20, 40), Planned(20, 20, 20, 40), Planned(np.inf, 30, 20, 40)
    assert line_of(ROWS[0], [below, within, above, within]) == (
        f"| easl | 0% | 0 | {ROWS[0].goal} | 2 | 1 | 1 | {20 / ITEMS:.1f} | 1.00 (1.00 to 2.80) |"
    )


def test_the_rows_of_one_law_can_be_asked_for():
    aware = rows_of("easl-aware")
    assert {(row.goal, row.at_random, row.before) for row in aware} == {
        (goal, share, before) for goal in ("best", "intervals") for share in (0, 0.15) for before in (0, 2)
    }
    assert rows_of("easl") + aware == rows_of(None) == [*ROWS]
    with pytest.raises(SystemExit, match="not of ra"):
        rows_of("ra")
