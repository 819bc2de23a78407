"""The table of how near plans are to what campaigns need, in small."""

import numpy as np
import pytest

from benchmarks.forecasts import (
    ITEMS,
    ROWS,
    ForecastAndNeed,
    forecast_and_run_campaign,
    format_table_row,
    list_rows_or_exit,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("row", ROWS[6:8], ids=lambda row: f"{row.goal} after {row.judgments_before}")
def test_a_campaign_needs_about_what_was_planned(row):
    found = forecast_and_run_campaign(row, 3)
    assert found.low <= found.median <= found.high
    assert 0 < found.needed < np.inf
    assert found.median == pytest.approx(found.needed, rel=0.9)


def test_a_line_counts_what_lies_below_in_and_above_the_bands():
    below, within, above = (
        ForecastAndNeed(10, 30, 20, 40),
        ForecastAndNeed(20, 20, 20, 40),
        ForecastAndNeed(np.inf, 30, 20, 40),
    )
    assert format_table_row(ROWS[0], [below, within, above, within]) == (
        f"| easl | 0% | 0 | {ROWS[0].goal} | 2 | 1 | 1 | {20 / ITEMS:.1f} | 1.00 (1.00 to 2.80) |"
    )


def test_the_rows_of_one_law_can_be_asked_for():
    aware = list_rows_or_exit("easl-aware")
    assert {(row.goal, row.random_share, row.judgments_before) for row in aware} == {
        (goal, share, before) for goal in ("best", "intervals") for share in (0, 0.15) for before in (0, 2)
    }
    assert list_rows_or_exit("easl") + aware == list_rows_or_exit(None) == [*ROWS]
    with pytest.raises(SystemExit, match="not of ra"):
        list_rows_or_exit("ra")
