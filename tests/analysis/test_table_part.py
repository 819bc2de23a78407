"""A section of tables on the analysis page."""

from dataclasses import replace
from typing import Any

import pytest

from app.analysis.graded_response_tables import GRADED_SECTION as SYSTEMS
from app.analysis.methods import TABLE_METHODS, tables_by_section
from app.analysis.result_types import Column, ResultTable
from app.analysis.table_page_part import build_table_part, load_table_parts_without_repeated_notes
from app.analysis.view import AnalysisView
from app.errors import Conflict

MEASURES = ResultTable(
    (Column("measure", "Name", "text"), Column("title", "Measure", "text"), Column("value", "Value")),
    [("transitivity", "Kappa", 0.5), ("retest_same", "Same", 0.5), ("retest_shift", "Shift", 3.0)],
)
ONE_ROW = ResultTable((Column("annotator", "Annotator", "text"), Column("sensitivity", "Sensitivity")), [("A", 1.5)])


class Fits:
    """Answers that come with each table, or the reason why there is none."""

    def __init__(self, **tables: ResultTable | str) -> None:
        self.tables = tables

    async def load_cached_or_fit_table(
        self, _engine: Any, _slug: str, name: str, _options: Any, **_by: str
    ) -> ResultTable:
        found = self.tables[name]
        if isinstance(found, str):
            raise Conflict(found, code="not_estimable")
        return found


async def shown(*tables: ResultTable | str) -> list[str]:
    names = [*tables_by_section(TABLE_METHODS)[SYSTEMS]]
    fits: Any = Fits(**dict(zip(names, tables, strict=True)))
    parts = await load_table_parts_without_repeated_notes(fits, None, "c", names, AnalysisView())  # type: ignore[arg-type]  # stand-ins
    return [part.refusal for part in parts]


async def test_one_reason_for_all_is_said_once() -> None:
    assert await shown("No systems.", "No systems.", "No systems.") == ["No systems."]


@pytest.mark.parametrize("tables", [("No systems.", ONE_ROW, "No systems."), ("No systems.", "One segment.", "Few.")])
async def test_other_reasons_stand_with_their_tables(tables: Any) -> None:
    assert await shown(*tables) == [table if isinstance(table, str) else "" for table in tables]


def test_shares_are_drawn_from_0_to_1_beside_coefficients_and_points_not_at_all() -> None:
    rows = build_table_part("consistency", TABLE_METHODS["consistency"], MEASURES, AnalysisView()).rows
    assert [row.axis and (row.axis.low, row.axis.high, row.axis.percent_of_zero_or_none, row.at) for row in rows] == [
        (-1.0, 1.0, 50.0, 75.0),
        (0.0, 1.0, None, 50.0),
        None,
    ]


@pytest.mark.parametrize(("rows", "one"), [([0, 1, 2], False), ([0, 2], True)])
def test_a_column_has_an_axis_if_all_its_rows_have_the_same(rows: list[int], one: bool) -> None:
    table = replace(MEASURES, rows=[MEASURES.rows[row] for row in rows])
    assert build_table_part("consistency", TABLE_METHODS["consistency"], table, AnalysisView()).has_one_axis == one
